"""Oracle of the exact search: the plain recurrence over binary features, without bounds or caches."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def best_errors(X, y, w, classes, depth, min_leaf=1):
    """Return the smallest weighted errors of trees of depth ≤ depth, by their exact number of leaves.

    A number of leaves is missing if no tree has it.
    """
    counts = [int(w[y == k].sum()) for k in range(classes)]
    best = {1: sum(counts) - max(counts)}
    if depth:
        for f in range(X.shape[1]):
            one = X[:, f] == 1
            if not one.any() or one.all() or w[one].sum() < min_leaf or w[~one].sum() < min_leaf:
                continue
            low = best_errors(X[~one], y[~one], w[~one], classes, depth - 1, min_leaf)
            high = best_errors(X[one], y[one], w[one], classes, depth - 1, min_leaf)
            for a, ea in low.items():
                for b, eb in high.items():
                    if a + b not in best or ea + eb < best[a + b]:
                        best[a + b] = ea + eb
    return best


def best_cost(X, y, w, classes, depth, leaf_cost: Fraction, min_leaf=1, most_leaves=None):
    """Return (errors + leaf_cost * leaves, leaves) of the best tree.

    Among equal trees it is one with the fewest leaves.
    """
    found = best_errors(X, y, w, classes, depth, min_leaf)
    return min((e + leaf_cost * t, t) for t, e in found.items() if most_leaves is None or t <= most_leaves)


def random_binary(seed, max_rows=14, max_features=5):
    """Return a small random problem.

    It may have ties, equal rows of different classes, constant and complementary columns, weights, and one class only.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, max_rows + 1))
    m = int(rng.integers(1, max_features + 1))
    classes = int(rng.integers(1, 5))
    X = (rng.random((n, m)) < rng.choice([0.2, 0.5, 0.7])).astype(np.uint8)
    if m > 2 and rng.random() < 0.3:
        X[:, 1] = 1 - X[:, 0]
    if m > 1 and rng.random() < 0.2:
        X[:, m - 1] = rng.integers(2)
    if rng.random() < 0.4:
        X[rng.integers(n, size=n // 2)] = X[rng.integers(n)]
    y = rng.integers(0, classes, n).astype(np.int32)
    if rng.random() < 0.5:
        y = ((X.sum(axis=1) + (rng.random(n) < 0.2)) % classes).astype(np.int32)
    w = np.ones(n, np.int64) if rng.random() < 0.5 else rng.integers(1, 7, n)
    leaf_cost = [Fraction(0), Fraction(1), Fraction(1, 3), Fraction(7, 10), Fraction(2)][rng.integers(5)]
    return X, y, w, classes, leaf_cost
