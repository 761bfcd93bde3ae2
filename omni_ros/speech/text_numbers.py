# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers in English words."""

from __future__ import annotations

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
_GROUPS = ("", " thousand", " million", " billion", " trillion", " quadrillion")
_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth",
    "nine": "ninth", "twelve": "twelfth",
}
#: Longer ones are read digit by digit: nobody follows them otherwise.
MAX_DIGITS = 15


def cardinal(number: int) -> str:
    """Return 42 as forty-two."""
    if number < 0:
        return f"minus {cardinal(-number)}"
    if number >= 10**MAX_DIGITS:
        return digits(str(number))
    if number < 1000:
        return _below_thousand(number)
    words, group = [], 0
    while number:
        number, rest = divmod(number, 1000)
        if rest:
            words.append(_below_thousand(rest) + _GROUPS[group])
        group += 1
    return " ".join(reversed(words))


def _below_thousand(number: int) -> str:
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens] + (f"-{_ONES[ones]}" if ones else "")
    hundreds, rest = divmod(number, 100)
    return f"{_ONES[hundreds]} hundred" + (f" {_below_thousand(rest)}" if rest else "")


def digits(text: str) -> str:
    """Return 042 as zero four two."""
    return " ".join(_ONES[int(digit)] for digit in text)


def whole(text: str) -> str:
    """Return digits as a number: 1,234 and 1234 as one thousand two hundred thirty-four.

    What begins with 0 or is very long is read digit by digit.
    """
    plain = text.replace(",", "")
    if len(plain) > MAX_DIGITS or (len(plain) > 1 and plain.startswith("0")):
        return digits(plain)
    return cardinal(int(plain))


def decimal(text: str) -> str:
    """Return 3.05 as three point zero five, with a sign if there is one."""
    sign = ""
    if text[0] in "+-\u2212":
        sign, text = ("plus " if text[0] == "+" else "minus "), text[1:]
    front, point, back = text.partition(".")
    words = whole(front) if front else "zero"
    return sign + words + (f" point {digits(back)}" if point and back else "")


def ordinal(number: int) -> str:
    """Return 21 as twenty-first."""
    words = cardinal(number)
    front = words.rstrip("abcdefghijklmnopqrstuvwxyz")
    last = words[len(front):]
    if last in _ORDINALS:
        last = _ORDINALS[last]
    else:
        last = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return front + last


def year(number: int) -> str:
    """Return 1984 as nineteen eighty-four and 2007 as two thousand seven."""
    high, low = divmod(number, 100)
    if 2000 <= number < 2010 or number < 1000 or number > 2999 or (not low and not high % 10):
        return cardinal(number)
    if not low:
        return f"{cardinal(high)} hundred"
    return f"{cardinal(high)} {'oh ' + _ONES[low] if low < 10 else cardinal(low)}"


def several(text: str, one: str, many: str) -> str:
    """Return a number with what is counted: 1 meter, 1.5 meters."""
    return f"{decimal(text)} {one if text.lstrip('+-') in ('1', '1.0') else many}"


def roman(text: str) -> int:
    """Return XIV as 14."""
    values = [{"I": 1, "V": 5, "X": 10}[letter] for letter in text]
    return sum(-one if one < after else one for one, after in zip(values, [*values[1:], 0]))
