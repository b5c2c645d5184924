"""The best threshold on one feature: one sort, one scan. Used as first incumbent and as the univariate baseline."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trainer.kernels.compiled import kernel
from trainer.kernels.impurity import phi
from trainer.kernels.ordering import order_rows


class CutColumns(NamedTuple):
    """Numbers to cut: X float64 (n, p), its codes and their levels as in `ordering`."""

    X: np.ndarray
    codes: np.ndarray
    levels: np.ndarray


@kernel
def best_thresholds(columns, rows, y, weight, classes, measure, min_leaf, out):
    """Write the best (value, last value on the left, first value on the right) of every feature into out, float64 (p, 3).

    rows int64 of the node's rows, y int32 codes, weight int64. The value is infinity where a feature allows no threshold that leaves
    `min_leaf` rows on both sides. Among equal values the first is kept.
    """
    X, codes, levels = columns
    n = rows.shape[0]
    total = np.zeros(classes, np.int64)
    for r in range(n):
        total[y[rows[r]]] += weight[rows[r]]
    size = total.sum()
    least = max(1, min_leaf)
    order = np.empty(n, np.int64)
    spare = np.empty(n, np.int64)
    for j in range(X.shape[1]):
        code = codes[j]
        order_rows(code, rows, levels[j], order, spare)
        left = np.zeros(classes, np.int64)
        seen = 0
        out[j, 0] = math.inf
        out[j, 1] = 0.0
        out[j, 2] = 0.0
        for r in range(n - 1):
            i = rows[order[r]]
            after = rows[order[r + 1]]
            left[y[i]] += weight[i]
            seen += weight[i]
            if code[i] == code[after] or min(seen, size - seen) < least:
                continue
            value = phi(measure, left) + phi(measure, total - left)
            if value < out[j, 0] - 1e-12 * size:
                out[j, 0], out[j, 1], out[j, 2] = value, X[i, j], X[after, j]
