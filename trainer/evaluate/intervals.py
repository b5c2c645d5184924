"""Compute confidence intervals of shares and test the difference of two trees.

n rows, k of them correct; z is the normal quantile of the level. All intervals are at 95 % by default.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trainer.data.share_interval import (
    Z95,
    CostSums,
    Interval,
    WeightSums,
    of_cost_sums,
    of_folds,
    of_groups,
    of_rows,
    of_weights,
    widest,
    wilson,
)
from trainer.dtypes import BoolArray, CountArray

__all__ = [
    "CostSums",
    "Interval",
    "PairedDifference",
    "WeightSums",
    "difference",
    "mcnemar",
    "of_cost_sums",
    "of_folds",
    "of_groups",
    "of_mean",
    "of_rows",
    "of_weights",
    "paired_difference",
    "widest",
    "wilson",
]


def of_mean(total: float, squares: float, n: int, *, z: float = Z95) -> Interval | None:
    """Return the normal interval of a nonnegative mean cost per row; None for fewer than two rows.

    `total` and `squares` are the sums of the n costs and of their squares.
    """
    if n < 2:
        return None
    mean = total / n
    half = z * math.sqrt(max(0.0, squares - n * mean * mean) / (n - 1) / n)
    return max(0.0, mean - half), mean + half


def mcnemar(b: int, c: int) -> float:
    """Return the two-sided exact p-value of equal accuracy (McNemar, 1947); 1 if b + c is 0.

    Only the first tree classifies `b` rows correctly, only the second one `c` rows.
    """
    n = b + c
    k = min(b, c)
    if n == 0:
        return 1.0
    # compute the binomial tail at 1/2 in integers, which are exact for any number of rows
    tail = 0
    term = 1
    for i in range(k + 1):
        tail += term
        term = term * (n - i) // (i + 1)
    return min(1.0, 2 * tail / 2**n) if n < 1000 else min(1.0, math.exp(math.log(2) + _log(tail) - n * math.log(2)))


def difference(b: int, c: int, n: int, *, z: float = Z95) -> Interval | None:
    """Return the interval of the accuracy difference on the same n rows, (b − c) / n; None without rows.

    Only the first tree classifies `b` rows correctly, only the second one `c` rows. Wald's interval, with half a row added to each
    of the four cells (Agresti & Min, 2005).
    """
    if n <= 0:
        return None
    b2 = b + 0.5
    c2 = c + 0.5
    n2 = n + 2.0
    middle = (b2 - c2) / n2
    half = z / n2 * math.sqrt(max(0.0, b2 + c2 - (b2 - c2) ** 2 / n2))
    return max(-1.0, middle - half), min(1.0, middle + half)


class PairedDifference(NamedTuple):
    """The difference of two shares of the same rows, its 95 % interval, and the p-value of no difference."""

    points: float
    interval: Interval | None
    p: float


def paired_difference(
    first: BoolArray, second: BoolArray, weights: CountArray | None, groups: np.ndarray | None
) -> PairedDifference | None:
    """Compare two trees on rows with weights or groups, the first minus the second; None for fewer than two groups.

    Parameters
    ----------
    first, second : bool arrays of shape (rows,)
        Whether each tree is right.
    weights : int64 array of shape (rows,), optional
        How much each row counts.
    groups : int64 array of shape (rows,), optional
        The group of each row; None: each row is on its own.

    Notes
    -----
    The mean difference of groups, with its variance by linearisation, and Student's t with groups − 1 degrees of freedom.
    """
    # import here, because SciPy loads slowly and only rows with groups or weights need it
    from scipy.special import stdtr, stdtrit

    row_weights = np.ones(len(first)) if weights is None else weights.astype(np.float64)
    units = np.arange(len(first)) if groups is None else np.unique(groups, return_inverse=True)[1]
    n = np.bincount(units, weights=row_weights)
    total = np.bincount(units, weights=row_weights * (first.astype(np.float64) - second))
    count = len(n)
    if count < 2 or not n.sum():
        return None
    mean = float(total.sum() / n.sum())
    deviation = math.sqrt(count / (count - 1) * float(((total - mean * n) ** 2).sum())) / float(n.sum())
    half = float(stdtrit(count - 1, 0.975)) * deviation
    p = 2 * float(stdtr(count - 1, -abs(mean) / deviation)) if deviation else float(mean == 0)
    return PairedDifference(mean, (max(-1.0, mean - half), min(1.0, mean + half)), p)


def _log(value: int) -> float:
    """Return the natural logarithm of an integer that may be too large for a float."""
    shift = max(0, value.bit_length() - 60)
    return math.log(value >> shift) + shift * math.log(2) if value > 0 else -math.inf
