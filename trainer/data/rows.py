"""Parse JSON rows of a prediction request into the kernel's matrix."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.data.build import suggestion
from trainer.data.odd_words import OddWords, add_words
from trainer.data.parsing.alike import Spellings
from trainer.data.parsing.cells import LARGEST_EXACT, MARKS, Cells
from trainer.data.parsing.values import OddCell
from trainer.data.parsing.words import is_missing_word
from trainer.data.reader import NOT_TRAINED, refusing_columns
from trainer.dtypes import FloatArray
from trainer.errors import Refusal, RowError
from trainer.table import ColumnKind, ColumnSchema, UnknownPolicy

UNKNOWN_CODE = -1.0  # the same value as in trainer.data.reader: no test of a category is true for it


@dataclass(frozen=True, kw_only=True)
class Note:
    """An unknown category: its row (from 0), column and value. It goes right at every split on its column."""

    row: int
    column: str
    value: str

    def __str__(self) -> str:
        return f"rows[{self.row}]: '{_short(self.value)}' is not a known category of '{self.column}'; every question about it is answered no."


@dataclass(frozen=True, kw_only=True)
class ParsedRows:
    """Rows as the prediction kernel reads them, with notes on unknown categories."""

    matrix: FloatArray  # (n, columns of the schema), NaN where a value is missing
    notes: tuple[Note, ...]
    # number of cells with another spelling of a category, by column
    respelled: Mapping[str, int] = field(default_factory=dict)
    odd: OddWords = field(default_factory=OddWords)  # words that a column does not take as they are

    @property
    def unknown_words(self) -> dict[str, Counter[str]]:
        """The unknown words of each column with their number of cells."""
        words: dict[str, Counter[str]] = {}
        for note in self.notes:
            words.setdefault(note.column, Counter())[note.value] += 1
        return words


@dataclass(frozen=True)
class _Observations:
    """Collector of unknown words, other spellings and odd words while cells are parsed."""

    odd: OddWords = field(default_factory=OddWords)
    notes: list[Note] = field(default_factory=list)
    respelled: Counter[str] = field(default_factory=Counter)


NUMBER_TYPES = frozenset((int, float))
FEW_CELLS = 200  # with fewer cells, checking the types is faster than comparing the values


def plain_numbers(cells: Sequence[Any]) -> FloatArray | None:
    """Return cells as float64 (n,) if all are int or float; None if one is of another type, including bool."""
    few = len(cells) < FEW_CELLS
    if few and not NUMBER_TYPES.issuperset(map(type, cells)):
        return None
    try:
        values = np.frombuffer(struct.pack(f"{len(cells)}d", *cells))
    except (struct.error, OverflowError):
        return None
    if few:
        return values
    # struct packs True as 1 and False as 0, so the types must be checked only if one of these values occurs
    if ((values == 0.0) | (values == 1.0)).any() and bool in set(map(type, cells)):
        return None
    return values


def plain_rows(
    schema: Sequence[ColumnSchema], names: itemgetter[Any], rows: Sequence[Mapping[str, Any]]
) -> FloatArray | None:
    """Parse rows that have a number in every column and no other column; return None for other rows.

    This is the fast path. The schema has no categorical column and at least two columns. `names` gets all of
    them from a row.
    """
    width = len(schema)
    try:
        if any(map(width.__ne__, map(len, rows))):
            return None
        values = plain_numbers(tuple(chain.from_iterable(map(names, rows))))
    except (KeyError, TypeError, IndexError):
        return None
    return None if values is None else values.reshape(len(rows), width)


def plain_matrix(matrix: FloatArray) -> FloatArray | None:
    """Return `matrix` (n, columns) if every cell is finite and exact, else None."""
    # a comparison with NaN is False, so that a matrix with NaN is rejected, too
    return matrix if (np.abs(matrix) < LARGEST_EXACT).all() else None


def parse_rows(
    schema: Sequence[ColumnSchema],
    used_columns: Collection[int],
    rows: Sequence[Mapping[str, Any]],
    *,
    refused: Collection[int] | None = None,
) -> ParsedRows:
    """Parse rows, dictionaries from column name to value, into a matrix.

    Parameters
    ----------
    schema : sequence of ColumnSchema
    used_columns : collection of int
        Columns that the tree tests.
    rows : sequence of mapping
    refused : collection of int, optional
        Used columns in which an empty cell gets no answer; by default, from the policies of the schema.

    Raises
    ------
    RowError
        For an unknown column, and in a used column for a value of the wrong type and a refused missing value.
    """
    used = frozenset(used_columns)
    gaps_refused = refusing_columns(schema, used, refused)
    known = frozenset(column.name for column in schema)
    _check_rows(schema, used, known, rows)
    matrix = np.empty((len(rows), len(schema)))
    observations = _Observations()
    for j, column in enumerate(schema):
        name = column.name
        cells = [row.get(name) for row in rows]
        if column.kind is ColumnKind.CATEGORICAL:
            matrix[:, j] = _categories(column, cells, j in used, observations)
        else:
            matrix[:, j] = _numbers(column, cells, j in used, column.name in gaps_refused, observations.odd)
    notes = tuple(sorted(observations.notes, key=lambda note: note.row))
    return ParsedRows(matrix=matrix, notes=notes, respelled=observations.respelled, odd=observations.odd)


def _check_rows(
    schema: Sequence[ColumnSchema], used: frozenset[int], known: frozenset[str], rows: Sequence[Mapping[str, Any]]
) -> None:
    if not isinstance(rows, list | tuple):
        raise RowError("'rows' must be a list of objects, one per row.", row=0, reason=Refusal.ROW)
    for i, row in enumerate(rows):
        if type(row) is not dict:
            words = f"rows[{i}] must be an object of column names and values, but is {_describe_value(row)}."
            raise RowError(words, row=i, reason=Refusal.ROW)
        if not row.keys() <= known:
            strange = next(name for name in row if name not in known)
            names = [schema[j].name for j in sorted(used)]
            lower = suggestion(str(strange), [column.name for column in schema]).partition(" Its columns are:")[0]
            raise RowError(
                f"rows[{i}]: column '{_short(strange)}' is not known.{lower} Leave it out or correct its name: this model needs {len(names)} "
                f"{'column' if len(names) == 1 else 'columns'}: {', '.join(names)}.",
                row=i,
                column=str(strange),
                reason=Refusal.COLUMN,
            )


def _numbers(column: ColumnSchema, cells: list[Any], used: bool, refused: bool, odd: OddWords) -> FloatArray:
    """Parse a numeric or binary column: at once if all cells are floats or small integers, else one by one."""
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
    if used:
        words = Counter(cell.strip() for cell in cells if isinstance(cell, str))
        blank = {word: n for word, n in words.items() if is_blank_word(word, texts)}
        add_words(odd.blank, column.name, blank)
    return _read_each(column, cells, used, odd, lambda i, cell: _number(column, i, cell, texts, refused))


def _read_each(
    column: ColumnSchema, cells: list[Any], used: bool, odd: OddWords, read: Callable[[int, Any], float]
) -> FloatArray:
    """Read cells one by one. A column that the tree does not ask has no wrong cells: they are NaN, and `odd` gets them."""
    values = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if isinstance(cell, OddCell) and cell.no_day:
            add_words(odd.no_days, cell.column, {cell.word: 1})
        try:
            values[i] = read(i, None if isinstance(cell, OddCell) and cell.no_day else cell)
        except RowError:
            if used:
                raise
            name, word = (cell.column, cell.word) if isinstance(cell, OddCell) else (column.name, _word_of(cell))
            add_words(odd.unfit, name, {_short(word): 1})
    return values


def is_blank_word(word: str, texts: Mapping[str, float]) -> bool:
    """Return whether a word such as "-" is an empty cell among numbers; marks such as "NA" are empty in every column."""
    return math.isnan(texts.get(word, 0.0)) and word not in ("", *MARKS)


def numbers_of_texts(texts: Collection[str]) -> dict[str, float]:
    """Return the numbers of trimmed texts, parsed as in a file; NaN for an empty cell. Other texts are left out."""
    words = [text for text in texts if text.isascii() or is_missing_word(text)]
    if not words:
        return {}
    cells = Cells.of(pa.array(words, pa.string()))
    values = cells.floats()
    known = cells.empty_numbers | (~np.isnan(values) & ~cells.inexact)
    return {cells.words[i]: float(values[i]) for i in np.flatnonzero(known)}


def _number(column: ColumnSchema, i: int, cell: Any, texts: Mapping[str, float], refused: bool) -> float:
    """Return the number of a JSON value; texts, true and false are read as in a file."""
    if isinstance(cell, str):
        cell = texts.get(cell.strip(), cell)
        if isinstance(cell, float) and math.isnan(cell):
            return _missing(column, i, refused)
    if cell is None:
        return _missing(column, i, refused)
    if not isinstance(cell, int | float):
        raise _row_error(column, i, f"needs a number, but has {_describe_value(cell)}")
    if isinstance(cell, float) and not math.isfinite(cell):
        raise _row_error(column, i, "needs a finite number, but has an infinite one or NaN")
    if isinstance(cell, int) and abs(cell) > LARGEST_EXACT:
        raise _row_error(column, i, "has a whole number beyond 2^53, which would be rounded")
    return float(cell) + 0.0


def _categories(column: ColumnSchema, cells: list[Any], used: bool, observations: _Observations) -> FloatArray:
    """Parse a categorical column by a dictionary look-up; if a cell is not found, parse all cells one by one."""
    codes = {word: float(code) for code, word in enumerate(column.categories)}
    try:
        return np.array([codes[cell] for cell in cells], np.float64) if set(map(type, cells)) <= {str} else _raise()
    except KeyError:
        spellings = Spellings(column.categories)

        def read(i: int, cell: Any) -> float:
            return _category(column, codes, spellings, i, cell, used, observations)

        return _read_each(column, cells, used, observations.odd, read)


def _raise() -> FloatArray:
    raise KeyError


def _category(
    column: ColumnSchema,
    codes: Mapping[str, float],
    spellings: Spellings,
    i: int,
    cell: Any,
    used: bool,
    observations: _Observations,
) -> float:
    if cell is None or (isinstance(cell, str) and cell not in codes and (cell.strip() == "" or cell.strip() in MARKS)):
        # as in files, a word such as 'NA' is missing unless it is a category of the model
        if column.missing_code is not None:
            return float(column.missing_code)
        return _missing(column, i, used and not column.answers_empty)
    words = _category_words(column, i, cell)
    for word in words:
        if word in codes:
            return codes[word]
    code = spellings.code(words[0])
    if code is not None and code != column.missing_code:
        if used:
            observations.respelled[column.name] += 1
        return float(code)
    if column.unknown is UnknownPolicy.REFUSE:
        raise _row_error(column, i, f"has '{_short(words[0])}', {NOT_TRAINED}", Refusal.UNKNOWN)
    if used:
        observations.notes.append(Note(row=i, column=column.name, value=words[0]))
    return UNKNOWN_CODE


def _category_words(column: ColumnSchema, i: int, cell: Any) -> list[str]:
    """Return the texts by which a file may write a JSON value, the usual one first."""
    if isinstance(cell, bool):
        return [str(cell).lower(), str(cell), str(cell).upper()]
    if isinstance(cell, int):
        if abs(cell) > 10**30:  # Python refuses to print very long integers
            raise _row_error(column, i, "has a number of more than 30 digits")
        return [str(cell), f"{cell}.0"]
    if isinstance(cell, float):
        if not math.isfinite(cell):
            raise _row_error(column, i, "needs a text or a finite number, but has a number that is not finite")
        return [repr(cell), repr(cell).removesuffix(".0")]
    if isinstance(cell, str):
        return [cell, cell.strip()]
    raise _row_error(column, i, f"needs a text or a number, but has {_describe_value(cell)}")


def _missing(column: ColumnSchema, i: int, refused: bool) -> float:
    if refused:
        raise _row_error(column, i, "has no value, and the tree needs one", Refusal.EMPTY)
    return math.nan


def _row_error(column: ColumnSchema, i: int, what: str, reason: Refusal = Refusal.VALUE) -> RowError:
    return RowError(f"rows[{i}]: column '{column.name}' {what}.", row=i, column=column.name, reason=reason)


def _word_of(cell: Any) -> str:
    """Return a cell as a word to quote: texts and short numbers as they are, others in words."""
    if isinstance(cell, str):
        return cell
    is_short = isinstance(cell, float) or (isinstance(cell, int) and abs(cell) < 10**30)
    return str(cell) if is_short else _describe_value(cell)


def _describe_value(cell: Any) -> str:
    if cell is None:
        return "null"
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, str):
        return f"the text '{_short(cell)}'"
    if isinstance(cell, list | tuple):
        return "a list"
    if isinstance(cell, dict):
        return "an object"
    return "a number" if isinstance(cell, int | float) else "something else"


def _short(value: Any, most: int = 60) -> str:
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"
