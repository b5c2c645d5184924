"""What rows cost in any tree: those of equal answers end in one leaf, and each leaf predicts one class."""

from __future__ import annotations

import numpy as np

from trainer.dtypes import BitArray, CodeArray, CountArray


def excess_of(X: BitArray, y: CodeArray, weights: CountArray, n_classes: int) -> CountArray:
    """The weight of each row that is not of the largest class among the rows of its answers, else 0; int64 (n,)."""
    _, group = np.unique(np.packbits(X, axis=1), axis=0, return_inverse=True)
    group = group.reshape(-1)
    counts = np.zeros((int(group.max(initial=-1)) + 1, n_classes), np.int64)
    np.add.at(counts, (group, y), weights)
    return np.where(y == counts.argmax(axis=1)[group], 0, weights)


def least_cost(X: BitArray, y: CodeArray, weights: CountArray, n_classes: int, most: int, unit: int, leaf: int) -> int:
    """The floor of the cost of all trees with at most `most` leaves, at the prices of an error and of a leaf."""
    sizes = np.sort(np.bincount(y, weights, n_classes).astype(np.int64))[::-1]
    apart = int(excess_of(X, y, weights, n_classes).sum())
    left = int(sizes.sum()) - np.cumsum(sizes)[: min(most, n_classes)]
    return min(t * leaf + unit * max(apart, rest) for t, rest in enumerate(left.tolist(), start=1))
