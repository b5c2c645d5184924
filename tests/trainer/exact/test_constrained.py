"""The exact search under constraints equals enumeration of all labelled trees."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.oracles.exact import random_binary
from trainer.errors import InfeasibleError
from trainer.families.exact.search.constrained import columns_of, satisfies, solve_constrained
from trainer.families.exact.search.pareto import Constraints
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits


def all_trees(rows, classes, depth, limits, path=()):
    """Return every (errors of each class, leaves, tested columns) of trees within the limits, given the splits of `path`.

    rows: X, y and weights. limits: conflicts of features, columns of features, and least weight of a leaf.
    """
    X, y, w = rows
    conflict, columns, min_leaf = limits
    counts = tuple(int(w[y == k].sum()) for k in range(classes))
    found = {(tuple(0 if j == k else counts[j] for j in range(classes)), 1, frozenset()) for k in range(classes)}
    for f in range(X.shape[1] if depth else 0):
        one = X[:, f] == 1
        if min(w[one].sum(), w[~one].sum()) < max(1, min_leaf) or any(conflict[f, g] for g in path):
            continue
        sides = [all_trees((X[s], y[s], w[s]), classes, depth - 1, limits, (*path, f)) for s in (~one, one)]
        for (e, t, c), (e2, t2, c2) in itertools.product(*sides):
            found.add((tuple(a + b for a, b in zip(e, e2, strict=True)), t + t2, c | c2 | {int(columns[f])}))
    return found


def random_case(seed, depth):
    X, y, w, classes, leaf_cost = random_binary(seed, max_rows=9, max_features=4 if depth < 3 else 3)
    rng = np.random.default_rng(seed + 10_000)
    classes = min(classes, 3)
    y = y % classes
    m = X.shape[1]
    columns = np.sort(rng.integers(0, 3, m))
    conflict = np.triu((rng.random((m, m)) < 0.3).astype(np.uint8), 1)
    conflict |= conflict.T
    present = np.unique(y)
    recalls = tuple((int(k), Fraction(int(rng.integers(1, 11)), 10)) for k in present if rng.random() < 0.6)
    constraints = Constraints(
        recalls=recalls if rng.random() < 0.8 else (),
        conflict=conflict if rng.random() < 0.5 else None,
        max_leaves=int(rng.integers(1, 6)) if rng.random() < 0.4 else None,
        max_columns=int(rng.integers(0, 3)) if rng.random() < 0.4 else None,
        columns=columns,
    )
    return X, y, w, classes, leaf_cost, constraints, int(rng.integers(1, 4)) if rng.random() < 0.3 else 1


def within(found, sizes, c, slack=Fraction(0)):
    errors, leaves, asked = found
    return (
        (c.max_leaves is None or leaves <= c.max_leaves)
        and (c.max_columns is None or len(asked) <= c.max_columns)
        and all(sizes[k] - errors[k] >= (share - slack) * sizes[k] for k, share in c.recalls)
    )


@pytest.mark.parametrize("part", range(4))
def test_constrained_optimum_equals_that_of_enumeration(part):
    infeasible = 0
    for seed in range(part * 75, part * 75 + 75):
        depth = seed % 4
        X, y, w, classes, leaf_cost, c, min_leaf = random_case(seed, depth)
        conflict = np.zeros((X.shape[1],) * 2, np.uint8) if c.conflict is None else c.conflict
        trees = all_trees((X, y, w), classes, depth, (conflict, c.columns, min_leaf))
        sizes = [int(w[y == k].sum()) for k in range(classes)]
        costs = [sum(t[0]) + leaf_cost * t[1] for t in trees if within(t, sizes, c)]
        arguments = {
            "n_classes": classes, "depth": depth, "leaf_cost": leaf_cost, "weights": w, "min_leaf": min_leaf
        }  # fmt: skip
        if not costs:
            infeasible += 1
            with pytest.raises(InfeasibleError) as error:
                solve_constrained(BinaryProblem(X, y, **arguments), c)
            # The slack in the error is the smallest one with a feasible tree.
            slack = Fraction(error.value.best).limit_denominator(10_000)
            assert any(within(t, sizes, c, slack + Fraction(1, 10**6)) for t in trees)
            assert not any(within(t, sizes, c, slack - Fraction(1, 10**6)) for t in trees)
            continue
        found = solve_constrained(BinaryProblem(X, y, **arguments), c)
        assert found.cost == found.bound == min(costs), seed
        assert found.optimal
        assert satisfies(BinaryProblem(X, y, **arguments), found.shape, c)
        assert c.max_columns is None or len(columns_of(found.shape, c.columns)) <= c.max_columns
    assert infeasible > 2


def test_depth_four_agrees_with_the_recurrence_of_all_vectors():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (60, 5)).astype(np.uint8)
    y = ((X[:, 0] & X[:, 1]) | (rng.random(60) < 0.2)).astype(np.int32)
    conflict = np.zeros((5, 5), np.uint8)
    conflict[0, 2] = conflict[2, 0] = 1

    def vectors(rows, depth, path):
        n0 = int((y[rows] == 0).sum())
        n1 = int((y[rows] == 1).sum())
        best = {(n0, 0): 1, (0, n1): 1}
        for f in range(5 if depth else 0):
            one = X[rows, f] == 1
            if not one.any() or one.all() or any(conflict[f, g] for g in path):
                continue
            low, high = (vectors(rows[s], depth - 1, (*path, f)) for s in (~one, one))
            for (a, s), (b, t) in itertools.product(low.items(), high.items()):
                e = (a[0] + b[0], a[1] + b[1])
                best[e] = min(best.get(e, 99), s + t)
        return best

    found = vectors(np.arange(60), 4, ())
    sizes = int((y == 0).sum()), int((y == 1).sum())
    for shares in ((Fraction(9, 10), Fraction(0)), (Fraction(7, 10), Fraction(8, 10)), (Fraction(0), Fraction(1))):
        want = min(
            sum(e) + t * Fraction(1, 2)
            for e, t in found.items()
            if all(sizes[k] - e[k] >= shares[k] * sizes[k] for k in range(2))
        )
        c = Constraints(recalls=((0, shares[0]), (1, shares[1])), conflict=conflict)
        result = solve_constrained(BinaryProblem(X, y, n_classes=2, depth=4, leaf_cost=Fraction(1, 2)), c)
        assert result.cost == result.bound == want


def test_a_stopped_search_has_a_valid_bound():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (200, 14)).astype(np.uint8)
    y = rng.integers(0, 2, 200).astype(np.int32)
    c = Constraints(recalls=((1, Fraction(9, 10)),))
    full = solve_constrained(BinaryProblem(X, y, n_classes=2, depth=3, leaf_cost=Fraction(1)), c)
    for limit in (0.0, 0.02):
        part = solve_constrained(
            BinaryProblem(X, y, n_classes=2, depth=3, leaf_cost=Fraction(1)), c, limits=SearchLimits(time_limit=limit)
        )
        assert part.bound <= full.cost
        assert not part.found or (
            part.cost >= full.cost and satisfies(BinaryProblem(X, y, n_classes=2, depth=3), part.shape, c)
        )
