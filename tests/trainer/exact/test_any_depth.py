"""The exact search for deep trees equals the plain recurrence."""

from __future__ import annotations

import csv
import gzip
import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.oracles.exact import best_cost, random_binary
from trainer.families.exact.search import any_depth
from trainer.families.exact.search.any_depth import solve_any_depth
from trainer.families.exact.search.solve import ExactOptions, solve_binary
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits


@pytest.fixture
def early(monkeypatch):
    """Let the two alternating searches begin at depth 2, so that small tables reach them."""
    monkeypatch.setattr(any_depth, "SHALLOW", 1)
    monkeypatch.setattr(any_depth, "SLICE_OPERATIONS", 0)


def problem_of(seed, depth, min_leaf=1):
    X, y, w, classes, leaf_cost = random_binary(seed, max_rows=24, max_features=6)
    return BinaryProblem(
        X, y, n_classes=classes, weights=w, depth=depth, leaf_cost=leaf_cost or Fraction(1, 5), min_leaf=min_leaf
    )


def read_encoded(folder, name):
    with gzip.open(folder / "encoded" / f"{name}_enc.csv.gz", "rt") as lines:
        _, *rows = csv.reader(lines)
    table = np.array(rows, float).astype(np.int32)
    return table[:, :-1].astype(np.uint8), table[:, -1]


def optimum(problem):
    return best_cost(
        problem.X, problem.y, problem.weights, problem.n_classes, problem.depth, problem.leaf_cost, problem.min_leaf
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_optimum_equals_that_of_the_plain_recurrence(early, part):
    for seed in range(part * 1000, part * 1000 + 20):
        problem = problem_of(seed, 2 + seed % 6, min_leaf=1 if seed % 3 else 1 + seed % 4)
        solution = solve_any_depth(problem, options=ExactOptions(similarity=bool(seed % 5)))
        assert (solution.cost, solution.leaves) == optimum(problem), seed
        assert solution.optimal
        assert solution.bound == solution.cost


def test_optimum_without_a_penalty_has_the_fewest_leaves(early):
    for seed in range(100):
        X, y, w, classes, _ = random_binary(seed)
        problem = BinaryProblem(X, y, n_classes=classes, weights=w, depth=2 + seed % 4)
        solution = solve_any_depth(problem)
        assert (solution.cost, solution.leaves) == optimum(problem), seed
        assert solution.optimal


def stop_after(looks):
    """Return a `stop` that ends the search at this number of calls."""
    left = itertools.count(looks, -1)
    return lambda: next(left) <= 0


@pytest.mark.slow
def test_larger_limit_is_never_worse_at_any_moment(early):
    for seed in range(40):
        for looks in (1, 2, 4, 6, 9, 13, 30):
            costs = []
            for depth in range(2, 8):
                solution = solve_any_depth(problem_of(seed, depth), limits=SearchLimits(stop=stop_after(looks)))
                costs.append(solution.cost)
            assert costs == sorted(costs, reverse=True), (seed, looks)


@pytest.mark.slow
def test_stopped_search_has_a_valid_bound(early):
    for seed in range(100):
        problem = problem_of(seed, 2 + seed % 6)
        best, _ = optimum(problem)
        solution = solve_any_depth(problem, limits=SearchLimits(stop=stop_after(1 + seed % 12)))
        assert solution.bound <= best <= solution.cost, seed
        assert solution.optimal == (solution.bound == solution.cost)


def noisy(rows=400, features=12):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (rows, features)).astype(np.uint8)
    y = (X[:, :6].sum(axis=1) % 2 ^ (rng.random(rows) < 0.1)).astype(np.int32)
    return BinaryProblem(X, y, n_classes=2, depth=12, leaf_cost=Fraction(2))


@pytest.mark.slow
def test_bound_rises_and_cost_falls_while_it_searches(monkeypatch):
    monkeypatch.setattr(any_depth, "SHALLOW", 2)
    monkeypatch.setattr(any_depth, "SLICE_OPERATIONS", 0)
    heard = []
    solution = solve_any_depth(noisy(), report=lambda cost, bound, nodes: heard.append((cost, bound)))
    costs, bounds = (list(part) for part in zip(*heard, strict=True))
    assert costs == sorted(costs, reverse=True)
    assert bounds == sorted(bounds)
    assert len(set(bounds)) > 20
    assert solution.optimal


def test_start_deeper_than_the_first_stage_is_used(early):
    problem = noisy()
    best = solve_any_depth(problem)
    again = solve_any_depth(problem, start=best.shape, limits=SearchLimits(stop=stop_after(2)))
    assert again.start == best.cost
    assert again.cost == best.cost


def test_full_table_drops_entries_and_keeps_the_optimum(early, monkeypatch):
    monkeypatch.setattr(any_depth, "FIRST_PLACES", 1 << 8)
    solution = solve_any_depth(noisy())
    small = solve_any_depth(noisy(), options=ExactOptions(memory=200_000))
    assert small.bound <= solution.cost <= small.cost
    assert small.cache_entries < solution.cache_entries


@pytest.mark.slow
def test_any_depth_is_claimed_only_if_no_deeper_tree_is_better(early):
    claimed = 0
    for seed in range(60):
        problem = problem_of(seed, 2 + seed % 2)
        solution = solve_any_depth(problem)
        unlimited, _ = optimum(replace(problem, depth=problem.X.shape[1]))
        claimed += solution.any_depth
        assert not solution.any_depth or solution.cost == unlimited, seed
    assert claimed > 20


@pytest.mark.parametrize(("name", "penalty"), [("monk1", "0.001"), ("monk2", "0.005"), ("car_evaluation", "0.01")])
def test_public_table_is_proved_without_a_limit(data_folder, name, penalty):
    """The cost is that of the best tree of depth 6, which the other search proves."""
    X, y = read_encoded(data_folder, name)
    problem = BinaryProblem(X, y, n_classes=int(y.max()) + 1, depth=X.shape[1], leaf_cost=Fraction(penalty) * len(y))
    solution = solve_any_depth(problem)
    assert solution.optimal
    assert solution.any_depth
    assert solution.cost == solve_binary(replace(problem, depth=6)).cost
