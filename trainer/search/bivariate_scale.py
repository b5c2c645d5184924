"""Coordinates in which the geometry of a node is exact: whole numbers where the columns allow it, scaled by powers of two.

Bollwein & Westphal scale by median and inter-quartile range; the same is done here with the range rounded to a power of two and
the median taken among the values, so that scaling moves no point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.dtypes import CodeArray, CountArray, FloatArray
from trainer.kernels.bivariate_points import scaled_points
from trainer.kernels.ordering import write_codes

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


def is_exact(whole: FloatArray) -> bool:
    """True if all columns are whole numbers below 2^26."""
    return bool((np.abs(whole) < WHOLE).all() and (np.rint(whole) == whole).all())


def codes_of(whole: FloatArray) -> tuple[CodeArray, CountArray]:
    """Codes int32 (p, n) that grow with the values of each feature, equal for equal values, and a number above them, int64 (p,)."""
    n, p = whole.shape
    codes, levels = np.zeros((p, n), np.int32), np.ones(p, np.int64)
    if n:
        write_codes(whole, codes, levels)
    return codes, levels


@dataclass(frozen=True, kw_only=True)
class NodePoints:
    """The usable features of a node: index of each feature, scaled values, ranks and numbers of distinct values.

    `values` float64 (features, n) and `ranks` int64 (features, n) are C-ordered.
    """

    features: tuple[int, ...]
    values: FloatArray
    ranks: CountArray
    levels: tuple[int, ...]


def node_points(
    whole: FloatArray, codes: CodeArray, levels: CountArray, rows: CountArray, *, normalise: bool = True
) -> NodePoints:
    """Scaled values of the features that are not constant on `rows`; an inter-quartile range of 0 falls back to the range.

    `codes` and `levels` are those of `codes_of(whole)`.
    """
    n, p = len(rows), whole.shape[1]
    values, ranks = np.empty((p, n)), np.empty((p, n), np.int64)
    distinct = np.empty(p, np.int64)
    scaled_points(whole, codes, levels, rows, normalise, values, ranks, distinct)
    kept = np.flatnonzero(distinct > 1)
    if len(kept) < p:
        values, ranks = values[kept], ranks[kept]
    return NodePoints(features=tuple(kept.tolist()), values=values, ranks=ranks, levels=tuple(distinct[kept].tolist()))
