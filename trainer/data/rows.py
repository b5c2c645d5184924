"""Rows of a prediction request (JSON objects) to the matrix that the kernel reads, or a RowError that names row and column."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.data.build import suggestion
from trainer.data.parsing.alike import Spellings
from trainer.data.parsing.cells import LARGEST_EXACT, MARKS, Cells
from trainer.data.reader import NOT_TRAINED, refusing_columns
from trainer.dtypes import FloatArray
from trainer.errors import Refusal, RowError
from trainer.table import ColumnKind, ColumnSchema, UnknownPolicy

UNKNOWN_CODE = -1.0  # as in trainer.data.reader: every test of a category is false for it


@dataclass(frozen=True, kw_only=True)
class Note:
    """An unknown category: the row (from 0), the column and the value, which goes right at every split on it."""

    row: int
    column: str
    value: str

    def __str__(self) -> str:
        return f"rows[{self.row}]: '{_short(self.value)}' is not a known category of '{self.column}'; every question about it is answered no."


@dataclass(frozen=True, kw_only=True)
class ParsedRows:
    """`matrix`, float64 of shape (n, columns of the schema), NaN where a value is missing, and notes on unknown categories.

    `respelled` counts, by column, the cells with another spelling of a category.
    """

    matrix: FloatArray
    notes: tuple[Note, ...]
    respelled: Mapping[str, int] = field(default_factory=dict)

    @property
    def unknown_words(self) -> dict[str, Counter[str]]:
        """By column the unknown words, and how many cells have each."""
        found: dict[str, Counter[str]] = {}
        for note in self.notes:
            found.setdefault(note.column, Counter())[note.value] += 1
        return found


@dataclass(frozen=True)
class _Seen:
    """Gathered while cells of categories are read: notes on unknown words, and counts of other spellings by column."""

    notes: list[Note] = field(default_factory=list)
    respelled: Counter[str] = field(default_factory=Counter)


NUMBER_TYPES = frozenset((int, float))
FEW_CELLS = 200  # below, looking at the types takes less time than comparing the values


def plain_numbers(cells: Sequence[Any]) -> FloatArray | None:
    """`cells` as float64 (n,) if all of them are int or float; None if one is anything else, true and false included."""
    few = len(cells) < FEW_CELLS
    if few and not NUMBER_TYPES.issuperset(map(type, cells)):
        return None
    try:
        values = np.frombuffer(struct.pack(f"{len(cells)}d", *cells))
    except (struct.error, OverflowError):
        return None
    if few:
        return values
    # struct takes true for 1: only where there is a 0 or a 1 need the types be looked at
    if ((values == 0.0) | (values == 1.0)).any() and bool in set(map(type, cells)):
        return None
    return values


def plain_rows(
    schema: Sequence[ColumnSchema], names: itemgetter[Any], rows: Sequence[Mapping[str, Any]]
) -> FloatArray | None:
    """The matrix of rows that have a number in every column and no other column; None if a row needs a closer look.

    The schema has no categorical column and at least two columns; `names` gets them all from a row.
    """
    width = len(schema)
    try:
        if any(map(width.__ne__, map(len, rows))):
            return None
        values = plain_numbers(tuple(chain.from_iterable(map(names, rows))))
    except (KeyError, TypeError, IndexError):
        return None
    return None if values is None else plain_matrix(values.reshape(len(rows), width))


def plain_matrix(matrix: FloatArray) -> FloatArray | None:
    """`matrix` (n, columns) if every cell is finite and exact; None otherwise."""
    return matrix if (np.abs(matrix) < LARGEST_EXACT).all() else None  # NaN is not


def parse_rows(
    schema: Sequence[ColumnSchema],
    used_columns: Collection[int],
    rows: Sequence[Mapping[str, Any]],
    *,
    refused: Collection[int] | None = None,
) -> ParsedRows:
    """The matrix of `rows`, dictionaries from column name to value; `used_columns` are those that the tree tests.

    `refused` are those of them in which an empty cell gets no answer (None: by the policies of the schema). Raises RowError for an
    unknown column, a value of the wrong type, and a missing value in a refused column.
    """
    used = frozenset(used_columns)
    gaps_refused = refusing_columns(schema, used, refused)
    known = frozenset(own.name for own in schema)
    _check_rows(schema, used, known, rows)
    matrix = np.empty((len(rows), len(schema)))
    seen = _Seen()
    for j, own in enumerate(schema):
        name = own.name
        cells = [row.get(name) for row in rows]
        if own.kind is ColumnKind.CATEGORICAL:
            matrix[:, j] = _categories(own, cells, j in used, seen)
        else:
            matrix[:, j] = _numbers(own, cells, own.name in gaps_refused)
    notes = tuple(sorted(seen.notes, key=lambda note: note.row))
    return ParsedRows(matrix=matrix, notes=notes, respelled=seen.respelled)


def _check_rows(
    schema: Sequence[ColumnSchema], used: frozenset[int], known: frozenset[str], rows: Sequence[Mapping[str, Any]]
) -> None:
    if not isinstance(rows, list | tuple):
        raise RowError("'rows' must be a list of objects, one per row.", row=0, reason=Refusal.ROW)
    for i, row in enumerate(rows):
        if type(row) is not dict:
            words = f"rows[{i}] must be an object of column names and values; it is {_what(row)}."
            raise RowError(words, row=i, reason=Refusal.ROW)
        if not row.keys() <= known:
            strange = next(name for name in row if name not in known)
            names = [schema[j].name for j in sorted(used)]
            lower = suggestion(str(strange), [own.name for own in schema]).partition(" Its columns are:")[0]
            raise RowError(
                f"rows[{i}]: column '{_short(strange)}' is not known.{lower} Leave it out or correct its name: this model needs {len(names)} "
                f"{'column' if len(names) == 1 else 'columns'}: {', '.join(names)}.",
                row=i,
                column=str(strange),
                reason=Refusal.COLUMN,
            )


def _numbers(own: ColumnSchema, cells: list[Any], refused: bool) -> FloatArray:
    """A numeric or binary column: at once if all cells are floats or small whole numbers, else one by one."""
    types = set(map(type, cells))
    if types <= {float, int}:
        try:
            values = np.array(cells, np.float64)
        except OverflowError:
            values = np.full(len(cells), np.nan)
        fine = np.isfinite(values).all() and (int not in types or bool((np.abs(values) < LARGEST_EXACT).all()))
        if fine:
            return values + 0.0
    texts = numbers_of_texts({cell.strip() for cell in cells if isinstance(cell, str)})
    return np.array([_number(own, i, cell, texts, refused) for i, cell in enumerate(cells)], np.float64)


def numbers_of_texts(texts: Collection[str]) -> dict[str, float]:
    """Return the numbers that trimmed texts mean in a file: NaN for a mark of an empty cell; other texts are left out."""
    words = [text for text in texts if text.isascii()]
    if not words:
        return {}
    cells = Cells.of(pa.array(words, pa.string()))
    values = cells.floats()
    known = cells.marks | (~np.isnan(values) & ~cells.inexact)
    return {cells.words[i]: float(values[i]) for i in np.flatnonzero(known)}


def _number(own: ColumnSchema, i: int, cell: Any, texts: Mapping[str, float], refused: bool) -> float:
    """Return the number that a JSON value means; texts, true and false mean what they mean in a file."""
    if isinstance(cell, str):
        cell = texts.get(cell.strip(), cell)
        if isinstance(cell, float) and math.isnan(cell):
            return _missing(own, i, refused)
    if cell is None:
        return _missing(own, i, refused)
    if not isinstance(cell, int | float):
        raise _wrong(own, i, f"needs a number, but has {_what(cell)}")
    if isinstance(cell, float) and not math.isfinite(cell):
        raise _wrong(own, i, "needs a finite number, but has an infinite one or NaN")
    if isinstance(cell, int) and abs(cell) > LARGEST_EXACT:
        raise _wrong(own, i, "has a whole number beyond 2^53, which would be rounded")
    return float(cell) + 0.0


def _categories(own: ColumnSchema, cells: list[Any], used: bool, seen: _Seen) -> FloatArray:
    """A categorical column: a dictionary look-up per cell, and the slow way for what it does not find."""
    codes = {word: float(code) for code, word in enumerate(own.categories)}
    try:
        return np.array([codes[cell] for cell in cells], np.float64) if set(map(type, cells)) <= {str} else _raise()
    except KeyError:
        spellings = Spellings(own.categories)
        found = [_category(own, codes, spellings, i, cell, used, seen) for i, cell in enumerate(cells)]
        return np.array(found, np.float64)


def _raise() -> FloatArray:
    raise KeyError


def _category(
    own: ColumnSchema,
    codes: Mapping[str, float],
    spellings: Spellings,
    i: int,
    cell: Any,
    used: bool,
    seen: _Seen,
) -> float:
    if cell is None or (isinstance(cell, str) and cell not in codes and (cell.strip() == "" or cell.strip() in MARKS)):
        # as in files: a word such as 'NA' is missing unless the model knows it as a category
        if own.missing_code is not None:
            return float(own.missing_code)
        return _missing(own, i, used and not own.answers_empty)
    words = _category_words(own, i, cell)
    for word in words:
        if word in codes:
            return codes[word]
    code = spellings.code(words[0])
    if code is not None and code != own.missing_code:
        if used:
            seen.respelled[own.name] += 1
        return float(code)
    if used and own.unknown is UnknownPolicy.REFUSE:
        raise _wrong(own, i, f"has '{_short(words[0])}', {NOT_TRAINED}", Refusal.UNKNOWN)
    if used:
        seen.notes.append(Note(row=i, column=own.name, value=words[0]))
    return UNKNOWN_CODE


def _category_words(own: ColumnSchema, i: int, cell: Any) -> list[str]:
    """The ways in which a file writes a JSON value, the usual one first."""
    if isinstance(cell, bool):
        return [str(cell).lower(), str(cell), str(cell).upper()]
    if isinstance(cell, int):
        if abs(cell) > 10**30:  # Python refuses to print very long numbers
            raise _wrong(own, i, "has a number of more than 30 digits")
        return [str(cell), f"{cell}.0"]
    if isinstance(cell, float):
        if not math.isfinite(cell):
            raise _wrong(own, i, "needs a text or a finite number, but has a number that is not finite")
        return [repr(cell), repr(cell).removesuffix(".0")]
    if isinstance(cell, str):
        return [cell, cell.strip()]
    raise _wrong(own, i, f"needs a text or a number, but has {_what(cell)}")


def _missing(own: ColumnSchema, i: int, refused: bool) -> float:
    if refused:
        raise _wrong(own, i, "has no value, and the tree needs one", Refusal.EMPTY)
    return math.nan


def _wrong(own: ColumnSchema, i: int, what: str, reason: Refusal = Refusal.VALUE) -> RowError:
    return RowError(f"rows[{i}]: column '{own.name}' {what}.", row=i, column=own.name, reason=reason)


def _what(cell: Any) -> str:
    if cell is None:
        return "null"
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, str):
        return f"the text '{_short(cell)}'"
    if isinstance(cell, list | tuple):
        return "a list"
    return "an object" if isinstance(cell, dict) else "a number" if isinstance(cell, int | float) else "something else"


def _short(value: Any, most: int = 60) -> str:
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"
