"""Cases and oracles of `test_exact_numeric.py` that other tests use, too."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def random_numeric(seed, rows=12):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, rows + 1))
    m = int(rng.integers(1, 4))
    classes = int(rng.integers(1, 4))
    X = rng.integers(0, int(rng.integers(1, 8)), (n, m)) / 3
    if rng.random() < 0.3:
        X[rng.integers(n, size=n // 2)] = X[rng.integers(n)]
    y = rng.integers(0, classes, n).astype(np.int32)
    if rng.random() < 0.5:
        y = ((X.sum(axis=1) > X.sum(axis=1).mean()).astype(np.int32) + (rng.random(n) < 0.2)) % classes
    w = np.ones(n, np.int64) if rng.random() < 0.5 else rng.integers(0, 7, n)
    w[0] = 1
    leaf_cost = [Fraction(0), Fraction(1), Fraction(1, 3), Fraction(7, 10), Fraction(2)][rng.integers(5)]
    return X, y.astype(np.int32), w, classes, leaf_cost


def all_thresholds(X):
    columns = [X[:, f] > t for f in range(X.shape[1]) for t in np.unique(X[:, f])[:-1]]
    return np.array(columns, np.uint8).T.reshape(len(X), len(columns))
