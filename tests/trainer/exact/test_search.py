"""The exact search equals the plain recurrence for every combination of bounds and caches."""

from __future__ import annotations

import itertools
import os
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.oracles.exact import best_cost, random_binary
from trainer.families.exact.instance import build_instance
from trainer.families.exact.search import search
from trainer.families.exact.search.memo import INFINITE, UNKNOWN_PATH
from trainer.families.exact.search.search import ExactSearch
from trainer.families.exact.search.solve import ExactOptions, solve_binary
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits

SWITCHES = (
    "equivalent",
    "class_count",
    "support",
    "similarity",
    "branch_cache",
    "dataset_cache",
    "reduce",
    "deepening",
    "one_call",
)
COMBINATIONS = [dict(zip(SWITCHES, on, strict=True)) for on in itertools.product((False, True), repeat=len(SWITCHES))]


def check(seed, depth, min_leaf=1, options=({},)):
    """Check that each of the given sets of switches finds the cost of the plain recurrence, which is computed once."""
    X, y, w, classes, leaf_cost = random_binary(seed)
    cost, leaves = best_cost(X, y, w, classes, depth, leaf_cost, min_leaf)
    for switches in options:
        solution = solve_binary(
            BinaryProblem(X, y, n_classes=classes, weights=w, depth=depth, leaf_cost=leaf_cost, min_leaf=min_leaf),
            options=ExactOptions(**switches),
        )
        assert (solution.cost, solution.leaves) == (cost, leaves), switches
        assert solution.optimal
        assert solution.bound == cost


@pytest.mark.parametrize("part", range(10))
def test_equals_the_plain_recurrence(part):
    for seed in range(part * 100, part * 100 + 100):
        check(seed, depth=seed % 7, options=[COMBINATIONS[seed % len(COMBINATIONS)]])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_all_combinations_of_bounds_and_caches_agree(part):
    """There are 512 for each instance. OCTWEB_EXHAUSTIVE=100 tests 1,000 instances in about six minutes."""
    for number in range(int(os.environ.get("OCTWEB_EXHAUSTIVE", "1"))):
        seed = 5000 + 10 * number + part
        check(seed, depth=2 + seed % 5, options=COMBINATIONS)


@seeds(150)
def test_weights_of_many_bits_equal_the_plain_recurrence(seed):
    """Rows with such weights are stored once with their weight, instead of as a row for each bit."""
    X, y, _, classes, leaf_cost = random_binary(seed)
    w = np.random.default_rng(seed).integers(1, 4000, len(y)) | 0b11101
    depth = seed % 6
    min_leaf = 1 if seed % 3 else int(w.sum()) // 9
    problem = BinaryProblem(
        X, y, n_classes=classes, weights=w, depth=depth, leaf_cost=leaf_cost * 1000, min_leaf=min_leaf
    )
    assert build_instance(problem).weighted
    cost, leaves = best_cost(X, y, w, classes, depth, problem.leaf_cost, min_leaf)
    solution = solve_binary(problem, options=ExactOptions(**COMBINATIONS[37 * seed % len(COMBINATIONS)]))
    assert (solution.cost, solution.leaves, solution.bound) == (cost, leaves, cost)


def test_leaves_keep_their_smallest_size():
    for seed in range(150):
        check(seed, depth=1 + seed % 6, min_leaf=2 + seed % 4)


@pytest.mark.slow
@pytest.mark.parametrize("dataset_cache", [True, False])
@pytest.mark.parametrize("one_call", [True, False])
@pytest.mark.parametrize("depth", [4, 5])
def test_rows_without_a_path_do_not_touch_caches_by_path(depth, one_call, dataset_cache):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 2, (80, 5)).astype(np.uint8)
        y = rng.integers(0, 2, 80).astype(np.int32)
        g = build_instance(BinaryProblem(X, y, n_classes=2, weights=None, leaf_cost=Fraction(1, 3), depth=depth))
        s = ExactSearch(instance=g, depth=depth, options=ExactOptions(dataset_cache=dataset_cache, one_call=one_call))
        s.solve(np.arange(len(g.rows), dtype=np.int32), (), depth, int(INFINITE))
        tables = s.table.copy(), s.height3_table.copy()
        assert tables[0].any()
        for height in (3, 4):
            for _ in range(2):
                # equal rows must stay together
                rows = np.flatnonzero((rng.random(32) < 0.7)[g.rows[:, 0]]).astype(np.int32)
                solution = s.solve(rows, UNKNOWN_PATH, height, int(INFINITE))
                assert (solution.exact, g.true_cost(solution.lower)) == (True, cost_of(g, rows, height)), (seed, height)
        assert np.array_equal(tables[0], s.table)
        assert np.array_equal(tables[1], s.height3_table)


def cost_of(g, rows, height):
    """Return the cost of the best tree for rows of an instance, by the plain recurrence."""
    bits = np.unpackbits(g.rows[rows].view(np.uint8), axis=1, bitorder="little")[:, : g.features]
    return best_cost(bits, g.classes[rows], g.weights[rows], 2, height, Fraction(1, 3))[0]


@pytest.mark.parametrize("stop_at", [2, 3])
def test_incumbent_tree_is_built_once_and_not_shown_after_stop(stop_at, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (300, 60)).astype(np.uint8)
    y = rng.integers(0, 2, 300).astype(np.int32)
    monkeypatch.setattr(search, "TREE_SECONDS", 0.0)
    incumbents = []
    split_tree = search.split_tree
    better = []
    over = []

    def record_incumbent(searched, rows, path, height, feature):
        incumbents.extend([searched.incumbent] * (path == ()))
        return split_tree(searched, rows, path, height, feature)

    def report(cost, bound, nodes):
        better.append(cost)
        over.extend([cost] * (len(set(better)) > stop_at))

    monkeypatch.setattr(search, "split_tree", record_incumbent)
    # the search must report after every split of the root
    monkeypatch.setattr(ExactSearch, "slice_size", lambda self, m, words: 1)
    solution = solve_binary(
        BinaryProblem(X, y, n_classes=2, depth=3),
        limits=SearchLimits(stop=lambda: bool(over)),
        report=report,
        options=ExactOptions(one_call=False),
        improved=lambda shape: over and pytest.fail("a tree was shown after the end"),
    )
    assert over
    assert not solution.optimal
    assert solution.cost == min(better)
    assert len(incumbents) == len(set(incumbents))
