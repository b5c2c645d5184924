"""Coordinates in which the geometry of a node is exact: whole numbers where the columns allow it, scaled by powers of two.

Bollwein & Westphal scale by median and inter-quartile range; the same is done here with the range rounded to a power of two and
the median taken among the values, so that scaling moves no point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.dtypes import CountArray, FloatArray

WHOLE = 2.0**26  # products of two differences stay exact below this
DECIMALS = 8


def whole_numbers(X: FloatArray) -> FloatArray:
    """X with every column of short decimal numbers multiplied by the power of ten that makes it whole; others unchanged."""
    out = np.asfortranarray(X, dtype=np.float64).copy(order="F")
    for j in range(X.shape[1]):
        column = X[:, j]
        if not len(column) or np.abs(column).max() >= WHOLE:
            continue
        for k in range(DECIMALS + 1):
            whole = np.rint(column * 10.0**k)
            if np.abs(whole).max() >= WHOLE:
                break
            if np.array_equal(whole / 10.0**k, column):
                out[:, j] = whole
                break
    return out


@dataclass(frozen=True, kw_only=True)
class NodePoints:
    """The usable features of a node: index of each feature, scaled values, ranks and numbers of distinct values.

    `values` float64 (features, n) and `ranks` int64 (features, n) are C-ordered.
    """

    features: tuple[int, ...]
    values: FloatArray
    ranks: CountArray
    levels: tuple[int, ...]


def node_points(whole: FloatArray, rows: CountArray, *, normalise: bool = True) -> NodePoints:
    """Scaled values of the features that are not constant on `rows`; an inter-quartile range of 0 falls back to the range."""
    features: list[int] = []
    values: list[FloatArray] = []
    ranks: list[CountArray] = []
    levels: list[int] = []
    for j in range(whole.shape[1]):
        column = whole[rows, j]
        distinct, rank = np.unique(column, return_inverse=True)
        if len(distinct) < 2:
            continue
        if normalise:
            n = len(column)
            ordered = np.partition(column, (n // 4, n // 2, (3 * n) // 4))
            spread = ordered[(3 * n) // 4] - ordered[n // 4]
            if spread <= 0:
                spread = distinct[-1] - distinct[0]
            column = (column - ordered[n // 2]) * 2.0 ** -np.round(np.log2(spread))
        features.append(j)
        values.append(column)
        ranks.append(rank.astype(np.int64).reshape(-1))
        levels.append(len(distinct))
    shape = (len(features), len(rows))
    return NodePoints(
        features=tuple(features),
        values=np.ascontiguousarray(values).reshape(shape),
        ranks=np.ascontiguousarray(ranks, dtype=np.int64).reshape(shape),
        levels=tuple(levels),
    )
