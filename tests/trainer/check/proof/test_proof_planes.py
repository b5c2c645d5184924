"""Proofs for hyperplane trees agree with brute force, and no change proves a false bound."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.trainer.check.proof.proof_planes_cases import (
    GAP_OF_POINTS,
    TOUCHING,
    Lines,
    accepted,
    changes,
    never,
    scaled,
)
from tests.trainer.oracles.oblique import best_value, random_points, separations
from tests.trainer.oracles.oblique_class import best_in_class, hull_distance
from tests.trainer.oracles.oblique_labels import fewest_errors
from trainer.check.proof.model import has_margin
from trainer.check.proof.steps.labels import includes, trees
from trainer.check.proof.subject import PlaneSpace
from trainer.families.oblique.proving import PlaneProof, PlaneTrees, enumerate_labellings


@cache
def points(seed: int, least: float) -> tuple[np.ndarray, np.ndarray, int, Fraction]:
    """Return X (P, m), counts (P, K), the depth and the price of a leaf.

    Two of three tables have rows that must be wrong. There are few points if planes keep a distance, because brute
    force then solves a program for each pair of sets.
    """
    X, counts, depth, kappa = random_points(seed, most=8)
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        X = np.unique(rng.integers(0, 4, (9, 2)), axis=0)
        depth = 1
    elif seed % 3 == 1:  # few rows, on one line or nearly so
        X = np.unique(rng.integers(0, [9, 1 + seed % 2], (10, 2)), axis=0)
        depth = 2
    if seed % 3 < 2:
        classes = rng.integers(0, 2 + (seed % 4 == 0), len(X))
        counts = np.eye(3, dtype=np.int64)[classes] * rng.integers(1, 3, (len(X), 1))
    if least:
        X = X[:6]
        counts = counts[:6]
    return X, counts[:, counts.any(axis=0)], depth, kappa


def space_of(seed: int, least: float) -> PlaneSpace:
    X, counts, depth, kappa = points(seed, least)
    near = [Fraction(least) * int(w) - Fraction(1, 10**9) * bool(least) for w in np.maximum(np.ptp(X, axis=0), 1)]
    leaves = 1 if counts.shape[1] < 2 else min(1 << depth, len(X))
    return PlaneSpace(X.astype(float), Fraction, near, counts, depth, leaves, kappa, Fraction(0), "rows")


@cache
def proof(seed: int, least: float, cost: Fraction) -> Lines | None:
    X, counts, depth, kappa = points(seed, least)
    made = PlaneProof(
        X.astype(float),
        scaled(X),
        counts,
        list(range(counts.shape[1])),
        PlaneTrees(depth=depth, leaves=1 << depth, penalty=kappa),
        least=least,
        stop=never,
    )
    steps = made.steps(cost)
    return None if steps is None else [header(cost, kappa), *steps]


def header(cost: Fraction, kappa: Fraction) -> dict[str, Any]:
    goal = int(cost * kappa.denominator)
    return {"format": "octweb-proof", "version": 3, "rows": "rows", "scale": 1, "goal": goal}


@cache
def cost(seed: int, least: float) -> Fraction:
    """Return the cost of the best tree, in rows."""
    X, counts, depth, kappa = points(seed, least)
    if least:
        return counts.sum() - Fraction(best_in_class(scaled(X), counts, depth, kappa, least=least))
    return counts.sum() - best_value(X, counts, depth, kappa)


SEEDS = [(seed, TOUCHING) for seed in range(30)] + [(seed, GAP_OF_POINTS) for seed in range(12)]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "least"), SEEDS)
def test_the_optimum_is_proved_and_nothing_better(seed, least):
    kappa = points(seed, least)[3]
    best = cost(seed, least)
    space = space_of(seed, least)
    lines = proof(seed, least, best)
    assert lines is not None
    assert accepted(lines, space) == best
    more = best + Fraction(1, kappa.denominator)
    assert proof(seed, least, more) is None
    assert accepted([header(more, kappa), *lines[1:]], space) is None
    assert accepted([{**lines[0], "rows": "other rows"}, *lines[1:]], space) is None


def test_every_block_and_every_vector_is_true():
    blocks = 0
    for seed, least in SEEDS:
        X, counts, *_ = points(seed, least)
        parted = sides_of(seed, least)
        for step in proof(seed, least, cost(seed, least))[1:]:
            if step["by"] == "vector":
                assert not parted(*(frozenset(p for p, _ in step[side]) for side in ("left", "right")))
            elif step["by"] == "errors":
                chosen = step.get("points", range(len(X)))
                assert step["bound"] <= fewest_errors(chosen, counts, _tuples(step["tree"]), parted)
                blocks += 1
    assert blocks > 30


def sides_of(seed: int, least: float):
    """Return whether a hyperplane separates two sets of points."""
    X = points(seed, least)[0]
    known = separations(X) if not least else ()

    def parted(left, right):
        if not left or not right:
            return True
        if least:
            L, R = (scaled(X)[sorted(side)] for side in (left, right))
            return hull_distance(L, R) >= least - 1e-9
        return any((left <= side and not right & side) for side in known)

    return parted


def _tuples(tree):
    return tree if isinstance(tree, int) else tuple(map(_tuples, tree))


@pytest.mark.slow
@pytest.mark.parametrize("least", [TOUCHING, GAP_OF_POINTS])
def test_no_change_makes_a_proof_show_what_is_false(least):
    tried = refused = 0
    for seed in (0, 1, 3, 4, 6, 7, 9, 10, 12, 13):
        best = cost(seed, least)
        kappa = points(seed, least)[3]
        space = space_of(seed, least)
        lines = proof(seed, least, best)
        more = header(best + Fraction(1, kappa.denominator), kappa)
        for k in range(1, len(lines)):
            for changed in (*changes(lines[k], random.Random(k), len(lines)), None):
                own = [*lines[:k], *([] if changed is None else [changed]), *lines[k + 1 :]]
                assert accepted([more, *own[1:]], space) is None, (seed, k, changed)
                shown = accepted(own, space)
                assert shown is None or shown <= best
                tried = tried + 1
                refused = refused + (shown is None)
    assert refused > 0.7 * tried > 100


LINE = PlaneSpace(
    np.array([[0.0], [1.0], [3.0]]),
    Fraction,
    [Fraction(0)],
    np.array([[1, 0], [0, 1], [1, 0]]),
    1,
    2,
    Fraction(0),
    Fraction(0),
    "rows",
)
HEAD = header(Fraction(1), Fraction(0))
VECTOR = {"by": "vector", "left": [[0, 2], [2, 1]], "right": [[1, 1]]}
BLOCK = [{"by": "errors", "tree": [0, 1], "bound": 1}, *({"by": "side", "point": p} for p in (0, 1, 2))]
END = {"by": "meet", "of": 1, "at": 1}


def test_three_rows_on_a_line_are_proved_by_hand():
    assert accepted([HEAD, VECTOR, *BLOCK, END], LINE) == 1


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [{**VECTOR, "left": [[0, 1], [2, 1]]}, *BLOCK, END],  # the lemma states another mean
        [{**VECTOR, "left": [[0, 2], [2, 1], [1, 0]]}, *BLOCK, END],
        [{**VECTOR, "left": [[0, 3], [2, 2], [0, 1]]}, *BLOCK, END],
        [{**VECTOR, "left": [[0, 4], [2, 2], [1, -3]]}, *BLOCK, END],
        [{**VECTOR, "left": [[0, 2.0], [2, 1]]}, *BLOCK, END],
        [{**VECTOR, "left": [[0, True], [2, 1]]}, *BLOCK, END],
        [{**VECTOR, "right": []}, *BLOCK, END],
        [{**VECTOR, "right": [[3, 1]]}, *BLOCK, END],
        [VECTOR, *BLOCK],  # the case is left open
        [VECTOR, *BLOCK[:-1], END],  # the side of one of the vector's points is unknown
        [VECTOR, *BLOCK, {**END, "at": 2}],
        [VECTOR, *BLOCK, {**END, "of": 2}],
        [VECTOR, *BLOCK, END, END],
        [VECTOR, {**BLOCK[0], "bound": 2}, *BLOCK[1:], END],
        [VECTOR, {**BLOCK[0], "tree": [0, [1, 0]]}, *BLOCK[1:], END],
        [VECTOR, {**BLOCK[0], "tree": [0, 2]}, *BLOCK[1:], END],
        [VECTOR, {**BLOCK[0], "tree": 0}],
        [VECTOR, {**BLOCK[0], "points": [0, 1]}, *BLOCK[1:], END],
        [VECTOR, *BLOCK, {"by": "sum", "of": [[2, 1]]}],  # the sum contains itself
        [VECTOR, *BLOCK, END, BLOCK[0], {"by": "sum", "of": [[2, 1], [2, 1]]}, {**BLOCK[0], "bound": 2}],
        [VECTOR, *BLOCK, END, {**BLOCK[0], "bound": 2}, {"by": "sum", "of": [[2, 1], [2, 1]]}],
        [VECTOR, *BLOCK, END, BLOCK[0], {"by": "sum", "of": [[2, 7]]}],
    ],
)  # fmt: skip
def test_proofs_by_hand_that_do_not_hold(lines):
    assert accepted([HEAD, *lines], LINE) is None


def test_a_block_may_add_up_what_other_blocks_show():
    assert accepted([HEAD, VECTOR, *BLOCK, END, {**BLOCK[0], "bound": 1}, {"by": "sum", "of": [[2, 1]]}], LINE) == 1


@pytest.mark.parametrize(
    ("change", "least"), [({"version": 1}, 0), ({"scale": 2}, 0), ({"goal": -1}, 0), ({"goal": "1"}, 0)]
)
def test_invalid_headers(change, least):
    assert accepted([{**HEAD, **change}, VECTOR, *BLOCK, END], LINE) is None


@pytest.mark.parametrize(
    ("depth", "leaves", "classes", "number"),
    [(0, 1, 3, 3), (1, 2, 3, 3), (2, 3, 2, 2), (2, 4, 3, 6), (2, 5, 2, 0), (3, 8, 2, 1)],
)
def test_trees_of_labels_are_listed_once_up_to_mirror_images(depth, leaves, classes, number):
    assert len(list(trees(depth, leaves, range(classes)))) == number


def test_larger_label_tree_includes_what_it_can_predict():
    assert includes(((0, 1), (0, 2)), ((2, 0), 1))
    assert includes(((0, 1), (0, 2)), (2, 1))
    assert not includes(((0, 1), 2), ((0, 2), 1))
    assert not includes((0, 1), 2)


@pytest.mark.parametrize(("depth", "leaves"), [(5, 32), (6, 63), (6, 64)])
def test_first_labellings_of_many_leaves_are_immediate(depth, leaves):
    """No attempt leaves more leaves for a side than its depth allows, because that would not end."""
    own = list(itertools.islice(enumerate_labellings(depth, leaves, 3), 50))
    assert own == list(itertools.islice(trees(depth, leaves, [0, 1, 2]), 50))
    assert len(own) == 50


def test_deep_analysis_can_be_cancelled():
    r = np.random.default_rng(0)
    X = r.random((70, 2))
    asked = []
    made = PlaneProof(
        X,
        X,
        np.eye(2, dtype=np.int64)[r.integers(0, 2, 70)],
        [0, 1],
        PlaneTrees(depth=6, leaves=64, penalty=Fraction(0)),
        least=0.0,
        stop=lambda: asked.append(1) or len(asked) > 20,
    )
    assert made.steps(Fraction(1)) is None
    assert len(asked) < 100


@pytest.mark.parametrize(
    ("method", "big_m", "margin"),
    [("oct-h", None, True), ("s-oct", 100.0, True), ("s-oct", None, False), ("odt", 1, False)],
)
def test_rows_keep_a_distance_only_with_margin(method, big_m, margin):
    model = {"method": method, "parameters": {"big_m": big_m}}
    assert has_margin(model) == margin
