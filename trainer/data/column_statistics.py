"""Compute decimals, unit of change and range of each training column."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np

from trainer.data.parsing.cells import LARGEST_EXACT
from trainer.dtypes import CountArray, FloatArray
from trainer.table import ColumnKind, ColumnSchema, distinct_bits
from trainer.tree.nodes import Tree

CACHE_LINE_VALUES = 8  # number of float64 values in a cache line
SAMPLED_VALUES = 1000  # number of values that are tried before all others
MOST_DECIMALS = 12  # columns with more decimals count as continuous
CONTINUOUS = MOST_DECIMALS + 1  # value of `decimals` in a model file if a column is continuous


@dataclass(frozen=True, kw_only=True)
class ColumnStatistics:
    """A column's unit of change `scale`, its stored `decimals` (None: more than 12), and its range.

    `deviation` is the standard deviation. A column without values has scale 1 and deviation 0.
    """

    scale: float = 1.0
    decimals: int | None = None
    low: float = 0.0
    high: float = 0.0
    deviation: float = 0.0

    @property
    def whole(self) -> bool:
        """Whether all training values are whole numbers."""
        return self.decimals == 0


def statistics(schema: Sequence[ColumnSchema], matrix: FloatArray) -> tuple[ColumnStatistics, ...]:
    """Return the statistics of each column over the training rows `matrix`, float64 (n, columns), NaN if missing."""
    return tuple(
        ColumnStatistics() if column.kind is ColumnKind.CATEGORICAL else numeric_statistics(values)
        for column, values in zip(schema, _columns_of(matrix), strict=True)
    )


def _columns_of(matrix: FloatArray) -> Iterator[FloatArray]:
    """Yield the columns, copied in groups of a cache line."""
    for first in range(0, matrix.shape[1], CACHE_LINE_VALUES):
        yield from np.ascontiguousarray(matrix[:, first : first + CACHE_LINE_VALUES].T)


def describe_columns(tree: Tree, matrix: FloatArray) -> Tree:
    """Write the decimals and the rounded unit of change of the training rows into the columns of a tree.

    Parameters
    ----------
    tree : Tree
    matrix : float64 array of shape (n, columns)
        The training rows, NaN if missing.

    Returns
    -------
    Tree
        The same tree. Its numeric columns with a value have `decimals`, `change_unit` and `range`. The range covers the
        numbers that are not codes, rounded outward to a tenth of the unit, so that its ends reveal no value of a row. Ends
        with too many digits are not rounded.
    """
    return replace(tree, schema=describe_schema(tree.schema, matrix))


def describe_schema(schema: Sequence[ColumnSchema], matrix: FloatArray) -> tuple[ColumnSchema, ...]:
    """Return the columns as `describe_columns` writes them into a tree."""
    return tuple(_describe(column, values) for column, values in zip(schema, _columns_of(matrix), strict=True))


def _describe(column: ColumnSchema, values: FloatArray) -> ColumnSchema:
    if column.kind is ColumnKind.CATEGORICAL or (np.isnan(values[:1]).all() and np.isnan(values).all()):
        return column
    column_statistics = numeric_statistics(values)
    decimals = CONTINUOUS if column_statistics.decimals is None else column_statistics.decimals
    unit = rounded_unit(column_statistics.scale)
    low = column_statistics.low
    high = column_statistics.high
    sizes = values[np.isfinite(values) & ~np.isin(values, column.special)] if column.special else values[:0]
    if len(sizes):
        low = float(sizes.min())
        high = float(sizes.max())
    ends = (_outward(low, unit, ROUND_FLOOR), _outward(high, unit, ROUND_CEILING))
    return replace(column, decimals=decimals, change_unit=unit, range=ends)


def _outward(value: float, unit: float, rounding: str) -> float:
    """Round an end of a range to a tenth of the unit of change; keep a value with too many digits."""
    step = Decimal(repr(unit)) / 10
    steps = Decimal(repr(value)) / step
    if abs(steps) > LARGEST_EXACT:
        return value
    return float(steps.to_integral_value(rounding) * step) + 0.0


def is_described(tree: Tree) -> bool:
    """Return whether each numeric column of the tree has a unit of change."""
    columns = [tree.schema[j] for j in tree.used_columns]
    return all(c.change_unit is not None for c in columns if c.kind is not ColumnKind.CATEGORICAL)


def rounded_unit(value: float) -> float:
    """Round a positive number to 1, 2 or 5 times a power of ten, the nearest by ratio."""
    power = math.floor(math.log10(value))
    units = (float(f"{m}e{k}") for k in (power, power + 1) for m in (1, 2, 5))
    return min((u for u in units if 0 < u < math.inf), key=lambda u: abs(math.log(u) - math.log(value)), default=value)


def numeric_statistics(values: FloatArray) -> ColumnStatistics:
    """Return the statistics of a numeric column, with the median absolute deviation as unit of change.

    If it is 0, the unit is the mean absolute deviation; if that is 0 too, the unit is 1.
    """
    if (bits := distinct_bits(values)) is not None and len(bits):
        return _statistics_of_few(bits, np.array([np.count_nonzero(values == values.dtype.type(bit)) for bit in bits]))
    values = values.astype(np.float64, copy=False)
    finite = np.isfinite(values)
    finite_values = np.ascontiguousarray(values if finite.all() else values[finite])
    if not len(finite_values):
        return ColumnStatistics()
    low = float(finite_values.min())
    high = float(finite_values.max())
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = float(finite_values.std())
        scale = _scale(finite_values, low, high) if low < high else 1.0
    return ColumnStatistics(
        scale=scale,
        decimals=decimals_of(finite_values),
        low=low,
        high=high,
        deviation=deviation if math.isfinite(deviation) else 0.0,
    )


def _scale(finite_values: FloatArray, low: float, high: float) -> float:
    """Return the unit of change: the median absolute deviation, or the mean one if the median is 0.

    The values must be finite and not all equal. The unit is 1 if both deviations are 0 or overflow.
    """
    rows = np.count_nonzero(finite_values == low)
    # with only two values, the statistics follow from their counts, without a sort
    if rows + np.count_nonzero(finite_values == high) == len(finite_values):
        return _scale_of_few(np.array([low, high]), np.array([rows, len(finite_values) - rows]))
    unit = float(np.median(np.abs(finite_values - np.median(finite_values))))
    if not 0 < unit < math.inf:
        unit = float(np.abs(finite_values - finite_values.mean()).mean())
    return unit if 0 < unit < math.inf else 1.0


def _statistics_of_few(distinct: FloatArray, rows: CountArray) -> ColumnStatistics:
    """Return the statistics of distinct values, each with its number of rows."""
    low = float(distinct[0])
    high = float(distinct[-1])
    variance = np.average((distinct - np.average(distinct, weights=rows)) ** 2, weights=rows)
    return ColumnStatistics(
        scale=_scale_of_few(distinct, rows) if low < high else 1.0,
        decimals=_fewest_decimals(distinct, float(np.abs(distinct).max())),
        low=low,
        high=high,
        deviation=math.sqrt(variance),
    )


def _scale_of_few(distinct: FloatArray, rows: CountArray) -> float:
    """Return the unit of change as `_scale` does, for distinct values, each with its number of rows."""
    unit = _median_of_few(np.abs(distinct - _median_of_few(distinct, rows)), rows)
    if not 0 < unit < math.inf:
        unit = float(np.average(np.abs(distinct - np.average(distinct, weights=rows)), weights=rows))
    return unit if 0 < unit < math.inf else 1.0


def _median_of_few(values: FloatArray, rows: CountArray) -> float:
    """Return the median of distinct values, each with its number of rows."""
    order = np.argsort(values)
    ends = np.cumsum(rows[order])
    middle = np.searchsorted(ends, [(ends[-1] - 1) // 2, ends[-1] // 2], side="right")
    return float(values[order][middle].mean())


def decimals_of(values: FloatArray) -> int | None:
    """Return the fewest decimals, at most 12, that write every value exactly; None if none do."""
    most = float(np.abs(values).max())
    if most < 2**53 and _fewest_decimals(np.unique(values[:SAMPLED_VALUES]), most) is None:
        return None  # one value with too many decimals decides, so the others need no sort
    return _fewest_decimals(np.unique(values), most)


def _fewest_decimals(distinct: FloatArray, most: float) -> int | None:
    for decimals in range(MOST_DECIMALS + 1):
        if most * 10.0**decimals >= 2**53:
            return None if decimals else 0
        if (np.round(distinct * 10.0**decimals) / 10.0**decimals == distinct).all():
            return decimals
    return None
