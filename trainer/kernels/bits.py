"""Words of 64 yes/no answers: their population count, turning rows into columns, and packing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from trainer.dtypes import BitArray
from trainer.kernels.compiled import kernel

u64 = np.uint64


def _ctpop(typingctx, x):
    """Population count of a 64-bit word; LLVM chooses the instruction of the machine."""

    def codegen(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), codegen


ctpop: Any = intrinsic(_ctpop)


@kernel
def transpose(a):
    """Transpose 64 words as a 64 x 64 bit matrix: bit c of a[r] becomes bit r of a[c]."""
    j, m = 32, u64(0x00000000FFFFFFFF)
    while j:
        for block in range(0, 64, 2 * j):
            for k in range(block, block + j):
                t = ((a[k] >> u64(j)) ^ a[k + j]) & m
                a[k] ^= t << u64(j)
                a[k + j] ^= t
        j >>= 1
        m ^= m << u64(j)


def pack_bits(X: BitArray) -> np.ndarray:
    """Rows of 0/1 (n, F) as uint64 (n, ceil(F/64)); bit j of word v is feature 64 v + j."""
    n, m = X.shape
    padded = np.zeros((n, 64 * max(1, (m + 63) // 64)), np.uint8)
    padded[:, :m] = X
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)
