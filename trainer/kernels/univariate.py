"""The best threshold on one feature: one sort, one scan. Used as first incumbent and as the univariate baseline."""

from __future__ import annotations

import math

import numpy as np

from trainer.kernels.compiled import kernel
from trainer.kernels.impurity import phi


@kernel
def best_thresholds(X, rows, y, weight, classes, measure, min_leaf, out):
    """Write the best (value, last value on the left, first value on the right) of every feature into out, float64 (p, 3).

    X float64 (n, p) C-ordered, rows int64 of the node's rows, y int32 codes, weight int64. The value is infinity where a feature
    allows no threshold that leaves `min_leaf` rows on both sides. Among equal values the first threshold is kept.
    """
    n = rows.shape[0]
    total = np.zeros(classes, np.int64)
    for r in range(n):
        total[y[rows[r]]] += weight[rows[r]]
    size = total.sum()
    least = max(1, min_leaf)
    column = np.empty(n)
    for j in range(X.shape[1]):
        for r in range(n):
            column[r] = X[rows[r], j]
        order = np.argsort(column, kind="mergesort")
        left = np.zeros(classes, np.int64)
        seen = 0
        out[j, 0], out[j, 1], out[j, 2] = math.inf, 0.0, 0.0
        for r in range(n - 1):
            i = rows[order[r]]
            left[y[i]] += weight[i]
            seen += weight[i]
            if column[order[r]] == column[order[r + 1]] or min(seen, size - seen) < least:
                continue
            value = phi(measure, left) + phi(measure, total - left)
            if value < out[j, 0] - 1e-12 * size:
                out[j, 0], out[j, 1], out[j, 2] = value, column[order[r]], column[order[r + 1]]
