"""The exact search against the plain recurrence, for every combination of its bounds and caches."""

from __future__ import annotations

import itertools

import pytest

from tests.trainer.exact_oracle import best_cost, random_binary
from trainer.search.exact import ExactOptions, solve_binary

SWITCHES = (
    "equivalent",
    "class_count",
    "support",
    "similarity",
    "branch_cache",
    "dataset_cache",
    "reduce",
    "deepening",
)
COMBINATIONS = list(itertools.product((False, True), repeat=len(SWITCHES)))


def check(seed, depth, min_leaf=1, **given):
    X, y, w, classes, leaf_cost = random_binary(seed)
    found = solve_binary(
        X, y, n_classes=classes, weights=w, depth=depth, leaf_cost=leaf_cost, min_leaf=min_leaf, **given
    )
    cost, leaves = best_cost(X, y, w, classes, depth, leaf_cost, min_leaf)
    assert found.cost == cost
    assert found.leaves == leaves
    assert found.optimal
    assert found.bound == cost
    return found


@pytest.mark.parametrize("part", range(10))
def test_equals_the_plain_recurrence(part):
    for seed in range(part * 100, part * 100 + 100):
        switches = dict(zip(SWITCHES, COMBINATIONS[seed % len(COMBINATIONS)], strict=True))
        check(seed, depth=seed % 5, options=ExactOptions(**switches))


def test_every_combination_of_bounds_and_caches_gives_the_same_optimum():
    for number, combination in enumerate(COMBINATIONS):
        check(5000 + number % 7, depth=4, options=ExactOptions(**dict(zip(SWITCHES, combination, strict=True))))


def test_leaves_keep_their_smallest_size():
    for seed in range(150):
        check(seed, depth=1 + seed % 4, min_leaf=2 + seed % 4)
