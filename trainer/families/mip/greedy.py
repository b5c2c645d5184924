"""Grow a CART tree on binary rows with cost-complexity pruning.

The warm start of Keegan et al.: Gini, first feature on ties, grown to the full depth. Then the inner node whose subtree saves the
fewest errors per additional leaf is collapsed, as long as it saves at most the leaf penalty.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from trainer.dtypes import CodeArray, CountArray
from trainer.families.mip.instance import CUT, LEAF, ArrayTree, Instance


def cart(instance: Instance) -> ArrayTree:
    """Grow the greedy tree of depth ≤ `instance.depth`, pruned with kappa, with majority labels."""
    feature = np.full(2 << instance.depth, CUT, np.int32)
    _grow(instance, feature, 1, np.arange(instance.n))
    return instance.label_leaves(_prune(instance, feature))


def _grow(instance: Instance, feature: CodeArray, v: int, rows: CountArray) -> None:
    f = _split(instance, rows) if v < 1 << instance.depth else -1
    if f < 0:
        feature[v] = LEAF
        return
    feature[v] = f
    ones = instance.ones[rows, f]
    _grow(instance, feature, 2 * v, rows[~ones])
    _grow(instance, feature, 2 * v + 1, rows[ones])


def _split(instance: Instance, rows: CountArray) -> int:
    """Return the feature of least Gini impurity that splits the rows; -1 if there is none or the rows have one class."""
    classes = np.eye(instance.classes)[instance.y[rows]] * instance.weight[rows, None]
    right = instance.X[rows].T.astype(np.float64) @ classes
    left = classes.sum(axis=0) - right
    if np.count_nonzero(classes.sum(axis=0)) < 2:
        return -1
    n_left = left.sum(axis=1)
    n_right = right.sum(axis=1)
    usable = np.flatnonzero((n_left > 0) & (n_right > 0))
    if not len(usable):
        return -1
    purity = (left[usable] ** 2).sum(axis=1) / n_left[usable] + (right[usable] ** 2).sum(axis=1) / n_right[usable]
    return int(usable[np.argmax(purity)])


def _prune(instance: Instance, feature: CodeArray) -> CodeArray:
    feature = feature.copy()
    counts = instance.counts(instance.route(feature))
    for v in range(len(counts) - 1, 1, -1):
        counts[v >> 1] += counts[v]
    error = counts.sum(axis=1) - counts.max(axis=1)
    while True:
        below = {v: _leaves(feature, v) for v in range(1, 1 << instance.depth) if feature[v] >= 0}
        if not below:
            return feature
        saved = {v: Fraction(int(error[v] - error[ls].sum()), len(ls) - 1) for v, ls in below.items()}
        v = min(saved, key=lambda u: (saved[u], u))
        if saved[v] > instance.kappa:
            return feature
        feature[instance.tree.below(v)] = CUT
        feature[v] = LEAF


def _leaves(feature: CodeArray, v: int) -> list[int]:
    if feature[v] == LEAF:
        return [v]
    return _leaves(feature, 2 * v) + _leaves(feature, 2 * v + 1)
