"""Coordinates in which the geometry of a node is exact: scaled by powers of two (`trainer.growing.coordinates` makes them whole).

Bollwein & Westphal scale by median and inter-quartile range; the same is done here with the range rounded to a power of two and
the median taken among the values, so that scaling moves no point.
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

    `values` float64 (features, n) and `ranks` int64 (features, n) are C-ordered. `empty`, bool (features, n), says where a cell is
    empty; it has no rows if no cell is.
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
    """Scaled values of the features that are not constant on `rows`; an inter-quartile range of 0 falls back to the range.

    `codes` and `levels` are the result of `codes_of(whole)`. `empty`, bool (features, all rows), says where a cell is empty and
    `whole` fills it; a feature with an empty cell is not constant.
    """
    n = len(rows)
    p = whole.shape[1]
    values = np.empty((p, n))
    ranks = np.empty((p, n), np.int64)
    distinct = np.empty(p, np.int64)
    scaled_points(whole, codes, levels, rows, normalise, values, ranks, distinct)
    usable = distinct > 1
    here = empty[:, rows] if len(empty) else NO_CELLS
    if here.any():
        usable = (usable | here.any(axis=1)) & ~here.all(axis=1)
    else:
        here = NO_CELLS
    kept = np.flatnonzero(usable)
    here = here[kept] if len(here) else here
    if len(kept) < p:
        values = values[kept]
        ranks = ranks[kept]
    return NodePoints(
        features=tuple(kept.tolist()), values=values, ranks=ranks, levels=tuple(distinct[kept].tolist()), empty=here
    )
