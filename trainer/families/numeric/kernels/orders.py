"""Find value changes, prefix sums and class weights along a node's orders.

The symbols are those of `trainer.families.numeric.kernels.records`.
"""

from __future__ import annotations

import numpy as np

from trainer.families.numeric.kernels.records import LOW
from trainer.kernels.compiled import kernel


@kernel
def change_positions(Z, rank, E, sizes):
    """Write E[f, :sizes[f]], the positions after which the value of feature f changes."""
    F, m = Z.shape
    for f in range(F):
        at = 0
        for j in range(m - 1):
            if rank[f, Z[f, j]] != rank[f, Z[f, j + 1]]:
                E[f, at] = j
                at += 1
        sizes[f] = at


@kernel
def class_change_positions(Z, E, sizes, y, C, counts):
    """Write C[f, :counts[f]], the ends between values whose rows are not all of one class, and C[f, counts[f]] = m.

    The errors of one split are concave in the number of rows of one class that change sides. So between two such ends the minimum is at
    an end, also for every subset of the rows.
    """
    for f in range(len(Z)):
        count = 0
        first = 0
        pending = np.int32(-1)
        before = np.int64(-1)  # class of the value before: -1 none yet, -2 several
        for e in range(sizes[f] + 1):
            last = E[f, e] if e < sizes[f] else Z.shape[1] - 1
            class_of_value = np.int64(y[Z[f, first]])
            for j in range(first + 1, last + 1):
                if y[Z[f, j]] != class_of_value:
                    class_of_value = np.int64(-2)
                    break
            if e > 0 and (class_of_value == -2 or class_of_value != before):
                C[f, count] = pending
                count += 1
            before = class_of_value
            pending = last
            first = last + 1
        counts[f] = count
        C[f, count] = Z.shape[1]


@kernel
def copy_ends(E, sizes, C, counts):
    """Write C[f, :counts[f]], all ends, and C[f, counts[f]] = m."""
    for f in range(len(E)):
        for e in range(sizes[f]):
            C[f, e] = E[f, e]
        counts[f] = sizes[f]
        C[f, sizes[f]] = E.shape[1]


@kernel
def divide_orders(Z, rank, f, t):
    """Return the orders of the rows with rank <= t of feature f, and of the others."""
    F, m = Z.shape
    k = 0
    for j in range(m):
        k += 1 if rank[f, Z[f, j]] <= t else 0
    low = np.empty((F, k), np.int32)
    high = np.empty((F, m - k), np.int32)
    r = rank[f]
    for g in range(F):
        a = 0
        b = 0
        for j in range(m):
            i = Z[g, j]
            if r[i] <= t:
                low[g, a] = i
                a += 1
            else:
                high[g, b] = i
                b += 1
    return low, high


@kernel
def class_weights(Z, y, weight, classes):
    """Return the weight of each class among the rows of a node."""
    totals = np.zeros(classes, np.int64)
    for j in range(Z.shape[1]):
        totals[y[Z[0, j]]] += weight[Z[0, j]]
    return totals


@kernel
def weight_and_errors(totals):
    """Return the total weight and the errors of a leaf (loops, since compiling sum and max takes a second)."""
    total = np.int64(0)
    most = np.int64(0)
    for k in range(len(totals)):
        total += totals[k]
        most = max(most, totals[k])
    return total, total - most


@kernel
def maximum(values):
    """Return the largest of non-negative numbers."""
    most = np.int64(0)
    for k in range(len(values)):
        most = max(most, values[k])
    return most


@kernel
def minimum(values):
    """Return the smallest number."""
    least = values[0]
    for k in range(1, len(values)):
        least = min(least, values[k])
    return least


@kernel
def prefix_sums(Z, inc):
    """Return S[g, j], the sum of inc over the first j + 1 rows in the order of g (two classes)."""
    F, m = Z.shape
    S = np.empty((F, m), np.int64)
    for g in range(F):
        total = np.int64(0)
        for j in range(m):
            total += inc[Z[g, j]]
            S[g, j] = total
    return S


@kernel
def signed_prefixes(S, C, counts):
    """Return D[g, e], the weight of class 0 less that of class 1 up to the end C[g, e]."""
    D = np.empty((len(S), max(1, maximum(counts))), np.int64)
    for g in range(len(S)):
        for e in range(counts[g]):
            D[g, e] = (S[g, C[g, e]] & LOW) - (S[g, C[g, e]] >> 32)
    return D
