"""Find the best depth-two subtrees (D2S) from pair counts, and splits above.

Legend     X uint8 (n, F): bits; y[i] class, weight[i]; P int32 (K, F, F): P[k,f,g] weight of class k with x_f = x_g = 1, f ≤ g
           best[t] int64: largest correct weight of a subtree with t + 1 leaves, t = 0..3; shape[t] its features (root, left, right)

Keegan, Forbes, Corry & Abolghasemi, equations 27-40. Rows of one class and one power of two of the weights are packed 64 to a
word, feature by feature, so that a pair count is a sum of shifted population counts. Ties: the smallest root feature, the left
child split before the right one, then the smallest child features.
"""

from __future__ import annotations

import numpy as np

from trainer.kernels.bits import ctpop
from trainer.kernels.compiled import kernel

i32 = np.int32
i64 = np.int64
u64 = np.uint64
NONE = -1


@kernel
def _flush(words, shift, P):
    """Add the pair counts of one word of rows to P int32 (F, F), upper triangle, and clear the word.

    words uint64 (F,): the 64 rows, one word for each feature. shift: the rows count 2^shift each.
    """
    size = len(words)
    for f in range(size):
        x = words[f]
        if x == u64(0):
            continue
        out = P[f]
        for g in range(f, size):
            out[g] = i32(out[g] + i32(i32(ctpop(x & words[g])) << shift))
    words[:] = u64(0)


@kernel
def count_pairs(X, y, weight, rows, P, totals):
    """Fill P int32 (K, F, F) and totals int32 (K,) with the counts of `rows`, int64."""
    classes = P.shape[0]
    size = P.shape[1]
    P[:] = i32(0)
    totals[:] = i32(0)
    starts = np.zeros(classes + 1, i64)
    heaviest = i64(0)
    for i in rows:
        starts[y[i] + 1] += 1
        totals[y[i]] = i32(totals[y[i]] + weight[i])
        heaviest |= weight[i]
    for k in range(classes):
        starts[k + 1] += starts[k]
    ordered = np.empty(len(rows), i64)
    place = starts[:classes].copy()
    for i in rows:
        ordered[place[y[i]]] = i
        place[y[i]] += 1
    words = np.zeros(size, u64)
    for k in range(classes):
        shift = 0
        while heaviest >> shift:
            packed = 0
            for j in range(starts[k], starts[k + 1]):
                i = ordered[j]
                if (weight[i] >> shift) & 1:
                    at = u64(packed)
                    for f in range(size):
                        words[f] |= u64(X[i, f]) << at
                    packed += 1
                    if packed == 64:
                        _flush(words, i32(shift), P[k])
                        packed = 0
            if packed:
                _flush(words, i32(shift), P[k])
            shift += 1


@kernel
def best_values(P, totals, best, zero, one, left, right):
    """Fill best int64 (4,), and for each feature the correct weight of each side of a split on it, int32 (F,).

    zero, one: the sides as leaves; left, right: the sides with one more split.
    """
    classes = P.shape[0]
    size = P.shape[1]
    zero[:] = 0
    one[:] = 0
    left[:] = 0
    right[:] = 0
    single = np.zeros((classes, size), i32)
    for k in range(classes):
        for f in range(size):
            single[k, f] = P[k, f, f]
            one[f] = max(one[f], single[k, f])
            zero[f] = max(zero[f], i32(totals[k] - single[k, f]))
    q00 = np.empty(size, i32)
    q01 = np.empty(size, i32)
    q10 = np.empty(size, i32)
    q11 = np.empty(size, i32)
    for f in range(size):
        q00[f:] = 0
        q01[f:] = 0
        q10[f:] = 0
        q11[f:] = 0
        for k in range(classes):
            if totals[k] == 0:
                continue
            both = P[k, f]
            child_counts = single[k]
            root_count = single[k, f]
            root_rest = i32(totals[k] - root_count)
            for g in range(f, size):
                c11 = both[g]
                c01 = i32(child_counts[g] - c11)
                q11[g] = max(q11[g], c11)
                q10[g] = max(q10[g], i32(root_count - c11))
                q01[g] = max(q01[g], c01)
                q00[g] = max(q00[g], i32(root_rest - c01))
        low = left[f]
        high = right[f]
        for g in range(f, size):
            low = max(low, i32(q00[g] + q01[g]))
            high = max(high, i32(q10[g] + q11[g]))
            left[g] = max(left[g], i32(q00[g] + q10[g]))  # the same quarters with g as the root
            right[g] = max(right[g], i32(q01[g] + q11[g]))
        left[f] = low
        right[f] = high
    best[0] = totals.max()
    best[1] = 0
    best[2] = 0
    best[3] = 0
    for f in range(size):
        best[1] = max(best[1], i64(zero[f]) + one[f])
        best[2] = max(best[2], i64(left[f]) + one[f], i64(zero[f]) + right[f])
        best[3] = max(best[3], i64(left[f]) + right[f])


@kernel
def _best_child(P, totals, f, side, value):
    """Return the smallest child feature that reaches `value` on a side of root f."""
    classes = P.shape[0]
    size = P.shape[1]
    for g in range(size):
        off = on = i32(0)
        for k in range(classes):
            both = P[k, min(f, g), max(f, g)]
            root_count = P[k, f, f]
            child_count = P[k, g, g]
            on = max(on, both if side else i32(child_count - both))
            off = max(off, i32(root_count - both) if side else i32(totals[k] - root_count - child_count + both))
        if on + off == value:
            return g
    return NONE


@kernel
def best_shapes(P, totals, best, shape):
    """Fill best int64 (4,) and shape int32 (4, 3) from the counts of a set of rows."""
    size = P.shape[1]
    zero = np.empty(size, i32)
    one = np.empty(size, i32)
    left = np.empty(size, i32)
    right = np.empty(size, i32)
    best_values(P, totals, best, zero, one, left, right)
    shape[:] = NONE
    for f in range(size - 1, -1, -1):
        if i64(zero[f]) + one[f] == best[1]:
            shape[1, 0] = f
        by_left = i64(left[f]) + one[f]
        by_right = i64(zero[f]) + right[f]
        if max(by_left, by_right) == best[2]:
            shape[2, 0] = f
            shape[2, 1] = i32(0) if by_left >= by_right else i32(NONE)
        if i64(left[f]) + right[f] == best[3]:
            shape[3, 0] = f
    f = shape[2, 0]
    if shape[2, 1] != NONE:
        shape[2, 1] = _best_child(P, totals, f, 0, left[f])
    else:
        shape[2, 2] = _best_child(P, totals, f, 1, right[f])
    f = shape[3, 0]
    shape[3, 1] = _best_child(P, totals, f, 0, left[f])
    shape[3, 2] = _best_child(P, totals, f, 1, right[f])


@kernel
def best_subtrees(X, y, weight, rows, classes, best, shape):
    """Fill best int64 (4,) and shape int32 (4, 3) of a set of rows; a single leaf if there is one class or no feature."""
    size = X.shape[1]
    P = np.empty((classes, size, size), i32)
    totals = np.empty(classes, i32)
    count_pairs(X, y, weight, rows, P, totals)
    if size == 0 or (totals > 0).sum() < 2:
        shape[:] = NONE
        best[:] = i64(totals.max())
        return
    best_shapes(P, totals, best, shape)


@kernel
def split_values(X, y, weight, rows, classes, first, last, best):
    """Fill best int64 (F, 2, 4) of the rows with x_f = 0 and with x_f = 1, for features first ≤ f < last.

    The smaller side is counted; the other side is the difference to all rows.
    """
    size = X.shape[1]
    all_counts = np.empty((classes, size, size), i32)
    all_totals = np.empty(classes, i32)
    part = np.empty((classes, size, size), i32)
    totals = np.empty(classes, i32)
    other = np.empty((classes, size, size), i32)
    other_totals = np.empty(classes, i32)
    zero = np.empty(size, i32)
    one = np.empty(size, i32)
    left = np.empty(size, i32)
    right = np.empty(size, i32)
    count_pairs(X, y, weight, rows, all_counts, all_totals)
    side = np.empty(len(rows), i64)
    for f in range(first, last):
        ones = 0
        for i in rows:
            ones += X[i, f]
        small = 1 if 2 * ones <= len(rows) else 0
        filled = 0
        for i in rows:
            if X[i, f] == small:
                side[filled] = i
                filled += 1
        count_pairs(X, y, weight, side[:filled], part, totals)
        for k in range(classes):
            other_totals[k] = i32(all_totals[k] - totals[k])
            for g in range(size):
                for h in range(g, size):
                    other[k, g, h] = i32(all_counts[k, g, h] - part[k, g, h])
        best_values(part, totals, best[f, small], zero, one, left, right)
        best_values(other, other_totals, best[f, 1 - small], zero, one, left, right)


@kernel
def label_places(X, y, weight, rows, features, counts, right):
    """Label the places of a subtree by the majority of their rows; return the labels, int64 (8,).

    Places 1..7 are numbered like a heap. counts int64 (8, K), zero before, receives their class weights; right bool (rows,) receives
    whether each row is correct. features: of the root, its left and its right child, NONE for a leaf.
    """
    f, g, h = features
    at = np.ones(len(rows), i64)
    for j in range(len(rows)):
        i = rows[j]
        v = i64(1)
        if f != NONE:
            v = 2 + i64(X[i, f])
            child = g if v == 2 else h
            if child != NONE:
                v = 2 * v + i64(X[i, child])
        at[j] = v
        counts[v, y[i]] += weight[i]
    label = np.zeros(8, i64)
    for place in range(8):
        for k in range(counts.shape[1]):
            if counts[place, k] > counts[place, label[place]]:
                label[place] = k
    for j in range(len(rows)):
        right[j] = label[at[j]] == y[rows[j]]
    return label
