"""Sum row weights over feature pairs, for weights with many bits.

V[r,q]   int32: weight of row r of a word where x_q = 1, else 0; the last row is 0 and fills groups of four
C[f,q]   int32: weight of the rows with x_f = x_q = 1, f ≤ q
"""

from __future__ import annotations

import numpy as np

from trainer.kernels.bits import ctpop
from trainer.kernels.compiled import kernel

i32 = np.int32
u64 = np.uint64
NO_ROW = 64  # the row of V that weighs nothing
LANES = 8  # numbers in a vector register; loops over a part of them are not vectorised


@kernel
def add_all_pairs(columns, weights, segment, sums):
    """Add to sums[k, f, q], q ≥ f, the weight of the rows of segment k with x_f = x_q = 1; weights int32 (64 * words,)."""
    words, wide = columns.shape
    V = np.empty((NO_ROW + 1, wide), i32)
    V[NO_ROW] = i32(0)
    halves = np.empty((2, wide), i32)
    sums_of_rows = np.empty(wide, i32)
    for w in range(words):
        row = columns[w]
        word_weights = weights[64 * w : 64 * w + 64]
        number = _number_of_rows(word_weights)
        _write_rows(row, word_weights[:number], halves, V, sums_of_rows)
        all_rows = ~u64(0) >> u64(64 - number)
        C = sums[segment[w, 0]]
        for f in range(len(C)):
            bits = row[f]
            first = f // LANES * LANES
            if 2 * np.int64(ctpop(bits)) <= number:
                _add_rows(bits, V, first, C[f])
            else:
                _add_other_rows(all_rows & ~bits, V, sums_of_rows, first, C[f])


@kernel
def _number_of_rows(weights):
    """Return the number of rows of a word up to the last with a weight."""
    number = 64
    while number > 1 and weights[number - 1] == 0:
        number -= 1
    return number


@kernel
def _write_rows(row, weights, halves, V, sums_of_rows):
    """Write the weights of the rows of a word and their sums; halves int32 (2, .): buffer for the halves of the word."""
    for q in range(len(row)):
        halves[0, q] = i32(row[q] & u64(0xFFFFFFFF))
        halves[1, q] = i32(row[q] >> u64(32))
    sums_of_rows[:] = i32(0)
    for r in range(len(weights)):
        weight = weights[r]
        bit = i32(1 << (r & 31))
        half = halves[r >> 5]
        target = V[r]
        for q in range(len(row)):
            value = weight if half[q] & bit else i32(0)
            target[q] = value
            sums_of_rows[q] += value


@kernel
def _lowest_bit(bits):
    """Return the position of the lowest bit, 64 if there is none."""
    return np.int64(ctpop((bits & (~bits + u64(1))) - u64(1)))


@kernel
def _add_rows(bits, V, first, target):
    """Add the rows of the bits, four at a time; with more the compiler stops vectorising."""
    while bits:
        a = V[_lowest_bit(bits)]
        bits &= bits - u64(1)
        b = V[_lowest_bit(bits)]
        bits &= bits - u64(1)
        c = V[_lowest_bit(bits)]
        bits &= bits - u64(1)
        d = V[_lowest_bit(bits)]
        bits &= bits - u64(1)
        # unsigned: an index that may be negative prevents vectorisation
        for q in range(u64(first), u64(len(target))):
            target[q] += i32(i32(a[q] + b[q]) + i32(c[q] + d[q]))


@kernel
def _add_other_rows(bits, V, sums_of_rows, first, target):
    """Add all rows except those of the bits."""
    for q in range(u64(first), u64(len(target))):
        target[q] = -target[q] - sums_of_rows[q]
    _add_rows(bits, V, first, target)
    for q in range(u64(first), u64(len(target))):
        target[q] = -target[q]


@kernel
def add_pairs_of(columns, weights, segment, f, first, out):
    """Add to out[k, q], q ≥ first, the weight of the rows of segment k with x_f = x_q = 1."""
    for w in range(len(columns)):
        bits = columns[w, f]
        row = columns[w, first:]
        target = out[segment[w, 0], first : columns.shape[1]]
        while bits:
            r = _lowest_bit(bits)
            bits &= bits - u64(1)
            weight = weights[64 * w + r]
            for q in range(len(row)):
                target[q] += weight * i32((row[q] >> u64(r)) & u64(1))
