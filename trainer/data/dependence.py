"""Read the groups and times of rows from columns of a raw table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trainer.data.build import check_name
from trainer.data.formats.raw import RawTable
from trainer.data.parsing import ColumnParsing, ColumnReading
from trainer.data.parsing.cells import Cells
from trainer.data.parsing.column import DATE, NUMBER
from trainer.data.parsing.dates import TIME, moment_of
from trainer.dtypes import BoolArray, FloatArray
from trainer.errors import DataError
from trainer.table import RowGroups, RowTimes, Table
from trainer.tree.numbers import count_words

SECONDS_PER_DAY = 24 * 60 * 60


def check_dependence(names: Sequence[str], *, target: str, group: str = "", time: str = "", weight: str = "") -> None:
    """Raise DataError unless the columns of groups, times and weights exist and differ from each other and from the target."""
    for name, role in ((group, "group"), (time, "time"), (weight, "weight")):
        if not name:
            continue
        check_name(name, names, f"{role} column")
        if name == target:
            raise DataError(f"Column '{name}' is the target, so it cannot be the {role} column. Choose another column.")
    if group and group == time:
        raise DataError(f"Column '{group}' cannot be the group column and the time column. Choose two columns.")
    if weight and weight in (group, time):
        role = "group" if weight == group else "time"
        raise DataError(f"Column '{weight}' cannot be the weight column and the {role} column. Choose two columns.")


def with_dependence(table: Table, raw: RawTable, reading: ColumnParsing, *, group: str = "", time: str = "") -> Table:
    """Return the table with the groups and times of its rows.

    Parameters
    ----------
    table : Table
        A table that was built from `raw`.
    raw : RawTable
        The cells of the file.
    reading : ColumnParsing
        How the file writes dates and numbers.
    group, time : str
        Names of columns of the file; empty for none.

    Raises
    ------
    DataError
        If the time column has an empty cell in a row of the table, or cells that cannot be ordered.
    """
    if not group and not time:
        return table
    rows = np.searchsorted(raw.line_numbers, table.row_numbers)
    return replace(
        table,
        groups=read_groups(raw, group, rows) if group else None,
        times=read_times(raw, reading, time, rows) if time else None,
    )


def dependence_notes(table: Table) -> list[str]:
    """Return sentences that tell the user about groups and their empty cells."""
    groups = table.groups
    if groups is None:
        return []
    count = len(np.unique(groups.codes))
    notes = [f"Column '{groups.column}' has {count_words(count, 'group')} in {count_words(len(table), 'row')}."]
    if groups.empty:
        cells = "1 empty cell" if groups.empty == 1 else f"{groups.empty:,} empty cells"
        notes.append(f"Column '{groups.column}' has {cells}; each of these rows is a group of its own.")
    return notes


def read_groups(raw: RawTable, name: str, rows: np.ndarray) -> RowGroups:
    """Return the groups of `rows`; a row with an empty cell is a group of its own."""
    cells = Cells.of(raw.column(name))
    index = cells.index[rows]
    empty = cells.missing[index]
    codes = np.where(empty, len(cells.array) + np.arange(len(rows)), index)
    return RowGroups(column=name, codes=codes, empty=int(empty.sum()))


def read_times(raw: RawTable, reading: ColumnParsing, name: str, rows: np.ndarray) -> RowTimes:
    """Return the times of `rows`; raise DataError for an empty cell, and for cells that cannot be ordered."""
    reading.ask([name])
    column_reading = reading.columns.get(name)
    refuse_empty(
        raw,
        column_reading,
        name,
        rows,
        "A row without a time has no place in the order. Fill these cells, or remove these rows.",
    )
    cells, values = column_numbers(raw, column_reading, name)
    unordered = np.isnan(values)[cells.index[rows]]
    if unordered.any():
        row = rows[int(np.flatnonzero(unordered)[0])]
        word = cells.words[cells.index[row]]
        raise DataError(
            f"Column '{name}' cannot order the rows: {raw.place.lower()} {raw.line_numbers[row]:,} has '{word[:60]}'. "
            "Choose a column of dates or numbers, or write all its dates in one form, such as 2024-12-31."
        )
    return RowTimes(column=name, values=values[cells.index[rows]], form=number_form(column_reading))


def number_form(column_reading: ColumnReading | None) -> dict[str, Any] | None:
    """Return the number or date format of a column for the model file; None for plain numbers."""
    if column_reading is None or column_reading.taken_for not in (DATE, NUMBER):
        return None
    return {name: value for name, value in column_reading.to_json().items() if name != "reason"}


def empty_rows(raw: RawTable, column_reading: ColumnReading | None, name: str) -> BoolArray:
    """Return the mask of rows with an empty cell in a column, bool (n,)."""
    cells = Cells.of(raw.column(name))
    words = cells.marks.copy()
    if column_reading is not None and column_reading.missing:
        words |= np.isin(np.array(cells.words, dtype=object), column_reading.missing)
    mask: BoolArray = words[cells.index]
    return mask


def refuse_empty(raw: RawTable, column_reading: ColumnReading | None, name: str, rows: np.ndarray, remedy: str) -> None:
    """Raise DataError if a cell of a column is empty in one of the rows."""
    empty = empty_rows(raw, column_reading, name)[rows]
    if not empty.any():
        return
    line = raw.line_numbers[rows[int(np.flatnonzero(empty)[0])]]
    count = "1 empty cell" if empty.sum() == 1 else f"{int(empty.sum()):,} empty cells"
    raise DataError(f"Column '{name}' has {count}, the first in {raw.place.lower()} {line:,}. {remedy}")


def column_numbers(raw: RawTable, column_reading: ColumnReading | None, name: str) -> tuple[Cells, FloatArray]:
    """Return the cells of a column, and the number or time of each distinct word; NaN for words that are neither."""
    cells = Cells.of(raw.column(name))
    return cells, _word_values(cells, column_reading)


def _word_values(cells: Cells, column_reading: ColumnReading | None) -> FloatArray:
    """Return a sortable number for each distinct word; NaN for words that cannot be ordered."""
    if column_reading is None or column_reading.taken_for not in (DATE, NUMBER):
        return np.where(cells.numbers, cells.floats(), np.nan)
    values = np.full(len(cells.array), np.nan)
    for i, word in enumerate(cells.words):
        value = _word_value(word, column_reading)
        if value is not None:
            values[i] = value
    return values


def _word_value(word: str, column_reading: ColumnReading) -> float | None:
    if column_reading.number is not None:
        plain = column_reading.number.plain(word)
        return None if plain is None else float(plain)
    date = column_reading.date
    # a time of day alone does not order rows of different days
    if date is None or date.form == TIME or date.values(word) is None:
        return None
    moment = moment_of(word, date.form)
    if moment is None or moment.date is None:
        return None
    return moment.date.toordinal() * SECONDS_PER_DAY + (60 * (moment.minutes or 0) + moment.seconds)
