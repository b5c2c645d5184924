"""Compare variants by average ranks, Friedman's test and Holm's procedure.

Bollwein & Westphal compare classifiers in this way (after Demšar, 2006). N data sets, q variants; R_j is the average rank of
variant j over the data sets, 1 for the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainer.dtypes import FloatArray

LEVEL = 0.05


@dataclass(frozen=True, kw_only=True)
class VariantComparison:
    """Ranks of q variants over N data sets with the tests.

    `chi_square` and `p` are Friedman's (chi-square version, corrected for ties). They are None for fewer than
    three variants or two data sets. `holm[j]` is the adjusted p-value of variant j against the control,
    variant 0. It is None for the control itself, and for all variants where Friedman's test does not reject
    at 5 %.
    """

    labels: tuple[str, ...]
    datasets: int
    ranks: tuple[float, ...]
    chi_square: float | None
    p: float | None
    holm: tuple[float | None, ...]


def average_ranks(values: FloatArray, *, higher_is_better: bool) -> FloatArray:
    """Rank the values within each row; ties share their average rank.

    Parameters
    ----------
    values : float64 array of shape (N, q)
        One row per data set, one column per variant.
    higher_is_better : bool
        Whether the highest value, or the lowest, has rank 1.

    Returns
    -------
    float64 array of shape (N, q)
    """
    from scipy.stats import rankdata

    return rankdata(-values if higher_is_better else values, axis=1)


def compare(labels: Sequence[str], values: FloatArray, *, higher_is_better: bool) -> VariantComparison:
    """Compare the columns of a matrix of values by average ranks, Friedman's test and Holm's procedure.

    Parameters
    ----------
    labels : sequence of str
        Names of the q variants; the first one is the control.
    values : float64 array of shape (N, q)
        One row per data set.
    higher_is_better : bool
        Whether the highest value, or the lowest, has rank 1.

    Returns
    -------
    VariantComparison

    Notes
    -----
    J. Demšar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7 (2006), section 3.2.
    """
    ranks = average_ranks(np.asarray(values, float), higher_is_better=higher_is_better)
    N, q = ranks.shape
    mean = ranks.mean(axis=0)
    chi_square, p = friedman(ranks)
    holm: tuple[float | None, ...] = (None,) * q
    if p is not None and p <= LEVEL:
        holm = (None, *_holm(mean, N))
    return VariantComparison(
        labels=tuple(labels),
        datasets=N,
        ranks=tuple(float(r) for r in mean),
        chi_square=chi_square,
        p=p,
        holm=holm,
    )


def friedman(ranks: FloatArray) -> tuple[float | None, float | None]:
    """Return Friedman's chi-square with q - 1 degrees of freedom and its p-value; ranks float64 (N, q).

    Returns (None, None) with fewer than three variants or two data sets, and with nothing but ties.
    """
    from scipy.stats import chi2

    N, q = ranks.shape
    if q < 3 or N < 2:
        return None, None
    R = ranks.mean(axis=0)
    value = 12 * N / (q * (q + 1)) * (float((R**2).sum()) - q * (q + 1) ** 2 / 4)
    ties = sum(float((counts**3 - counts).sum()) for counts in (np.unique(row, return_counts=True)[1] for row in ranks))
    correction = 1 - ties / (N * (q**3 - q))
    if correction <= 0:
        return None, None
    value = max(0.0, value / correction)
    return value, float(chi2.sf(value, q - 1))


def _holm(mean: FloatArray, N: int) -> list[float]:
    """Return the adjusted p-values of variants 1.. against variant 0, in their order."""
    q = len(mean)
    z = (mean[1:] - mean[0]) / math.sqrt(q * (q + 1) / (6 * N))
    p = np.array([math.erfc(abs(float(v)) / math.sqrt(2)) for v in z])
    adjusted = np.empty(q - 1)
    largest = 0.0
    for h, j in enumerate(np.argsort(p, kind="stable")):
        largest = max(largest, min(1.0, (q - 1 - h) * float(p[j])))
        adjusted[j] = largest
    return [float(v) for v in adjusted]
