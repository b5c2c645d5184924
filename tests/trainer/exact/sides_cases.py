"""Cases and oracles of `test_sides.py` that other tests use, too."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from trainer.families.exact.instance import build_instance
from trainer.families.exact.kernels.node import pair_counts, prepare
from trainer.solver_common.binary_problem import BinaryProblem


def node_of(seed, *, rows=90, questions=9):
    """Return a node of random rows with weights, its pair counts, and its instance."""
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, questions)) < rng.uniform(0.1, 0.9, questions)).astype(np.uint8)
    most = (None, 40, 5000)[seed // 2 % 3]  # with 5000, the weights are listed for each row
    weights = None if most is None else rng.integers(1, most, rows)
    y = rng.integers(0, 2, rows)
    g = build_instance(BinaryProblem(X, y, n_classes=2, weights=weights, leaf_cost=Fraction(1), depth=3))
    some = np.arange(len(g.rows), dtype=np.int32)[rng.random(len(g.rows)) < rng.uniform(0.05, 1)]
    node = prepare(g.data, some, np.ones(questions, np.uint8), 1, True, True)
    m = len(node.features)
    P = np.empty((2, m, m), np.int32)
    pair_counts(node, P)
    return g, some, node, P
