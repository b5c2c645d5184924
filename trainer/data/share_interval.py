"""Compute 95 % intervals of accuracies and costs on unseen rows.

n is the number of rows, k the number of correct ones, and z the normal quantile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray

Z95 = 1.959963984540054
TAIL = 0.975  # quantile of Student's t for a two-sided interval of 95 %
RESAMPLES = 2000
MAX_GROUPS = 1000  # more groups are merged at random into this number before resampling
Interval = tuple[float, float]


def wilson(k: float, n: float, *, z: float = Z95) -> Interval | None:
    """Return Wilson's score interval for the share k / n, within [0, 1]; None without rows (Wilson, 1927)."""
    if n <= 0:
        return None
    p = k / n
    d = 1 + z * z / n
    middle = (p + z * z / (2 * n)) / d
    half = z / d * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low = 0.0 if k == 0 else max(0.0, middle - half)
    high = 1.0 if k == n else min(1.0, middle + half)
    return low, high


def of_folds(correct: float, n: float, folds: int) -> Interval | None:
    """Return the interval of a cross-validated accuracy: `correct` of `n` rows, each in one of `folds` folds.

    Notes
    -----
    The trees of the folds share training rows, so their mistakes are correlated. Nadeau & Bengio (2003) estimate
    the correlation as the share of rows in one fold: the variance grows by 1 + folds / (folds − 1). Wilson's
    interval is computed with the rows divided by this factor. None for fewer than two folds or no rows.
    """
    if folds < 2:
        return None
    inflation = 1 + folds / (folds - 1)
    return wilson(correct / inflation, n / inflation)


def of_groups(correct: FloatArray, n: FloatArray, folds: int = 0) -> Interval | None:
    """Return the interval of an accuracy over groups of dependent rows.

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
    rows with this variance (Korn & Graubard, 1998): 40 patients whose rows agree count as 40, not as 400 rows. It is multiplied
    by the squared ratio of the normal quantile to that of Student's t with groups − 1 degrees of freedom. Folds reduce it as in
    `of_folds`. Wilson's interval is computed with this number of rows.
    """
    has_rows = n > 0
    rows = effective_rows(correct[has_rows], n[has_rows])
    if rows is None or folds == 1:
        return None
    if folds:
        rows /= 1 + folds / (folds - 1)
    return wilson(rows * float(correct[has_rows].sum() / n[has_rows].sum()), rows)


@dataclass(frozen=True, kw_only=True)
class WeightSums:
    """Sums over weighted rows: of the weights, of their squares, and of both over the correct rows."""

    n: float
    correct: float
    squares: float
    correct_squares: float

    @classmethod
    def of(cls, correct: FloatArray, n: FloatArray) -> WeightSums:
        """Return the sums over rows with weights `n`; `correct` is the weight of a correct row, else 0; float64 (rows,)."""
        return cls(
            n=float(n.sum()),
            correct=float(correct.sum()),
            squares=float(n @ n),
            correct_squares=float(correct @ correct),
        )

    def __add__(self, other: WeightSums) -> WeightSums:
        """Return the sums over the rows of both."""
        return WeightSums(
            n=self.n + other.n,
            correct=self.correct + other.correct,
            squares=self.squares + other.squares,
            correct_squares=self.correct_squares + other.correct_squares,
        )

    @property
    def effective_rows(self) -> float:
        """The number of rows of equal weight whose share of correct ones has the same variance.

        Notes
        -----
        The effective sample size of Korn & Graubard (1998), with the variance of the ratio by linearisation. It is Kish's
        (Σw)² / Σw² (1965) where all rows, or none, are correct, and the number of rows where all weights are equal.
        """
        share = self.correct / self.n
        if not 0 < share < 1:
            return self.n * self.n / self.squares
        wrong_squares = self.squares - self.correct_squares
        variance = self.correct_squares * (1 - share) ** 2 + wrong_squares * share**2
        return share * (1 - share) * self.n * self.n / variance


def of_weights(sums: WeightSums, folds: int = 0) -> Interval | None:
    """Return Wilson's interval of a weighted share over its effective number of rows.

    `folds`, the number of folds of a cross-validation, widens it as in `of_folds`; 0 for held-out rows. None for no rows or one fold.
    """
    if sums.n <= 0 or folds == 1:
        return None
    rows = sums.effective_rows
    if folds:
        rows /= 1 + folds / (folds - 1)
    return wilson(rows * sums.correct / sums.n, rows)


def of_rows(correct: BoolArray, weights: CountArray | None = None, groups: np.ndarray | None = None) -> Interval | None:
    """Return the interval of the share of correct rows: by groups if there are any, else by weights or rows.

    Parameters
    ----------
    correct : bool array of shape (rows,)
        Whether each row is correct.
    weights : int64 array of shape (rows,), optional
        Row weights.
    groups : int64 array of shape (rows,), optional
        The group of each row.

    Notes
    -----
    Over groups the variance of the share is that of the ratio by linearisation, and the quantile is Student's t with groups − 1
    degrees of freedom (Korn & Graubard, 1998): as `of_groups`, without draws, since pages show many such shares.
    """
    row_weights = np.ones(len(correct)) if weights is None else weights.astype(np.float64)
    if groups is None:
        return of_weights(WeightSums.of(row_weights * correct, row_weights))
    from scipy.special import stdtrit  # import here, because SciPy loads slowly and only rows with groups need it

    _, place = np.unique(groups, return_inverse=True)
    n = np.bincount(place, weights=row_weights)
    correct_weight = np.bincount(place, weights=row_weights * correct)
    count = len(n)
    if count < 2:
        return None
    share = float(correct_weight.sum() / n.sum())
    spread = share * (1 - share)
    variance = count / (count - 1) * float(((correct_weight - share * n) ** 2).sum()) / float(n.sum()) ** 2
    rows = spread / variance if variance > 0 and spread > 0 else float(count)
    rows = (
        min(rows, WeightSums.of(row_weights * correct, row_weights).effective_rows)
        * (Z95 / float(stdtrit(count - 1, TAIL))) ** 2
    )
    return wilson(rows * share, rows)


def widest(intervals: Iterable[Interval | None]) -> Interval | None:
    """Return the widest interval; None if one of them is None, or there is none."""
    known = []
    for interval in intervals:
        if interval is None:
            return None
        known.append(interval)
    return max(known, key=lambda interval: interval[1] - interval[0], default=None)


def of_costs(costs: FloatArray, n: FloatArray, *, least: float = 0.0) -> Interval | None:
    """Return the interval of a cost per row, over rows or groups of dependent rows.

    Parameters
    ----------
    costs, n : float64 arrays of shape (groups,)
        Cost and weight of each group; of each row if rows have no groups.
    least : float
        Lower limit of the cost per row; minus infinity for savings, which may be negative.

    Returns
    -------
    tuple of two floats, or None
        None for fewer than two groups with rows, and if all of them have the same cost per row.

    Notes
    -----
    A percentile bootstrap over groups is too narrow for few groups. So its distances from the cost per row are widened by two
    factors: the quantile of Student's t with groups − 1 degrees of freedom over the normal one, and √(groups / (groups − 1)).
    """
    from scipy.special import stdtrit  # import here, because SciPy loads slowly and only answers with costs need it

    has_rows = n > 0
    groups = int(has_rows.sum())
    if groups < 2 or np.ptp(costs[has_rows] / n[has_rows]) == 0:
        return None
    mean = float(costs[has_rows].sum() / n[has_rows].sum())
    low, high = np.quantile(_resample(costs[has_rows], n[has_rows]), (1 - TAIL, TAIL))
    factor = float(stdtrit(groups - 1, TAIL)) / Z95 * math.sqrt(groups / (groups - 1))
    return max(least, mean - factor * (mean - float(low))), mean + factor * (float(high) - mean)


@dataclass(frozen=True, kw_only=True)
class CostSums:
    """Sums over rows, or over groups of dependent rows: of costs, weights, their squares and products, and the number of groups."""

    cost: float
    n: float
    squares: float
    products: float
    n_squares: float
    count: int

    @classmethod
    def of(cls, costs: FloatArray, n: FloatArray) -> CostSums:
        """Return the sums over groups of these costs and weights, float64 (groups,)."""
        return cls(
            cost=float(costs.sum()),
            n=float(n.sum()),
            squares=float(costs @ costs),
            products=float(costs @ n),
            n_squares=float(n @ n),
            count=int((n > 0).sum()),
        )

    def __add__(self, other: CostSums) -> CostSums:
        """Return the sums over the groups of both."""
        return CostSums(
            cost=self.cost + other.cost,
            n=self.n + other.n,
            squares=self.squares + other.squares,
            products=self.products + other.products,
            n_squares=self.n_squares + other.n_squares,
            count=self.count + other.count,
        )


def of_cost_sums(sums: CostSums, folds: int = 0) -> Interval | None:
    """Return the interval of a cost per row from sums over rows or groups; `folds` widens it as in `of_folds`, 0 for held-out rows.

    Notes
    -----
    The variance of the ratio is that by linearisation, and the quantile is Student's t with groups − 1 degrees of freedom. The
    interval ends at 0. None for fewer than two groups, for equal costs, and for a single fold.
    """
    from scipy.special import stdtrit  # import here, because SciPy loads slowly and only answers with costs need it

    if sums.count < 2 or folds == 1:
        return None
    mean = sums.cost / sums.n
    spread = sums.squares - 2 * mean * sums.products + mean * mean * sums.n_squares
    if spread <= 1e-12 * sums.squares:  # all costs are equal up to rounding
        return None
    variance = sums.count / (sums.count - 1) * spread / sums.n**2
    if folds:
        variance *= 1 + folds / (folds - 1)
    half = float(stdtrit(sums.count - 1, TAIL)) * math.sqrt(variance)
    return max(0.0, mean - half), mean + half


def _resample(total: FloatArray, n: FloatArray) -> FloatArray:
    """Return the ratio of the sums of `total` and `n` over resampled groups, float64 (RESAMPLES,)."""
    rng = np.random.default_rng(0)
    if len(n) > MAX_GROUPS:
        batch = rng.permutation(len(n)) % MAX_GROUPS
        total = np.bincount(batch, weights=total).astype(np.float64)
        n = np.bincount(batch, weights=n).astype(np.float64)
    multiplicities = rng.multinomial(len(n), np.full(len(n), 1 / len(n)), size=RESAMPLES)
    ratios: FloatArray = (multiplicities @ total) / (multiplicities @ n)
    return ratios


def effective_rows(correct: FloatArray, n: FloatArray) -> float | None:
    """Return how many independent rows have the variance of the share over resampled groups; None for fewer than two groups."""
    from scipy.special import stdtrit  # import here, because SciPy loads slowly and only rows with groups need it

    groups = len(n)
    if groups < 2:
        return None
    groups_drawn = min(groups, MAX_GROUPS)
    variance = float(np.var(_resample(correct, n))) * groups_drawn / (groups_drawn - 1)
    share = float(correct.sum() / n.sum())
    spread = share * (1 - share)
    rows = spread / variance if variance > 0 and spread > 0 else float(groups)
    quantile = float(stdtrit(groups - 1, TAIL))
    return min(rows, float(n.sum())) * (Z95 / quantile) ** 2
