"""Find the best single split on a feature in one scan.

It serves a node, or both children of a threshold at once. The symbols are those of `trainer.families.numeric.kernels.records`.
"""

from __future__ import annotations

import numpy as np

from trainer.families.numeric.kernels.orders import class_weights, weight_and_errors
from trainer.families.numeric.kernels.records import BLOCK, INFINITE_COST, LOW, NONE, ONE
from trainer.kernels.compiled import kernel


@kernel
def scan_two(order, marks, prefix, signed, left, side_weights, buffer, out):
    """Find the fewest errors of at most one split on a feature in both children of a threshold, for two classes.

    left: inc of the rows of the left child, else 0. side_weights int64 (3, K): see `Tables`. buffer int64: a number for each row.
    out int64 (6,): errors and position for each child (position -1: a leaf, or not below the cut), then the two cuts. A split with as
    many errors as the cut is useless. The kernel replaces the cuts by lower bounds of the errors.

    Let s be the weight of class 0 less class 1 before a threshold, D = l0 - l1 and L = l0 + l1. A split makes (L - max(|D|, |2 s - D|))
    / 2 errors, so the largest and the smallest s give the optimum. The errors before a threshold never decrease. The scan ends once they
    reach the cuts; then they bound the remaining thresholds.
    """
    m = np.uint64(len(order))
    l0 = side_weights[0, 0]
    l1 = side_weights[0, 1]
    r0 = side_weights[1, 0]
    r1 = side_weights[1, 1]
    cut_l = out[4]
    cut_r = out[5]
    acc = np.int64(0)
    j = NONE
    e = NONE
    low_l = np.int64(0)
    high_l = np.int64(0)
    low_r = np.int64(0)
    high_r = np.int64(0)
    rest_l = INFINITE_COST
    rest_r = INFINITE_COST
    while np.uint64(marks[e]) < m:
        block = min(j + BLOCK, m)
        while j < block:
            acc += left[np.uint32(order[j])]
            buffer[j] = (acc & LOW) - (acc >> 32)
            j += ONE
        while np.uint64(marks[e]) < block:
            s = buffer[np.uint64(marks[e])]
            t = signed[e] - s
            low_l = min(low_l, s)
            high_l = max(high_l, s)
            low_r = min(low_r, t)
            high_r = max(high_r, t)
            e += ONE
        rest = prefix[block - ONE] - acc
        a = min(acc & LOW, acc >> 32)
        b = min(rest & LOW, rest >> 32)
        if a >= cut_l and b >= cut_r:
            rest_l = a
            rest_r = b
            break
    for side in range(2):
        size, D = (l0 + l1, l0 - l1) if side == 0 else (r0 + r1, r0 - r1)
        low, high = (low_l, high_l) if side == 0 else (low_r, high_r)
        out[2 * side] = (size - abs(D)) // 2
        out[2 * side + 1] = -1
        wrong = (size - max(2 * high - D, D - 2 * low)) // 2
        if wrong < out[2 * side]:
            out[2 * side] = wrong
            if wrong < (cut_l if side == 0 else cut_r):
                sought = high if 2 * high - D >= D - 2 * low else low
                k = NONE
                while (buffer[np.uint64(marks[k])] if side == 0 else signed[k] - buffer[np.uint64(marks[k])]) != sought:
                    k += ONE
                out[2 * side + 1] = marks[k]
    out[4] = min(out[0], rest_l)
    out[5] = min(out[2], rest_r)


@kernel
def scan_many(order, marks, y, weight, left, side_weights, buffer, out):
    """Do the work of `scan_two` for any number of classes; buffer int64 (2 K,): two numbers for each class."""
    K = side_weights.shape[1]
    cut_l = out[4]
    cut_r = out[5]
    # views: a sum of indices costs a check for each row
    low = buffer[:K]
    high = buffer[K : 2 * K]
    size_l, leaf_l = weight_and_errors(side_weights[0])
    size_r, leaf_r = weight_and_errors(side_weights[1])
    out[0] = leaf_l
    out[1] = -1
    out[2] = leaf_r
    out[3] = -1
    for k in range(2 * K):
        buffer[k] = 0
    # largest class weights before the position
    top_l = np.int64(0)
    top_r = np.int64(0)
    sum_l = np.int64(0)
    sum_r = np.int64(0)
    rest_l = INFINITE_COST
    rest_r = INFINITE_COST
    j = NONE
    e = NONE
    while np.uint64(marks[e]) < np.uint64(len(order)):
        end = np.uint64(marks[e])
        e += ONE
        changed_l = False
        changed_r = False
        while j <= end:
            i = np.uint32(order[j])
            label = np.uint32(y[i])
            moved = left[i]
            if moved:
                low[label] += moved
                top_l = max(top_l, low[label])
                sum_l += moved
                changed_l = True
            else:
                high[label] += weight[i]
                top_r = max(top_r, high[label])
                sum_r += weight[i]
                changed_r = True
            j += ONE
        if changed_l:
            rest = np.int64(0)
            for k in range(K):
                rest = max(rest, side_weights[0, k] - low[k])
            if size_l - top_l - rest < out[0]:
                out[0] = size_l - top_l - rest
                out[1] = np.int64(end)
        if changed_r:
            rest = np.int64(0)
            for k in range(K):
                rest = max(rest, side_weights[1, k] - high[k])
            if size_r - top_r - rest < out[2]:
                out[2] = size_r - top_r - rest
                out[3] = np.int64(end)
        if sum_l - top_l >= cut_l and sum_r - top_r >= cut_r:
            rest_l = sum_l - top_l
            rest_r = sum_r - top_r
            break
    out[4] = min(out[0], rest_l)
    out[5] = min(out[2], rest_r)


@kernel
def _split_errors(whole, low, size, top):
    """Return the errors of a split, with class weights `low`, of largest `top`, on one side; `whole` and `size` are those of both."""
    rest = np.int64(0)
    for k in range(len(whole)):
        rest = max(rest, whole[k] - low[k])
    return size - top - rest


@kernel
def scan_sized(order, marks, y, weight, left, side_weights, buffer, out):
    """Do the work of `scan_many` if leaves have a least weight; marks: all ends.

    out int64 (8,): as for `scan_many`, and in the last two places first the least weight. Errors and positions respect it, and so do the
    lower bounds that the kernel writes to the last two places. The lower bounds that replace the cuts hold without it.
    """
    K = side_weights.shape[1]
    cut_l = out[4]
    cut_r = out[5]
    least = out[6]
    low = buffer[:K]
    high = buffer[K : 2 * K]
    size_l, free_l = weight_and_errors(side_weights[0])
    size_r, free_r = weight_and_errors(side_weights[1])
    out[0] = free_l
    out[1] = -1
    out[2] = free_r
    out[3] = -1
    for k in range(2 * K):
        buffer[k] = 0
    top_l = np.int64(0)
    top_r = np.int64(0)
    sum_l = np.int64(0)
    sum_r = np.int64(0)
    rest_l = INFINITE_COST
    rest_r = INFINITE_COST
    j = NONE
    e = NONE
    while np.uint64(marks[e]) < np.uint64(len(order)):
        end = np.uint64(marks[e])
        e += ONE
        before_l = sum_l
        before_r = sum_r
        while j <= end:
            i = np.uint32(order[j])
            label = np.uint32(y[i])
            if left[i]:
                low[label] += weight[i]
                top_l = max(top_l, low[label])
                sum_l += weight[i]
            else:
                high[label] += weight[i]
                top_r = max(top_r, high[label])
                sum_r += weight[i]
            j += ONE
        if sum_l > before_l:
            wrong = _split_errors(side_weights[0], low, size_l, top_l)
            free_l = min(free_l, wrong)
            if wrong < out[0] and min(sum_l, size_l - sum_l) >= least:
                out[0] = wrong
                out[1] = np.int64(end)
        if sum_r > before_r:
            wrong = _split_errors(side_weights[1], high, size_r, top_r)
            free_r = min(free_r, wrong)
            if wrong < out[2] and min(sum_r, size_r - sum_r) >= least:
                out[2] = wrong
                out[3] = np.int64(end)
        if sum_l - top_l >= cut_l and sum_r - top_r >= cut_r:
            rest_l = sum_l - top_l
            rest_r = sum_r - top_r
            break
    out[4] = min(free_l, rest_l)
    out[5] = min(free_r, rest_r)
    out[6] = min(out[0], rest_l)
    out[7] = min(out[2], rest_r)


@kernel
def best_single_splits(Z, E, sizes, y, weight, classes, errors, places):
    """Write errors[f], the fewest errors of one split on each feature, and places[f], the index of its end (-1: none)."""
    totals = class_weights(Z, y, weight, classes)
    everything, as_leaf = weight_and_errors(totals)
    counts = np.empty(classes, np.int64)
    for f in range(len(Z)):
        counts[:] = 0
        errors[f] = as_leaf
        places[f] = -1
        j = NONE
        for e in range(sizes[f]):
            end = np.uint64(E[f, e])
            while j <= end:
                i = np.uint32(Z[f, j])
                counts[np.uint32(y[i])] += weight[i]
                j += ONE
            low = np.int64(0)
            high = np.int64(0)
            for k in range(classes):
                low = max(low, counts[k])
                high = max(high, totals[k] - counts[k])
            if everything - low - high < errors[f]:
                errors[f] = everything - low - high
                places[f] = e
