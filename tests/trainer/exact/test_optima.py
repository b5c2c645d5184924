"""The optimal trees that are found equal those of an enumeration."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.oracles.exact import random_binary
from trainer.check.proof.steps.counting import Counting
from trainer.check.proof.subject import ProofSpace
from trainer.check.recount.search.optima import Optima
from trainer.families.exact.rashomon.optima import optimal_trees
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits


def all_trees(X, y, w, classes, depth, min_leaf):
    """Yield every tree with its errors and leaves."""
    counts = np.bincount(y, w, minlength=classes).astype(int)
    yield None, int(counts.sum() - counts.max()), 1
    for f in range(X.shape[1] if depth else 0):
        one = X[:, f] == 1
        if not one.any() or one.all() or min(w[one].sum(), w[~one].sum()) < min_leaf:
            continue
        sides = [list(all_trees(X[s], y[s], w[s], classes, depth - 1, min_leaf)) for s in (~one, one)]
        for (a, e, t), (b, g, u) in itertools.product(*sides):
            yield (f, a, b), e + g, t + u


def counted_again(X, y, w, classes, depth, min_leaf, leaf_cost):
    """Return the number of optimal trees according to the checker."""
    every = np.ones(X.shape[1], bool)
    space = ProofSpace(
        "questions", X > 0, y, w.astype(np.int64), classes, depth, leaf_cost, min_leaf, None, every, None, ""
    )
    scale = (1 << depth) + 1
    counting = Counting(space, scale * leaf_cost.denominator, scale * leaf_cost.numerator + 1)
    return Optima(counting, 10_000).of(counting.root(), min(depth, counting.deepest))[1]


@pytest.mark.parametrize("part", range(3))
def test_every_optimal_tree_is_counted_and_listed_once(part):
    several = 0
    for seed in range(part * 70, part * 70 + 70):
        depth = seed % 4
        X, y, w, classes, leaf_cost = random_binary(seed, max_rows=9, max_features=4 if depth < 3 else 3)
        min_leaf = 2 if seed % 5 == 0 else 1
        every = list(all_trees(X, y, w, classes, depth, min_leaf))
        best = min((e + leaf_cost * t, t) for _, e, t in every)
        want = {tree for tree, e, t in every if (e + leaf_cost * t, t) == best}
        found = optimal_trees(
            BinaryProblem(X, y, n_classes=classes, weights=w, depth=depth, leaf_cost=leaf_cost, min_leaf=min_leaf),
            limit=10_000,
        )
        assert found.cost == best[0]
        assert found.count == len(found.trees) == len(want)
        assert set(found.trees) == want
        assert counted_again(X, y, w, classes, depth, min_leaf, leaf_cost) == len(want)
        several += len(want) > 1
    assert several > 3


def test_depth_four_is_counted_too_and_the_list_is_cut():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (12, 3)).astype(np.uint8)
    y = rng.integers(0, 2, 12).astype(np.int32)
    X = np.column_stack((X, 1 - X[:, 0], X[:, 1]))
    found = optimal_trees(BinaryProblem(X, y, n_classes=2, depth=4, leaf_cost=Fraction(1, 10)), limit=2)
    every = [(e + Fraction(t, 10), t) for _, e, t in all_trees(X, y, np.ones(12, int), 2, 4, 1)]
    assert found.count == every.count(min(every)) > 2
    assert len(found.trees) == 2


def test_stopped_count_claims_nothing():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (400, 60)).astype(np.uint8)
    y = rng.integers(0, 2, 400).astype(np.int32)
    assert optimal_trees(BinaryProblem(X, y, n_classes=2, depth=4), limits=SearchLimits(time_limit=0.05)) is None
