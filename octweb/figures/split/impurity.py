"""Compute the Gini impurity of a split, and the best threshold of a column."""

from __future__ import annotations

import numpy as np

from trainer.dtypes import CodeArray, FloatArray
from trainer.tree.numbers import shortest_between


def gini_rows(codes: CodeArray, left: np.ndarray, classes: int) -> float:
    """Return the Gini impurity of a split in rows: the sum over both sides of n · (1 − Σ share²)."""
    total = 0.0
    for side in (left, ~left):
        counts = np.bincount(codes[side], minlength=classes).astype(np.float64)
        n = counts.sum()
        total += n - float((counts**2).sum()) / n if n else 0.0
    return total


def best_threshold(values: FloatArray, codes: CodeArray, classes: int) -> tuple[float, float] | None:
    """Return the threshold of `values` (n,) with the lowest Gini impurity in rows, and that impurity.

    The threshold lies between neighbouring values and has the fewest digits. Missing values go right. Returns None if
    there are fewer than two distinct values.
    """
    known = ~np.isnan(values)
    order = np.argsort(values[known], kind="stable")
    x = values[known][order]
    y = codes[known][order]
    ends = np.flatnonzero(x[1:] > x[:-1])
    if not len(ends):
        return None
    total = np.bincount(codes, minlength=classes).astype(np.float64)
    inner = np.zeros((2, len(ends)))
    n = len(codes)
    for k in range(classes):
        yes = np.cumsum(y == k)[ends].astype(np.float64)
        inner += np.array([yes**2, (total[k] - yes) ** 2])
    size = ends + 1.0
    impurity = n - inner[0] / size - inner[1] / (n - size)
    at = int(impurity.argmin())
    low = float(x[ends[at]])
    high = float(x[ends[at] + 1])
    finite = np.isfinite(low) and np.isfinite(high)
    return (shortest_between(low, high) if finite else low), float(impurity[at])
