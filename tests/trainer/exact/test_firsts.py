"""Bounds for each first split of a side, from similar sides, never exceed the best tree with that split."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tests.seeds import seeds
from trainer.families.exact.instance import build_instance
from trainer.families.exact.kernels.first_split_bounds import (
    first_bounds_of_child,
    new_first_bounds,
    store_first_bounds,
)
from trainer.families.exact.kernels.node import split_rows
from trainer.families.exact.search.memo import INFINITE
from trainer.families.exact.search.search import ExactSearch
from trainer.solver_common.binary_problem import BinaryProblem


def random_search(seed, **other):
    """Return a search over random rows, half of them with weights."""
    rng = np.random.default_rng(seed)
    X = (rng.random((70, 7)) < rng.uniform(0.1, 0.9, 7)).astype(np.uint8)
    weights = rng.integers(1, 4, 70) if seed % 2 else None
    y = (X[:, 0] ^ X[:, 1] & X[:, 2]) ^ (rng.random(70) < 0.2)
    g = build_instance(BinaryProblem(X, y.astype(int), n_classes=2, weights=weights, leaf_cost=Fraction(3), depth=4))
    return ExactSearch(instance=g, depth=4, **other)


def floors_found(search, rows, path):
    """Return the bounds for each first split from a search of depth three."""
    floors = np.zeros(search.instance.features, np.int64)
    search.solve(rows, path, 3, int(INFINITE), floors=floors)
    return floors


def best_with(search, rows, literal, first):
    """Return the least cost of a tree of depth three with this first split.

    It is infinite if the split separates no rows.
    """
    parts = split_rows(search.instance.rows, rows, first)
    if not len(parts[0]) or not len(parts[1]):
        return int(INFINITE)
    paths = [tuple(sorted((literal, 2 * first + s))) for s in (0, 1)]
    return sum(search.solve(*at, 2, int(INFINITE)).lower for at in zip(parts, paths, strict=True))


@seeds(12)
def test_first_split_bounds_of_similar_children_are_valid(seed):
    search = random_search(seed)
    g = search.instance
    rows = np.arange(len(g.rows), dtype=np.int32)
    frame = search.build_frame(search.prepare(rows), 4)
    features = frame.node.features.tolist()
    sides = [split_rows(g.rows, rows, f) for f in features]
    firsts = new_first_bounds(len(sides), g.features, True)
    for p, parts in enumerate(sides):
        for s in (0, 1):
            store_first_bounds(firsts, 2 * p + s, floors_found(search, parts[s], (2 * features[p] + s,)))
    store_first_bounds(firsts, -1, floors_found(search, rows, ()))
    above = 0
    for p, parts in enumerate(sides):
        for s in (0, 1):
            floors = first_bounds_of_child(frame.node, frame.P, p, s, g.unit, firsts)
            best = [best_with(search, parts[s], 2 * features[p] + s, f) for f in range(g.features)]
            assert (floors <= best).all()
            above += np.count_nonzero(floors > search.node_bounds(search.prepare(parts[s]), 3)[0])
    assert above > len(sides)  # many bounds exceed the cost of a single leaf, so they rule splits out


def test_first_split_bounds_are_empty_with_min_leaf_or_if_large():
    search = random_search(1, min_leaf=3)
    frame = search.build_frame(search.prepare(np.arange(len(search.instance.rows), dtype=np.int32)), 4)
    assert len(frame.firsts.least) == 0
    assert not first_bounds_of_child(frame.node, frame.P, 0, 1, search.instance.unit, frame.firsts).any()
    assert len(new_first_bounds(3000, 3000, True).least) == 0
