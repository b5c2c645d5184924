"""How far an accuracy or a cost on unseen rows may be off: by rows, by folds, by groups of rows.

n rows, k of them correct; z the normal quantile of the level. All intervals are at 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from trainer.dtypes import FloatArray

Z95 = 1.959963984540054
TAIL = 0.975  # the quantile of Student's t for an interval at 95 %
RESAMPLES = 2000
MAX_GROUPS = 1000  # more groups are joined to so many at random before they are resampled
Interval = tuple[float, float]


def wilson(k: float, n: float, *, z: float = Z95) -> Interval | None:
    """Wilson's score interval for the share k / n, within [0, 1]; None without rows (Wilson, 1927)."""
    if n <= 0:
        return None
    p = k / n
    d = 1 + z * z / n
    middle = (p + z * z / (2 * n)) / d
    half = z / d * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (0.0 if k == 0 else max(0.0, middle - half)), (1.0 if k == n else min(1.0, middle + half))


def of_folds(correct: float, n: float, folds: int) -> Interval | None:
    """Return the interval of a cross-validated accuracy: `correct` of `n` rows, each in one of `folds` folds.

    Notes
    -----
    The trees of the folds share training rows, so their mistakes are correlated. Nadeau & Bengio (2003) estimate
    the correlation as the share of rows in one fold: the variance grows by 1 + folds / (folds − 1). Wilson's
    interval is taken over so many fewer rows. None for fewer than two folds or no rows.
    """
    if folds < 2:
        return None
    inflation = 1 + folds / (folds - 1)
    return wilson(correct / inflation, n / inflation)


def of_groups(correct: FloatArray, n: FloatArray, folds: int = 0) -> Interval | None:
    """Return the interval of an accuracy that was counted on groups of rows that belong together.

    Parameters
    ----------
    correct, n : float64 arrays of shape (groups,)
        Correct rows, and all rows, of each group.
    folds : int
        Number of folds of a cross-validation; 0 for held-out rows.

    Returns
    -------
    tuple of two floats, or None
        None for fewer than two groups with rows, or a single fold.

    Notes
    -----
    A bootstrap draws whole groups and gives the variance of the share. The effective number of rows is the number of independent
    rows with this variance (Korn & Graubard, 1998): 40 patients whose rows agree count as 40, not as 400 rows. It is reduced by
    the ratio of the normal quantile to that of Student's t with groups − 1 degrees of freedom, squared, and by folds as in
    `of_folds`. Wilson's interval is taken over so many rows.
    """
    used = n > 0
    rows = effective_rows(correct[used], n[used])
    if rows is None or folds == 1:
        return None
    if folds:
        rows /= 1 + folds / (folds - 1)
    return wilson(rows * float(correct[used].sum() / n[used].sum()), rows)


def widest(intervals: Iterable[Interval | None]) -> Interval | None:
    """Return the widest interval; None if one of them is None, or there is none."""
    found = list(intervals)
    if not found or any(own is None for own in found):
        return None
    return max((own for own in found if own is not None), key=lambda own: own[1] - own[0])


def of_costs(costs: FloatArray, n: FloatArray) -> Interval | None:
    """Return the interval of a cost per row that was counted on rows, or on groups of rows that belong together.

    Parameters
    ----------
    costs, n : float64 arrays of shape (groups,)
        Cost and weight of the rows of each group; of each row where rows have no groups.

    Returns
    -------
    tuple of two floats, or None
        None for fewer than two groups with rows, and where all of them cost the same per row.

    Notes
    -----
    A percentile bootstrap over groups. Its distances from the cost per row are widened by the ratio of the quantile of Student's t with
    groups − 1 degrees of freedom to the normal one, since it is too narrow for few groups.
    """
    from scipy.special import stdtrit  # slow to import, and only needed where answers have costs

    used = n > 0
    groups = int(used.sum())
    if groups < 2 or np.ptp(costs[used] / n[used]) == 0:
        return None
    mean = float(costs[used].sum() / n[used].sum())
    low, high = np.quantile(_resampled(costs[used], n[used]), (1 - TAIL, TAIL))
    factor = float(stdtrit(groups - 1, TAIL)) / Z95 * math.sqrt(groups / (groups - 1))
    return max(0.0, mean - factor * (mean - float(low))), mean + factor * (float(high) - mean)


def _resampled(total: FloatArray, n: FloatArray) -> FloatArray:
    """Return the ratio of the sums of `total` and `n` over resampled groups, float64 (RESAMPLES,)."""
    rng = np.random.default_rng(0)
    if len(n) > MAX_GROUPS:
        batch = rng.permutation(len(n)) % MAX_GROUPS
        total = np.bincount(batch, weights=total).astype(np.float64)
        n = np.bincount(batch, weights=n).astype(np.float64)
    drawn = rng.multinomial(len(n), np.full(len(n), 1 / len(n)), size=RESAMPLES)
    ratios: FloatArray = (drawn @ total) / (drawn @ n)
    return ratios


def effective_rows(correct: FloatArray, n: FloatArray) -> float | None:
    """Return how many independent rows have the variance of the share over resampled groups; None for fewer than two groups."""
    from scipy.special import stdtrit  # slow to import, and only needed where rows have groups

    groups = len(n)
    if groups < 2:
        return None
    drawn = min(groups, MAX_GROUPS)
    variance = float(np.var(_resampled(correct, n))) * drawn / (drawn - 1)
    share = float(correct.sum() / n.sum())
    spread = share * (1 - share)
    rows = spread / variance if variance > 0 and spread > 0 else float(groups)
    quantile = float(stdtrit(groups - 1, TAIL))
    return min(rows, float(n.sum())) * (Z95 / quantile) ** 2
