"""Find the cheapest trees of depth two from pair counts.

P[k,p,q] int32: weight of class k with x_p = x_q = 1, p < q
e[t]     int64: smallest error of a tree of depth 2 with t leaves (t = 1..4; index t - 1)

The node is that of `trainer.families.exact.kernels.node`. (Demirovic et al. 2022, MurTree; Keegan et al. 2025, equations 27-40.)
"""

from __future__ import annotations

import numpy as np

from trainer.kernels.compiled import kernel
from trainer.kernels.rows import copy_row

i32 = np.int32
INFINITE_ERRORS = np.int64(1) << np.int64(40)  # an error count that no data set reaches


@kernel
def evaluate_two(c, a, t, f, left, right):
    """Raise left and right of f and of each q > f from the pairs of f, for two classes.

    left, right int32 (m,): correct rows of the best split of the rows where the feature is 0, and where it is 1. c int32 (2, m): pair
    counts of f; a int32 (2, m): class weights where a feature is 1; t int32 (2,): class weights of the node.
    """
    n = a.shape[1] - f - 1
    x0 = a[0, f]
    x1 = a[1, f]
    y0 = i32(t[0] - x0)
    y1 = i32(t[1] - x1)
    c0 = c[0, f + 1 :]
    c1 = c[1, f + 1 :]
    b0 = a[0, f + 1 :]
    b1 = a[1, f + 1 :]
    L = left[f + 1 :]
    Rt = right[f + 1 :]
    best_l = i32(0)
    best_r = i32(0)
    for q in range(n):
        p0 = c0[q]
        p1 = c1[q]
        q0 = i32(b0[q] - p0)
        q1 = i32(b1[q] - p1)
        m11 = max(p0, p1)
        m10 = max(i32(x0 - p0), i32(x1 - p1))
        m01 = max(q0, q1)
        m00 = max(i32(y0 - q0), i32(y1 - q1))
        best_l = max(best_l, i32(m00 + m01))
        best_r = max(best_r, i32(m10 + m11))
        L[q] = max(L[q], i32(m00 + m10))
        Rt[q] = max(Rt[q], i32(m01 + m11))
    left[f] = max(left[f], best_l)
    right[f] = max(right[f], best_r)


@kernel
def evaluate_many(c, a, t, f, left, right, buffer, min_leaf):
    """Do the work of `evaluate_two` for any number of classes and a minimum leaf size; buffer: int32 (4, m), scratch."""
    n = a.shape[1] - f - 1
    m00 = buffer[0, :n]
    m01 = buffer[1, :n]
    m10 = buffer[2, :n]
    m11 = buffer[3, :n]
    buffer[:4, :n] = i32(0)
    for k in range(a.shape[0]):
        x = a[k, f]
        y = i32(t[k] - a[k, f])
        ck = c[k, f + 1 :]
        bk = a[k, f + 1 :]
        for q in range(n):
            both = ck[q]
            rest = i32(bk[q] - both)
            m11[q] = max(m11[q], both)
            m10[q] = max(m10[q], i32(x - both))
            m01[q] = max(m01[q], rest)
            m00[q] = max(m00[q], i32(y - rest))
    if min_leaf > 1:
        _rule_out_small_leaves(c, a, t, f, buffer, min_leaf)
    L = left[f + 1 :]
    Rt = right[f + 1 :]
    best_l = left[f]
    best_r = right[f]
    for q in range(n):
        best_l = max(best_l, i32(m00[q] + m01[q]))
        best_r = max(best_r, i32(m10[q] + m11[q]))
        L[q] = max(L[q], i32(m00[q] + m10[q]))
        Rt[q] = max(Rt[q], i32(m01[q] + m11[q]))
    left[f] = best_l
    right[f] = best_r


@kernel
def _rule_out_small_leaves(c, a, t, f, buffer, min_leaf):
    """Give leaves of fewer than `min_leaf` rows a value that no sum makes positive."""
    n = a.shape[1] - f - 1
    for q in range(n):
        both = 0
        x = 0
        b = 0
        all_rows = 0
        for k in range(a.shape[0]):
            both += c[k, f + 1 + q]
            x += a[k, f]
            b += a[k, f + 1 + q]
            all_rows += t[k]
        if all_rows - x - b + both < min_leaf:
            buffer[0, q] = i32(-(1 << 29))
        if b - both < min_leaf:
            buffer[1, q] = i32(-(1 << 29))
        if x - both < min_leaf:
            buffer[2, q] = i32(-(1 << 29))
        if both < min_leaf:
            buffer[3, q] = i32(-(1 << 29))


@kernel
def errors_by_leaves(a, t, left, right, min_leaf, e):
    """Write e[0..3], int64, the smallest errors with 1 to 4 leaves, from the best children of each root split.

    a int32 (K, m): class weights where a feature is 1; t int32 (K,): class weights of the node; left, right: see `best_children`.
    """
    classes, m = a.shape
    total = np.int64(0)
    top = i32(0)
    for k in range(classes):
        total += t[k]
        top = max(top, t[k])
    e[0] = total - top
    e[1] = e[2] = e[3] = INFINITE_ERRORS
    for f in range(m):
        one = np.int64(0)
        top1 = i32(0)
        top0 = i32(0)
        for k in range(classes):
            one += a[k, f]
            top1 = max(top1, a[k, f])
            top0 = max(top0, i32(t[k] - a[k, f]))
        if one < min_leaf or total - one < min_leaf:
            continue
        e[1] = min(e[1], total - top0 - top1)
        if left[f] >= 0:
            e[2] = min(e[2], total - left[f] - top1)
        if right[f] >= 0:
            e[2] = min(e[2], total - top0 - right[f])
        if left[f] >= 0 and right[f] >= 0:
            e[3] = min(e[3], total - left[f] - right[f])


@kernel
def cheapest_cost(e, unit, leaf, most):
    """Return the smallest cost over 1 to `most` leaves."""
    best = e[0] * unit + leaf
    for t in range(1, most):
        if e[t] < INFINITE_ERRORS:
            best = min(best, e[t] * unit + (t + 1) * leaf)
    return best


@kernel
def best_children(node, P, min_leaf):
    """Return the correct rows of the best split of the rows with x_f = 0, and of those with x_f = 1, int32 (m,) each; -1: none."""
    classes, m = node.ones.shape
    left = np.full(m, -1, i32)
    right = np.full(m, -1, i32)
    row = np.empty((classes, m), i32)
    buffer = np.empty((4, m), i32)
    for f in range(m):
        # a two-dimensional slice of P has no known stride, so loops over it would not be vectorised
        for k in range(classes):
            source = P[k, f, f + 1 :]
            target = row[k, f + 1 :]
            for q in range(m - f - 1):
                target[q] = source[q]
        if classes == 2 and min_leaf <= 1:
            evaluate_two(row, node.ones, node.totals, f, left, right)
        else:
            evaluate_many(row, node.ones, node.totals, f, left, right, buffer, min_leaf)
    return left, right


@kernel
def node_errors_by_leaves(node, P, min_leaf, e):
    """Write e[t] of the node itself and return its best children."""
    left, right = best_children(node, P, min_leaf)
    errors_by_leaves(node.ones, node.totals, left, right, min_leaf, e)
    return left, right


@kernel
def child_as_leaf(node, f, s):
    """Return the weight of the rows with x_f = s, and the errors of a leaf for them."""
    size = np.int64(0)
    top = np.int64(0)
    for k in range(len(node.ones)):
        value = np.int64(node.ones[k, f] if s else node.totals[k] - node.ones[k, f])
        size += value
        top = max(top, value)
    return size, size - top


@kernel
def best_split_of_child(node, P, f, s, size, min_leaf):
    """Return the fewest errors of a split of the rows with x_f = s and its first position; INFINITE_ERRORS and -1: none."""
    classes, m = node.ones.shape
    fewest = INFINITE_ERRORS
    position = -1
    for q in range(m):
        if q == f:
            continue
        one = np.int64(0)
        top1 = np.int64(0)
        top0 = np.int64(0)
        for k in range(classes):
            both = np.int64(P[k, min(f, q), max(f, q)])
            inside = both if s else node.ones[k, q] - both
            outside = (node.ones[k, f] if s else node.totals[k] - node.ones[k, f]) - inside
            one += inside
            top1 = max(top1, inside)
            top0 = max(top0, outside)
        if one >= min_leaf and size - one >= min_leaf and size - top1 - top0 < fewest:
            fewest = size - top1 - top0
            position = q
    return fewest, position


@kernel
def best_depth2(node, P, unit, leaf, min_leaf, most):
    """Return the positions (root, child where x = 0, child where x = 1; -1: a leaf) of a cheapest tree, and its cost.

    Ties are broken by search order. most: leaves, 2 for depth one, 4 for depth two. Pairs are read row by row; column by column,
    a thousand features take a second.
    """
    m = node.ones.shape[1]
    total = np.int64(node.totals.sum())
    best = (total - node.totals.max()) * unit + leaf
    root = -1
    correct = np.full((2, m), -1, i32)
    if most > 2:
        left, right = best_children(node, P, min_leaf)
        copy_row(left, correct[0])
        copy_row(right, correct[1])
    for f in range(m):
        cost = np.int64(0)
        for s in range(2):
            size, wrong = child_as_leaf(node, f, s)
            as_leaf = wrong * unit + leaf
            cost += as_leaf if correct[s, f] < 0 else min(as_leaf, (size - correct[s, f]) * unit + 2 * leaf)
        if cost < best:
            best = cost
            root = f
    if root < 0 or most == 2:
        return (root, -1, -1), best
    return (
        root,
        _best_child_split(node, P, root, 0, unit, leaf, min_leaf),
        _best_child_split(node, P, root, 1, unit, leaf, min_leaf),
    ), best


@kernel
def _best_child_split(node, P, f, s, unit, leaf, min_leaf):
    """Return the first best split of the rows with x_f = s, -1 if a leaf is as cheap."""
    size, as_leaf = child_as_leaf(node, f, s)
    errors, position = best_split_of_child(node, P, f, s, size, min_leaf)
    return position if errors * unit + leaf < as_leaf * unit else -1
