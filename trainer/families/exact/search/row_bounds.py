"""Compute lower bounds from equal rows and class sizes.

Equal rows share a leaf, and a leaf predicts one class.
"""

from __future__ import annotations

import numpy as np

from trainer.dtypes import BitArray, CodeArray, CountArray


def excess_of(X: BitArray, y: CodeArray, weights: CountArray, n_classes: int) -> CountArray:
    """Return the weight of each row whose class is not the majority among equal rows, else 0; int64 (n,)."""
    _, group = np.unique(np.packbits(X, axis=1), axis=0, return_inverse=True)
    group = group.reshape(-1)
    counts = np.zeros((int(group.max(initial=-1)) + 1, n_classes), np.int64)
    np.add.at(counts, (group, y), weights)
    return np.where(y == counts.argmax(axis=1)[group], 0, weights)


def least_cost(X: BitArray, y: CodeArray, weights: CountArray, n_classes: int, most: int, unit: int, leaf: int) -> int:
    """Return a lower bound on the cost of trees with at most `most` leaves; `unit` and `leaf` price an error and a leaf."""
    sizes = np.sort(np.bincount(y, weights, n_classes).astype(np.int64))[::-1]
    inseparable = int(excess_of(X, y, weights, n_classes).sum())
    unpredicted = int(sizes.sum()) - np.cumsum(sizes)[: min(most, n_classes)]
    return min(t * leaf + unit * max(inseparable, errors) for t, errors in enumerate(unpredicted.tolist(), start=1))
