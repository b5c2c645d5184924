"""The accuracy/size frontier equals the plain recurrence for every number of leaves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.oracles.exact import best_errors, random_binary
from trainer.families.exact.instance import build_instance
from trainer.families.exact.search.frontier import solve_frontier
from trainer.families.exact.search.solve import evaluate
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("min_leaf", [1, 3])
def test_every_point_is_that_of_the_plain_recurrence(part, min_leaf):
    for seed in range(part * 60, part * 60 + 60):
        X, y, w, classes, _ = random_binary(seed)
        depth = seed % 5
        budget = None if seed % 3 else 1 + seed % 7
        points = solve_frontier(
            BinaryProblem(X, y, n_classes=classes, weights=w, depth=depth, min_leaf=min_leaf), max_leaves=budget
        )
        exact = best_errors(X, y, w, classes, depth, min_leaf)
        instance = build_instance(BinaryProblem(X, y, n_classes=classes, weights=w, leaf_cost=Fraction(0), depth=depth))
        for point in points:
            assert point.errors == point.bound == min(e for t, e in exact.items() if t <= point.budget)
            assert point.leaves == min(t for t, e in exact.items() if e == point.errors)
            assert evaluate(instance, point.shape) == (point.errors, point.leaves)
        assert len(points) >= max(t for t in exact if budget is None or t <= budget)


def test_a_stopped_frontier_has_valid_bounds_and_its_trees():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 2, (400, 90)).astype(np.uint8)
    y = rng.integers(0, 2, 400).astype(np.int32)
    full = solve_frontier(BinaryProblem(X, y, n_classes=2, depth=3))
    instance = build_instance(BinaryProblem(X, y, n_classes=2, weights=None, leaf_cost=Fraction(0), depth=4))
    for limit in (0.0, 0.3):
        for point, best in zip(
            solve_frontier(BinaryProblem(X, y, n_classes=2, depth=4), limits=SearchLimits(time_limit=limit)),
            full,
            strict=False,
        ):
            assert evaluate(instance, point.shape)[0] == point.errors
            assert point.bound <= min(best.errors, point.errors)
