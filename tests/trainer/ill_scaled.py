"""Small tables with awkward columns.

Their sizes range from 1e-300 to 1e9. They have denormal steps, heavy tails, and copies of each other up to rounding.
"""

from __future__ import annotations

import numpy as np

KINDS = 9


def column(r: np.random.Generator, n: int) -> np.ndarray:
    """Return one column, float64 (n,), of a random kind."""
    base = r.normal(size=n)
    scale = 10.0 ** r.integers(-9, 10)
    kind = r.integers(KINDS)
    if kind == 0:
        return base * scale
    if kind == 1:
        return r.integers(0, 6, n) * 5e-324
    if kind == 2:  # the spread is small compared with the values
        return 1e9 + base * scale * 1e-6
    if kind == 3:
        return np.exp(r.normal(scale=8, size=n))
    if kind == 4:
        return np.sign(base) * np.abs(base) ** 9 * scale
    if kind == 5:
        return r.integers(0, 3, n) * scale
    if kind == 6:
        return np.where(r.random(n) < 0.1, 5e7, base)
    if kind == 7:
        return 1.0 + r.integers(0, 4, n) * np.finfo(float).eps
    return r.choice([-1e-300, 1e-300, 0.0], n)


def table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X, float64 (n, p), and two or three classes, int64 (n,)."""
    r = np.random.default_rng(seed)
    n = int(r.integers(8, 26))
    X = np.column_stack([column(r, n) for _ in range(int(r.integers(1, 5)))])
    if r.random() < 0.4:  # a column that nearly equals another one
        near = X[:, int(r.integers(X.shape[1]))] * (1 + 1e-12 * r.normal(size=n))
        X = np.column_stack([X, near + r.choice([0.0, 1e-9])])
    if r.random() < 0.3:
        X = np.column_stack([X, X.sum(axis=1)])
    y = r.integers(0, int(r.integers(2, 4)), n)
    y[:2] = 0, 1
    if r.random() < 0.3:  # equal rows may have different classes
        X = np.concatenate([X, X])
        y = np.concatenate([y, r.integers(0, 2, n)])
    return X, y
