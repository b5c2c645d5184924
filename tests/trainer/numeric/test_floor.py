"""The lower bound from equal rows, with which the search for thresholds begins."""

from __future__ import annotations

import numpy as np

from tests.seeds import seeds
from trainer.families.numeric import search


@seeds(200)
def test_equal_rows_match_numpy_unique(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    F = int(rng.integers(1, 8))
    X = rng.integers(0, rng.integers(1, 5), (n, F)) * rng.choice([1.0, 1e9])
    monkeypatch.setattr(search, "MOST_KEYS", int(rng.choice([5, 50, 1 << 62])))
    levels, rank, _ = search._ranks(X, lambda: False)
    group = search._equal(rank, levels, lambda: False)
    _, expected = np.unique(X, axis=0, return_inverse=True)
    pairs = set(zip(group.tolist(), expected.reshape(-1).tolist(), strict=True))
    assert len(pairs) == len(set(group.tolist())) == len(set(expected.reshape(-1).tolist()))


def test_without_time_there_is_no_answer():
    levels, rank, _ = search._ranks(np.ones((3, 2)), lambda: False)
    assert search._equal(rank, levels, lambda: True) is None
