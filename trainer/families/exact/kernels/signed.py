"""Kernels: depth-two optima for two classes and leaves of any size, from differences between the classes.

d(Z)     weight of class 0 less that of class 1 in the rows Z    D[p,q] d of the rows with x_p = x_q = 1
M_t      largest sum of |d| over the leaves of a tree with at most t leaves: its errors are e_t = (weight - M_t) / 2

A leaf of the rows Z makes (weight - |d(Z)|) / 2 errors. Of the splits of Z into rows of difference c and d(Z) - c the best has the
smallest or the largest c, since |c| + |d(Z) - c| = max(|d(Z)|, |2c - d(Z)|). So the least and the largest difference are all that
is needed of the pairs of a question.
"""

from __future__ import annotations

import numpy as np

from trainer.families.exact.kernels.node import MIRRORED
from trainer.families.exact.kernels.packed import packed_side
from trainer.kernels.bits import ctpop
from trainer.kernels.compiled import kernel

i32 = np.int32
u64 = np.uint64
FEW_WORDS = 3  # of the smaller side, up to which counting each pair twice is faster than writing pairs down


@kernel
def differences(node, P, min_leaf):
    """D of a node, int32 (p, p); without rows where there are more than two classes, or a smallest leaf."""
    classes, m = node.ones.shape
    if classes != 2 or min_leaf > 1:
        return np.empty((0, 0), i32)
    D = np.empty((m, m), i32)
    for f in range(m):
        first = 0 if m <= MIRRORED else f + 1
        zero, one, row = P[0, f, first:], P[1, f, first:], D[f, first:]
        for q in range(len(row)):
            row[q] = i32(zero[q] - one[q])
        for q in range(f + 1, m if first else 0):
            D[q, f] = D[f, q]
        D[f, f] = i32(node.ones[0, f] - node.ones[1, f])
    return D


@kernel
def best_difference(own, low, high):
    """|d| of the two leaves of the best split of rows with difference `own`, by the least and the largest difference of a part."""
    return max(max(own, -own), max(2 * high - own, own - 2 * low))


@kernel
def _count(packed, f, first, row):
    """row[q], q ≥ first: difference of the rows with x_f = x_q = 1, plus the weight of class 1."""
    row = row[first:]
    used = len(packed.columns)
    odd = used & 1
    if odd:
        a, u, x, shift = (
            packed.columns[0, first:],
            packed.columns[0, f],
            packed.second[0],
            np.int64(packed.segment[0, 1]),
        )
        for q in range(len(row)):
            row[q] = np.int64(ctpop((a[q] & u) ^ x)) << shift
    for w in range(odd, used, 2):
        a, b = packed.columns[w, first:], packed.columns[w + 1, first:]
        u, v, x, y = packed.columns[w, f], packed.columns[w + 1, f], packed.second[w], packed.second[w + 1]
        i, j = np.int64(packed.segment[w, 1]), np.int64(packed.segment[w + 1, 1])
        if w == 0:
            for q in range(len(row)):
                row[q] = (np.int64(ctpop((a[q] & u) ^ x)) << i) + (np.int64(ctpop((b[q] & v) ^ y)) << j)
        else:
            for q in range(len(row)):
                row[q] += (np.int64(ctpop((a[q] & u) ^ x)) << i) + (np.int64(ctpop((b[q] & v) ^ y)) << j)


@kernel
def _whole(packed, base, C):
    """Write C[f, q], the differences of the pairs of a packed side, from each pair once."""
    m = len(C)
    row = np.empty(m, np.int64)
    for f in range(m):
        _count(packed, f, f, row)
        source, target = row[f:], C[f, f:]
        for q in range(m - f):
            target[q] = i32(source[q] - base)
        for q in range(m - f):
            C[f + q, f] = target[q]


@kernel
def _ends(c, base, whole, small, large):
    """Least and largest difference of the pairs of a question: in the small side where it is 1 and where it is 0, and so in the large one."""
    low1, low0, far1, far0 = i32(0), i32(0), i32(0), i32(0)
    high1, high0, top1, top0 = i32(0), i32(0), i32(0), i32(0)
    for q in range(len(c)):
        one = i32(c[q] - base)
        zero, rest = i32(small[q] - one), i32(whole[q] - one)
        other = i32(large[q] - rest)
        low1, high1 = min(low1, one), max(high1, one)
        low0, high0 = min(low0, zero), max(high0, zero)
        far1, top1 = min(far1, rest), max(top1, rest)
        far0, top0 = min(far0, other), max(top0, other)
    return low1, high1, low0, high0, far1, top1, far0, top0


@kernel
def _improve(M, own, whole, ends):
    """Take over what the trees that ask a question first make of M[1..3]; own, whole: d where it is 1, and of all rows."""
    low1, high1, low0, high0 = ends
    rest = whole - own
    one, zero = best_difference(own, low1, high1), best_difference(rest, low0, high0)
    M[1] = max(M[1], abs(own) + abs(rest))
    M[2] = max(M[2], max(one + abs(rest), abs(own) + zero))
    M[3] = max(M[3], one + zero)


@kernel
def _errors(M, weight, e):
    for t in range(4):
        e[t] = (weight - M[t]) >> 1


@kernel
def signed_sides(node, D, p, e0, e1):
    """e[t] of both sides of split p, t leaves at most."""
    m = len(D)
    ones, weight = np.int64(node.ones[0, p]) + node.ones[1, p], np.int64(node.totals[0]) + node.totals[1]
    s = 1 if 2 * ones <= weight else 0
    packed = packed_side(node, p, s, True)
    small, large = np.empty(m, i32), np.empty(m, i32)
    for q in range(m):
        small[q] = D[p, q] if s else i32(D[q, q] - D[p, q])
        large[q] = i32(D[q, q] - small[q])
    d = np.int64(node.totals[0]) - node.totals[1]
    near = np.int64(D[p, p]) if s else d - D[p, p]
    M, N = np.full(4, abs(near), np.int64), np.full(4, abs(d - near), np.int64)
    base = np.int64(0)
    for w in range(len(packed.second)):
        base += np.int64(ctpop(packed.second[w])) << np.int64(packed.segment[w, 1])
    row, C = np.empty(m, np.int64), np.empty((0, 0), i32)
    if len(packed.columns) > FEW_WORDS:
        C = np.empty((m, m), i32)
        _whole(packed, base, C)
    for f in range(m):
        if len(C):
            ends = _ends(C[f], 0, D[f], small, large)
        else:
            _count(packed, f, 0, row)
            ends = _ends(row, base, D[f], small, large)
        _improve(M, np.int64(small[f]), near, ends[:4])
        _improve(N, np.int64(large[f]), d - near, ends[4:])
    size = ones if s else weight - ones
    _errors(M, size, e1 if s else e0)
    _errors(N, weight - size, e0 if s else e1)
