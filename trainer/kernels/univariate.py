"""Find the best threshold on each feature by one sort and scan.

The result is the first incumbent of other searches, and the univariate baseline.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trainer.kernels.compiled import kernel
from trainer.kernels.impurity import phi
from trainer.kernels.ordering import order_rows


class CutColumns(NamedTuple):
    """Numeric columns: X float64 (n, p), with codes int32 (p, n) and levels int64 (p,) as in `trainer.kernels.ordering`."""

    X: np.ndarray
    codes: np.ndarray
    levels: np.ndarray


@kernel
def best_thresholds(columns, rows, y, weight, classes, measure, min_leaf, out):
    """Write the best threshold of every feature into out, float64 (p, 3): impurity, last value on the left, first value on the right.

    rows int64 (m,) are the rows of the node; y int32 and weight int64 (n,) are classes and weights of all rows. The impurity, in rows, is
    infinite if no threshold leaves a weight of `min_leaf` on both sides. Ties go to the lowest threshold.
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
