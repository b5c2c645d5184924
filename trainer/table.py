"""Define columns, tables and labels, with the schemas of model files.

A column is one array of numbers. Numeric and binary columns hold their values. Categorical columns hold the code of the
category, an index into `categories`. NaN means missing. Columns of small whole numbers are stored in bytes, all others as
float64. So a whole table is one matrix that the prediction kernel reads.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.dtypes import BIT, BitArray, BoolArray, CodeArray, FloatArray
from trainer.errors import DataError

MISSING_CATEGORY = "(missing)"


class ColumnKind(StrEnum):
    """The kind of values of a column."""

    NUMERIC = "numeric"
    CATEGORICAL = "categorical"
    BINARY = "binary"  # only the numbers 0 and 1; never binarised again


class MissingPolicy(StrEnum):
    """The policy for rows with an empty cell in a column."""

    # splits of numbers learn a side for empty cells; a categorical column has them as a category if training has any
    LEARN = "learn"
    DROP = "drop"  # leave the row out of training, and refuse to predict such a row
    CATEGORY = "category"  # treat missing as a category of its own; categorical columns only
    REFUSE = "refuse"  # refuse such rows in training and in prediction


class EmptySide(StrEnum):
    """The side of a split that takes an empty cell."""

    REFUSE = "refuse"  # the row gets no prediction
    LEFT = "left"
    RIGHT = "right"
    FILL = "fill"  # a sum uses the fill value of the column's schema


class UnknownPolicy(StrEnum):
    """The policy of prediction for a category that training did not have."""

    BRANCH = "branch"  # answer every question about the category with no, and add a note
    WARN = "warn"  # as BRANCH, and estimators also warn
    REFUSE = "refuse"  # raise an error


class RowNaming(StrEnum):
    """Confidence that the values of a column name or count the rows."""

    CERTAIN = "certain"
    LIKELY = "likely"


class ClassType(StrEnum):
    """The type of the classes of a target."""

    TEXT = "text"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"


FIRST_YEAR = 1800
LAST_YEAR = 2150


def look_like_years(low: float, high: float) -> bool:
    """Return whether values from `low` to `high` may be years."""
    return low.is_integer() and high.is_integer() and FIRST_YEAR <= low <= high <= LAST_YEAR


@dataclass(frozen=True, kw_only=True)
class ColumnSchema:
    """Name, kind, categories (categorical columns), missing policy and special values of a column; part of
    every model file.

    A trained model's file also keeps `decimals`, `change_unit` and `range` of its numeric columns; see
    `trainer.data.column_statistics`. `meanings` has the user's words for special values. `fill` is the value
    that sums of many columns read in place of an empty cell; `fill_seen` says whether a training row had one.
    """

    name: str
    kind: ColumnKind
    categories: tuple[str, ...] = ()
    missing: MissingPolicy = MissingPolicy.DROP
    unit: str = ""
    special: tuple[float, ...] = ()  # numbers that are codes, in ascending order; numeric columns only
    # facts about the training values; they do not count when columns are compared
    decimals: int | None = field(default=None, compare=False)  # 13 means more than 12; None if not known
    change_unit: float | None = field(default=None, compare=False)  # a change of size 1; None if not known
    fill: float | None = field(default=None, compare=False)  # None if no sum fills this column
    fill_seen: bool = field(default=True, compare=False)
    # contains all training values; None if not known
    range: tuple[float, float] | None = field(default=None, compare=False)
    unknown: UnknownPolicy = field(default=UnknownPolicy.WARN, compare=False)
    # maps a special value, written as text, to its meaning
    meanings: Mapping[str, str] = field(default_factory=dict, compare=False)
    ordered: bool = field(default=False, compare=False)  # whether the file or frame declares an order of the categories
    names_rows: RowNaming | None = field(default=None, compare=False)  # None if the values do not name the rows
    ranks: tuple[str, ...] = field(default=(), compare=False)  # words of the ranks 1, 2, 3; stored with the parsing

    def __post_init__(self) -> None:
        if self.missing is MissingPolicy.CATEGORY and self.kind is not ColumnKind.CATEGORICAL:
            raise DataError(
                f"Column '{self.name}' is {self.kind}: 'missing' can be a category of categorical columns only. "
                "Choose 'learn', 'drop' or 'refuse', or make the column categorical."
            )

    @property
    def missing_code(self) -> int | None:
        """Code of the category for empty cells; None if there is none."""
        may_be_empty = self.kind is ColumnKind.CATEGORICAL and self.answers_empty
        return self.categories.index(MISSING_CATEGORY) if may_be_empty and MISSING_CATEGORY in self.categories else None

    @property
    def names_or_years(self) -> bool:
        """Whether its numbers are written without a sign between thousands: they name rows, or look like years."""
        if self.names_rows is not None:
            return True
        return self.range is not None and look_like_years(*self.range) and self.decimals in (None, 0)

    def rank_word(self, value: float) -> str | None:
        """Return the word of the highest rank up to a number; None if the column has no such rank."""
        place = math.floor(value) if math.isfinite(value) else 0
        return self.ranks[place - 1] if 1 <= place <= len(self.ranks) else None

    @property
    def answers_empty(self) -> bool:
        """Whether a row with an empty cell in this column can get an answer."""
        return self.missing in (MissingPolicy.LEARN, MissingPolicy.CATEGORY)

    def to_json(self) -> dict[str, Any]:
        """Return the schema as a dictionary, with `categories` for categorical columns only."""
        record: dict[str, Any] = {"name": self.name, "kind": str(self.kind), "missing": str(self.missing)}
        if self.kind is ColumnKind.CATEGORICAL:
            record["categories"] = list(self.categories)
        if self.unit:
            record["unit"] = self.unit
        if self.special:
            record["special"] = list(self.special)
        if self.decimals is not None:
            record["decimals"] = self.decimals
        if self.change_unit is not None:
            record["change_unit"] = self.change_unit
        if self.fill is not None:
            record["fill"] = self.fill
            if not self.fill_seen:
                record["fill_seen"] = False
        return record

    def contract_json(self) -> dict[str, Any]:
        """Return the members that the contract of a model file adds to the schema of the column."""
        record: dict[str, Any] = {} if self.range is None else {"range": list(self.range)}
        if self.kind is ColumnKind.CATEGORICAL:
            record["unknown"] = str(self.unknown)
        if self.ordered:
            record["ordered"] = True
        if self.names_rows is not None:
            record["names_rows"] = str(self.names_rows)
        return record | ({"meanings": dict(self.meanings)} if self.meanings else {})

    def with_contract(self, record: Mapping[str, Any]) -> ColumnSchema:
        """Return the schema with the members of a model file's contract; raise DataError for an unknown policy."""
        try:
            ends = record.get("range")
            return replace(
                self,
                range=None if ends is None else (float(ends[0]), float(ends[1])),
                unknown=UnknownPolicy(record.get("unknown", "warn")),
                meanings={str(code): str(text) for code, text in dict(record.get("meanings") or {}).items()},
                ordered=record.get("ordered") is True,
                names_rows=RowNaming(record["names_rows"]) if record.get("names_rows") else None,
            )
        except (LookupError, TypeError, ValueError) as error:
            raise DataError(
                f"The contract of column '{self.name}' is damaged ({type(error).__name__}: {error}). Write the model file again."
            ) from error

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> ColumnSchema:
        """Build the schema from its dictionary; raise DataError for an unknown kind or policy."""
        try:
            return cls(
                name=str(record["name"]),
                kind=ColumnKind(record["kind"]),
                categories=tuple(str(c) for c in record.get("categories", ())),
                missing=MissingPolicy(record.get("missing", "drop")),
                unit=str(record.get("unit", "")),
                special=tuple(sorted({float(value) for value in record.get("special", ())})),
                decimals=None if record.get("decimals") is None else int(record["decimals"]),
                change_unit=None if record.get("change_unit") is None else float(record["change_unit"]),
                fill=None if record.get("fill") is None else float(record["fill"]),
                fill_seen=record.get("fill_seen") is not False,
            )
        except (KeyError, ValueError) as error:
            raise DataError(
                f"The schema of a column is damaged ({type(error).__name__}: {error}). It needs at least 'name' and a known 'kind'."
            ) from error


def ranks_in(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words of the ranks in the record of a column's parsing, the lowest first; () for other columns.

    Files of earlier versions state ranks only as spellings, {"low": "1", "high": "2"}. Merged spellings map a number to
    another form of it, or a single truth value to 1.
    """
    if record.get("ranks"):
        return tuple(map(str, record["ranks"]))
    word_of = {str(rank): str(word) for word, rank in record.get("spellings", {}).items()}
    ranks = [str(rank) for rank in range(1, len(record.get("spellings", {})) + 1)]
    are_ranks = len(ranks) > 1 and word_of.keys() == set(ranks)
    are_ranks = are_ranks and not all(_is_form_of(word_of[rank], rank) for rank in ranks)
    return tuple(word_of[rank] for rank in ranks) if are_ranks else ()


def _is_form_of(word: str, number: str) -> bool:
    try:
        return float(word) == float(number)
    except ValueError:
        return False


def with_ranks(schema: Sequence[ColumnSchema], reading: Mapping[str, Any] | None) -> tuple[ColumnSchema, ...]:
    """Return the columns with the words of their ranks, which the parsing of a file states."""
    parsed = (reading or {}).get("columns", {})
    if not parsed and not any(own.ranks for own in schema):
        return tuple(schema)
    return tuple(
        own if own.kind is ColumnKind.CATEGORICAL else replace(own, ranks=ranks_in(parsed.get(own.name, {})))
        for own in schema
    )


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column: its schema and its stored `cells`, shape (n,).

    Cells are float64 with NaN where missing, or uint8 (see `narrow`). To read all of them as numbers, use `values`.
    """

    schema: ColumnSchema
    cells: np.ndarray

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def kind(self) -> ColumnKind:
        return self.schema.kind

    @property
    def values(self) -> FloatArray:
        """The cells as float64 of shape (n,), NaN where missing; a new array if they are stored in bytes."""
        return self.cells.astype(np.float64, copy=False)

    @property
    def missing(self) -> BoolArray:
        """Boolean array of shape (n,): True where the cell is empty."""
        return np.zeros(len(self), bool) if self.cells.dtype == BIT else np.isnan(self.cells)

    @property
    def has_missing(self) -> bool:
        """Whether any cell is empty."""
        return self.cells.dtype != BIT and bool(np.isnan(self.cells).any())

    @property
    def distinct(self) -> FloatArray:
        """The sorted distinct values, float64, without that of empty cells."""
        both = distinct_bits(self.cells) if self.kind is ColumnKind.BINARY or self.cells.dtype == BIT else None
        return np.unique(self.cells[~self.missing]).astype(np.float64, copy=False) if both is None else both


@dataclass(frozen=True, kw_only=True)
class RowGroups:
    """Groups of rows that belong to the same person or thing, by a column of the file.

    `codes`, int64 of shape (n,), holds the group of each row. Each of the `empty` rows without a value is a group of its own.
    """

    column: str
    codes: np.ndarray
    empty: int = 0

    def take(self, rows: np.ndarray) -> RowGroups:
        """Return the groups of `rows`."""
        return replace(self, codes=self.codes[rows])


@dataclass(frozen=True, kw_only=True)
class RowTimes:
    """The order of the rows in time, by a column of the file.

    `values`, float64 of shape (n,), rise with time: numbers of the column, or seconds since the first day of year 1 for dates.
    `form` states how dates are read, as a model file keeps it; None for numbers.
    """

    column: str
    values: FloatArray
    form: Mapping[str, Any] | None = None

    def take(self, rows: np.ndarray) -> RowTimes:
        """Return the times of `rows`."""
        return replace(self, values=self.values[rows])


@dataclass(frozen=True, kw_only=True)
class RowWeights:
    """Weights of rows, by a column of the file, or by an array if `column` is empty.

    `values`, int64 of shape (n,), above 0, are multiples of `step`; times `step` they are the weights
    `given`, float64 (n,), or near them. `counted`, bool (m,), marks the rows of the file with a positive
    weight; the table holds only these. `form` is as in `RowTimes`.
    """

    column: str
    values: np.ndarray
    given: FloatArray
    step: Fraction
    counted: BoolArray
    form: Mapping[str, Any] | None = None

    def take(self, rows: np.ndarray) -> RowWeights:
        """Return the weights of `rows`."""
        values = self.values[rows]
        return replace(self, values=values, given=self.given[rows], counted=np.ones(len(values), bool))

    @property
    def words(self) -> str:
        """The words for the weights in an error."""
        return f"The weights in '{self.column}'" if self.column else "The sample weights"

    @property
    def deviations(self) -> FloatArray:
        """The difference between each weight and its multiple of `step`, float64 (n,); 0 where the multiple is the same number."""
        pairs, place = np.unique(np.column_stack([self.given, self.values]), axis=0, return_inverse=True)
        each = [_deviation(given, int(value) * self.step) for given, value in pairs.tolist()]
        deviations: FloatArray = np.array(each)[place.reshape(-1)]
        return deviations

    def to_json(self) -> dict[str, Any]:
        """Return the record of the weights for a model file, which lists them if no column holds them."""
        record: dict[str, Any] = {"column": self.column, "step": str(self.step)}
        if not self.column:
            record["given"] = self.given.tolist()
        return record if self.form is None else record | {"form": dict(self.form)}


def _deviation(given: float, weight: Fraction) -> float:
    return 0.0 if float(weight) == given else abs(float(weight - Fraction(repr(given))))


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns of equal length without the target; `row_numbers` are positions in the file that was read, from 1.

    `reading` is how a messy file was read (`trainer.data.parsing`), as a model file keeps it; None if nothing was special.
    `groups` and `times` decide which rows are held out and which fold each row is in; None: rows are independent.
    `weights` say how much each row counts; None: each counts one.
    """

    columns: tuple[Column, ...]
    row_numbers: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    reading: Mapping[str, Any] | None = None
    groups: RowGroups | None = None
    times: RowTimes | None = None
    weights: RowWeights | None = None

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else len(self.row_numbers)

    @property
    def schema(self) -> tuple[ColumnSchema, ...]:
        return tuple(column.schema for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def with_schema(self, schema: Sequence[ColumnSchema]) -> Table:
        """Return the table whose columns have other schemas."""
        columns = (replace(c, schema=column_schema) for c, column_schema in zip(self.columns, schema, strict=True))
        return replace(self, columns=tuple(columns))

    def matrix(self) -> FloatArray:
        """Return all columns as one Fortran-ordered float64 matrix of shape (n, number of columns), categories as codes.

        It is a view where the columns lie behind each other in memory, as `take` and `numeric_table` store them.
        """
        return self.stored_matrix().astype(np.float64, order="F", copy=False)

    def stored_matrix(self) -> FloatArray:
        """Return all columns as `matrix` does, but as uint8 if all are stored in bytes.

        Trees and statistics read it without a copy that is eight times as large.
        """
        values = self._shared_columns()
        if values is None:
            values = np.empty((len(self.columns), len(self)), self._stored_type)
            for row, column in zip(values, self.columns, strict=True):
                row[:] = column.cells
        return values.T

    @property
    def _stored_type(self) -> type[np.uint8] | type[np.float64]:
        """The type that holds the cells of all columns."""
        in_bytes = bool(self.columns) and all(column.cells.dtype == BIT for column in self.columns)
        return BIT if in_bytes else np.float64

    def _shared_columns(self) -> FloatArray | None:
        """Return the matrix (columns, n) whose rows the columns are, without a copy; None if there is none."""
        base = self.columns[0].cells.base if self.columns else None
        if not isinstance(base, np.ndarray) or base.dtype not in (BIT, np.float64) or not base.flags.c_contiguous:
            return None
        if base.shape != (len(self.columns), len(self)) or any(c.cells.dtype != base.dtype for c in self.columns):
            return None
        starts = [c.cells.ctypes.data for c in self.columns]
        expected = range(base.ctypes.data, base.ctypes.data + base.nbytes, max(1, base.strides[0]))
        return base if starts == list(expected) else None

    def take(self, rows: np.ndarray) -> Table:
        """Return the table restricted to `rows` (indices or a boolean mask), in that order."""
        positions = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows, np.int64)
        cells = np.empty((len(self.columns), len(positions)), self._stored_type)
        for out, column in zip(cells, self.columns, strict=True):
            out[:] = column.cells[positions]
        return Table(
            columns=tuple(replace(c, cells=taken) for c, taken in zip(self.columns, cells, strict=True)),
            row_numbers=self.row_numbers[rows],
            reading=self.reading,
            groups=None if self.groups is None else self.groups.take(rows),
            times=None if self.times is None else self.times.take(rows),
            weights=None if self.weights is None else self.weights.take(rows),
        )


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The target: `codes` int32 of shape (n,), indices into `classes`, which are sorted as in training.

    `type` is the type of the classes where the source of the rows has one; None: their texts tell it.
    """

    name: str
    classes: tuple[str, ...]
    codes: CodeArray
    type: ClassType | None = None

    def take(self, rows: np.ndarray) -> Labels:
        """Return the labels of `rows`; the list of classes stays."""
        return replace(self, codes=self.codes[rows])

    def counts(self) -> np.ndarray:
        """Count the rows of each class, int64 of shape (number of classes,)."""
        return np.bincount(self.codes, minlength=len(self.classes)).astype(np.int64)


def with_unknown(schema: Sequence[ColumnSchema], policies: Mapping[str, UnknownPolicy]) -> tuple[ColumnSchema, ...]:
    """Return the columns with their prediction policies for categories that training did not have.

    `policies` are by column, "" for all categorical columns. Raise DataError for a numeric column whose
    policy is not 'refuse'.
    """
    columns = []
    for column in schema:
        policy = policies.get(column.name)
        if column.kind is ColumnKind.CATEGORICAL:
            columns.append(replace(column, unknown=policy or policies.get("", column.unknown)))
            continue
        if policy not in (None, UnknownPolicy.REFUSE):
            raise DataError(
                f"Column '{column.name}' is {column.kind}: a text in it is always refused, so 'unknown' cannot be '{policy}'. "
                "Make the column categorical."
            )
        columns.append(column)
    return tuple(columns)


WHOLE = re.compile(r"0|-?[1-9][0-9]{0,14}", re.ASCII)


def class_type_of(classes: Sequence[str]) -> ClassType:
    """Return the type that the texts of all classes have."""
    if all(WHOLE.fullmatch(name) for name in classes):
        return ClassType.INT
    if any(set(classes) <= {spell("true"), spell("false")} for spell in (str.lower, str.capitalize, str.upper)):
        return ClassType.BOOL
    return ClassType.FLOAT if all(_is_float(name) for name in classes) else ClassType.TEXT


def _is_float(text: str) -> bool:
    try:
        return repr(float(text)) == text and math.isfinite(float(text))
    except ValueError:
        return False


def class_values(classes: Sequence[str], type: ClassType) -> np.ndarray:
    """Return the classes as values of their type: bool, int64, float64 or objects (text), shape (classes,).

    Texts that are not values of the type stay text.
    """
    try:
        if type is ClassType.INT:
            return np.array([int(name) for name in classes], np.int64)
        if type is ClassType.FLOAT:
            return np.array([float(name) for name in classes], np.float64)
        if type is ClassType.BOOL and {name.lower() for name in classes} <= {"true", "false"}:
            return np.array([name.lower() == "true" for name in classes])
    except (ValueError, OverflowError):
        pass
    return np.array(classes, dtype=object)


def fingerprint(table: Table, labels: Labels | None = None) -> str:
    """Return the SHA-256 digest of the canonical rows: schema, values as little-endian float64, label codes and classes."""
    digest = hashlib.sha256()
    for column in table.columns:
        # decimals and unit of change follow from the rows, and training adds them only after it has read these
        schema = replace(column.schema, decimals=None, change_unit=None, fill=None)
        digest.update(repr(sorted(schema.to_json().items())).encode())
        for block in row_blocks(len(column)):
            # adding 0.0 turns -0.0 into 0.0: they are equal, so they must have the same hash
            values = np.add(column.cells[block], 0.0, dtype="<f8")
            if column.cells.dtype != BIT:
                values[np.isnan(values)] = np.nan  # give every empty cell the same bit pattern
            digest.update(values.data)
    if labels is not None:
        digest.update(repr((labels.name, labels.classes)).encode())
        digest.update(np.ascontiguousarray(labels.codes, dtype="<i4").data)
    return digest.hexdigest()


def row_blocks(rows: int, size: int = 8192) -> Iterator[slice]:
    """Yield slices of a table whose rows fit into the cache of a processor."""
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def narrow(values: np.ndarray) -> np.ndarray:
    """Return numbers as uint8 if each is a whole number from 0 to 255, else as they are; -0.0 and NaN are none."""
    if values.dtype in (BIT, np.bool_):
        return values.astype(BIT)
    narrowed = np.empty(values.shape, BIT)
    for block in row_blocks(len(values)):
        if not _fits_bytes(values[block], narrowed[block]):
            return values
    return narrowed


def _fits_bytes(values: np.ndarray, out: np.ndarray) -> bool:
    """Write numbers into `out`, uint8; return whether they are the same numbers."""
    with np.errstate(invalid="ignore"):
        np.copyto(out, values, casting="unsafe")
    is_float = values.dtype.kind == "f"
    return bool((out == values).all()) and not (is_float and bool(np.signbit(values).any()))


def distinct_bits(values: np.ndarray) -> FloatArray | None:
    """Return the distinct values of a column of 0, 1 and NaN without sorting it; None if it has other values."""
    if values.dtype == BIT:
        ones = np.count_nonzero(values)
        is_bit = not len(values) or values.max() <= 1
        return np.array([0.0, 1.0])[[ones < len(values), ones > 0]] if is_bit else None
    zeros = np.count_nonzero(values == 0.0)
    ones = np.count_nonzero(values == 1.0)
    if zeros + ones < len(values) and zeros + ones + np.count_nonzero(np.isnan(values)) < len(values):
        return None
    return np.array([0.0, 1.0])[[zeros > 0, ones > 0]]


def number_kind(values: np.ndarray) -> ColumnKind:
    """Return binary for a column of 0 and 1 with or without empty cells, numeric for any other."""
    bits = distinct_bits(values)
    return ColumnKind.NUMERIC if bits is None or not len(bits) else ColumnKind.BINARY


def numeric_table(X: np.ndarray, names: Sequence[str] | None = None) -> Table:
    """Build a table from a matrix of numbers of shape (n, p), NaN for empty cells.

    Columns of only 0 and 1 are binary, the others numeric.
    """
    names = names or [f"x{j}" for j in range(X.shape[1])]
    transposed: np.ndarray | None = _transpose_bytes(X)
    if transposed is None:
        transposed = np.empty((X.shape[1], len(X)))
        for block in row_blocks(len(X), 512):
            transposed[:, block] = X[block].T
    columns = [
        Column(schema=ColumnSchema(name=str(name), kind=number_kind(cells), missing=MissingPolicy.LEARN), cells=cells)
        for name, cells in zip(names, transposed, strict=True)
    ]
    return Table(columns=tuple(columns), row_numbers=np.arange(1, len(X) + 1))


def _transpose_bytes(X: np.ndarray) -> BitArray | None:
    """Return a matrix (n, p) as uint8 of shape (p, n); None unless all numbers are whole from 0 to 255."""
    transposed = np.empty((X.shape[1], len(X)), BIT)
    part = np.empty(X[:512].shape, BIT)
    for block in row_blocks(len(X), 512):
        rows = X[block]
        if not _fits_bytes(rows, part[: len(rows)]):
            return None
        transposed[:, block] = part[: len(rows)].T
    return transposed
