"""Describe the format of one column and convert its cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.data.parsing.alike import Spellings
from trainer.data.parsing.cells import Cells
from trainer.data.parsing.dates import FORMATS, TIME, DateForm
from trainer.data.parsing.numbers import DECIMALS, NEGATIVE, THOUSANDS, NumberForm, other_sign
from trainer.errors import DataError
from trainer.table import ranks_in

TEXT = "text"
NUMBER = "number"
DATE = "date"
PLAIN = "plain"
ASK = "ask"
RANKS = "ranks"  # a kind of the user: categories become their ranks, from 1
BETWEEN_RANKS = "<"
LISTED = 20


@dataclass(frozen=True, kw_only=True)
class ColumnReading:
    """The parsing of a column.

    `taken_for` is one of:

    - "number" and "date" (dates and times of day): in the format of `number` or `date`;
    - "plain": unchanged, except for the words in `missing` and `spellings`;
    - "text": text, although some cells look like numbers;
    - "ask": undecided; the user has to answer `question` first.
    """

    name: str
    taken_for: str
    reason: str = ""
    number: NumberForm | None = None
    date: DateForm | None = None
    missing: tuple[str, ...] = ()  # words that mean an empty cell
    spellings: Mapping[str, str] = field(default_factory=dict)  # maps a spelling to its replacement
    ranks: tuple[str, ...] = ()  # words that become the numbers 1, 2, 3
    question: str = ""
    choices: tuple[str, ...] = ()  # values of `--kind` between which the user may choose
    given: bool = False  # whether the user chose the parsing
    odd: tuple[str, ...] = ()  # words that do not fit the format and may mean an empty cell

    @property
    def special(self) -> bool:
        """Whether the column needs other parsing than in a clean file, which a model has to repeat."""
        return self.taken_for in (NUMBER, DATE) or bool(self.missing or self.spellings)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the resulting columns."""
        return self.date.names(self.name) if self.date is not None else (self.name,)

    @property
    def unit(self) -> str:
        return self.number.unit if self.number is not None else ""

    @property
    def words(self) -> str:
        """The format in words."""
        if self.taken_for == NUMBER and self.number is not None:
            return f"numbers, {self.number.words}" if self.number != NumberForm() else "numbers"
        if self.date is not None:
            what = "times of day" if self.date.form == TIME else f"dates, {self.date.form}"
            return what + (" with times of day" if self.date.clock else "")
        if self.ranks:
            return f"the ranks of {BETWEEN_RANKS.join(self.ranks)[:200]}"
        return {PLAIN: "as it stands", TEXT: "text", ASK: "not decided"}[self.taken_for]

    @property
    def switch(self) -> str:
        """The value of `--kind` for this parsing."""
        if self.taken_for == NUMBER and self.number is not None:
            return (
                either_switch(self.number.decimal)
                if self.number.either
                else f"number:{self.number.decimal}{self.number.thousands}"
            )
        if self.date is not None:
            return TIME if self.date.form == TIME else f"date:{self.date.form}"
        return "text" if self.taken_for == TEXT else ""

    def to_json(self) -> dict[str, Any]:
        """Return the record for a model file, with which new cells can be parsed in the same way."""
        record: dict[str, Any] = {"taken_for": self.taken_for}
        if self.reason:
            record["reason"] = self.reason
        if self.number is not None:
            record |= {"decimal": self.number.decimal, "thousands": self.number.thousands}
            record |= {"unit": self.number.unit} if self.number.unit else {}
            record |= {"negative": self.number.negative} if self.number.negative else {}
            record |= {"either": True} if self.number.either else {}
        if self.date is not None:
            record["form"] = self.date.form
            record |= {"origin": self.date.origin} if self.date.origin else {}
            record |= {"clock": True} if self.date.clock else {}
            record |= {"zone": self.date.zone} if self.date.zone else {}
        record |= {"missing": list(self.missing)} if self.missing else {}
        record |= {"spellings": dict(self.spellings)} if self.spellings else {}
        record |= {"ranks": list(self.ranks)} if self.ranks else {}
        record |= {"question": self.question, "odd": list(self.odd)} if self.question else {}
        record |= {"choices": list(self.choices)} if self.choices else {}
        return record | ({"given": True} if self.given else {})

    @classmethod
    def from_json(cls, name: str, record: dict[str, Any]) -> ColumnReading:
        """Build the reading from the record of `to_json`; raise DataError for an unknown format."""
        number = date = None
        taken_for = str(record.get("taken_for"))
        if taken_for == NUMBER:
            number = NumberForm(
                decimal=record["decimal"],
                thousands=record["thousands"],
                unit=str(record.get("unit", "")),
                negative=str(record.get("negative", "")),
                either=bool(record.get("either")),
            )
        elif taken_for == DATE:
            date = DateForm(
                form=record["form"],
                origin=str(record.get("origin", "")),
                clock=bool(record.get("clock")),
                zone=str(record.get("zone", "")),
            )
        bad = taken_for not in (TEXT, NUMBER, DATE, PLAIN, ASK) or (date is not None and not _is_known_date(date))
        bad = bad or (number is not None and (number.decimal not in DECIMALS or number.thousands not in THOUSANDS))
        bad = bad or (number is not None and number.negative not in NEGATIVE)
        bad = bad or (number is not None and number.either and number.thousands != "")
        if bad or (number is not None and number.decimal == number.thousands):
            raise DataError(
                f"The reading of column '{name}' is damaged: {str(record)[:200]}. Write the file that has it again."
            )
        return cls(
            name=name,
            taken_for=taken_for,
            reason=str(record.get("reason", "")),
            number=number,
            date=date,
            missing=tuple(str(word) for word in record.get("missing", ())),
            spellings={str(word): str(other) for word, other in record.get("spellings", {}).items()},
            ranks=ranks_in(record),
            question=str(record.get("question", "")),
            choices=tuple(str(choice) for choice in record.get("choices", ())),
            given=bool(record.get("given")),
            odd=tuple(str(word) for word in record.get("odd", ())),
        )

    @cached_property
    def _gaps(self) -> frozenset[str]:
        return frozenset(self.missing)

    def texts(self, word: str) -> tuple[str, ...] | None:
        """Return the plain texts of a word, one for each of `names` ("" if missing); None if it does not fit the format."""
        if word in self._gaps:
            return ("",) * len(self.names)
        if self.number is not None:
            plain = self.number.plain(word)
            return None if plain is None else (plain,)
        if self.date is not None:
            values = self.date.values(word)
            return ("",) * len(self.names) if values is None and self.date.names_no_day(word) else values
        if self.ranks and word not in self.spellings and word:
            code = self._ranks.code(word)
            return None if code is None else (str(code + 1),)
        return (self.spellings.get(word, word),)

    @cached_property
    def _ranks(self) -> Spellings:
        return Spellings(self.ranks)

    @property
    def has_numbers(self) -> bool:
        """Whether the cells become numbers. A word such as `-` or `NaT` then means an empty cell, unless it is a rank."""
        return self.number is not None or self.date is not None or bool(self.ranks)

    def is_no_day(self, word: str) -> bool:
        """Return whether a word is written as a date but names no real day, so that it is read as an empty cell."""
        if self.date is None or word in self._gaps or not self.date.names_no_day(word):
            return False
        return self.date.values(word) is None

    def columns(self, column: pa.Array) -> tuple[tuple[pa.Array, ...], np.ndarray, Cells | None]:
        """Return the plain columns, the mask, bool (n,), of cells that do not fit the format (null in the columns), and the cells."""
        nothing = np.zeros(len(column), bool)
        if self.taken_for in (TEXT, ASK) or not self.special:
            return (column,), nothing, None
        if not pa.types.is_string(column.type) and self.date is None and not self.spellings:
            return (column,), nothing, None  # typed columns hold numbers already
        cells = Cells.of(column)
        marks = cells.empty_numbers if self.has_numbers else np.zeros(len(cells.words), bool)
        parsed = [
            ("",) * len(self.names) if mark and word not in self.spellings else self.texts(word)
            for word, mark in zip(cells.words, marks, strict=True)
        ]
        wrong = np.array([values is None for values in parsed], bool)
        derived = tuple(
            pa.array([None if values is None else values[j] for values in parsed], pa.string()).take(
                pa.array(cells.index)
            )
            for j in range(len(self.names))
        )
        return derived, wrong[cells.index], cells


def _is_known_date(date: DateForm) -> bool:
    if date.form == TIME:
        return True
    return date.form in FORMATS and re.fullmatch(r"[0-9]{4}-01-01", date.origin) is not None


Declare = Callable[[str, Sequence[str]], ColumnReading]


def ranks_of(name: str, words: Sequence[str], order: str, declared: Sequence[str]) -> tuple[str, ...]:
    """Return the ranks of a column, the lowest first; raise DataError if a word has none.

    Parameters
    ----------
    name : str
        The column.
    words : sequence of str
        Its words without those for an empty cell. Each is a rank, or a spelling of one rank only.
    order : str
        The words from the lowest to the highest, as in "low<mid<high"; "" if the file declares the order.
    declared : sequence of str
        The order that the file declares.
    """
    ranks = tuple(word.strip() for word in order.split(BETWEEN_RANKS)) if order else tuple(declared)
    if not ranks:
        raise DataError(
            f"The file declares no order of column '{name}'. Say one, as in --kind '{name}=ranks:low<mid<high'."
        )
    if len(set(ranks)) < len(ranks):
        raise DataError(f"A word appears twice among the ranks of column '{name}'. Say each once: {order[:200]}.")
    spellings = Spellings(ranks)
    if lacking := [word for word in words if word not in ranks and spellings.code(word) is None]:
        raise DataError(
            f"Column '{name}' has '{lacking[0][:60]}', which is not among its ranks {', '.join(ranks)[:200]}. Say a rank for every value."
        )
    return ranks


def rank_spellings(ranks: Sequence[str], words: Sequence[str]) -> dict[str, str]:
    """Map ranks, and words that are spellings of them, to the numbers of the ranks from 1."""
    spellings = Spellings(ranks)
    codes = {word: code for code, word in enumerate(ranks)}
    codes |= {word: code for word in words if word not in codes and (code := spellings.code(word)) is not None}
    return {word: str(code + 1) for word, code in codes.items()}


def either_switch(decimal: str) -> str:
    """Return the value of `--kind` that reads point and comma as decimal signs, `decimal` being the usual one."""
    return f"{NUMBER}:{decimal}/{other_sign(decimal)}"


def kind_of(spec: str) -> tuple[str, str]:
    """Split a kind such as 'text', 'number:,.', 'date:dd/mm/yyyy', 'time' or 'ranks' at the colon; raise DataError."""
    what, _, how = spec.strip().partition(":")
    what = {"categorical": TEXT, "numeric": NUMBER}.get(what, what)
    if what in FORMATS and not how:
        how = what
        what = DATE
    fine = {
        TEXT: not how,
        NUMBER: how in ("", ",/.", "./,") or (how[0] in DECIMALS and how[1:] in THOUSANDS and how[:1] != how[1:]),
        DATE: how in ("", *FORMATS),
        TIME: not how,
        RANKS: not how or all(word.strip() for word in how.split(BETWEEN_RANKS)),
        "binary": not how,
    }
    if not fine.get(what):
        raise DataError(
            f"'{spec[:60]}' is not a kind of column: say text, number, number:, (decimal comma), number:,. (with points between "
            f"thousands), number:., (with commas), number:,/. (comma or point as decimal sign), date, time, binary, ranks (in the order that the file declares), ranks:low<mid<high, "
            f"or a date as one of {', '.join(FORMATS)}."
        )
    return what, how
