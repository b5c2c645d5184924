"""Round row weights to integers, with a bound on the error.

Integers make counting exact. Integers do not change, and decimals with a small common denominator are multiplied by it: both
are exact. Other weights w are rounded to integers v, and negligible ones become 0. With the sums W and V, the share of
correct weight of any tree changes by at most ½ Σ|w/W − v/V|. Proof: the differences w/W − v/V add up to 0, so those of
the correct rows add up to at most half of the absolute sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trainer.dtypes import CountArray, FloatArray

MAX_INTEGER_WEIGHT = 10**9
LARGEST_SUM = 1 << 28  # limit on the sum of rounded weights, set by the counters of the searches
# the lightest rows become 0 up to this share of the total weight, which is half of the gap that counts as closed
NEGLIGIBLE = 5e-7
DENOMINATOR = 10**6
LARGEST_DENOMINATOR = 10**12  # limit on the denominators of the weights as fractions, so that 0.333… becomes a third


@dataclass(frozen=True, kw_only=True)
class WholeWeights:
    """Integer row weights, with a bound on the rounding error."""

    weights: CountArray  # shape (n,); some weights may be 0
    error: float = 0.0  # rounding changes an objective by at most this much


def whole_weights(given: FloatArray) -> WholeWeights:
    """Return integer weights in the proportions of `given`, float64 (n,), finite, not negative and not all 0."""
    if (given == np.round(given)).all() and given.max() <= MAX_INTEGER_WEIGHT:
        return WholeWeights(weights=given.astype(np.int64))
    heavy = np.where(_light(given), 0.0, given)
    weights = _by_denominator(heavy)
    if weights is None:
        parts = heavy / heavy.max()  # divide by the maximum first, because the sum of huge weights may overflow
        weights = np.rint(parts / parts.sum() * (LARGEST_SUM - len(given))).astype(np.int64)
    elif (heavy == given).all():
        return WholeWeights(weights=weights)
    return WholeWeights(weights=weights, error=rounding_error(given, weights))


def _light(weights: FloatArray) -> np.ndarray:
    """Return the mask, bool (n,), of the lightest rows with negligible total weight; equal weights are treated alike."""
    parts = weights / weights.max()
    order = np.argsort(parts, kind="stable")
    light = np.zeros(len(weights), bool)
    light[order[np.cumsum(parts[order]) <= NEGLIGIBLE * parts.sum()]] = True
    return light & ~np.isin(weights, weights[~light])


def _by_denominator(weights: FloatArray) -> CountArray | None:
    """Return the weights times their common denominator, or None if it or the sum is too large."""
    values, value_index = np.unique(weights, return_inverse=True)
    fractions = [Fraction(repr(float(value))).limit_denominator(LARGEST_DENOMINATOR) for value in values]
    scale = 1
    for fraction, value in zip(fractions, values, strict=True):
        if fraction.denominator > DENOMINATOR or float(fraction) != float(value):
            return None
        scale = int(np.lcm(scale, fraction.denominator))
        if scale > DENOMINATOR:
            return None
    integers = np.array(
        [int(fraction * scale) if fraction * scale <= MAX_INTEGER_WEIGHT else -1 for fraction in fractions], np.int64
    )
    if (integers < 0).any() or int(integers[value_index].sum()) > LARGEST_SUM:
        return None
    return integers[value_index]


def rounding_error(given: FloatArray, weights: CountArray) -> float:
    """Return ½ Σ|w/W − v/V|, rounded up, in exact fractions of the distinct weights."""
    values, first, places = np.unique(given, return_index=True, return_inverse=True)
    row_counts = np.bincount(places)
    # exact fractions are too slow for so many values; the float sum is exact to 1e-12, which is added
    if len(values) > 2_000:
        share = given / given.max()
        rounded = weights / weights.sum()
        return float(np.abs(share / share.sum() - rounded).sum() / 2 + 1e-12)
    exact = [Fraction(float(value)) for value in values]
    total = sum((w * int(m) for w, m in zip(exact, row_counts, strict=True)), Fraction(0))
    integer_total = int(weights.sum())
    parts = zip(exact, row_counts, weights[first], strict=True)
    error = sum((abs(w / total - Fraction(int(v), integer_total)) * int(m) for w, m, v in parts), Fraction(0)) / 2
    return float(np.nextafter(float(error), 1))
