"""Describe the format of one column and convert its cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.data.parsing.cells import Cells
from trainer.data.parsing.dates import FORMATS, TIME, DateForm
from trainer.data.parsing.numbers import DECIMALS, NEGATIVE, THOUSANDS, NumberForm
from trainer.errors import DataError

TEXT = "text"
NUMBER = "number"
DATE = "date"
PLAIN = "plain"
ASK = "ask"
RANKS = "ranks"  # a kind of the user: categories become their ranks, from 1
BETWEEN_RANKS = "<"
NUMERIC = re.compile(r"[+-]?[0-9.]+")
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
        if self.ranks_numbers:
            words = sorted(
                self.spellings, key=lambda word: int(self.spellings[word])
            )  # a database may lose their order
            return f"the ranks of {BETWEEN_RANKS.join(words)[:200]}"
        return {PLAIN: "as it stands", TEXT: "text", ASK: "not decided"}[self.taken_for]

    @property
    def switch(self) -> str:
        """The value of `--kind` for this parsing."""
        if self.taken_for == NUMBER and self.number is not None:
            return f"number:{self.number.decimal}{self.number.thousands}"
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
        if self.date is not None:
            record["form"] = self.date.form
            record |= {"origin": self.date.origin} if self.date.origin else {}
            record |= {"clock": True} if self.date.clock else {}
            record |= {"zone": self.date.zone} if self.date.zone else {}
        record |= {"missing": list(self.missing)} if self.missing else {}
        record |= {"spellings": dict(self.spellings)} if self.spellings else {}
        record |= {"question": self.question} if self.question else {}
        record |= {"choices": list(self.choices)} if self.choices else {}
        return record | ({"given": True} if self.given else {})

    @classmethod
    def from_json(cls, name: str, record: dict[str, Any]) -> ColumnReading:
        """Build the reading from the record of `to_json`; raise DataError for an unknown format."""
        number = date = None
        taken_for = str(record.get("taken_for"))
        if taken_for == NUMBER:
            number = NumberForm(
                decimal=record["decimal"], thousands=record["thousands"], unit=str(record.get("unit", "")),
                negative=str(record.get("negative", "")),
            )  # fmt: skip
        elif taken_for == DATE:
            date = DateForm(
                form=record["form"], origin=str(record.get("origin", "")), clock=bool(record.get("clock")),
                zone=str(record.get("zone", "")),
            )  # fmt: skip
        bad = taken_for not in (TEXT, NUMBER, DATE, PLAIN, ASK) or (date is not None and not _is_known_date(date))
        bad = bad or (number is not None and (number.decimal not in DECIMALS or number.thousands not in THOUSANDS))
        bad = bad or (number is not None and number.negative not in NEGATIVE)
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
            question=str(record.get("question", "")),
            choices=tuple(str(choice) for choice in record.get("choices", ())),
            given=bool(record.get("given")),
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
            return self.date.values(word)
        if self.ranks_numbers and word and word not in self.spellings:
            return None
        return (self.spellings.get(word, word),)

    @cached_property
    def ranks_numbers(self) -> bool:
        """Whether some words with a rank are numbers, as in "0<1<2+". Another number is then no rank."""
        ranks = {str(rank) for rank in range(1, len(self.spellings) + 1)}
        return set(self.spellings.values()) == ranks and any(NUMERIC.fullmatch(word) for word in self.spellings)

    def columns(self, column: pa.Array) -> tuple[tuple[pa.Array, ...], np.ndarray, Cells | None]:
        """Return the plain columns, the mask, bool (n,), of cells that do not fit the format (null in the columns), and the cells."""
        nothing = np.zeros(len(column), bool)
        if self.taken_for in (TEXT, ASK) or not self.special:
            return (column,), nothing, None
        if not pa.types.is_string(column.type) and self.date is None and not self.spellings:
            return (column,), nothing, None  # typed columns hold numbers already
        cells = Cells.of(column)
        marks = cells.empty_numbers if self.taken_for != PLAIN else np.zeros(len(cells.words), bool)
        parsed = [
            ("",) * len(self.names) if mark else self.texts(word) for word, mark in zip(cells.words, marks, strict=True)
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


def rank_spellings(name: str, words: Sequence[str], order: str, declared: Sequence[str]) -> dict[str, str]:
    """Map the words of a column to their ranks, "1" for the lowest; raise DataError.

    Parameters
    ----------
    name : str
        The column.
    words : sequence of str
        Its words without those for an empty cell.
    order : str
        The words from the lowest to the highest, as in "low<mid<high"; "" if the file declares the order.
    declared : sequence of str
        The order that the file declares.
    """
    ranked = [word.strip() for word in order.split(BETWEEN_RANKS)] if order else list(declared)
    if not ranked:
        raise DataError(
            f"The file declares no order of column '{name}'. Say one, as in --kind '{name}=ranks:low<mid<high'."
        )
    if len(set(ranked)) < len(ranked):
        raise DataError(f"A word appears twice among the ranks of column '{name}'. Say each once: {order[:200]}.")
    if lacking := [word for word in words if word not in ranked]:
        raise DataError(
            f"Column '{name}' has '{lacking[0][:60]}', which is not among its ranks {', '.join(ranked)[:200]}. Say a rank for every value."
        )
    return {word: str(rank) for rank, word in enumerate(ranked, 1)}


def kind_of(spec: str) -> tuple[str, str]:
    """Split a kind such as 'text', 'number:,.', 'date:dd/mm/yyyy', 'time' or 'ranks' at the colon; raise DataError."""
    what, _, how = spec.strip().partition(":")
    what = {"categorical": TEXT, "numeric": NUMBER}.get(what, what)
    if what in FORMATS and not how:
        how = what
        what = DATE
    fine = {
        TEXT: not how,
        NUMBER: how == "" or (how[0] in DECIMALS and how[1:] in THOUSANDS and how[:1] != how[1:]),
        DATE: how in ("", *FORMATS),
        TIME: not how,
        RANKS: not how or all(word.strip() for word in how.split(BETWEEN_RANKS)),
        "binary": not how,
    }
    if not fine.get(what):
        raise DataError(
            f"'{spec[:60]}' is not a kind of column: say text, number, number:, (decimal comma), number:,. (with points between "
            f"thousands), number:., (with commas), date, time, binary, ranks (in the order that the file declares), ranks:low<mid<high, "
            f"or a date as one of {', '.join(FORMATS)}."
        )
    return what, how
