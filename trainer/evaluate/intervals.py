"""How far a share that was counted on rows may be off, and whether two trees differ by more than chance.

n rows, k of them right; z the normal quantile of the level. All intervals are at 95 %.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trainer.data.share_interval import (
    Z95,
    Interval,
    WeightSums,
    of_folds,
    of_groups,
    of_rows,
    of_weights,
    widest,
    wilson,
)
from trainer.dtypes import BoolArray, CountArray

__all__ = [
    "Interval",
    "PairedDifference",
    "WeightSums",
    "difference",
    "mcnemar",
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
    """Normal interval for a mean cost per row that is not negative: `total` and `squares` are the sums of the n costs and of their squares.

    None for fewer than two rows.
    """
    if n < 2:
        return None
    mean = total / n
    half = z * math.sqrt(max(0.0, squares - n * mean * mean) / (n - 1) / n)
    return max(0.0, mean - half), mean + half


def mcnemar(b: int, c: int) -> float:
    """Two-sided exact p-value that b rows right by the first alone and c by the second alone are chance (McNemar, 1947).

    Without rows on which the two differ in being right it is 1.
    """
    n = b + c
    k = min(b, c)
    if n == 0:
        return 1.0
    # the tail of a fair coin in integers: exact however many rows there are
    tail = 0
    term = 1
    for i in range(k + 1):
        tail += term
        term = term * (n - i) // (i + 1)
    return min(1.0, 2 * tail / 2**n) if n < 1000 else min(1.0, math.exp(math.log(2) + _log(tail) - n * math.log(2)))


def difference(b: int, c: int, n: int, *, z: float = Z95) -> Interval | None:
    """Interval for the difference of the shares right on the same n rows, (b − c) / n, the first minus the second.

    Wald's interval with Agresti & Min's (2005) half a row added to each of the four cells; None without rows.
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
    """How far two shares of the same rows are apart: the difference, its 95 % interval, and the p-value of no difference."""

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
    from scipy.special import stdtr, stdtrit  # slow to import, and only needed where rows have groups or weights

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
    """The logarithm of an integer that may be too large for a float."""
    shift = max(0, value.bit_length() - 60)
    return math.log(value >> shift) + shift * math.log(2) if value > 0 else -math.inf
