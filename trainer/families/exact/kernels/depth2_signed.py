"""Kernels: depth-two optima for two classes and leaves of any size, from differences between the classes.

d(Z)     weight of class 0 less that of class 1 in the rows Z    D[p,q] d of the rows with x_p = x_q = 1
M_t      largest sum of |d| over the leaves of a tree with at most t leaves: its errors are e_t = (weight - M_t) / 2

A leaf of the rows Z makes (weight - |d(Z)|) / 2 errors. A split of Z into rows of difference c and d(Z) - c has |c| + |d(Z) - c| =
max(|d(Z)|, |2c - d(Z)|), so the largest |2c - d(Z)| is all that is needed of the pairs of a question.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.node import MIRRORED
from trainer.families.exact.kernels.packed_bits import packed_side
from trainer.families.exact.kernels.weighted_pairs import LANES, add_all_pairs
from trainer.kernels.bits import ctpop
from trainer.kernels.compiled import kernel

i32 = np.int32
u64 = np.uint64
# words of the smaller side up to which to count each pair twice is faster than to write pairs down: with few questions, and with more
FEW_QUESTIONS = 128
FEW_WORDS = 12
FEW_WORDS_OF_MANY = 3


class Differences(NamedTuple):
    """What is read of a node of two classes; empty ones behind the questions fill whole lanes, and leave all splits as they are."""

    columns: np.ndarray  # uint64 (words, lanes), those of the node
    whole: np.ndarray  # int32 (p, lanes), D; without rows where there are more than two classes, or a smallest leaf


@kernel
def differences(node, P, min_leaf):
    """The differences of a node."""
    classes, m = node.ones.shape
    if classes != 2 or min_leaf > 1:
        return Differences(node.columns, np.empty((0, 0), i32))
    wide = (m + LANES - 1) // LANES * LANES
    columns = np.empty((len(node.columns), wide), u64)
    D = np.empty((m, wide), i32)
    for w in range(len(columns)):
        for q in range(m):
            columns[w, q] = node.columns[w, q]
        columns[w, m:] = u64(0)
    for f in range(m):
        first = 0 if m <= MIRRORED else f + 1
        zero = P[0, f, first:]
        one = P[1, f, first:]
        row = D[f, first:m]
        for q in range(len(row)):
            row[q] = i32(zero[q] - one[q])
        for q in range(f + 1, m if first else 0):
            D[q, f] = D[f, q]
        D[f, f] = i32(node.ones[0, f] - node.ones[1, f])
        D[f, m:] = i32(0)
    return Differences(columns, D)


@kernel
def count_pairs(A, second, f, first, row):
    """row[q], q ≥ first: difference of the rows with x_f = x_q = 1, plus the weight of class 1; of plain rows."""
    used = len(A)
    some = min(used, 2 + used % 2)
    if some == 1:
        _one_word(A, second, f, first, row)
    elif some == 2:
        _two_words(A, second, f, first, row)
    elif some == 3:
        _three_words(A, second, f, first, row)
    else:
        row[first:] = i32(0)
    for w in range(some, used, 2):
        _add_two(A, second, w, f, first, row)


@kernel
def count_weighted(packed, f, first, row):
    """As `count_pairs`, of rows of any weight."""
    A = packed.columns
    row[first:] = i32(0)
    for w in range(len(A)):
        u = A[w, f]
        x = packed.second[w]
        shift = i32(packed.segment[w, 1])
        for q in range(u64(first), u64(len(row))):  # unsigned, as a place that may be negative is looked at one by one
            row[q] += i32(i32(ctpop((A[w, q] & u) ^ x)) << shift)


# Words that are counted together have their bits added up byte by byte first.


@kernel
def _one_word(A, second, f, first, row):
    a = A[0, f]
    x = second[0]
    for q in range(u64(first), u64(len(row))):  # unsigned, as a place that may be negative is looked at one by one
        row[q] = i32(ctpop((A[0, q] & a) ^ x))


@kernel
def _two_words(A, second, f, first, row):
    a = A[0, f]
    b = A[1, f]
    x = second[0]
    y = second[1]
    for q in range(u64(first), u64(len(row))):  # unsigned, as a place that may be negative is looked at one by one
        row[q] = i32(ctpop((A[0, q] & a) ^ x) + ctpop((A[1, q] & b) ^ y))


@kernel
def _three_words(A, second, f, first, row):
    a = A[0, f]
    b = A[1, f]
    c = A[2, f]
    x = second[0]
    y = second[1]
    z = second[2]
    for q in range(u64(first), u64(len(row))):  # unsigned, as a place that may be negative is looked at one by one
        row[q] = i32(ctpop((A[0, q] & a) ^ x) + ctpop((A[1, q] & b) ^ y) + ctpop((A[2, q] & c) ^ z))


@kernel
def _add_two(A, second, w, f, first, row):
    a = A[w, f]
    b = A[w + 1, f]
    x = second[w]
    y = second[w + 1]
    for q in range(u64(first), u64(len(row))):
        row[q] += i32(ctpop((A[w, q] & a) ^ x) + ctpop((A[w + 1, q] & b) ^ y))


@kernel
def unpack_counts(packed, base, C):
    """Write C[f, q], what `count_pairs` gives of the pairs of a packed side, from each pair once; base: the weight of class 1."""
    m, wide = C.shape
    if len(packed.weights):
        C[:] = base
        add_all_pairs(packed.columns, packed.weights, packed.segment, C.reshape((1, m, wide)))
        for f in range(m):
            source = C[f, f:m]
            below = C[f:, f]
            for q in range(len(source)):
                below[q] = source[q]
        return
    row = np.empty(wide, i32)
    for f in range(m):
        first = f // LANES * LANES  # whole lanes; what is left of f is written again, the same
        if packed.plain:
            count_pairs(packed.columns, packed.second, f, first, row)
        else:
            count_weighted(packed, f, first, row)
        # parts, as a loop from f on would go one by one
        source = row[first:]
        target = C[f, first:]
        for q in range(len(source)):
            target[q] = source[q]
        source = row[f:m]
        below = C[f:, f]
        for q in range(len(source)):
            below[q] = source[q]


@kernel
def furthest(c, whole, f, small, large, own):
    """The largest |2c - own| of the pairs of a question, in the small side where it is 1 and where it is 0, and so in the large one.

    c: of `count_pairs`; small and own hold its weight of class 1, too, and large is less by it.
    """
    near1 = i32(0)
    near0 = i32(0)
    far1 = i32(0)
    far0 = i32(0)
    one, zero, rest, other = own
    for q in range(len(c)):
        both = c[q]
        a = i32(small[q] - both)
        b = i32(whole[f, q] - both)
        d = i32(large[q] - b)
        near1 = max(near1, abs(i32(both + both - one)))
        near0 = max(near0, abs(i32(a + a - zero)))
        far1 = max(far1, abs(i32(b + b - rest)))
        far0 = max(far0, abs(i32(d + d - other)))
    return near1, near0, far1, far0


@kernel
def _improve(M, own, whole, one, zero):
    """Take over what the trees that ask a question first make of M[1..3]; own, whole: d where it is 1, and of all rows.

    one, zero: the largest |2c - d| of the pairs where it is 1, and where it is 0.
    """
    rest = whole - own
    one = max(abs(own), np.int64(one))
    zero = max(abs(rest), np.int64(zero))
    M[1] = max(M[1], abs(own) + abs(rest))
    M[2] = max(M[2], max(one + abs(rest), abs(own) + zero))
    M[3] = max(M[3], one + zero)


@kernel
def _errors(M, weight, e):
    for t in range(4):
        e[t] = (weight - M[t]) >> 1


@kernel
def child_differences(D, p, s, base, small, large):
    """Write the differences of both sides of split p where each question is 1, that of the side s plus `base`, the other less it."""
    m = len(D)
    for q in range(m):
        own = D[p, q] if s else i32(D[q, q] - D[p, q])
        small[q], large[q] = i32(own + base), i32(D[q, q] - own - base)
    small[m:] = base
    large[m:] = -base


@kernel
def signed_sides(node, differ, p, e0, e1):
    """e[t] of both sides of split p, t leaves at most."""
    D = differ.whole
    m, wide = D.shape
    ones = np.int64(node.ones[0, p]) + node.ones[1, p]
    weight = np.int64(node.totals[0]) + node.totals[1]
    s = 1 if 2 * ones <= weight else 0
    packed = packed_side(node, differ.columns, p, s, True)
    base = i32(node.ones[1, p] if s else node.totals[1] - node.ones[1, p])
    small = np.empty(wide, i32)
    large = np.empty(wide, i32)
    row = np.empty(wide, i32)
    child_differences(D, p, s, base, small, large)
    d = np.int64(node.totals[0]) - node.totals[1]
    near = np.int64(D[p, p]) if s else d - D[p, p]
    far = d - near
    M = np.full(4, abs(near), np.int64)
    N = np.full(4, abs(far), np.int64)
    few = FEW_WORDS if m <= FEW_QUESTIONS else FEW_WORDS_OF_MANY
    C = np.empty((m if len(packed.columns) > few or len(packed.weights) else 0, wide), i32)
    if len(C):
        unpack_counts(packed, base, C)
    A = packed.columns
    second = packed.second
    for f in range(m):
        if len(C):
            row = C[f]
        elif packed.plain:
            count_pairs(A, second, f, 0, row)
        else:
            count_weighted(packed, f, 0, row)
        one = np.int64(small[f]) - base
        rest = np.int64(large[f]) + base
        own = i32(one + 2 * base), i32(near - one), i32(rest - 2 * base), i32(far - rest)
        near1, near0, far1, far0 = furthest(row, D, f, small, large, own)
        _improve(M, one, near, near1, near0)
        _improve(N, rest, far, far1, far0)
    size = ones if s else weight - ones
    _errors(M, size, e1 if s else e0)
    _errors(N, weight - size, e0 if s else e1)
