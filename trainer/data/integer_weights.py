"""Weights as whole numbers: counting stays exact, and what rounding may change of an objective is stated and proved.

Integers are taken as they are, and decimals with a small common denominator are multiplied by it: nothing changes. Other weights w are
rounded to v, multiples of a common step; of weights that are not integers, those that are next to nothing are left out. The share of correct weight of any tree then changes by at most ½ Σ|w/W − v/V|, with W and V
the sums: the differences add up to 0, so the differences of the correct rows add up to at most half of the absolute sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trainer.dtypes import CountArray, FloatArray

MAX_INTEGER_WEIGHT = 10**9  # a whole weight
LARGEST_SUM = 1 << 28  # of rounded weights: what the counts of all searches can hold
NEGLIGIBLE = (
    5e-7  # share of all weight, half of the gap that is called closed: rows that weigh less together are left out
)
DENOMINATOR = 10**6
LARGEST_DENOMINATOR = 10**12  # of the fraction that a decimal stands for, so that 0.333… is a third


@dataclass(frozen=True, kw_only=True)
class WholeWeights:
    """`weights` int64 (n,), some perhaps 0; `error`: by how much an objective may differ from the one with the weights as given."""

    weights: CountArray
    error: float = 0.0


def whole_weights(given: FloatArray) -> WholeWeights:
    """Whole weights in the proportions of `given`, float64 (n,), finite, not negative and not all 0."""
    if (given == np.round(given)).all() and given.max() <= MAX_INTEGER_WEIGHT:
        return WholeWeights(weights=given.astype(np.int64))
    heavy = np.where(_light(given), 0.0, given)
    weights = _by_denominator(heavy)
    if weights is None:
        parts = heavy / heavy.max()  # a sum of huge weights may be beyond the largest number
        weights = np.rint(parts / parts.sum() * (LARGEST_SUM - len(given))).astype(np.int64)
    elif (heavy == given).all():
        return WholeWeights(weights=weights)
    return WholeWeights(weights=weights, error=rounding_error(given, weights))


def _light(given: FloatArray) -> np.ndarray:
    """The lightest rows, as many as weigh next to nothing together, boolean (n,); equal weights are treated alike."""
    parts = given / given.max()
    order = np.argsort(parts, kind="stable")
    light = np.zeros(len(given), bool)
    light[order[np.cumsum(parts[order]) <= NEGLIGIBLE * parts.sum()]] = True
    return light & ~np.isin(given, given[~light])


def _by_denominator(given: FloatArray) -> CountArray | None:
    """The weights times their common denominator, or None if it, or their sum, is too large."""
    values, places = np.unique(given, return_inverse=True)
    fractions = [Fraction(repr(float(value))).limit_denominator(LARGEST_DENOMINATOR) for value in values]
    scale = 1
    for fraction, value in zip(fractions, values, strict=True):
        if fraction.denominator > DENOMINATOR or float(fraction) != float(value):
            return None
        scale = int(np.lcm(scale, fraction.denominator))
        if scale > DENOMINATOR:
            return None
    whole = np.array(
        [int(fraction * scale) if fraction * scale <= MAX_INTEGER_WEIGHT else -1 for fraction in fractions], np.int64
    )
    if (whole < 0).any() or int(whole[places].sum()) > LARGEST_SUM:
        return None
    return whole[places]


def rounding_error(given: FloatArray, weights: CountArray) -> float:
    """Return ½ Σ|w/W − v/V|, rounded up: in exact fractions of the distinct weights."""
    values, first, places = np.unique(given, return_index=True, return_inverse=True)
    often = np.bincount(places)
    if len(values) > 2_000:  # float sums are exact to 1e-12 here, which is added
        share = given / given.max()
        rounded = weights / weights.sum()
        return float(np.abs(share / share.sum() - rounded).sum() / 2 + 1e-12)
    exact = [Fraction(float(value)) for value in values]
    total = sum((w * int(m) for w, m in zip(exact, often, strict=True)), Fraction(0))
    whole = int(weights.sum())
    parts = zip(exact, often, weights[first], strict=True)
    error = sum((abs(w / total - Fraction(int(v), whole)) * int(m) for w, m, v in parts), Fraction(0)) / 2
    return float(np.nextafter(float(error), 1))
