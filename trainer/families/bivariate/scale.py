"""Scale a node's coordinates by powers of two, for exact geometry.

Bollwein & Westphal scale by median and inter-quartile range. Here the range is rounded to a power of two and the median is one of
the values, so that scaling rounds no coordinate. `trainer.growing.coordinates` makes the values integers before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.dtypes import BoolArray, CodeArray, CountArray, FloatArray
from trainer.families.bivariate.kernels.points import scaled_points

NO_CELLS = np.zeros((0, 0), bool)


@dataclass(frozen=True, kw_only=True)
class NodePoints:
    """The usable features of a node: index of each feature, scaled values, ranks and numbers of distinct values.

    `values` float64 (features, n) and `ranks` int64 (features, n) are C-ordered. `empty`, bool (features, n), marks empty
    cells; it has no rows if there are none.
    """

    features: tuple[int, ...]
    values: FloatArray
    ranks: CountArray
    levels: tuple[int, ...]
    empty: BoolArray


def node_points(
    whole: FloatArray,
    codes: CodeArray,
    levels: CountArray,
    rows: CountArray,
    *,
    normalise: bool = True,
    empty: BoolArray = NO_CELLS,
) -> NodePoints:
    """Return the scaled values of the features that are not constant on `rows`.

    An inter-quartile range of 0 falls back to the range. `codes` and `levels` are the result of `codes_of(whole)`. `empty`, bool (features,
    all rows), marks empty cells, which `whole` fills. A feature with an empty cell is not constant.
    """
    n = len(rows)
    p = whole.shape[1]
    values = np.empty((p, n))
    ranks = np.empty((p, n), np.int64)
    distinct = np.empty(p, np.int64)
    scaled_points(whole, codes, levels, rows, normalise, values, ranks, distinct)
    usable = distinct > 1
    empty_cells = empty[:, rows] if len(empty) else NO_CELLS
    if empty_cells.any():
        usable = (usable | empty_cells.any(axis=1)) & ~empty_cells.all(axis=1)
    else:
        empty_cells = NO_CELLS
    features = np.flatnonzero(usable)
    empty_cells = empty_cells[features] if len(empty_cells) else empty_cells
    if len(features) < p:
        values = values[features]
        ranks = ranks[features]
    return NodePoints(
        features=tuple(features.tolist()),
        values=values,
        ranks=ranks,
        levels=tuple(distinct[features].tolist()),
        empty=empty_cells,
    )
