"""Words of 64 yes/no answers: their population count, turning rows into columns, packing, and drawing some of the answers together."""

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
    j = 32
    m = u64(0x00000000FFFFFFFF)
    while j:
        for block in range(0, 64, 2 * j):
            for k in range(block, block + j):
                t = ((a[k] >> u64(j)) ^ a[k + j]) & m
                a[k] ^= t << u64(j)
                a[k + j] ^= t
        j >>= 1
        m ^= m << u64(j)


@kernel
def moves_of(mask, moves):
    """Write the six moves that bring the bits under `mask` to the low end of a word (Warren, Hacker's Delight, 7-4).

    Move i shifts the bits that it names by 2^i places; the bits outside of `mask` are to be cleared first.
    """
    outside = ~mask << u64(1)
    for i in range(6):
        odd = outside
        for step in (1, 2, 4, 8, 16, 32):
            odd ^= odd << u64(step)
        moves[i] = odd & mask
        mask = mask ^ moves[i] | moves[i] >> u64(1 << i)
        outside &= ~odd


@kernel
def drawn_together(words, mask, moves, out):
    """The bits of some words under `mask`, at the low end of each, in their order; moves as `moves_of` gives them."""
    m0 = moves[0]
    m1 = moves[1]
    m2 = moves[2]
    m3 = moves[3]
    m4 = moves[4]
    m5 = moves[5]
    for q in range(len(words)):
        x = words[q] & mask
        t = x & m0
        x = x ^ t | t >> u64(1)
        t = x & m1
        x = x ^ t | t >> u64(2)
        t = x & m2
        x = x ^ t | t >> u64(4)
        t = x & m3
        x = x ^ t | t >> u64(8)
        t = x & m4
        x = x ^ t | t >> u64(16)
        t = x & m5
        out[q] = x ^ t | t >> u64(32)


def pack_bits(X: BitArray) -> np.ndarray:
    """Rows of 0/1 (n, F) as uint64 (n, ceil(F/64)); bit j of word v is feature 64 v + j."""
    n, m = X.shape
    padded = np.zeros((n, 64 * max(1, (m + 63) // 64)), np.uint8)
    padded[:, :m] = X
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)
