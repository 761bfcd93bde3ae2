# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Notations of numbers that the rules of `text_rules` would take for something else.

Ranges, exponents, Roman numerals, hexadecimal, addresses of machines, and the ways to write a number that
are not English. Where a notation may mean two things, it is left as English reads it.
"""

from __future__ import annotations

import re

from omni_ros.speech.text_numbers import cardinal, decimal, digits, ordinal, roman

_FEW = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
_SIGN = r"[$\u20ac\u00a3\u00a5\u20b9]"
_MONTH = (r"(?:January|February|March|April|May|June|July|August|September|October|November|December|"
          r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)")
_ROMAN = r"(?:X{0,3}(?:I[XV]|VI{0,3}|I{1,3})|X{1,3})"
_ROMAN_END = r"(?=[\s,;:.!?')]|$)"
#: What is numbered in Roman numerals, down to a single I.
_COUNTED = ("War|Chapter|Part|Section|Figure|Type|Phase|Level|Class|Mark|Act|Volume|Book|Stage|"
            "Appendix|Step|Version|Article|Table|Grade")
#: The same, but "the model I trained".
_NUMBERED = "Zone|Station|Unit|Room|Model|Bowl|Group|Robot|Arm|Joint|Camera|Sensor|Gen|Mode"
#: Who is numbered with an ordinal: Henry the eighth. Behind any other name it is a plain number.
_REGNAL = ("Henry|Charles|George|Edward|Elizabeth|William|Louis|James|Richard|John|Paul|Pius|"
           "Benedict|Gregory|Leo|Philip|Felipe|Francis|Napoleon|Nicholas|Alexander|Peter|Catherine|"
           "Frederick|Wilhelm|Ivan|Ramses|Ramesses|Ptolemy|Mary|Otto|Ferdinand|Gustav|Christian|Harald|Olav|"
           "Urban|Innocent|Clement|Sixtus|Boniface|Juan|Carlos|Albert|Leopold|Joseph|Darius|Margrethe|"
           "Haakon|Constantine|Victor|Emmanuel|Umberto|Pedro|Alfonso|Robert|Rudolf|Maximilian|Ludwig")
_TITLE = "King|Queen|Pope|Emperor|Empress|Tsar|Czar|Kaiser|Sultan|Prince|Pharaoh"
_BYTE = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_HEX = r"[0-9A-Fa-f]{1,4}"
#: In front of an address there is none: a URL is another rule's.
_ALONE = r"(?<![\w.:/@-])"
_FILES = ("py|txt|md|cpp|hpp|yaml|yml|json|xml|urdf|xacro|csv|mcap|db3|wav|mp3|png|jpg|jpeg|pdf|zip|gz|log|"
          "cfg|conf|toml|sh|onnx|pte|gguf|safetensors")


def _spelled(text: str) -> str:
    """Return hexadecimal digits one by one."""
    return " ".join(digits(sign) if sign.isdecimal() else sign.upper() for sign in text)


def _scientific(match: re.Match[str]) -> str:
    minus = "minus " if match[2] == "-" else ""
    mantissa = decimal(match[1].replace(",", ""))
    return f"{mantissa} times ten to the power of {minus}{cardinal(int(match[3]))}"


def _machine(match: re.Match[str]) -> str:
    """192.168.0.1, with a port or the length of a network's prefix."""
    words = " dot ".join(cardinal(int(part)) for part in match[1].split("."))
    if match[2]:
        words += f", port {digits(match[2])}"
    return words + (f", slash {cardinal(int(match[3]))}" if match[3] else "")


def _long_address(match: re.Match[str]) -> str:
    """An IPv6 address; the groups that are left out are heard too."""
    groups = match[1].replace("::", ":double:").strip(":").split(":")
    words = ", ".join("double colon" if group == "double" else _spelled(group) for group in groups)
    return words + (f", slash {cardinal(int(match[2]))}" if match[2] else "")


def _european(match: re.Match[str]) -> str:
    return match.group().replace(".", "").replace(",", ".")


def _day_first(match: re.Match[str]) -> str:
    return f"{match[3]}-{int(match[2]):02}-{int(match[1]):02}"


#: In the order in which they are applied.
_NOTATIONS = tuple((re.compile(pattern), change) for pattern, change in (
    (rf"{_ALONE}[0-9A-Fa-f]{{2}}(?:([:-])[0-9A-Fa-f]{{2}})(?:\1[0-9A-Fa-f]{{2}}){{4}}(?![\w:-])",
     lambda m: ", ".join(_spelled(pair) for pair in m.group().split(m[1]))),
    (rf"{_ALONE}({_BYTE}(?:\.{_BYTE}){{3}})(?::(\d{{1,5}}))?(?:/(\d{{1,2}}))?(?![\w/]|[.:]\w)", _machine),
    # A digit somewhere, or it may be a name of C++.
    (rf"{_ALONE}(?=[A-Fa-f:]*\d)((?:{_HEX}:){{7}}{_HEX}|(?:{_HEX}(?::{_HEX})*)?::(?:{_HEX}(?::{_HEX})*)?)"
     rf"(?:/(\d{{1,3}}))?(?![\w:/])", _long_address),
    # Days before months, where no month is so long a number, or a year follows full stops.
    (r"(?<![\w./])(0?[1-9]|[12]\d|3[01])\.(0?[1-9]|1[0-2])\.([12]\d{3})(?!\w|\.\d)", _day_first),
    (r"(?<![\w./])(1[3-9]|2\d|3[01])/(0?[1-9]|1[0-2])/([12]\d{3})(?![\w/])", _day_first),
    (r"(?<![\w./])([12]\d{3})/(0?[1-9]|1[0-2])/(0?[1-9]|[12]\d|3[01])(?![\w/])",
     lambda m: f"{m[1]}-{int(m[2]):02}-{int(m[3]):02}"),
    # 1.234,56 and 1.234.567; one group alone is English and has three decimals.
    (r"(?<![\w.,])\d{1,3}(?:\.\d{3})+,\d+(?!\w*\d|[.,]\d)"
     r"|(?<![\w.,])(?<!(?i:version) )[1-9]\d{0,2}(?:\.\d{3}){2,}(?!\w|[.,]\d)", _european),
    # 3,5; not where it may be a list: (3,5), 1,2,3 and "joints 3,5 and 7".
    (r"(?<![\w.,'(\[{])(?:\d+,\d{1,2}|\d+,\d{4,}|0,\d{3})(?!\d|[.,]\d|\s?(?:,|and|or|&)\s?\d+(?![\d,]))",
     _european),
    (r"(?<![\w.,'])[1-9]\d{0,2}(?:'\d{3})+(?![\w'])", lambda m: m.group().replace("'", "")),
    (r"(?<![\w.,])[1-9]\d{0,2}(?: 000)+(?![\w]|[ ,.]\d)", lambda m: m.group().replace(" ", "")),
    # The amount before its sign.
    (rf"(?<![\w.,\u2013-])({_FEW})\s?({_SIGN})(?!\s?\d)", lambda m: f"{m[2]}{m[1]}"),
    (r"(?<![\d/])24/7(?![\d/])", lambda m: "twenty-four seven"),
    (r"\b([A-G])#(?!\w)", lambda m: f"{m[1]} sharp"),
    (r"(?<=\d)\s?\*\s?(?=\d)", lambda m: " times "),
    (r"(?<!\S)-(?=inf(?:inity)?\b)", lambda m: "minus "),
    (rf"(?<=\w)\.(?=(?:{_FILES})(?!\w))", lambda m: " dot "),
    (r"(?<!\S)~(?=/)", lambda m: "home "),
    # Two amounts of a currency or of a unit, with a hyphen that is no minus.
    (rf"({_SIGN})\s?({_FEW})\s?[-\u2013]\s?(?:\1\s?)?(?=\d)", lambda m: f"{m[2]} to {m[1]}"),
    (rf"(\d)(\s?[A-Za-z%\u00b0\u03bc\u03a9]{{1,4}})\s?[-\u2013]\s?(?={_FEW}\2(?!\w))",
     lambda m: f"{m[1]}{m[2]} to "),
    (rf"({_SIGN})\s?-\s?(?=\d)", lambda m: f"-{m[1]}"),
    (r"(?<!\S)-(?=\d{1,3}/\d{1,3}(?![\w/]))", lambda m: "minus "),
    (rf"(?<![\w.])([+-]?{_FEW})[eE]([+-]?)(\d{{1,3}})(?!\w|\.\d)", _scientific),
    (r"\b0[xX]([0-9A-Fa-f]+)\b", lambda m: "hex " + _spelled(m[1])),
    (r"(?<!\w)'([2-9]0)s\b", lambda m: cardinal(int(m[1]))[:-1] + "ies"),
    (r"(?<![\w.'])(\d{1,2})'\s?(\d{1,2})(?:\"|'')", lambda m: f"{m[1]} ft {m[2]} inches"),
    (rf"\b([12]?\d|3[01])(?:st|nd|rd|th)?(?: of)? ({_MONTH}),? ([12]\d{{3}})\b",
     lambda m: f"{m[2]} {m[1]}, {m[3]}"),
    (rf"\b({_COUNTED}) ({_ROMAN}){_ROMAN_END}", lambda m: f"{m[1]} {cardinal(roman(m[2]))}"),
    (rf"\b({_NUMBERED}) (?!I(?!\w))({_ROMAN}){_ROMAN_END}",
     lambda m: f"{m[1]} {cardinal(roman(m[2]))}"),
    # With a title also the first, which behind a name alone is whoever speaks.
    (rf"\b((?:{_TITLE})(?: [A-Z][a-z]+){{1,2}}) ({_ROMAN}){_ROMAN_END}",
     lambda m: f"{m[1]} the {ordinal(roman(m[2]))}"),
    (rf"\b({_REGNAL}) (?!I(?!\w)|X(?!\w))({_ROMAN}){_ROMAN_END}",
     lambda m: f"{m[1]} the {ordinal(roman(m[2]))}"),
    (rf"\b([A-Z][a-z]{{2,}}) (X{{0,2}}(?:I{{2,3}}|VI{{2,3}}|IX)|X[IV]+|XX){_ROMAN_END}",
     lambda m: f"{m[1]} {cardinal(roman(m[2]))}"),
))


def notations(text: str) -> str:
    """Put these notations in words, or as the rules know them."""
    for pattern, change in _NOTATIONS:
        text = pattern.sub(change, text)
    return text
