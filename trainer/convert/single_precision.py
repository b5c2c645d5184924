"""Convert thresholds of programs that compare values in single precision."""

from __future__ import annotations

import math

import numpy as np

from trainer.errors import ConversionError

MAX_FLOAT32 = float(np.finfo(np.float32).max)


def double_threshold(threshold: float) -> float:
    """Return the double T with x <= T exactly if float32(x) <= threshold, for every double x in the range of float32.

    Rounding to the nearest single is monotone in x, so such a T exists. It is the middle between the largest single that passes
    and the next single, or the double below the middle if that tie rounds up. Raises ConversionError if no finite double is such a
    T.
    """
    if math.isnan(threshold) or threshold < -MAX_FLOAT32:
        raise ConversionError(
            f"The tree has the threshold {threshold!r}, and no number in single precision is at or below it. Remove this split at the source."
        )
    threshold = min(threshold, MAX_FLOAT32)  # the programs refuse larger values before they compare
    single = np.float32(threshold)
    if float(single) > threshold:
        single = np.nextafter(single, np.float32(-np.inf))
    with np.errstate(over="ignore"):
        above = np.nextafter(single, np.float32(np.inf))
    # rounding to single precision treats 2^128 as the successor of the largest single
    end = float(above) if math.isfinite(above) else 2.0**128
    middle = float(single) + (end - float(single)) / 2
    if not _passes(middle, threshold):
        middle = math.nextafter(middle, -math.inf)
    if not _passes(middle, threshold) or _passes(math.nextafter(middle, math.inf), threshold):
        raise ConversionError(
            f"The threshold {threshold!r} in single precision has no exact equivalent in double precision. Change it at the source."
        )
    return middle


def _passes(x: float, threshold: float) -> bool:
    with np.errstate(over="ignore"):
        # compare as Python floats, because NumPy would round the threshold to single precision
        return float(np.float32(x)) <= threshold
