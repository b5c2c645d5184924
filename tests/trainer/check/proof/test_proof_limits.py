"""Proofs with a limit on leaves and forbidden pairs agree with brute force."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.proof.proof_limits_cases import Least
from tests.trainer.check.proof.proofs_cases import accepted, never, with_header
from trainer.check.proof.subject import ProofSpace
from trainer.constraints import Constraints
from trainer.families.exact.proofs.limits import limited_proof
from trainer.families.exact.search.constrained import solve_constrained
from trainer.families.exact.search.solve import solve_binary
from trainer.methods.base import ProofSteps
from trainer.solver_common.binary_problem import BinaryProblem


def no_vectors() -> ProofSteps:
    raise AssertionError("limits of leaves and pairs have steps of their own")


def table(seed: int) -> tuple[ProofSpace, list[dict[str, Any]], int]:
    """Return a random table with limits, the proof of its optimum, and the optimum."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 6))
    n = int(rng.integers(8, 22))
    classes = int(rng.integers(2, 4))
    depth = 2 + seed % 3
    X = rng.integers(0, 2, (n, m)).astype(np.uint8)
    y = ((X.sum(axis=1) + (rng.random(n) < 0.3)) % classes).astype(np.int32)
    penalty = Fraction(int(rng.integers(0, 3)), int(rng.integers(1, 4)))
    smallest = 1 + 2 * (seed % 5 == 0)
    leaves = int(rng.integers(1, 1 << depth)) if seed % 4 else None
    column = rng.integers(0, 3, m)
    apart = (column[:, None] == 0) & (column[None, :] == 1) if seed % 3 != 1 else np.zeros((m, m), bool)
    apart |= apart.T
    held = apart if apart.any() else None
    one = np.ones(n, np.int64)
    every = np.ones(m, bool)
    space = ProofSpace("questions", X > 0, y, one, classes, depth, penalty, smallest, leaves, every, held, "rows")
    unit = penalty.denominator
    leaf = penalty.numerator
    optimum = Least(space, unit, leaf).below([], depth, leaves or 1 << depth)
    proof = limited_proof(
        BinaryProblem(
            X,
            y,
            n_classes=classes,
            depth=depth,
            leaf_cost=penalty,
            weights=None,
            min_leaf=smallest,
            allowed=np.ones(m, np.uint8),
        ),
        Constraints(conflict=None if held is None else held.astype(np.uint8), max_leaves=leaves),
        Fraction(optimum, unit),
        stop=never,
        vectors=no_vectors,
    )
    assert proof is not None
    return space, with_header(proof), optimum


@pytest.mark.slow
@seeds(24)
def test_proof_within_limits_shows_optimum_and_no_more(seed):
    space, lines, optimum = table(seed)
    Q = space.penalty.denominator
    assert accepted(space, lines) == Fraction(optimum, Q)
    scale = lines[0]["scale"]
    assert accepted(space, [{**lines[0], "goal": lines[0]["goal"] + scale}, *lines[1:]]) is None
    least = Least(space, scale * Q, scale * space.penalty.numerator + (scale > 1))
    for k, step in enumerate(lines[1:], 1):
        most = 1 << step["height"]
        for change in ({}, {"bound": step["bound"] + 1}, {"leaves": step.get("leaves", most) + 1}):
            changed = {**step, **change}
            shown = accepted(space, [*lines[:k], changed, *lines[k + 1 :]])
            true = least.below(step["path"], step["height"], min(most, changed.get("leaves", most)))
            assert shown is None or (changed["bound"] <= true and shown <= Fraction(optimum, Q))


def test_costs_of_recalls_are_left_to_vector_steps():
    """These steps have no recalls, so a bound that needs one is made by other steps."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (30, 4)).astype(np.uint8)
    y = rng.integers(0, 2, 30).astype(np.int32)
    limits = Constraints(recalls=((0, Fraction(1)),))
    other = ProofSteps(scale=1, goal=29, steps=[])
    assert other is limited_proof(
        BinaryProblem(
            X, y, n_classes=2, depth=2, leaf_cost=Fraction(0), weights=None, min_leaf=1, allowed=np.ones(4, np.uint8)
        ),
        limits,
        Fraction(29),
        stop=never,
        vectors=lambda: other,
    )


def test_bound_that_is_not_met_needs_no_further_check():
    """A time limit ended the search. A proof of the optimum would have many more steps."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 9)).astype(np.uint8)
    y = rng.integers(0, 2, 60).astype(np.int32)
    best = solve_binary(BinaryProblem(X, y, n_classes=2, depth=4)).cost
    space = ProofSpace(
        "questions", X > 0, y, np.ones(60, np.int64), 2, 4, Fraction(0), 1, 16, np.ones(9, bool), None, "rows"
    )
    sizes = []
    for bound in (Fraction(0), best):
        proof = limited_proof(
            BinaryProblem(
                X,
                y,
                n_classes=2,
                depth=4,
                leaf_cost=Fraction(0),
                weights=None,
                min_leaf=1,
                allowed=np.ones(9, np.uint8),
            ),
            Constraints(max_leaves=16),
            bound,
            stop=never,
            vectors=no_vectors,
        )
        assert proof is not None
        sizes.append(len(proof.steps))
        shown = accepted(space, with_header(proof))
        assert shown is not None
        assert bound <= shown <= best
    assert sizes[0] <= 1 < sizes[1] / 5


def test_pairs_are_proved_beyond_256_features():
    """The key of a split distinguishes all features."""
    rng = np.random.default_rng(1)
    X = np.zeros((24, 260), np.uint8)
    X[:, 255:] = rng.integers(0, 2, (24, 5))
    y = rng.integers(0, 2, 24).astype(np.int32)
    conflict = np.zeros((260, 260), np.uint8)
    conflict[255, 256] = conflict[256, 255] = 1
    allowed = (np.arange(260) >= 255).astype(np.uint8)
    problem = BinaryProblem(X, y, n_classes=2, depth=4, allowed=allowed)
    limits = Constraints(conflict=conflict)
    bound = solve_constrained(problem, limits).bound
    proof = limited_proof(problem, limits, bound, stop=never, vectors=no_vectors)
    assert proof is not None
    space = ProofSpace(
        "questions", X > 0, y, np.ones(24, np.int64), 2, 4, Fraction(0), 1, None, allowed > 0, conflict > 0, "rows"
    )
    assert accepted(space, with_header(proof)) == bound
