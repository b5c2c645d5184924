"""Read sampling weights of rows from a column of a raw table."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.data.dependence import column_numbers, number_form, refuse_empty
from trainer.data.formats.raw import RawTable
from trainer.data.integer_weights import rounding_error, whole_weights
from trainer.data.parsing import ColumnParsing
from trainer.data.parsing.column import NUMBER
from trainer.dtypes import FloatArray
from trainer.errors import DataError
from trainer.table import Labels, RowWeights, Table
from trainer.tree.numbers import count_words, number_text

MOST_WEIGHT = 1e300  # the sum of larger weights may overflow


def with_weights(
    table: Table, labels: Labels, raw: RawTable, reading: ColumnParsing, weight: str
) -> tuple[Table, Labels]:
    """Return the rows of positive weight, with their weights.

    Parameters
    ----------
    table, labels : Table, Labels
        Rows that were built from `raw`.
    raw : RawTable
        The cells of the file.
    reading : ColumnParsing
        How the file writes numbers.
    weight : str
        The column of the file that holds the weights; empty for none.

    Raises
    ------
    DataError
        If a weight is empty, not a number or negative, or if all are 0.
    """
    if not weight:
        return table, labels
    rows = np.searchsorted(raw.line_numbers, table.row_numbers)
    weights = read_weights(raw, reading, weight, rows)
    if weights.counted.all():
        return replace(table, weights=weights), labels
    return replace(table.take(weights.counted), weights=weights), labels.take(weights.counted)


def read_weights(raw: RawTable, reading: ColumnParsing, name: str, rows: np.ndarray) -> RowWeights:
    """Return the weights of `rows` of a raw table; raise DataError as `with_weights` does."""
    raw_weights, form = _read_cells(raw, reading, name, rows)
    return replace(weights_in_steps(raw_weights), column=name, form=form)


def weights_in_steps(given: FloatArray) -> RowWeights:
    """Return the weights `given`, float64 (n,), finite, not negative and not all 0, as multiples of a step."""
    counted = given > 0
    integers = whole_weights(given)
    # raise small weights to 1, so that rounding drops no row
    values = np.where(counted, np.maximum(integers.weights, 1), 0)
    step = _step(given, values, exact=not integers.error)
    return RowWeights(column="", values=values[counted], given=given[counted], step=step, counted=counted)


def weight_error(weights: RowWeights) -> float:
    """Return an upper bound of the change of an objective by rounding these weights."""
    exact = weights.values * weights.step.numerator / weights.step.denominator == weights.given
    return 0.0 if exact.all() else rounding_error(weights.given, weights.values)


def weight_notes(table: Table) -> list[str]:
    """Return sentences that tell the user how rows are weighted."""
    weights = table.weights
    if weights is None:
        return []
    total = number_text(float(weights.step) * int(weights.values.sum()))
    notes = [f"Rows count by column '{weights.column}': {count_words(len(table), 'row')} of weight {total}."]
    weightless = int((~weights.counted).sum())
    if weightless:
        notes.append(f"{count_words(weightless, 'row')} of weight 0 {'was' if weightless == 1 else 'were'} left out.")
    return notes


def _read_cells(
    raw: RawTable, reading: ColumnParsing, name: str, rows: np.ndarray
) -> tuple[np.ndarray, dict[str, Any] | None]:
    """Return the weight of each row, float64, and the number format of the column."""
    reading.ask([name])
    column_reading = reading.columns.get(name)
    refuse_empty(
        raw, column_reading, name, rows, "A row without a weight cannot count. Fill these cells; 0 leaves a row out."
    )
    cells, numbers = column_numbers(
        raw, column_reading if column_reading is not None and column_reading.taken_for == NUMBER else None, name
    )
    raw_weights = numbers[cells.index[rows]]
    for wrong, words in (
        (np.isnan(raw_weights), "is not a number. Write each weight as a number that is not negative."),
        (raw_weights < 0, "is negative. Write 0 for a row that does not count."),
        (raw_weights > MOST_WEIGHT, f"is too large. The largest weight is {MOST_WEIGHT:g}."),
    ):
        if wrong.any():
            row = rows[int(np.flatnonzero(wrong)[0])]
            line = f"{raw.place.lower()} {raw.line_numbers[row]:,}"
            raise DataError(f"Column '{name}' gives no weight in {line}: '{cells.word(cells.index[row])[:60]}' {words}")
    if not raw_weights.any():
        raise DataError(f"Every weight in column '{name}' is 0, so no row counts. Choose another column.")
    return raw_weights, number_form(column_reading)


def _step(raw_weights: np.ndarray, values: np.ndarray, *, exact: bool) -> Fraction:
    """Return the weight of one unit of the integers `values`."""
    first = int(np.argmax(raw_weights))
    if exact:
        weight = Fraction(repr(float(raw_weights[first]))).limit_denominator(10**12)
        return weight / int(values[first])
    return Fraction(repr(float(raw_weights.sum() / values.sum())))
