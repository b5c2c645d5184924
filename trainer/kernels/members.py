"""Encode a set of rows as bits, a key of caches."""

from __future__ import annotations

import numpy as np

from trainer.kernels.compiled import kernel


@kernel
def members(rows, n):
    """Return a set of rows out of n as bits, uint8 (ceil(n / 8),); row i is bit i & 7 of byte i >> 3.

    rows: integer array of row indices, in any order.
    """
    out = np.zeros((n + 7) >> 3, np.uint8)
    for i in range(len(rows)):
        out[rows[i] >> 3] |= np.uint8(1 << (rows[i] & 7))
    return out
