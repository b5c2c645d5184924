"""Count, transpose, pack and gather bits of 64-bit words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from trainer.dtypes import BitArray
from trainer.kernels.compiled import kernel

u64 = np.uint64


def _ctpop(typingctx, x):
    """Count the bits of a 64-bit word; LLVM chooses the instruction of the machine."""

    def codegen(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), codegen


ctpop: Any = intrinsic(_ctpop)


@kernel
def lowest_bit(bits):
    """Return the position of the lowest bit, 64 if there is none."""
    return u64(ctpop((bits & (~bits + u64(1))) - u64(1)))


@kernel
def transpose(a):
    """Transpose a, uint64 (64,), in place as a 64 x 64 bit matrix: bit c of a[r] becomes bit r of a[c] (Warren, Hacker's Delight, 7-3)."""
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
    """Write the six moves that gather the bits under `mask` at the low end of a word (Warren, Hacker's Delight, 7-4).

    mask uint64; moves uint64 (6,). Clear the bits outside `mask` first. Move i then shifts the bits of moves[i] right by 2^i places.
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
    """Gather the bits of each word under `mask` at its low end, in their order.

    words, out: uint64 (words,). moves: uint64 (6,), the result of `moves_of` for this mask.
    """
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
    """Pack rows of 0 and 1, uint8 (n, F), into uint64 (n, max(1, ceil(F / 64))); bit j of word v is feature 64 v + j."""
    n, m = X.shape
    words = np.zeros((n, 8 * max(1, (m + 63) // 64)), np.uint8)
    packed = np.packbits(X, axis=1, bitorder="little")
    words[:, : packed.shape[1]] = packed
    return words.view("<u8").astype(np.uint64, copy=False)
