"""Thresholds of programs that round a value to single precision before they compare it."""

from __future__ import annotations

import math

import numpy as np

from trainer.errors import ConversionError

MAX_FLOAT32 = float(np.finfo(np.float32).max)


def double_threshold(threshold: float) -> float:
    """The double T for which x <= T exactly if float32(x) <= threshold, for every double x that float32 can hold.

    Rounding to the nearest single never falls as x grows, so that the doubles that pass are those up to one of them: the middle of
    the largest single that passes and the next one, or the double below where that tie is rounded up. Raises ConversionError
    where no finite double is such a T.
    """
    if math.isnan(threshold) or threshold < -MAX_FLOAT32:
        raise ConversionError(f"A threshold is {threshold!r}, and no number in single precision is at or below it.")
    threshold = min(threshold, MAX_FLOAT32)  # values beyond are refused before they are compared
    single = np.float32(threshold)
    if float(single) > threshold:
        single = np.nextafter(single, np.float32(-np.inf))
    with np.errstate(over="ignore"):
        above = np.nextafter(single, np.float32(np.inf))
    # beyond the largest single lies, for the purpose of rounding, 2^128
    end = float(above) if math.isfinite(above) else 2.0**128
    middle = float(single) + (end - float(single)) / 2
    if not _passes(middle, threshold):
        middle = math.nextafter(middle, -math.inf)
    if not _passes(middle, threshold) or _passes(math.nextafter(middle, math.inf), threshold):
        raise ConversionError(
            f"No threshold in double precision separates the same values as the threshold {threshold!r} in single precision."
        )
    return middle


def _passes(x: float, threshold: float) -> bool:
    with np.errstate(over="ignore"):
        return float(np.float32(x)) <= threshold  # as doubles: NumPy would round the threshold to a single
