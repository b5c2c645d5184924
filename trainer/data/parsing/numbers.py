"""Parse numbers by decimal sign, thousands separator and unit into plain decimals.

Nothing is computed: "1.234,50 €" becomes "1234.50", so the digits are the ones in the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from trainer.data.parsing.words import is_currency, unit_of

SPACES = dict.fromkeys(map(ord, "\u00a0\u2007\u2009\u202f"), " ")
# spreadsheets leave these zero-width characters behind
UNSEEN = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"))
SIGNS = {0x2212: "-", 0x2019: "'", 0x02BC: "'"}
CORE = re.compile(r"[0-9]+(?:[.,' ][0-9]+)*(?:[eE][+-]?[0-9]{1,5})?|[.,][0-9]+(?:[eE][+-]?[0-9]{1,5})?", re.ASCII)
PARTS = re.compile(rf"([+-]?)([^0-9+\-.,']*)([+-]?)({CORE.pattern})([^0-9]?.*)", re.ASCII | re.DOTALL)
NEGATIVE = {"": "", "()": "negative numbers in brackets", "-": "the minus sign behind the number"}
DECIMALS = (".", ",")
THOUSANDS = ("", ",", ".", " ", "'")
# styles of negative numbers: (5) and 5-
BRACKETS = "()"
BEHIND = "-"
BRACKETED = re.compile(r"([^0-9()]*)\(([^0-9()]*[0-9][^()]*)\)([^0-9()]*)")
MINUS_BEHIND = re.compile(r"([^-]*[0-9])\s?-(|\s+[^-0-9.,\s][^-0-9]*|[€$£¥%])")
DECIMAL_SIGN = re.compile(r"[0-9]+(?:([.,' ])[0-9]+)(?:\1[0-9]+)*(?!\1)[.,][0-9]*", re.ASCII)
NAMES = {"": "none", ",": "comma", ".": "point", " ": "space", "'": "apostrophe"}


def fold_characters(word: str) -> str:
    """Return the word with plain spaces, minus signs and apostrophes, without invisible characters."""
    return word.translate(SPACES | SIGNS | UNSEEN).strip()


def other_sign(decimal: str) -> str:
    """Return the decimal sign that is not `decimal`."""
    return "," if decimal == "." else "."


@dataclass(frozen=True)
class NumberParts:
    """Sign, core and unit ("" for none) of a word; `negative` is "()" for (5), "-" for 5-, "" for a sign in front or none."""

    sign: str
    core: str
    unit: str
    negative: str = ""


def parts_of(word: str) -> NumberParts | None:
    """Split a word into sign, core and unit; return None if it is not one number with at most one known unit."""
    text, negative = _positive(fold_characters(word))
    match = PARTS.fullmatch(text)
    if match is None:
        return None
    first, before, second, core, after = match.groups()
    if (first or second) and (negative or (first and second)):
        return None
    if before.strip() and after.strip():
        return None
    unit = before.strip() or after.strip()
    canonical_unit = unit_of(unit) if unit else ""
    if canonical_unit is None or (canonical_unit and not _may_stand(canonical_unit, before, after)):
        return None
    return NumberParts("-" if negative else first or second, core, canonical_unit, negative)


def _positive(text: str) -> tuple[str, str]:
    """Return a text without the brackets or the trailing minus that make it negative, and which of the two it had."""
    if (match := BRACKETED.fullmatch(text)) is not None:
        return "".join(match.groups()), BRACKETS
    if (match := MINUS_BEHIND.fullmatch(text)) is not None:
        return "".join(match.groups()), BEHIND
    return text, ""


def _may_stand(unit: str, before: str, after: str) -> bool:
    """Return whether a unit may stand on its side of the number.

    Currencies stand on either side, other units behind. "V1" and "1A" are codes, "1 A" is an electric current.
    """
    if before.strip():
        return is_currency(unit)
    return len(unit) > 1 or not unit.isupper() or after[0] == " "


def _body(decimal: str, thousands: str) -> re.Pattern[str]:
    integer_digits = r"0|[1-9][0-9]*"
    if thousands:
        integer_digits = rf"[1-9][0-9]{{0,2}}(?:{re.escape(thousands)}[0-9]{{3}})+|{integer_digits}"
    point = re.escape(decimal)
    return re.compile(rf"(?:(?:{integer_digits})(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]{{1,5}})?", re.ASCII)


BODIES = {(d, t): _body(d, t) for d in DECIMALS for t in THOUSANDS if d != t}
Way = tuple[str, str]  # decimal sign and thousands separator


def ways_of(core: str) -> frozenset[Way]:
    """Return the number formats that `core` fits."""
    return frozenset(way for way, body in BODIES.items() if body.fullmatch(core))


@dataclass(frozen=True, kw_only=True)
class NumberForm:
    """A number format, with the unit of every number ("" for none); `negative` as in `NumberParts`.

    With `either`, point and comma are both decimal signs, and `decimal` is the usual one. Then a word in which the other
    sign could separate thousands, such as "1.234", does not have this form.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    negative: str = ""
    either: bool = False

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return BODIES[(self.decimal, self.thousands)]

    def plain(self, word: str) -> str | None:
        """Return the number with a decimal point and without unit; None if the word does not have this form."""
        parts = parts_of(word)
        if parts is None or parts.unit != self.unit or parts.negative not in ("", self.negative):
            return None
        core = self._with_usual_sign(parts.core) if self.either else parts.core
        if not self._pattern.fullmatch(core):
            return None
        core = core.replace(self.thousands, "") if self.thousands else core
        return parts.sign + core.replace(self.decimal, ".")

    def _with_usual_sign(self, core: str) -> str:
        other = other_sign(self.decimal)
        ways = ways_of(core)
        return core.replace(other, self.decimal) if (other, "") in ways and (self.decimal, other) not in ways else core

    @property
    def words(self) -> str:
        """The form in words."""
        parts = [f"decimal {NAMES[self.decimal]}"] if self.decimal != "." or self.thousands or self.either else []
        parts += [f"or {NAMES[other_sign(self.decimal)]}"] if self.either else []
        parts += [f"{NAMES[self.thousands]} between thousands"] if self.thousands else []
        parts += [f"the unit {self.unit}"] if self.unit else []
        parts += [NEGATIVE[self.negative]] if self.negative else []
        return ", ".join(parts) or "plain numbers"


def account_like(cores: Sequence[str]) -> bool:
    """Return whether the cores look like telephone or account numbers.

    They all have the same number of groups of digits: at least three with spaces, four with other signs. If the last
    sign differs from those before it, it is a decimal sign, as in "3 927,89", which no account has.
    """
    if any(DECIMAL_SIGN.fullmatch(core) for core in cores):
        return False
    groups = {len(re.findall(r"[.,' ]", core)) for core in cores}
    return len(cores) > 1 and len(groups) == 1 and groups.pop() >= (2 if " " in cores[0] else 3)
