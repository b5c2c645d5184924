"""The search for trees of large depth against the plain recurrence."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.oracles.exact import best_cost, random_binary
from trainer.families.exact.search import any_depth
from trainer.families.exact.search.any_depth import AnyDepthSearch, solve_any_depth
from trainer.families.exact.search.solve import ExactOptions, solve_binary
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits


@pytest.fixture
def early(monkeypatch):
    """Let the two searches in turns begin at depth 2, so that small tables reach them."""
    monkeypatch.setattr(any_depth, "SHALLOW", 1)
    monkeypatch.setattr(any_depth, "SLICE_OPERATIONS", 0)


def problem_of(seed, depth, min_leaf=1):
    X, y, w, classes, leaf_cost = random_binary(seed, max_rows=24, max_features=6)
    return BinaryProblem(
        X, y, n_classes=classes, weights=w, depth=depth, leaf_cost=leaf_cost or Fraction(1, 5), min_leaf=min_leaf
    )


def optimum(problem):
    return best_cost(
        problem.X, problem.y, problem.weights, problem.n_classes, problem.depth, problem.leaf_cost, problem.min_leaf
    )


@pytest.mark.parametrize("part", range(10))
def test_optimum_equals_that_of_the_plain_recurrence(early, part):
    for seed in range(part * 1000, part * 1000 + 30):
        problem = problem_of(seed, 2 + seed % 6, min_leaf=1 if seed % 3 else 1 + seed % 4)
        found = solve_any_depth(problem, options=ExactOptions(similarity=bool(seed % 5)))
        assert (found.cost, found.leaves) == optimum(problem), seed
        assert found.optimal
        assert found.bound == found.cost


def test_optimum_without_a_penalty_has_the_fewest_leaves(early):
    for seed in range(100):
        X, y, w, classes, _ = random_binary(seed)
        problem = BinaryProblem(X, y, n_classes=classes, weights=w, depth=2 + seed % 4)
        found = solve_any_depth(problem)
        assert (found.cost, found.leaves) == optimum(problem), seed
        assert found.optimal
