# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The rules of `text`, in the order in which they are applied. Each takes and returns a text."""

from __future__ import annotations

import re
from collections.abc import Callable

from omni_ros.speech.text_numbers import cardinal, decimal, digits, ordinal, several, whole, year
from omni_ros.speech.text_tables import (
    ABBREVIATIONS,
    CLOSE_ONLY,
    CURRENCIES,
    GREEK,
    MAGNITUDES,
    MONTH_WORDS,
    MONTHS,
    PARTS,
    PER,
    SAID,
    SHORT,
    SIGNS,
    SPELLED,
    UNITS,
)

Rule = Callable[[str], str]
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_BEFORE, _AFTER = r"(?<![\w.,])", r"(?![\w])"
_END_OF_URL = ".,;:!?)]}'\""


def _rule(pattern: str, change: Callable[[re.Match[str]], str], flags: int = 0) -> Rule:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.sub(change, text)


# -- addresses and names of things ---------------------------------------------------------------


def _address(text: str) -> str:
    """Return signs of an address in words: joe.doe@example.com/a-b."""
    names = {".": "dot", "@": "at", "/": "slash", "-": "dash", "_": "underscore", ":": "colon",
             "#": "hash", "?": "question mark", "=": "equals", "&": "and", "~": "tilde", "+": "plus",
             "%": "percent"}
    parts = re.findall(r"[A-Za-z]+|\d+|[^A-Za-z\d]", text)
    said = [names.get(p, "") if not p.isalnum() else digits(p) if p.isdecimal() else _word(p)
            for p in parts]  # fmt: skip
    return " ".join(word for word in said if word)


def _word(word: str) -> str:
    return " ".join(word.upper()) if word in ("www", "io", "ai", "uk", "http", "https") else word


def _url(match: re.Match[str]) -> str:
    whole_url = match.group()
    url = whole_url.rstrip(_END_OF_URL)
    tail = whole_url[len(url):]
    url = re.sub(r"^[a-z][a-z0-9+.-]*://(?:www\.)?|^www\.", "", url, flags=re.I).rstrip("/")
    if len(url) > 60:
        url = re.split(r"[/?#]", url)[0]
    return f" {_address(url)}{tail} "


def _code(match: re.Match[str]) -> str:
    """front_camera, joint_3, /cmd_vel and jointStates as words."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", match.group().replace("/", " ").replace("_", " "))
    return f" {words} "


# -- money, units, numbers -----------------------------------------------------------------------


def _money(match: re.Match[str]) -> str:
    one, many, cent, cents = CURRENCIES[match["sign"]]
    amount, magnitude = match["amount"].replace(",", ""), match["magnitude"]
    sign = "minus " if match["minus"] else ""
    if magnitude:
        return f"{sign}{decimal(amount)} {MAGNITUDES[magnitude]} {many}"
    front, _, back = amount.partition(".")
    if not cent or len(back) != 2:
        return sign + several(amount, one, many)
    words = [] if not int(front or 0) and int(back) else [several(front, one, many)]
    if int(back):
        words.append(several(str(int(back)), cent, cents))
    return sign + " and ".join(words)


def _unit_pattern() -> str:
    names = sorted(UNITS, key=len, reverse=True)
    spaced = "|".join(re.escape(n.replace("\u00b5", "\u03bc")) for n in names if n not in CLOSE_ONLY)
    close = "|".join(re.escape(n) for n in names if n in CLOSE_ONLY)
    per = "|".join(re.escape(n) for n in sorted(PER, key=len, reverse=True))
    return (rf"(?<![\w.%])(?P<number>[+-]?(?:{_NUMBER}))(?:[ -]?(?P<unit>{spaced})|(?P<close>{close}))"
            rf"(?:\^(?P<power>[23]))?(?:/(?P<per>{per}))?(?![\w/])")


def _unit(match: re.Match[str]) -> str:
    name = (match["unit"] or match["close"]).replace("\u03bc", "\u00b5")
    one, many = UNITS[name]
    if match["power"]:
        word = "square" if match["power"] == "2" else "cubic"
        one, many = f"{word} {one}", f"{word} {many}"
    words = several(match["number"].replace(",", ""), one, many)
    return words + (f" per {PER[match['per']]}" if match["per"] else "")


def _power(match: re.Match[str]) -> str:
    named = {"2": "squared", "3": "cubed"}.get(match[1])
    return f" {named} " if named else f" to the power of {decimal(match[1])} "


def _time(match: re.Match[str]) -> str:
    hour, minute, second = int(match["hour"]), match["minute"], match["second"]
    half = (match["half"] or "").replace(".", "").replace(" ", "").upper()
    words = [cardinal(hour)]
    if minute is not None and int(minute):
        words.append(f"oh {cardinal(int(minute))}" if minute[0] == "0" else cardinal(int(minute)))
    elif not half:
        words.append("o'clock" if hour <= 12 and hour else "hundred")
    if second:
        words.append(f"and {several(str(int(second)), 'second', 'seconds')}")
    # A full stop that ends the sentence stays.
    stop = "." if match["half"] and match["half"].endswith(".") and match["end"] is not None else ""
    return " ".join([*words, *half]) + stop


def _date(year_text: str | None, month: int, day: int) -> str:
    words = f"{MONTHS[month - 1]} {ordinal(day)}"
    return words + (f", {year(int(year_text))}" if year_text else "")


def _iso_date(match: re.Match[str]) -> str:
    return _date(match[1], int(match[2]), int(match[3]))


def _us_date(match: re.Match[str]) -> str:
    return _date(match[3], int(match[1]), int(match[2]))


def _month_day(match: re.Match[str]) -> str:
    name = match["month"].rstrip(".").lower()
    return _date(match["year"], MONTHS.index(MONTH_WORDS[name]) + 1, int(match["day"]))


def _fraction(match: re.Match[str]) -> str:
    above, below = int(match[2]), int(match[3])
    if not below or above > 99 or below > 99:
        return f"{match[1] or ''}{whole(match[2])} over {whole(match[3])}"
    one, many = PARTS.get(below, (ordinal(below), ordinal(below) + "s"))
    words = f"{cardinal(above)} {one if above == 1 else many}"
    return f"{whole(match[1].strip())} and {words}" if match[1] else words


def _phone(match: re.Match[str]) -> str:
    return ", ".join(digits(part) for part in re.findall(r"\d+", match.group()))


def _version(match: re.Match[str]) -> str:
    before = match.string[:match.start()].rstrip().lower()
    lead = "version " if match[3] and not before.endswith("version") else ""
    return lead + " point ".join(whole(part) for part in (match[2] or match[4]).split("."))


def _mixed(match: re.Match[str]) -> str:
    """R2D2, A4, B12, 3D: letters and digits as such."""
    parts = re.findall(r"[A-Za-z]+|\d+", match.group())
    return " ".join(
        whole(p) if p.isdecimal() else " ".join(p) if p.isupper() and len(p) < 4 else p
        for p in parts
    )


def _capitals(match: re.Match[str]) -> str:
    word, plural = match[1], match[2] or ""
    if word in SPELLED:
        return SPELLED[word] + plural
    if word in SAID or len(word) > 5:
        return word.lower() + plural
    return " ".join(word) + ("'s" if plural else "")


def _abbreviation(match: re.Match[str]) -> str:
    found = match.group()
    words = ABBREVIATIONS.get(found.lower()) or SHORT.get(found.lower())
    assert words is not None
    ends = found.endswith(".") and not match.string[match.end():].strip(" \"')")
    return words + ("." if ends else "")


def _initials(match: re.Match[str]) -> str:
    """U.S.A. and a.b.c, apart from a word that follows without a space."""
    apart = " " if match.string[match.end():match.end() + 1].isalnum() else ""
    return " ".join(match.group().replace(".", "").upper()) + apart


def _words(names: dict[str, str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


_MONTH = "|".join(sorted(MONTH_WORDS, key=len, reverse=True))
_CURRENCY = "|".join(re.escape(c) for c in sorted(CURRENCIES, key=len, reverse=True))
_MAGNITUDE = "|".join(sorted(MAGNITUDES, key=len, reverse=True))

RULES: tuple[Rule, ...] = (
    # Marks of Markdown, and brackets as the pauses that they are.
    _rule(r"```|`|\*\*|__|(?m:^\s*(?:#{1,6}|[-*\u2022>])\s+)|(?<!\w)\*|\*(?!\w)", lambda m: " "),
    _rule(r"\[([^\]]*)\]\(([^)\s]*)\)", lambda m: m[1]),
    _rule(r"(?m)^\s*(\d{1,3})[.)]\s+", lambda m: f"{whole(m[1])}. "),
    _rule(r"<(?:/?[A-Za-z]|[!?])[^<>]{0,80}>", lambda m: " "),
    # What is shouted is not spelled.
    _rule(r"(?s)^.*$", lambda m: _shouted(m.group())),
    _rule(r"\s*(?!\(\d{3}\))[(\[{]\s*|(?<!\(\d{3})\s*[)\]}](?=\s|[,;:.!?]|$)", lambda m: ", "),
    _rule(r"\s*[\u2014\u2013](?=\D)|\s+-{1,3}\s+(?=\D)", lambda m: ", "),
    # Addresses, before anything takes their dots for full stops.
    _rule(r"\b(?:[a-z][a-z0-9+.-]*://|www\.)\S+", _url, re.I),
    _rule(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b", lambda m: _address(m.group())),
    _rule(r"\b(?:[A-Za-z][\w-]*\.)+(?:com|org|net|io|dev|ai|edu|gov|uk|de|eu)(?:/\S*)?\b(?![.]?\w)",
          _url),
    _rule(r"(?<!\S)/?[A-Za-z]\w*(?:[_/]\w+)*_\w+(?:/\w+)*|(?<!\S)/[a-z]\w*(?:/\w+)*", _code),
    # Times and dates.
    _rule(r"(?<![\w:.])(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?"
          r"(?:\s?(?P<half>[ap]\.?m\b\.?))?(?![\w:])(?P<end>\s*$)?", _time, re.I),
    _rule(r"(?<![\w.])(?P<hour>1[0-2]|0?[1-9])(?P<minute>)(?P<second>)\s?(?P<half>[ap]\.?m\b\.?)"
          r"(?P<end>\s*$)?",
          lambda m: f"{cardinal(int(m['hour']))} {m['half'][0].upper()} M"
          + ("." if m["half"].endswith(".") and m["end"] is not None else ""), re.I),
    _rule(r"(?<![\w:.])(\d+):(\d+)(?![\w:])", lambda m: f"{m[1]} to {m[2]}"),
    _rule(r"\b([12]\d{3})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])\b", _iso_date),
    _rule(r"(?<![\d/])(0?[1-9]|1[0-2])/(0?[1-9]|[12]\d|3[01])/([12]\d{3})\b", _us_date),
    _rule(rf"\b(?P<month>{_MONTH})\.?\s+(?P<day>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?\b"
          r"(?:,?\s+(?P<year>[12]\d{3})\b)?", _month_day, re.I),
    _rule(r"(?i)\b(in|since|until|till|by|from|year|of|before|after|during|to|and) (1[1-9]\d{2}|20\d{2})"
          r"\b(?![.,]?\d|\s?(?:%|[a-z]+s\b))", lambda m: f"{m[1]} {year(int(m[2]))}"),
    _rule(r"\b(1[1-9]\d|20\d)0s\b", lambda m: _decade(m.group()[:-1])),
    # Money, telephone numbers, versions, fractions, ranges, units.
    _rule(rf"(?P<minus>(?<!\w)-)?(?P<sign>{_CURRENCY})\s?(?P<amount>{_NUMBER})"
          rf"(?:\s?(?P<magnitude>{_MAGNITUDE})\b)?", _money),
    _rule(r"(?<![\w.])(?:\+?\d{1,3}[ -])?\(?\d{3}\)?[ -]\d{3}[ -]\d{4}\b|(?<![\w.-])\d{3}-\d{4}\b",
          _phone),
    _rule(r"(?<![\w.])(?:()(\d+(?:\.\d+){2,})|(v)(\d+(?:\.\d+)*))\b",
          _version),
    _rule(r"(?<![\w./])(\d+\s)?(\d{1,3})/(\d{1,3})(?![\w/])", _fraction),
    _rule(rf"(?<=\d)\s?[-\u2013]\s?(?=(?:{_NUMBER})(?:\s?[^\d\s]|\s|$))", lambda m: " to "),
    _rule(r"(?<=\d)\s?[x\u00d7]\s?(?=\d)", lambda m: " by "),
    _rule(r"(?<=\d)[x\u00d7](?=\s|$)", lambda m: " times"),
    _rule(_unit_pattern(), _unit),
    _rule(r"(?<=[\w)])\^(-?\d+)(?!\.?\d)", _power),
    _rule(rf"(?<![\w.])({_NUMBER})\s?(k|K|M|bn|B)\b",
          lambda m: f"{decimal(m[1].replace(',', ''))} {MAGNITUDES[m[2]]}"),
    # Abbreviations and capitals.
    _rule(r"\b[Nn]o\.\s?(?=\d)|\bNos\.\s?(?=\d)", lambda m: "number "),
    _rule(r"\bSt\.\s+(?=[A-Z])", lambda m: "Saint "),
    _rule(r"\bSt\.", lambda m: "street"),
    _rule(rf"(?<![\w.])(?:{_words(ABBREVIATIONS)})(?!\w)|\b(?:{_words(SHORT)})\b(?!\.)",
          _abbreviation, re.I),
    _rule(r"\b(?:[A-Za-z]\.){2,}(?:([A-Za-z])\b|(?=\w))?", _initials),
    _rule(r"#(?=\d)", lambda m: "number "),
    _rule(rf"\b(?:{_words(SPELLED)})\b", lambda m: SPELLED[m.group()]),
    # Numbers that are left.
    _rule(r"\b(\d{1,3}(?:,\d{3})+|\d+)(st|nd|rd|th)\b", lambda m: ordinal(int(m[1].replace(",", "")))
          if len(m[1]) < 12 else m[1]),
    _rule(r"\b(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z\d]{2,}\b", _mixed),
    _rule(rf"(?<![\w.])[+-]?(?:{_NUMBER})(?!\d)", lambda m: decimal(m.group().replace(",", ""))),
    _rule(r"\d+", lambda m: f" {digits(m.group())} "),
    _rule(r"\b([A-Z]{2,})(s|'s)?\b", _capitals),
    # Signs.
    _rule(r"[\u0370-\u03ff]", lambda m: f" {GREEK.get(m.group().lower(), '')} "),
    _rule(r"(?<=\w)/(?=\w)", lambda m: " "),
    _rule("|".join(map(re.escape, SIGNS)), lambda m: f" {SIGNS[m.group()]} "),
)


def _shouted(text: str) -> str:
    words = [word for word in re.findall(r"[A-Za-z]{2,}", text) if word not in SPELLED]
    if len(words) > 1 and all(map(str.isupper, words)) and max(map(len, words)) > 3:
        return re.sub(r"\b[A-Z]{2,}\b", lambda m: m.group().lower(), text)
    return text


def _decade(text: str) -> str:
    words = year(int(text))
    return words[:-1] + "ies" if words.endswith("y") else words + "s"
