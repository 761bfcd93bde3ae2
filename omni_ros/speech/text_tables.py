# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How things that are written short are said in English."""

from __future__ import annotations

#: Units after a number: one, many.
UNITS: dict[str, tuple[str, str]] = {
    name: (one, many or one + "s")
    for name, one, many in (
        ("mm", "millimeter", ""), ("cm", "centimeter", ""), ("m", "meter", ""),
        ("km", "kilometer", ""), ("in", "inch", "inches"), ("ft", "foot", "feet"),
        ("yd", "yard", ""), ("mi", "mile", ""), ("nm", "nanometer", ""),
        ("\u00b5m", "micrometer", ""), ("mg", "milligram", ""), ("g", "gram", ""),
        ("kg", "kilogram", ""), ("lb", "pound", ""), ("lbs", "pound", ""), ("oz", "ounce", ""),
        ("t", "ton", ""), ("ml", "milliliter", ""), ("mL", "milliliter", ""), ("l", "liter", ""),
        ("L", "liter", ""), ("ns", "nanosecond", ""), ("\u00b5s", "microsecond", ""),
        ("us", "microsecond", ""), ("ms", "millisecond", ""), ("s", "second", ""),
        ("sec", "second", ""), ("secs", "second", ""), ("min", "minute", ""),
        ("mins", "minute", ""), ("h", "hour", ""), ("hr", "hour", ""), ("hrs", "hour", ""),
        ("Hz", "hertz", "hertz"), ("kHz", "kilohertz", "kilohertz"),
        ("MHz", "megahertz", "megahertz"), ("GHz", "gigahertz", "gigahertz"),
        ("V", "volt", ""), ("mV", "millivolt", ""), ("kV", "kilovolt", ""), ("A", "amp", ""),
        ("mA", "milliamp", ""), ("mAh", "milliamp hour", ""), ("Ah", "amp hour", ""),
        ("W", "watt", ""), ("kW", "kilowatt", ""), ("mW", "milliwatt", ""), ("Wh", "watt hour", ""),
        ("kWh", "kilowatt hour", ""), ("J", "joule", ""), ("kJ", "kilojoule", ""),
        ("N", "newton", ""), ("kN", "kilonewton", ""), ("Nm", "newton meter", ""),
        ("N\u00b7m", "newton meter", ""), ("Pa", "pascal", ""), ("kPa", "kilopascal", ""),
        ("hPa", "hectopascal", ""), ("bar", "bar", ""), ("psi", "P S I", "P S I"),
        ("rad", "radian", ""), ("deg", "degree", ""), ("rpm", "R P M", "R P M"),
        ("dB", "decibel", ""), ("px", "pixel", ""), ("fps", "frame per second", "frames per second"),
        ("mph", "mile per hour", "miles per hour"), ("kph", "kilometer per hour",
                                                     "kilometers per hour"),
        ("B", "byte", ""), ("KB", "kilobyte", ""), ("kB", "kilobyte", ""), ("MB", "megabyte", ""),
        ("GB", "gigabyte", ""), ("TB", "terabyte", ""), ("kbps", "kilobit per second",
                                                        "kilobits per second"),
        ("Mbps", "megabit per second", "megabits per second"),
        ("Gbps", "gigabit per second", "gigabits per second"),
        ("\u03a9", "ohm", ""), ("k\u03a9", "kilohm", ""), ("\u00b0C", "degree Celsius",
                                                           "degrees Celsius"),
        ("\u00b0F", "degree Fahrenheit", "degrees Fahrenheit"), ("\u00b0", "degree", ""),
        ("K", "kelvin", "kelvin"), ("%", "percent", "percent"),
        ("m\u00b2", "square meter", ""), ("m\u00b3", "cubic meter", ""),
        ("cm\u00b2", "square centimeter", ""), ("cm\u00b3", "cubic centimeter", ""),
        ("km\u00b2", "square kilometer", ""),
    )
}
#: What stands under a stroke: m/s.
PER = {"s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour", "kg": "kilogram",
       "m": "meter", "l": "liter", "L": "liter", "day": "day", "s\u00b2": "second squared",
       "s^2": "second squared", "s2": "second squared"}
#: Units that are words or letters by themselves: only taken for units directly behind a number
#: ("5in" is, "5 in a row" is not).
CLOSE_ONLY = frozenset({"in", "A", "us", "t", "K", "B"})

CURRENCIES = {
    "$": ("dollar", "dollars", "cent", "cents"), "\u20ac": ("euro", "euros", "cent", "cents"),
    "\u00a3": ("pound", "pounds", "penny", "pence"), "\u00a5": ("yen", "yen", "", ""),
    "US$": ("dollar", "dollars", "cent", "cents"), "\u20b9": ("rupee", "rupees", "paisa", "paise"),
}
MAGNITUDES = {"k": "thousand", "K": "thousand", "m": "million", "M": "million", "b": "billion",
              "bn": "billion", "B": "billion", "T": "trillion", "thousand": "thousand",
              "million": "million", "billion": "billion", "trillion": "trillion"}
MONTHS = ("January February March April May June July August September October November "
          "December").split()
MONTH_WORDS = {**{m.lower(): m for m in MONTHS}, **{m[:3].lower(): m for m in MONTHS},
               "sept": "September"}

#: With their full stop; lower case. What depends on what follows is in `text`.
ABBREVIATIONS = {
    "mr.": "mister", "mrs.": "missus", "ms.": "miz", "dr.": "doctor", "prof.": "professor",
    "sr.": "senior", "jr.": "junior", "gen.": "general", "col.": "colonel", "capt.": "captain",
    "lt.": "lieutenant", "sgt.": "sergeant", "rev.": "reverend", "hon.": "honorable",
    "e.g.": "for example", "i.e.": "that is", "etc.": "et cetera", "vs.": "versus",
    "approx.": "approximately", "fig.": "figure", "figs.": "figures", "eq.": "equation",
    "sec.": "section", "vol.": "volume", "ch.": "chapter", "dept.": "department",
    "est.": "established", "inc.": "incorporated", "ltd.": "limited", "co.": "company",
    "corp.": "corporation", "ave.": "avenue", "blvd.": "boulevard", "rd.": "road",
    "max.": "maximum", "min.": "minimum", "temp.": "temperature", "cf.": "compare",
    "et al.": "and others", "ca.": "about", "a.m.": "A M", "p.m.": "P M", "u.s.": "U S",
    "u.k.": "U K", "u.n.": "U N", "d.c.": "D C", "ph.d.": "P H D", "w/o": "without", "w/": "with",
}
#: Without a full stop.
SHORT = {"mr": "mister", "mrs": "missus", "dr": "doctor", "vs": "versus", "eg": "for example",
         "ie": "that is", "etc": "et cetera", "approx": "approximately"}
#: Written in capitals, said as words.
SAID = frozenset(
    "NASA NATO UNESCO UNICEF LASER RADAR LIDAR RAM ROM SIM PIN GIF JPEG SCADA OSHA OPEC COVID AIDS "
    "ASAP NAND AND OR NOT THE IS ON OFF UP DOWN LEFT RIGHT STOP GO YES NO OK WARNING ERROR DANGER "
    "READY DONE TO IT IN AT OF FOR YOU ARE BE DO MY ALL NEW TWO ONE RED BLUE GREEN ARM ROS".split()
)
#: Said as their letters although they are words as well, or with letters and a word.
SPELLED = {"ROS2": "Ross two", "JSON": "jason", "YAML": "yammel", "SQL": "sequel", "GUI": "gooey",
           "WiFi": "wi fi", "Wi-Fi": "wi fi", "OK": "okay", "ok": "okay", "OpenPI": "open pie",
           "IPv4": "I P version four", "IPv6": "I P version six"}
SPELLED["ROS"] = "Ross"
#: Single signs that are said, with a space on either side.
SIGNS = {"&": "and", "@": "at", "+": "plus", "=": "equals", "\u00d7": "times", "\u00f7":
         "divided by", "\u00b1": "plus or minus", "\u2248": "about", "~": "about", "<": "less than",
         ">": "greater than", "\u2264": "at most", "\u2265": "at least", "\u2260": "is not",
         "\u2192": "to", "\u00b0": "degrees", "\u00a9": "copyright", "\u00ae": "", "\u2122": "",
         "\u00a7": "section", "%": "percent", "$": "dollars", "\u20ac": "euros", "\u00a3": "pounds",
         "\u221e": "infinity", "\u221a": "square root of", "#": "number", "\\": "backslash"}
GREEK = dict(zip(
    "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6\u03b7\u03b8\u03b9\u03ba\u03bb\u03bc\u03bd\u03be\u03bf\u03c0"
    "\u03c1\u03c3\u03c4\u03c5\u03c6\u03c7\u03c8\u03c9",
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma "
    "tau upsilon phi chi psi omega".split(), strict=True,
))
FRACTIONS = {"\u00bd": "one half", "\u2153": "one third", "\u2154": "two thirds",
             "\u00bc": "one quarter", "\u00be": "three quarters", "\u215b": "one eighth"}
#: Denominators that have names of their own.
PARTS = {2: ("half", "halves"), 4: ("quarter", "quarters")}
