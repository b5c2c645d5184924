"""Columns as whole numbers if short decimals allow it, and codes that grow with the values, so comparisons are exact."""

from __future__ import annotations

import math

import numpy as np

from trainer.dtypes import CodeArray, CountArray, FloatArray
from trainer.kernels.ordering import write_codes

WHOLE = 2.0**26  # products of two differences stay exact below this
DECIMALS = 8
MAX_COORDINATE = (
    2.0**400
)  # values beyond this, or all below its inverse, are scaled: squares and ranges stay finite and above zero


def whole_numbers(X: FloatArray) -> FloatArray:
    """X with every column of short decimal numbers multiplied by the power of ten that makes it whole.

    Columns of huge or tiny numbers are multiplied by a power of two, which is exact except for values that vanish beside others.
    """
    out = np.asfortranarray(X, dtype=np.float64).copy(order="F")
    for j in range(X.shape[1]):
        column = X[:, j]
        largest = float(np.abs(column).max()) if len(column) else 0.0
        if largest > MAX_COORDINATE or 0 < largest < 1 / MAX_COORDINATE:
            out[:, j] = np.ldexp(column, -math.frexp(largest)[1])
        if not 1 / MAX_COORDINATE <= largest < WHOLE:
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
    codes = np.zeros((p, n), np.int32)
    levels = np.ones(p, np.int64)
    if n:
        write_codes(whole, codes, levels)
    return codes, levels
