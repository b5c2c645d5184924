"""Measure changes by units, steps and user costs of columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

import numpy as np

from trainer.data.column_statistics import CONTINUOUS, ColumnStatistics, numeric_statistics, rounded_unit, statistics
from trainer.dtypes import FloatArray
from trainer.errors import ParameterError
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.nodes import Tree

OF_FILE = "the training rows, as the model file keeps them: units rounded to 1, 2 or 5 times a power of ten"
EXACT = Context(prec=800)  # precise enough to represent a multiple of a step near any double exactly


def statistics_of_model(tree: Tree, matrix: FloatArray | None = None) -> tuple[ColumnStatistics, ...]:
    """Return the statistics that measure changes on every page and in every command.

    Parameters
    ----------
    tree : Tree
    matrix : float64 array of shape (n, columns), optional
        The training rows, NaN where missing.

    Returns
    -------
    tuple of ColumnStatistics
        Steps and units are those of the model file. For a column without them, as in older files, they are those of the
        rows, or else of the thresholds. The range is that of the rows in whole units, or else of the thresholds.
    """
    if matrix is None:
        measured = statistics_of_tree(tree)
    else:
        measured = statistics(tree.schema, matrix)
    return tuple(_by_description(c, s) for c, s in zip(tree.schema, measured, strict=True))


def _by_description(column: ColumnSchema, measured: ColumnStatistics) -> ColumnStatistics:
    if column.change_unit is None or column.decimals is None:
        return measured
    decimals = None if column.decimals == CONTINUOUS else column.decimals
    rounded = _coarse(replace(measured, scale=column.change_unit))
    return replace(rounded, decimals=decimals, deviation=measured.deviation)


def coarse(known: Sequence[ColumnStatistics]) -> tuple[ColumnStatistics, ...]:
    """Coarsen statistics for users without access to the rows, so that they reveal no figure of a row.

    Units and deviations are rounded to 1, 2 or 5 times a power of ten, and ranges are widened to whole units.
    """
    return tuple(_coarse(s) for s in known)


def _coarse(measured: ColumnStatistics) -> ColumnStatistics:
    unit = rounded_unit(measured.scale)
    with np.errstate(over="ignore"):
        low = np.floor(measured.low / unit) * unit
        high = np.ceil(measured.high / unit) * unit
    if not (math.isfinite(low) and math.isfinite(high)):
        low = measured.low
        high = measured.high
    deviation = rounded_unit(measured.deviation) if measured.deviation else 0.0
    return replace(measured, scale=unit, low=float(low), high=float(high), deviation=deviation)


def with_costs(
    schema: Sequence[ColumnSchema], column_statistics: Sequence[ColumnStatistics], cost: Mapping[str, Any]
) -> tuple[ColumnStatistics, ...]:
    """Return the statistics with the user's costs of a change of 1 in some columns.

    Costs are numbers from 10^-9 to 10^9; the columns must be numeric or binary. Raises ParameterError for others.
    """
    columns = {c.name: c for c in schema}
    errors = {str(name): why for name, value in cost.items() if (why := _odd_cost(columns.get(name), value))}
    if errors:
        raise ParameterError(errors)
    return tuple(
        replace(s, scale=1.0 / float(cost[c.name])) if c.name in cost else s
        for c, s in zip(schema, column_statistics, strict=True)
    )


def cost_source(source: str, cost: Mapping[str, Any]) -> str:
    """Return in words what sizes are measured on, and whether the user gave costs."""
    return f"{source}; costs as given" if cost else source


def split_cost(text: str) -> tuple[str, float]:
    """Split COLUMN=NUMBER into column and cost; raise ParameterError for other text."""
    name, _, number = text.rpartition("=")
    try:
        return name, float(number)
    except ValueError as error:
        raise ParameterError({text: "write COLUMN=NUMBER, as in income=0.001."}) from error


def _odd_cost(column: ColumnSchema | None, value: Any) -> str:
    if column is None:
        return "the model has no such column."
    if column.kind is ColumnKind.CATEGORICAL:
        return "a column of categories has no cost per unit, since each change counts 1. Leave this cost out."
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1e-9 <= value <= 1e9:
        return "a cost is a number from 0.000000001 to 1,000,000,000."
    return ""


def statistics_of_tree(tree: Tree) -> tuple[ColumnStatistics, ...]:
    """Return statistics from the tree alone: units of 1, and the steps and range of its thresholds."""
    ends: dict[int, list[float]] = {}
    for v in tree.branches:
        flat = None if v.split is None else v.split.flat(tree.schema)
        if flat is not None and flat.feature >= 0:
            ends.setdefault(flat.feature, []).extend(end for end in (flat.low, flat.high) if math.isfinite(end))
    columns = []
    for j in range(len(tree.schema)):
        values = np.array(ends.get(j, []), np.float64)
        measured = numeric_statistics(values) if len(values) else ColumnStatistics()
        columns.append(ColumnStatistics(decimals=measured.decimals, low=measured.low, high=measured.high))
    return tuple(columns)


def step_at_most(bound: float, decimals: int | None) -> float:
    """Return the largest value with these decimals that is ≤ `bound`, a finite number."""
    if decimals is None:
        return bound
    step = Decimal(1).scaleb(-decimals)
    at = Decimal(bound).quantize(step, ROUND_FLOOR, EXACT)
    while float(at) > bound:  # the decimal is at most the bound, but the nearest double is above it
        at = EXACT.subtract(at, step)
    while (following := EXACT.add(at, step)) and bound >= float(following) > float(at):
        at = following
    return float(at)


def step_above(bound: float, decimals: int | None) -> float:
    """Return the smallest number with `decimals` decimals above `bound`, a finite number; the next double if `decimals` is None."""
    if decimals is None:
        return math.nextafter(bound, math.inf)
    step = Decimal(1).scaleb(-decimals)
    at = EXACT.add(Decimal(bound).quantize(step, ROUND_FLOOR, EXACT), step)
    # the decimal may round to the double `bound` itself, or the step may be smaller than the distance between two
    # doubles
    if float(at) <= bound:
        at = EXACT.add(at, step)
    return float(at) if float(at) > bound else math.nextafter(bound, math.inf)
