"""Solve depth two for two classes without a minimum leaf size.

d(Z)     weight of class 0 less that of class 1 in the rows Z    D[p,q] d of the rows with x_p = x_q = 1
M_t      largest sum of |d| over the leaves of a tree with at most t leaves: its errors are e_t = (weight - M_t) / 2

A leaf of the rows Z makes (weight - |d(Z)|) / 2 errors. A split of Z into differences c and d(Z) - c has |c| + |d(Z) - c| =
max(|d(Z)|, |2c - d(Z)|). So of all pairs of a feature only the largest |2c - d(Z)| is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainer.families.exact.kernels.node import MIRRORED
from trainer.families.exact.kernels.packed_bits import pack_child
from trainer.families.exact.kernels.weighted_pairs import LANES, add_all_pairs
from trainer.kernels.bits import ctpop
from trainer.kernels.compiled import kernel

i32 = np.int32
u64 = np.uint64
# up to so many words of the smaller child, counting each pair twice is faster than storing the pairs
FEW_FEATURES = 128
FEW_WORDS = 12  # with at most FEW_FEATURES features
FEW_WORDS_OF_MANY = 8  # with more features


class Differences(NamedTuple):
    """The columns and class differences of a node of two classes, padded with empty columns to whole lanes."""

    columns: np.ndarray  # uint64 (words, lanes), those of the node
    pairs: np.ndarray  # int32 (p, lanes), D; without rows for more than two classes or a minimum leaf size


@kernel
def class_differences(node, P, min_leaf):
    """Return the class differences of a node."""
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
    """Write row[q], q ≥ first: d of the rows with x_f = x_q = 1, plus the weight of class 1; all rows have weight 1.

    A uint64 (words, m): columns; second uint64 (words,): the rows of class 1; row int32 (m,).
    """
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
    """Do the work of `count_pairs` for packed rows of any weight."""
    A = packed.columns
    row[first:] = i32(0)
    for w in range(len(A)):
        u = A[w, f]
        x = packed.second[w]
        shift = i32(packed.segment[w, 1])
        for q in range(u64(first), u64(len(row))):  # unsigned: an index that may be negative prevents vectorisation
            row[q] += i32(i32(ctpop((A[w, q] & u) ^ x)) << shift)


# The compiler adds up the bits of words that are counted in one expression byte by byte.


@kernel
def _one_word(A, second, f, first, row):
    a = A[0, f]
    x = second[0]
    for q in range(u64(first), u64(len(row))):  # unsigned: an index that may be negative prevents vectorisation
        row[q] = i32(ctpop((A[0, q] & a) ^ x))


@kernel
def _two_words(A, second, f, first, row):
    a = A[0, f]
    b = A[1, f]
    x = second[0]
    y = second[1]
    for q in range(u64(first), u64(len(row))):  # unsigned: an index that may be negative prevents vectorisation
        row[q] = i32(ctpop((A[0, q] & a) ^ x) + ctpop((A[1, q] & b) ^ y))


@kernel
def _three_words(A, second, f, first, row):
    a = A[0, f]
    b = A[1, f]
    c = A[2, f]
    x = second[0]
    y = second[1]
    z = second[2]
    for q in range(u64(first), u64(len(row))):  # unsigned: an index that may be negative prevents vectorisation
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
    """Write C[f, q], the counts of `count_pairs` for a packed child, from each pair once; base: the weight of class 1."""
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
        first = f // LANES * LANES  # whole lanes; entries before f are written again with the same values
        if packed.plain:
            count_pairs(packed.columns, packed.second, f, first, row)
        else:
            count_weighted(packed, f, first, row)
        # slices: a loop from f on would not be vectorised
        source = row[first:]
        target = C[f, first:]
        for q in range(len(source)):
            target[q] = source[q]
        source = row[f:m]
        below = C[f:, f]
        for q in range(len(source)):
            below[q] = source[q]


@kernel
def max_differences(c, D, f, small, large, child_totals):
    """Return the largest |2c - d| over the pairs of a feature: in the small child where it is 1 and 0, then in the large one.

    c int32 (lanes,): the counts of `count_pairs` in the small child. small and child_totals include its weight of class 1; large is less
    by it.
    """
    near1 = i32(0)
    near0 = i32(0)
    far1 = i32(0)
    far0 = i32(0)
    one, zero, rest, other = child_totals
    for q in range(len(c)):
        both = c[q]
        a = i32(small[q] - both)
        b = i32(D[f, q] - both)
        d = i32(large[q] - b)
        near1 = max(near1, abs(i32(both + both - one)))
        near0 = max(near0, abs(i32(a + a - zero)))
        far1 = max(far1, abs(i32(b + b - rest)))
        far0 = max(far0, abs(i32(d + d - other)))
    return near1, near0, far1, far0


@kernel
def _improve(M, one_total, total, one, zero):
    """Raise M[1..3] to the trees with one root split; one_total, total: d where it is 1, and of all rows.

    one, zero: the largest |2c - d| of the pairs where it is 1, and where it is 0.
    """
    zero_total = total - one_total
    one = max(abs(one_total), np.int64(one))
    zero = max(abs(zero_total), np.int64(zero))
    M[1] = max(M[1], abs(one_total) + abs(zero_total))
    M[2] = max(M[2], max(one + abs(zero_total), abs(one_total) + zero))
    M[3] = max(M[3], one + zero)


@kernel
def _errors(M, weight, e):
    for t in range(4):
        e[t] = (weight - M[t]) >> 1


@kernel
def child_differences(D, p, s, base, small, large):
    """Write the differences of both children of split p where each feature is 1: child s plus `base`, the other less `base`."""
    m = len(D)
    for q in range(m):
        in_child = D[p, q] if s else i32(D[q, q] - D[p, q])
        small[q] = i32(in_child + base)
        large[q] = i32(D[q, q] - in_child - base)
    small[m:] = base
    large[m:] = -base


@kernel
def solve_children_signed(node, differ, p, e0, e1):
    """Write e[t] of the rows with x_p = 0 (e0) and with x_p = 1 (e1), int64 (4,)."""
    D = differ.pairs
    m, wide = D.shape
    ones = np.int64(node.ones[0, p]) + node.ones[1, p]
    weight = np.int64(node.totals[0]) + node.totals[1]
    s = 1 if 2 * ones <= weight else 0
    packed = pack_child(node, differ.columns, p, s, True)
    base = i32(node.ones[1, p] if s else node.totals[1] - node.ones[1, p])
    small = np.empty(wide, i32)
    large = np.empty(wide, i32)
    row = np.empty(wide, i32)
    child_differences(D, p, s, base, small, large)
    d = np.int64(node.totals[0]) - node.totals[1]
    near_total = np.int64(D[p, p]) if s else d - D[p, p]
    far_total = d - near_total
    M = np.full(4, abs(near_total), np.int64)
    N = np.full(4, abs(far_total), np.int64)
    few = FEW_WORDS if m <= FEW_FEATURES else FEW_WORDS_OF_MANY
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
        one_of_near = np.int64(small[f]) - base
        one_of_far = np.int64(large[f]) + base
        child_totals = (
            i32(one_of_near + 2 * base),
            i32(near_total - one_of_near),
            i32(one_of_far - 2 * base),
            i32(far_total - one_of_far),
        )
        near1, near0, far1, far0 = max_differences(row, D, f, small, large, child_totals)
        _improve(M, one_of_near, near_total, near1, near0)
        _improve(N, one_of_far, far_total, far1, far0)
    size = ones if s else weight - ones
    _errors(M, size, e1 if s else e0)
    _errors(N, weight - size, e0 if s else e1)
