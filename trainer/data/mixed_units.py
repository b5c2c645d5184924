"""Find columns that mix two units, such as grams and kilograms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainer.dtypes import BoolArray, FloatArray
from trainer.table import Column, ColumnKind, Table

FACTORS = (10.0, 100.0, 1000.0)  # other factors would fit two-peaked columns by chance
MIN_NUMBERS_PER_PART = 20  # required numbers in each part
MIN_VALUES_PER_PART = 8  # required distinct numbers in each part; fewer may be codes
NEAR = 0.1  # the mean logarithms must differ by the factor up to this tolerance
CLEAR = 0.5  # the parts must have at least this Kolmogorov-Smirnov distance without conversion
CRITICAL = 1.95  # critical value of the Kolmogorov-Smirnov test at 0.1 %
WIDEST_GAP = 2.0  # the gap between the parts must be at least this many times the widest gap within them
MIN_REMAINING_STEP = 0.5  # beside a straight trend, at least this share of a step must remain
UNLIKE = 0.5  # if the mean logarithms of the other categories differ by this much, one category may differ by chance
MIN_SORTED_SHARE = (
    0.8  # in sorted numbers, rising steps exceed falling ones, or the reverse, by at least this share of the steps
)
MOST_LEVELS = 10  # limit on the categories of a column that may separate the units
MOST_PARTS = 100  # limit on the categories that are examined in a table
MAX_COMPARED_ROWS = 20_000  # limit on the rows that are compared


@dataclass(frozen=True, kw_only=True)
class MixedUnit:
    """A column in which `rows` of `cells` numbers look like the others times `factor`.

    `example` is one of them, and `where` tells which rows they are, in words.
    """

    column: str
    rows: int
    cells: int
    factor: float
    example: float
    where: str


def mixed_units(table: Table) -> Iterator[MixedUnit]:
    """Yield the columns in which a part of the numbers looks like the others times 10, 100 or 1000.

    The part is separated from the other numbers by a gap, begins at a row of the file, or has one category of another
    column. Divided by the factor it must be spread like the others. Only positive numbers are compared.

    Parameters
    ----------
    table : Table
        The rows in the order of the file.
    """
    levels = _levels(table)
    for column in table.columns:
        if column.kind is not ColumnKind.NUMERIC:
            continue
        compared = column.values > 0
        if column.schema.special:
            compared &= ~np.isin(column.values, column.schema.special)
        rows = compared.nonzero()[0]
        if len(rows) < 2 * MIN_NUMBERS_PER_PART:
            continue
        logs = np.log10(column.values[rows])
        if (mixed := _in_parts(column, table, rows, logs, levels)) is not None:
            yield mixed


def _in_parts(
    column: Column, table: Table, rows: np.ndarray, logs: FloatArray, levels: list[tuple[Column, int]]
) -> MixedUnit | None:
    """Return the first part of a column in another unit; None without one."""
    above = _above_gap(logs)
    if above is not None and (factor := _factor(logs, above)) is not None:
        return _mixed_unit(column, rows, above, factor, "the larger ones")
    start = _largest_shift(logs)
    after = np.arange(len(logs)) >= start
    if (factor := _factor(logs, after)) is not None and not _rises_steadily(logs, after):
        line = table.row_numbers[rows[start]]
        if factor < 1:
            return _mixed_unit(column, rows, ~after, 1 / factor, f"before row {line:,} of the file")
        return _mixed_unit(column, rows, after, factor, f"from row {line:,} of the file on")
    for other, code in levels:
        codes = other.values[rows]
        part = codes == code
        if (factor := _factor(logs, part)) is not None and _others_alike(logs, codes, code):
            category = other.schema.categories[code]
            if factor < 1:
                return _mixed_unit(column, rows, ~part, 1 / factor, f"where {other.name} is not {category}")
            return _mixed_unit(column, rows, part, factor, f"where {other.name} is {category}")
    return None


def _mixed_unit(column: Column, rows: np.ndarray, part: BoolArray, factor: float, where: str) -> MixedUnit:
    example = float(column.values[rows[np.flatnonzero(part)[0]]])
    return MixedUnit(
        column=column.name, rows=int(part.sum()), cells=len(rows), factor=factor, example=example, where=where
    )


def _levels(table: Table) -> list[tuple[Column, int]]:
    """Return the categories of small columns, each with its column."""
    pairs = [
        (column, code)
        for column in table.columns
        if column.kind is ColumnKind.CATEGORICAL and 1 < len(column.schema.categories) <= MOST_LEVELS
        for code in range(len(column.schema.categories))
    ]
    return pairs[:MOST_PARTS]


def _above_gap(logs: FloatArray) -> BoolArray | None:
    """Return a mask of the numbers above the widest gap; None if another gap is nearly as wide."""
    ordered = np.sort(logs)
    gaps = np.diff(ordered)
    at = int(gaps.argmax())
    rest = max(gaps[:at].max(initial=0.0), gaps[at + 1 :].max(initial=0.0))
    return logs > ordered[at] if gaps[at] >= WIDEST_GAP * rest else None


def _largest_shift(logs: FloatArray) -> int:
    """Return the place from which on the mean differs most from the mean before it, by the cumulated sum."""
    n = len(logs)
    places = np.arange(1, n)
    sums = np.cumsum(logs - logs.mean())[:-1]
    weight = np.sqrt(places * (n - places) / n)
    return int(np.abs(sums / np.maximum(weight, 1e-12)).argmax()) + 1


def _rises_steadily(logs: FloatArray, after: BoolArray) -> bool:
    """Return whether the numbers are sorted, or a straight trend explains most of the step to the last rows, `after`."""
    steps = np.sign(np.diff(logs))
    if abs(steps.sum()) >= MIN_SORTED_SHARE * np.count_nonzero(steps):
        return True
    trend = np.linspace(-1, 1, len(logs))
    step = np.linalg.lstsq(np.column_stack([np.ones(len(logs)), trend, after]), logs)[0][2]
    return bool(step / (logs[after].mean() - logs[~after].mean()) < MIN_REMAINING_STEP)


def _others_alike(logs: FloatArray, codes: FloatArray, code: int) -> bool:
    """Return whether the mean numbers of the other categories are about the same."""
    others = [logs[codes == other] for other in np.unique(codes[~np.isnan(codes)]) if other != code]
    means = [part.mean() for part in others if len(part) >= MIN_VALUES_PER_PART]
    return not means or bool(np.ptp(means) < UNLIKE)


def _factor(logs: FloatArray, part: BoolArray) -> float | None:
    """Return the factor by which the numbers of a part differ from the others; None if they differ in another way."""
    size = int(part.sum())
    if min(size, len(logs) - size) < MIN_NUMBERS_PER_PART:
        return None
    shift = float(logs[part].mean() - logs[~part].mean())
    factors = [f for f in FACTORS if abs(abs(shift) - math.log10(f)) <= NEAR]
    if not factors:
        return None
    step = math.copysign(math.log10(factors[0]), shift)
    inside = _sample(logs[part])
    others = _sample(logs[~part])
    if min(len(np.unique(inside)), len(np.unique(others))) < MIN_VALUES_PER_PART:
        return None
    critical = CRITICAL * math.sqrt((len(inside) + len(others)) / (len(inside) * len(others)))
    alike = _distance(inside - step, others) <= critical and _distance(inside, others) >= CLEAR
    return 10.0 ** round(step) if alike else None


def _sample(values: FloatArray) -> FloatArray:
    step = -(-len(values) // MAX_COMPARED_ROWS)
    return np.sort(values[::step])


def _distance(a: FloatArray, b: FloatArray) -> float:
    """Return the Kolmogorov-Smirnov distance of two sorted samples."""
    # round, because the logarithms of equal numbers may differ in the last bit
    both = np.round(np.concatenate((a, b)), 9)
    places = np.unique(both)
    below = [np.searchsorted(np.round(values, 9), places, side="right") / len(values) for values in (a, b)]
    return float(np.abs(below[0] - below[1]).max())
