"""Define the interface of a split.

A kind is one file of this package: its class is a frozen dataclass that derives from `Split` and is listed in `KINDS`.
Routing, words, rules, exports and the model file call the split and never check its kind. The picture of a kind is
registered in `octweb.figures.split`. Unknown categories go right, whatever the kind. An empty cell goes where the split
says. A split that refuses empty cells sends them right; a caller that needs an answer refuses the row first.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol
from xml.etree import ElementTree as ET

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.errors import DataError, ModelFileError
from trainer.table import ColumnSchema, EmptySide

Schema = Sequence[ColumnSchema]
Term = tuple[int, int, float]  # column, category (or VALUE or EMPTY), coefficient
VALUE = -1  # the term is the value of its column
EMPTY = -2  # the term is 1 if the cell is empty, else 0

# tests of the prediction kernel; every kind of split is mapped to one of them
BELOW = 1
BETWEEN = 2
AMONG = 3
SUM = 4
IS_EMPTY = 5


@dataclass(frozen=True, kw_only=True)
class Flat:
    """A split as a test of the kernel.

    BELOW and BETWEEN test low < x ≤ high of column `feature`, AMONG whether its category has member 1, IS_EMPTY whether
    its cell is empty. SUM tests whether the sum of `terms` with `coefficients` is at most `high`; a term is a column
    and a category, VALUE or EMPTY. A number of `fills` that is not NaN replaces an empty cell. `empty_left` tells
    whether rows with an unfilled empty cell go left.
    """

    test: int
    feature: int = -1
    low: float = -math.inf
    high: float = math.inf
    member: tuple[int, ...] = ()
    terms: tuple[tuple[int, int], ...] = ()
    coefficients: tuple[float, ...] = ()
    fills: tuple[float, ...] = ()
    empty_left: bool = False


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A condition of a rule: on `column`, or on the sum of `terms`. `op` is <=, >, in, not in, is missing or is not missing.

    `value` is the text of a decimal or a list of categories; `levels` has column and category of the terms that are
    categories. `word` is the word of a rank that `value` is compared with. `missing` tells whether the condition holds for an empty cell. It is None if such a row gets no answer,
    or if `fills` has the number that the sum reads instead.
    """

    op: str
    value: str | tuple[str, ...] | None
    column: str = ""
    terms: tuple[tuple[str, float], ...] = ()
    levels: tuple[tuple[str, str, str], ...] = ()
    missing: bool | None = None
    fills: tuple[tuple[str, float], ...] = ()
    word: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the condition as `rules --json` prints it."""
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        record: dict[str, Any] = {"terms": dict(self.terms)} if self.terms else {"column": self.column}
        if self.levels:
            record["levels"] = {key: {"column": column, "category": name} for key, column, name in self.levels}
        if self.missing is not None:
            record["missing"] = self.missing
        if self.fills:
            record["fills"] = dict(self.fills)
        if self.word is not None:
            record["word"] = self.word
        return record | {"op": self.op, "value": value}


class Values(Protocol):
    """A function that returns the distinct values of a column in the training rows, ascending."""

    def __call__(self, feature: int) -> FloatArray: ...


class OnnxGraph(Protocol):
    """The ONNX graph that a split is written into; its methods return names of double values (n, 1)."""

    def number(self, column: int) -> str: ...
    def filled(self, column: int, fill: float) -> str: ...
    def between(self, value: str, low: float, high: float) -> str: ...
    def indicator(self, column: int, level: int) -> str: ...
    def weighted_sum(self, values: Sequence[str], coefficients: Sequence[float]) -> str: ...
    def test_column(self, node: int, column: int, threshold: float, *, empty_left: bool) -> None: ...
    def test_empty(self, node: int, column: int) -> None: ...
    def test_value(self, node: int, value: str, threshold: float, *, empty_left: Sequence[int]) -> None: ...
    def test_category(self, node: int, column: int, codes: Sequence[int]) -> None: ...


class PmmlModel(Protocol):
    """The PMML document that a split is written into."""

    def name(self, column: int) -> str: ...
    def simple(self, field: str, operator: str, value: str | None = None) -> ET.Element: ...
    def category_in(self, column: int, codes: Sequence[int]) -> ET.Element: ...
    def sum_field(self, node: int, terms: Sequence[Term], fills: Sequence[float]) -> str: ...


class Dialect(Protocol):
    """A target language; each method returns an expression of a row that is true for rows that go left.

    A comparison with an empty cell is not true. `fills` has one number for each term: it replaces an empty cell unless it is NaN.
    """

    def at_most(self, column: int, threshold: float) -> str: ...
    def is_empty(self, column: int) -> str: ...
    def any_of(self, tests: Sequence[str]) -> str: ...
    def between(self, column: int, low: float, high: float) -> str: ...
    def category_in(self, column: int, codes: Sequence[int]) -> str: ...
    def sum_at_most(self, terms: Sequence[Term], threshold: float, fills: Sequence[float]) -> str: ...


class Split(ABC):
    """A test that sends a row left or right, in the uploaded columns' own units."""

    kind: ClassVar[str]
    missing: EmptySide = EmptySide.REFUSE
    missing_seen: bool = True

    @property
    @abstractmethod
    def used(self) -> tuple[int, ...]:
        """The columns that the test reads."""

    @abstractmethod
    def goes_left(self, matrix: FloatArray) -> BoolArray:
        """Return the mask of rows of `matrix` (n, columns) that go left, bool (n,); NumPy twin of the kernel."""

    @abstractmethod
    def flat(self, schema: Schema) -> Flat:
        """Return the test for the prediction kernel."""

    @abstractmethod
    def to_json(self, schema: Schema) -> dict[str, Any]:
        """Return the split as in the model file, with columns and categories by name."""

    @classmethod
    @abstractmethod
    def from_json(cls, record: Mapping[str, Any], schema: Schema) -> Split:
        """Return the split of a dictionary; raise ModelFileError if it does not fit the schema."""

    @abstractmethod
    def rename(self, column: Callable[[int], int], code: Callable[[int, int], int]) -> Split:
        """Return the same test on other columns; `code(feature, level)` is -1 for a category that does not exist."""

    @abstractmethod
    def text(self, schema: Schema, most: int | None = None) -> str:
        """Return the test in words, with every digit; rows with the answer "yes" go left. At most `most` categories are listed."""

    @abstractmethod
    def value_text(self, schema: Schema, row: FloatArray) -> str:
        """Describe the tested value of a row (columns,): a number, a sum, or a category."""

    @abstractmethod
    def conditions(self, schema: Schema, left: bool) -> tuple[Condition, ...]:
        """Return the conditions of the rows that go left, or right; they apply only to rows that earlier rules left over."""

    @abstractmethod
    def expression(self, dialect: Dialect) -> str:
        """Return the test in another language; raise DataError if it cannot be written."""

    @abstractmethod
    def onnx(self, graph: OnnxGraph, node: int) -> None:
        """Write the test of `node` into an ONNX graph."""

    @abstractmethod
    def pmml(self, model: PmmlModel, node: int) -> ET.Element:
        """Return the PMML predicate of the rows that go left at `node`."""

    @property
    def refused(self) -> tuple[int, ...]:
        """The columns in which an empty cell gets no answer."""
        return self.used if self.missing is EmptySide.REFUSE else ()

    @property
    def deciding(self) -> tuple[int, ...]:
        """The columns in which an empty cell decides the test."""
        return self.used

    @property
    def numbers(self) -> tuple[int, ...]:
        """The columns that the test reads as numbers."""
        return self.used

    @property
    def filled(self) -> Mapping[int, float]:
        """The values that the test reads in place of empty cells, by column."""
        return {}

    def with_filled(self, fills: Mapping[int, float]) -> Split:
        """Return the same test with other values in place of empty cells, by column."""
        return self

    @property
    def reads_empty(self) -> bool:
        """Whether a program with this test must handle empty cells explicitly."""
        return self.missing in (EmptySide.LEFT, EmptySide.FILL)

    def with_empty(self, side: EmptySide, *, seen: bool = True) -> Split:
        """Return the test with another side for empty cells; `seen` tells whether a training row with an empty cell reached it."""
        return self

    def empty_rows(self, matrix: FloatArray) -> BoolArray:
        """Return the mask of rows of `matrix` (n, columns) with an empty cell that decides, bool (n,)."""
        return np.asarray(np.isnan(matrix[:, list(self.deciding)]).any(axis=1))

    def empty_in(self, row: FloatArray) -> tuple[int, ...]:
        """Return the columns whose empty cell in the row (columns,) decides its side."""
        return () if self.missing is EmptySide.REFUSE else tuple(j for j in self.deciding if np.isnan(row[j]))

    def unseen_empty(self, column: ColumnSchema) -> bool:
        """Return whether no training row of this split has an empty cell in `column`, which it reads."""
        if self.missing is EmptySide.FILL and not column.fill_seen:
            return True
        return not self.missing_seen

    def empty_answer(self) -> str:
        """Return "no" if training rows with an empty cell go right; "" otherwise, since the text states the side "left"."""
        return "no" if self.missing is EmptySide.RIGHT and self.missing_seen else ""

    def empty_note(self) -> str:
        """Return a note on the side of empty cells, " (empty: no)", or "" if there is none or the text states it."""
        answer = self.empty_answer()
        return f" (empty: {answer})" if answer else ""

    @property
    def empty_goes_left(self) -> bool | None:
        """Whether a row with an empty cell goes left; None if it is refused or filled."""
        return {EmptySide.LEFT: True, EmptySide.RIGHT: False}.get(self.missing)

    def wish(self, schema: Schema) -> str:
        """Return the test as an exact wish of the workbench; raise DataError if wishes cannot express it."""
        raise DataError(f"A wish cannot express a question of the kind '{self.kind}'. Choose another question.")

    @property
    def many(self) -> bool:
        """Whether the test has too many terms for one line."""
        return False

    @property
    def cut(self) -> tuple[int, float] | None:
        """Column and threshold of a question "column ≤ threshold"; None for any other test."""
        return None

    @property
    def among(self) -> tuple[int, ...]:
        """The codes that go left, for a test of a category; empty for any other test."""
        return ()

    @property
    def weighted(self) -> tuple[tuple[Term, ...], float] | None:
        """The terms of a weighted sum as they are written, and its threshold; None for any other test."""
        return None

    def brief(self, schema: Schema, most: int | None = None) -> str:
        """Return the test in one line: its text, or the number of columns of a long sum.

        At most `most` categories are listed.
        """
        return f"Weighs {len(self.used)} columns" if self.many else self.text(schema, most)

    def limit_categories(self, most: int, sizes: Sequence[int], matrix: FloatArray) -> Split:
        """Return a test that agrees on the rows of `matrix`, with at most `most` categories on one side if
        possible.

        `sizes[j]` is the number of categories of column j.
        """
        return self

    def size(self, schema: Schema) -> int:
        """Return the number of terms of the test."""
        return 1

    def parts(self) -> int:
        """Return the number of coefficients: the terms of a sum, one for all other tests."""
        return 1

    def plane(self) -> tuple[tuple[Term, ...], float, bool] | None:
        """Return the test as a hyperplane: terms, threshold, and whether its sides are exchanged; None if it is not one."""
        return None

    def shorten(self, values: Values, matrix: FloatArray, rows: CountArray) -> tuple[Split, bool]:
        """Return the test in its shortest decimals for the training `rows` of `matrix`, and whether its sides are exchanged."""
        return self, False


@dataclass(frozen=True, kw_only=True)
class NumericSplit(Split):
    """A test of numbers: `missing` is where empty cells go, `missing_seen` whether a training row with one reached the test."""

    missing: EmptySide = EmptySide.REFUSE
    missing_seen: bool = True

    def with_empty(self, side: EmptySide, *, seen: bool = True) -> NumericSplit:
        return replace(self, missing=side, missing_seen=seen)

    def sides(self, left: BoolArray, matrix: FloatArray) -> BoolArray:
        """Return `left` (n,), with the rows of `matrix` that have an empty cell on their side."""
        return left | self.empty_rows(matrix) if self.missing is EmptySide.LEFT else left

    @property
    def empty_left(self) -> tuple[int, ...]:
        """The columns in which an empty cell sends a row left."""
        return self.deciding if self.missing is EmptySide.LEFT else ()

    @abstractmethod
    def comparison(self, dialect: Dialect) -> str:
        """Return the test of a row without empty cells in another language; raise DataError if it cannot be written."""

    def expression(self, dialect: Dialect) -> str:
        return dialect.any_of([*map(dialect.is_empty, self.empty_left), self.comparison(dialect)])

    def empty_json(self) -> dict[str, Any]:
        """Return the members of a model file about empty cells."""
        if self.missing is EmptySide.REFUSE:
            return {}
        return {"missing": str(self.missing)} | ({} if self.missing_seen else {"missing_seen": False})

    def empty_condition(self, left: bool) -> bool | None:
        """Return whether the condition of the rows that go left, or right, holds for an empty cell."""
        return None if self.missing is EmptySide.REFUSE else (self.missing is EmptySide.LEFT) == left

    def empty_wish(self) -> str:
        """Return the end of a wish for this test: the answer of training rows with an empty cell."""
        if self.missing is EmptySide.REFUSE or not self.missing_seen:
            return ""
        return f" empty {'yes' if self.missing is EmptySide.LEFT else 'no'}"

    def empty_words(self) -> str:
        """Return ", or empty" if training rows with an empty cell go left, else ""."""
        return ", or empty" if self.missing is EmptySide.LEFT and self.missing_seen else ""


def read_empty(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments `missing` and `missing_seen` of a split; raise ModelFileError for an unknown side."""
    word = record.get("missing", "refuse")
    if word not in {str(side) for side in EmptySide}:
        raise ModelFileError(
            f"A split sends empty cells to '{word}', which must be 'left', 'right', 'fill' or 'refuse'."
        )
    return {"missing": EmptySide(word), "missing_seen": record.get("missing_seen") is not False}


def column_index(name: Any, schema: Schema) -> int:
    """Return the index of a column; raise ModelFileError if there is none."""
    for j, column in enumerate(schema):
        if column.name == name:
            return j
    raise ModelFileError(f"A split uses the column '{name}', which the model's schema does not have.")


def category_code(feature: int, category: Any, schema: Schema) -> int:
    """Return the code of a category; raise ModelFileError if the column lacks it."""
    if category not in schema[feature].categories:
        raise ModelFileError(f"A split uses '{category}', which is not a category of '{schema[feature].name}'.")
    return schema[feature].categories.index(category)


def finite(value: Any) -> float:
    """Return a number of a model file; raise ModelFileError unless it is finite."""
    try:
        number = float(value)
    except OverflowError:  # the integer has hundreds of digits
        number = math.inf
    if not math.isfinite(number):
        raise ModelFileError("A split has a threshold or coefficient that is not a finite number.")
    return number


def gap_around(threshold: float, values: FloatArray) -> tuple[float, float] | None:
    """Return the neighbours low ≤ threshold < high among ascending `values`; None if it does not lie between two of them."""
    at = int(np.searchsorted(values, threshold, side="right"))
    return (float(values[at - 1]), float(values[at])) if 0 < at < len(values) else None
