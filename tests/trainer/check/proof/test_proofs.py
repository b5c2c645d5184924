"""The checker agrees with brute force: true bounds are accepted, false ones refused, whatever is changed."""

from __future__ import annotations

import gzip
import itertools
import json
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.proof.proofs_cases import Lines, accepted, cost, mutations, never, prices, with_header
from trainer.check.proof.steps.lines import read_proof
from trainer.check.proof.subject import BadProof, ProofSpace
from trainer.families.exact.search.solve import solve_binary
from trainer.families.numeric import intervals
from trainer.families.numeric import proof as numeric_proof
from trainer.families.numeric.proof import build_proof
from trainer.families.numeric.search import NumericProblem, solve_numeric
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits

INSTANCES = 25


def questions(seed: int, depth: int) -> tuple[ProofSpace, Lines, Fraction]:
    """Return a random binary table with ties, duplicates, constants and weights, its proof, and its optimum."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 6))
    n = int(rng.integers(8, 22))
    classes = int(rng.integers(1, 4))
    X = rng.integers(0, 2, (n, m)).astype(np.uint8)
    X[:, rng.integers(m)] = X[:, 0] if seed % 3 else 1
    y = ((X.sum(axis=1) + (rng.random(n) < 0.3)) % classes).astype(np.int32)
    weights = rng.integers(1, 4, n).astype(np.int64) if seed % 4 == 0 else np.ones(n, np.int64)
    penalty = Fraction(int(rng.integers(0, 4)), int(rng.integers(1, 4)))
    least = 1 + 2 * (seed % 5 == 0)
    solution = solve_binary(
        BinaryProblem(X, y, n_classes=classes, depth=depth, leaf_cost=penalty, weights=weights, min_leaf=least)
    )
    proof = solution.proof(never)
    assert proof is not None
    space = ProofSpace(
        "questions", X > 0, y, weights, classes, depth, penalty, least, None, np.ones(m, bool), None, "rows"
    )
    return space, with_header(proof), solution.cost


def thresholds(seed: int, depth: int) -> tuple[ProofSpace, Lines, Fraction]:
    """Return a random numeric table with ties and constants, its proof, and its optimum."""
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(1, 4))
    n = int(rng.integers(8, 16))
    classes = int(rng.integers(1, 4))
    X = rng.integers(0, rng.integers(2, 5), (n, columns)) / 4
    y = rng.integers(0, classes, n).astype(np.int32)
    penalty = Fraction(int(rng.integers(0, 3)), int(rng.integers(1, 4)))
    solution = solve_numeric(NumericProblem(X, y, n_classes=classes, depth=depth, leaf_cost=penalty))
    proof = build_proof(solution.prepared, depth, never)
    assert proof is not None
    one = np.ones(n, np.int64)
    space = ProofSpace("thresholds", X, y, one, classes, depth, penalty, 1, None, np.ones(columns, bool), None, "rows")
    return space, with_header(proof), solution.cost


CASES = [
    *(pytest.param(questions, seed, depth, id=f"questions-{seed}-{depth}") for seed in range(12) for depth in (2, 3, 4)),
    *(pytest.param(thresholds, seed, depth, id=f"thresholds-{seed}-{depth}") for seed in range(8) for depth in (2, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("table", "seed", "depth"), CASES)
def test_a_proof_shows_the_optimum_and_every_step_is_true(table, seed, depth):
    space, lines, optimum = table(seed, depth)
    assert accepted(space, lines) == optimum
    unit, leaf = prices(space, lines)
    assert lines[0]["goal"] == cost(space, unit, leaf, [], depth)
    for step in lines[1:]:
        assert step["bound"] <= cost(space, unit, leaf, step["path"], step["height"])


@pytest.mark.slow
@pytest.mark.parametrize(("table", "seed", "depth"), CASES)
def test_no_change_makes_a_proof_show_what_is_false(table, seed, depth):
    space, lines, optimum = table(seed, depth)
    unit, leaf = prices(space, lines)
    more = [{**lines[0], "goal": lines[0]["goal"] + 1}, *lines[1:]]
    assert accepted(space, more) is None, "the optimum plus one"
    if len(lines) > 1 and accepted(space, lines[:1]) is None:
        assert accepted(space, lines[:-1]) is None, "without the step of the root"
    assert accepted(space, [{**lines[0], "rows": "other rows"}, *lines[1:]]) is None
    for k, step in enumerate(lines[1:], 1):
        for changed in mutations(step):
            shown = accepted(space, [*lines[:k], changed, *lines[k + 1 :]])
            assert shown is None or shown <= optimum
            if shown is not None:
                assert changed["bound"] <= cost(space, unit, leaf, changed["path"], changed["height"])
        shown = accepted(space, [*lines[:k], *lines[k + 1 :]])
        assert shown is None or shown <= optimum


@pytest.mark.parametrize(("depth", "looks"), [*((3, k) for k in range(12)), *((4, k) for k in range(0, 300, 25))])
def test_threshold_search_stopped_early_proves_its_bound(depth, looks):
    rng = np.random.default_rng(looks)
    left = iter(range(looks))
    X = rng.integers(0, 6, (14, 3)) / 4
    y = rng.integers(0, 2, 14).astype(np.int32)
    solution = solve_numeric(
        NumericProblem(X, y, n_classes=2, depth=depth), SearchLimits(stop=lambda: next(left, None) is None)
    )
    proof = build_proof(solution.prepared, depth, never)
    assert proof is not None
    one = np.ones(14, np.int64)
    space = ProofSpace("thresholds", X, y, one, 2, depth, Fraction(0), 1, None, np.ones(3, bool), None, "rows")
    assert accepted(space, with_header(proof)) == solution.bound


@pytest.mark.slow
@seeds(80)
def test_threshold_search_proves_bound_in_second_pass_too(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    depth = 3 + seed % 2
    n = int(rng.integers(6, 25))
    columns = int(rng.integers(1, 4))
    classes = int(rng.integers(2, 4))
    X = rng.integers(0, rng.integers(2, 9), (n, columns)) / 4
    y = rng.integers(0, classes, n).astype(np.int32)
    weights = rng.integers(1, 4, n).astype(np.int64) if seed % 3 == 0 else np.ones(n, np.int64)
    price = Fraction(int(rng.integers(0, 3)), 2)
    tolerance = Fraction(int(rng.integers(0, 6)) * (seed % 5 == 0), 2)
    space = ProofSpace(
        "thresholds", X, y, weights, classes, depth, price, 1, None, np.ones(columns, bool), None, "rows"
    )
    for most in (intervals.MOST_VISITS, 0):
        monkeypatch.setattr(intervals, "MOST_VISITS", most)
        solution = solve_numeric(
            NumericProblem(X, y, n_classes=classes, depth=depth, leaf_cost=price, weights=weights), tolerance=tolerance
        )
        if most and not tolerance:
            assert solution.prepared.visits is not None
        with monkeypatch.context() as without:
            # the proof must use what the search stored, without another search
            if solution.prepared.visits is not None:
                without.setattr(intervals.NumericSearch, "search", None)
            shown = accepted(space, with_header(build_proof(solution.prepared, depth, never)))
        assert shown is not None
        assert shown >= solution.bound
        assert tolerance or shown == solution.cost


def test_search_with_more_thresholds_than_proof_is_stated(monkeypatch):
    monkeypatch.setattr(intervals, "MOST_VISITS", 3)
    rng = np.random.default_rng(5)
    X = rng.integers(0, 9, (40, 3)) / 4
    y = rng.integers(0, 2, 40).astype(np.int32)
    solution = solve_numeric(NumericProblem(X, y, n_classes=2, depth=3))
    assert solution.prepared.visits is None
    proof = build_proof(solution.prepared, 3, never)
    assert len(proof.steps) > 3
    monkeypatch.setattr(numeric_proof, "MOST_STEPS", 4)
    assert build_proof(solution.prepared, 3, never) is None


def test_deleted_and_weakened_steps_of_a_deep_proof_are_missed():
    """Most steps are needed. Without them, or if they are weaker by one, the proof fails."""
    tried = missed = 0
    for seed in range(60):
        space, lines, _ = questions(seed, 4)
        for k in range(1, len(lines)):
            tried += 2
            weaker = {**lines[k], "bound": lines[k]["bound"] - 1}
            missed += accepted(space, [*lines[:k], *lines[k + 1 :]]) is None
            missed += accepted(space, [*lines[:k], weaker, *lines[k + 1 :]]) is None
    assert tried > 40
    assert missed > 0.8 * tried


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(INSTANCES))
def test_similar_steps_hold_exactly_where_the_difference_is_paid(seed):
    space, lines, _ = questions(seed, 3)
    unit, leaf = prices(space, lines)
    m = space.X.shape[1]
    X = space.X
    for a, b in itertools.permutations(range(2 * m), 2):
        rows = [X[:, q // 2] == bool(q % 2) for q in (a, b)]
        if not (rows[0].any() and rows[1].any()):
            continue
        known = cost(space, unit, leaf, [a], 2)
        paid = known - unit * int(space.weights[rows[0] & ~rows[1]].sum())
        if paid < 0:
            continue
        first = {"path": [a], "height": 2, "bound": known, "by": "count"}
        second = {"path": [b], "height": 2, "bound": paid, "by": "similar", "of": 1}
        header = {**lines[0], "goal": 0}
        allowed = space.min_leaf == 1 or not (rows[1] & ~rows[0]).any()
        assert (accepted(space, [header, first, second]) is not None) == allowed
        assert accepted(space, [header, first, {**second, "bound": paid + 1}]) is None
        assert not allowed or paid <= cost(space, unit, leaf, [b], 2)


@pytest.mark.parametrize(
    "change",
    [
        {"path": "0"}, {"path": [-1]}, {"path": [10**9]}, {"path": [True]}, {"height": -1}, {"height": 2.0}, {"bound": 10**30},
        {"by": "trust me"}, {"by": "similar"}, {"by": "similar", "of": 1}, {"leaves": 0}, {"bound": None},
    ],
)  # fmt: skip
def test_malformed_steps_are_refused(change):
    space, lines, _ = questions(1, 3)
    assert accepted(space, [lines[0], {**lines[-1], **change}, *lines[1:]]) is None


@pytest.mark.parametrize(
    "change",
    [{"format": "x"}, {"version": 3}, {"version": True}, {"scale": 2}, {"scale": 0}, {"goal": -1}, {"goal": "9"}],
)
def test_invalid_headers_are_refused(change):
    space, lines, _ = questions(1, 3)
    assert accepted(space, [{**lines[0], **change}, *lines[1:]]) is None


@pytest.mark.parametrize("change", [{"height": 63}, {"height": 999}, {"height": 50, "leaves": 1 << 40}])
def test_heights_and_leaves_that_no_tree_has_take_no_longer(change):
    """They say as much as those of the largest trees that these rows have."""
    space, lines, _ = questions(1, 3)
    deep = {"path": [], "height": 50, "bound": 0, "by": "split"} | change
    assert accepted(space, [{**lines[0], "goal": 0}, deep]) is not None
    assert accepted(space, [lines[0], deep | {"bound": lines[0]["goal"]}]) is None


def test_the_prices_of_as_many_leaves_as_there_are_classes_fit():
    """A scale near the largest one, and more classes than leaves in a tree of the depth."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (40, 4)) > 0
    y = (np.arange(40) % 20).astype(np.int32)
    space = ProofSpace(
        "questions", X, y, np.ones(40, np.int64), 20, 1, Fraction(1000), 1, None, np.ones(4, bool), None, "rows"
    )
    scale = (1 << 61) // 2100
    head = {"format": "octweb-proof", "version": 1, "rows": "rows", "scale": scale, "goal": 0}
    unit, leaf = prices(space, [head])
    for by, height in (("floor", 4), ("floor", 5), ("split", 6)):
        step = {"path": [], "height": height, "bound": leaf, "by": by}
        assert accepted(space, [head, step]) is not None
        assert accepted(space, [head, step | {"bound": leaf + 39 * unit}]) is None


def test_an_archive_that_is_damaged_is_no_proof(tmp_path):
    """Each single flipped bit is tried."""
    lines = [{"format": "octweb-proof"}, *({"by": "count", "path": [k]} for k in range(40))]
    packed = gzip.compress("\n".join(map(json.dumps, lines)).encode())
    path = tmp_path / "proof.gz"
    refused = 0
    for place in range(10, len(packed)):
        path.write_bytes(packed[:place] + bytes([packed[place] ^ 1 << place % 8]) + packed[place + 1 :])
        try:
            list(read_proof(path))
        except BadProof:
            refused += 1
    assert refused > len(packed) / 2  # padding bits in the last byte may change without effect
