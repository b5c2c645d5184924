"""Small instances and tables for tests of hyperplane methods."""

from __future__ import annotations

import numpy as np

from tests.trainer.oracles.oblique import random_points
from trainer.families.oblique.instance import ObliqueInstance
from trainer.table import Labels, numeric_table


def instance(seed, **changes):
    X, counts, depth, kappa = random_points(seed)
    span = np.maximum(X.max(axis=0) - X.min(axis=0), 1)
    return X, ObliqueInstance(
        Z=(X - X.min(axis=0)) / span, counts=counts, classes=np.arange(counts.shape[1], dtype=np.int32),
        group=np.arange(len(X)), depth=depth, kappa=kappa, **changes,
    )  # fmt: skip


def table(X, y):
    words = tuple(str(k) for k in np.unique(y))
    codes = np.searchsorted(np.unique(y), y).astype(np.int32)
    return numeric_table(np.asarray(X, float)), Labels(name="class", classes=words, codes=codes)


def rows_of(seed):
    """Return the points of an instance with its parameters, and rows in awkward units in which the points are repeated."""
    X, counts, depth, kappa = random_points(seed)
    g, k = np.nonzero(counts)
    times = counts[g, k]
    factor = np.array([1e-3, 250.0, 1.0])[: X.shape[1]]
    return X, counts, depth, kappa, np.repeat(X[g] * factor - 7.25, times, axis=0), np.repeat(k, times)
