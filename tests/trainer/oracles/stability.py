"""Oracle of stability: every labelled tree of a small space, and every set of changed rows."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np


def all_trees(X, classes, depth):
    """Return every labelled tree as (root question or None, answers, leaves); sides may be empty."""
    n = len(X)
    trees = [(None, (label,) * n, 1) for label in range(classes)]
    if depth:
        below = {(answers, leaves) for _, answers, leaves in all_trees(X, classes, depth - 1)}
        for q in range(X.shape[1]):
            for (low, a), (high, b) in product(below, repeat=2):
                trees.append((q, tuple(np.where(X[:, q] == 1, high, low).tolist()), a + b))
    return list(dict.fromkeys(trees))


def fewest_changes(X, y, classes, leaf_cost: Fraction, homes, rivals, change):
    """Return the fewest rows whose change makes a rival as good as each home tree; None if there are none."""
    n = len(y)

    def least(trees, labels, kept):
        answers = np.array([t[1] for t in trees])
        errors = ((answers != labels) & kept).sum(axis=1)
        return min(int(e) + leaf_cost * t[2] for e, t in zip(errors, trees, strict=True))

    for k in range(n + 1):
        for rows in combinations(range(n), k):
            rows = list(rows)
            for labels in [None] if change == "remove" else product(range(classes), repeat=k):
                new = y.copy()
                kept = np.ones(n, bool)
                if labels is None:
                    kept[rows] = False
                else:
                    new[rows] = labels
                if least(rivals, new, kept) <= least(homes, new, kept):
                    return k
    return None
