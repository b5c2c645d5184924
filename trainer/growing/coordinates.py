"""Scale short decimals to integers and encode values by codes, exactly."""

from __future__ import annotations

import math

import numpy as np

from trainer.dtypes import CodeArray, CountArray, FloatArray
from trainer.kernels.ordering import write_codes

WHOLE = 2.0**26  # products of two differences below this are exact in float64
DECIMALS = 8
SAMPLED_VALUES = 1000  # number of values that are tried before all others
# scale columns with larger values, or with only values below the inverse, so that squares and ranges stay finite and
# positive
MAX_COORDINATE = 2.0**400


def whole_numbers(X: FloatArray) -> FloatArray:
    """Multiply each column of short decimals by the power of ten that makes it integer.

    Columns of huge or tiny numbers are multiplied by a power of two. This is exact except for values that underflow.
    """
    out = np.array(X, np.float64, order="F")
    for j in range(X.shape[1]):
        column = out[:, j]
        largest = float(np.abs(column).max()) if len(column) else 0.0
        if largest > MAX_COORDINATE or 0 < largest < 1 / MAX_COORDINATE:
            out[:, j] = np.ldexp(column, -math.frexp(largest)[1])
        if not 1 / MAX_COORDINATE <= largest < WHOLE:
            continue
        for k in range(DECIMALS + 1):
            if np.rint(largest * 10.0**k) >= WHOLE:
                break
            if not _has_decimals(column[:SAMPLED_VALUES], k):
                continue
            if _has_decimals(column, k):
                out[:, j] = np.rint(column * 10.0**k)
                break
    return out


def _has_decimals(values: FloatArray, k: int) -> bool:
    """Return whether k decimals write every value exactly."""
    return np.array_equal(np.rint(values * 10.0**k) / 10.0**k, values)


def is_exact(values: FloatArray) -> bool:
    """Return whether all values are integers below 2^26."""
    return bool((np.abs(values) < WHOLE).all() and (np.rint(values) == values).all())


def codes_of(values: FloatArray) -> tuple[CodeArray, CountArray]:
    """Return ascending codes of the values of each feature, int32 (p, n), and exclusive upper bounds on the codes, int64 (p,)."""
    n, p = values.shape
    codes = np.zeros((p, n), np.int32)
    levels = np.ones(p, np.int64)
    if n:
        write_codes(values, codes, levels)
    return codes, levels
