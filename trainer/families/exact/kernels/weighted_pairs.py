"""Sum row weights over feature pairs, for weights with many bits.

V[r,q]     weight of row r of a word where x_q = 1, else 0; the last row is 0 and fills groups of four
C[k,f,q]   int32: weight of the rows of segment k with x_f = x_q = 1, f ≤ q

The columns that are 1 in most rows are counted by their zeros, since zeros and ones together give the weight of x_q.
"""

from __future__ import annotations

import numpy as np

from trainer.kernels.bits import ctpop, lowest_bit
from trainer.kernels.compiled import kernel

i16 = np.int16
i32 = np.int32
u64 = np.uint64
NO_ROW = 64  # the row of V that weighs nothing
NARROW = (
    2**13 - 1
)  # four weights up to this add up in 16 bits; a vector register holds twice as many of these as of 32 bits
LANES = 16  # numbers in a vector register; loops over a part of them are not vectorised


@kernel
def add_all_pairs(columns, weights, segment, sums):
    """Add to sums[k, f, q], q ≥ f, the weight of the rows of segment k with x_f = x_q = 1; weights int32 (64 * words,)."""
    shape = (NO_ROW + 1, columns.shape[1])
    if _largest(weights) <= NARROW:
        _add_words(columns, weights, segment, sums, np.empty(shape, i16))
    else:
        _add_words(columns, weights, segment, sums, np.empty(shape, i32))


@kernel
def _largest(weights):
    largest = np.int64(0)
    for weight in weights:
        largest = max(largest, abs(np.int64(weight)))
    return largest


@kernel
def _add_words(columns, weights, segment, sums, V):
    """Do the work of `add_all_pairs`; V int16 or int32 (NO_ROW + 1, .): buffer."""
    words, wide = columns.shape
    classes, m, _ = sums.shape
    for q in range(wide):
        V[NO_ROW, q] = 0
    ones = np.zeros((classes, 1, wide), i32)
    all_rows = np.empty(1, u64)
    bits = np.empty(m, u64)
    flipped = _mostly_one(columns, weights, m)
    _negate(sums, flipped)
    for w in range(words):
        row = columns[w]
        word_weights = weights[64 * w : 64 * w + 64]
        number = _number_of_rows(word_weights)
        k = segment[w, 0]
        _write_rows(row, word_weights[:number], V)
        all_rows[0] = ~u64(0) >> u64(64 - number)
        for f in range(m):
            bits[f] = all_rows[0] & (row[f] ^ flipped[f])
        _add_rows(all_rows, V, ones[k])
        _add_rows(bits, V, sums[k])
    _negate(sums, flipped)
    for k in range(classes):
        for f in range(m):
            if flipped[f]:
                for q in _lanes(f, wide):
                    sums[k, f, q] += ones[k, 0, q]


@kernel
def _lanes(f, wide):
    """Return the positions from f on, in whole lanes; unsigned, since an index that may be negative prevents vectorisation."""
    return range(u64(f // LANES * LANES), u64(wide))


@kernel
def _mostly_one(columns, weights, m):
    """Return all bits for a column that is 1 in more than half of the rows, else no bit, uint64 (m,)."""
    ones = np.zeros(m, np.int64)
    rows = 0
    for w in range(len(columns)):
        rows += _number_of_rows(weights[64 * w : 64 * w + 64])
        for f in range(m):
            ones[f] += np.int64(ctpop(columns[w, f]))
    flipped = np.empty(m, u64)
    for f in range(m):
        flipped[f] = ~u64(0) if 2 * ones[f] > rows else u64(0)
    return flipped


@kernel
def _negate(sums, flipped):
    classes, m, wide = sums.shape
    for k in range(classes):
        for f in range(m):
            if flipped[f]:
                for q in _lanes(f, wide):
                    sums[k, f, q] = -sums[k, f, q]


@kernel
def _number_of_rows(weights):
    """Return the number of rows of a word up to the last with a weight."""
    number = 64
    while number > 1 and weights[number - 1] == 0:
        number -= 1
    return number


@kernel(distinct_arrays=True)
def _write_rows(row, weights, V):
    """Write the weights of the rows of a word."""
    number_type = V.dtype.type
    bits = 8 * V.itemsize
    part = np.empty(len(row), V.dtype)
    for r in range(len(weights)):
        if r % bits == 0:
            for q in range(len(row)):
                part[q] = number_type(row[q] >> u64(r))
        weight = number_type(weights[r])
        bit = number_type(1 << (r % bits))
        for q in range(len(row)):
            V[r, q] = weight if part[q] & bit else number_type(0)


@kernel(distinct_arrays=True)
def _add_rows(rows, V, sums):
    """Add the rows of the bits rows[f] to sums[f, f:], four at a time, so that a sum is stored once for four rows."""
    number_type = V.dtype.type
    for f in range(u64(len(rows))):
        bits = rows[f]
        while bits:
            a = lowest_bit(bits)
            bits &= bits - u64(1)
            b = lowest_bit(bits)
            bits &= bits - u64(1)
            c = lowest_bit(bits)
            bits &= bits - u64(1)
            d = lowest_bit(bits)
            bits &= bits - u64(1)
            for q in _lanes(f, sums.shape[1]):
                sums[f, q] += i32(number_type(number_type(V[a, q] + V[b, q]) + number_type(V[c, q] + V[d, q])))


@kernel
def add_pairs_of(columns, weights, segment, f, first, out):
    """Add to out[k, q], q ≥ first, the weight of the rows of segment k with x_f = x_q = 1."""
    for w in range(len(columns)):
        bits = columns[w, f]
        row = columns[w, first:]
        target = out[segment[w, 0], first : columns.shape[1]]
        while bits:
            r = lowest_bit(bits)
            bits &= bits - u64(1)
            weight = weights[u64(64 * w) + r]
            for q in range(len(row)):
                target[q] += weight * i32((row[q] >> r) & u64(1))
