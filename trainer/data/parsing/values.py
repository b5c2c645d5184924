"""Parse values of prediction calls in the format of the training file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from trainer.data.parsing.cells import MARKS, WHOLE_WORD
from trainer.data.parsing.column import ColumnReading
from trainer.data.parsing.reading import ColumnParsing
from trainer.data.parsing.words import is_missing_word
from trainer.errors import RowError

WEEKDAY = " weekday"


@dataclass(frozen=True)
class OddCell:
    """A cell that `plain_values` could not read: the column that was sent, and the word.

    The word names no real day (`no_day`), and the cell is empty; or it does not fit a column that the tree does not ask.
    """

    column: str
    word: str
    no_day: bool = False


def plain_values(
    reading: Mapping[str, Any] | None, rows: Sequence[Any], needed: frozenset[str] | None = None
) -> Sequence[Any]:
    """Return the rows with plain values in the model's columns; raise RowError for a text that does not fit the file's format.

    JSON numbers do not change, except that a date column refuses them and ranks replace them. Without a reading, the rows are
    returned unchanged. `needed` are the columns that the tree asks, by default all. In other columns a text that does not fit
    is an `OddCell`, and so is a date that names no real day.
    """
    columns = [column for column in ColumnParsing.from_json(reading).columns.values() if column.special]
    if not columns or not isinstance(rows, list | tuple):
        return rows
    asked = {column.name for column in columns if needed is None or not needed.isdisjoint(column.names)}
    return [_plain_row(columns, asked, i, row) if type(row) is dict else row for i, row in enumerate(rows)]


@contextmanager
def sources_named(reading: Mapping[str, Any] | None) -> Iterator[None]:
    """Name the source column in a RowError about a column derived from it.

    Callers know only the columns of the file.
    """
    try:
        yield
    except RowError as error:
        source_column = next(
            (c for c in ColumnParsing.from_json(reading).columns.values() if error.column in c.names), None
        )
        if source_column is None or source_column.name == error.column:
            raise
        words = f"{error} It is made from '{source_column.name}': send that column."
        raise RowError(words, row=error.row, column=error.column, reason=error.reason) from error


def _plain_row(columns: Sequence[ColumnReading], asked: Collection[str], i: int, row: dict[str, Any]) -> dict[str, Any]:
    out = dict(row)
    for column in columns:
        if column.name not in out:
            continue
        cell = out[column.name]
        if column.date is not None:
            if twins := [name for name in column.names if name in out]:
                raise RowError(f"rows[{i}]: send '{column.name}' or '{twins[0]}', not both.", row=i, column=column.name)
            del out[column.name]
            out |= dict(zip(column.names, _values(column, asked, i, cell), strict=True))
        elif isinstance(cell, str):
            out[column.name] = _values(column, asked, i, cell)[0]
        elif column.ranks and isinstance(cell, int | float):
            out[column.name] = _values(column, asked, i, str(cell).lower().removesuffix(".0"))[0]
    return out


def _values(column: ColumnReading, asked: Collection[str], i: int, cell: Any) -> list[Any]:
    """Return the values of the columns derived from a cell; None if it is missing. The first one may be an `OddCell`."""
    word = cell.strip() if isinstance(cell, str) else cell
    gap = word is None or word == "" or word in column.missing
    may_be_gap = column.has_numbers and isinstance(word, str) and word not in column.spellings
    if gap or (may_be_gap and (word in MARKS or is_missing_word(word))):
        return [None] * len(column.names)
    texts = column.texts(word) if isinstance(word, str) else None
    no_day = texts is not None and not any(texts) and column.is_no_day(word)
    if no_day or (texts is None and column.name not in asked):
        odd = None if no_day and column.name not in asked else OddCell(column.name, str(cell), no_day)
        return [odd] + [None] * (len(column.names) - 1)
    if texts is None:
        raise RowError(
            f"rows[{i}]: column '{column.name}' is read as {column.words}, but has {str(cell)[:60]!r}.",
            row=i,
            column=column.name,
        )
    if column.number is None and column.date is None:
        return list(texts)
    return [text if name.endswith(WEEKDAY) else _number(text) for name, text in zip(column.names, texts, strict=True)]


def _number(text: str) -> int | float | None:
    if not text:
        return None
    return int(text) if WHOLE_WORD.fullmatch(text) and len(text) < 40 else float(text)
