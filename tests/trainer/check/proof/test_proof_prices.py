"""Proofs with prices of columns agree with brute force, and false steps are refused."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.proof.test_proofs import accepted, never, with_header
from trainer.check.proof.subject import ProofSpace
from trainer.families.exact.proofs.priced import priced_proof
from trainer.families.exact.search.memo import ExactOptions
from trainer.families.exact.search.priced import ColumnPrices
from trainer.solver_common.binary_problem import BinaryProblem

PRICED = 10  # version of these proofs


class Least:
    """Least costs of a space with prices, by plain recursion over fractions of a row."""

    def __init__(self, space: ProofSpace) -> None:
        self.space = space
        self.best = lru_cache(None)(self._best)

    def _best(self, rows: frozenset[int], left: int, t: int, paid: frozenset[int]) -> Fraction:
        space = self.space
        chosen = sorted(rows)
        sizes = np.bincount(space.labels[chosen], space.weights[chosen], space.classes)
        found = space.penalty + int(sizes.sum() - sizes.max())
        for q in np.flatnonzero(space.allowed).tolist() if left and t > 1 else ():
            yes = frozenset(i for i in chosen if space.X[i, q])
            no = rows - yes
            if min(space.weights[sorted(side)].sum() for side in (yes, no)) < max(1, space.min_leaf):
                continue
            column = int(space.column_of[q])
            charge = 0 if column in paid else space.prices.get(column, Fraction(0)) * int(sizes.sum())
            below = paid | {column}
            for a in range(1, t):
                sides = self.best(yes, left - 1, a, below) + self.best(no, left - 1, t - a, below)
                found = min(found, charge + sides)
        return found

    def below(self, path: list[int], height: int, leaves: int) -> Fraction:
        """Return the least cost below a path with at most this many leaves."""
        X = self.space.X
        rows = frozenset(i for i in range(len(X)) if all(bool(X[i, q // 2]) == bool(q % 2) for q in path))
        return self.best(rows, height, leaves, frozenset(int(self.space.column_of[q // 2]) for q in path))


def random_case(seed: int) -> tuple[ProofSpace, list[dict[str, Any]], Fraction]:
    """Return a random space with prices, the proof of its optimum, and the optimum in rows."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 6 if seed % 4 < 3 else 5))
    n = int(rng.integers(8, 22))
    classes = int(rng.integers(2, 4))
    depth = 1 + seed % 4
    X = rng.integers(0, 2, (n, m)).astype(np.uint8)
    y = ((X.sum(axis=1) + (rng.random(n) < 0.3)) % classes).astype(np.int32)
    weights = rng.integers(1, 4, n) if seed % 3 == 0 else np.ones(n, np.int64)
    columns = rng.integers(0, 3, m)
    prices = {j: Fraction(int(rng.integers(0, 4)), int(rng.integers(5, 40))) for j in range(2)}
    prices = {j: price for j, price in prices.items() if price} or {0: Fraction(1, 10)}
    penalty = Fraction(int(rng.integers(0, 3)), int(rng.integers(1, 4)))
    smallest = 3 if seed % 5 == 0 else 1
    leaves = int(rng.integers(1, 1 << depth)) if seed % 4 == 3 else None
    allowed = np.ones(m, bool)
    space = ProofSpace(
        "questions", X > 0, y, weights, classes, depth, penalty, smallest, leaves, allowed, None, "rows",
        columns=columns, prices=prices,
    )  # fmt: skip
    optimum = Least(space).below([], depth, leaves or 1 << depth)
    problem = BinaryProblem(X, y, n_classes=classes, depth=depth, leaf_cost=penalty, weights=weights, min_leaf=smallest)
    proof = priced_proof(
        problem, ColumnPrices(columns, prices), optimum, options=ExactOptions(), max_leaves=leaves, stop=never
    )
    assert proof is not None
    header, *steps = with_header(proof)
    return space, [{**header, "version": PRICED}, *steps], optimum


def check_random_case(seed: int) -> None:
    space, lines, optimum = random_case(seed)
    assert accepted(space, lines) == optimum
    scale = lines[0]["scale"]
    assert accepted(space, [{**lines[0], "goal": lines[0]["goal"] + scale}, *lines[1:]]) is None
    least = Least(space)
    Q = int(np.lcm.reduce([space.penalty.denominator, *(price.denominator for price in space.prices.values())]))
    for k, step in enumerate(lines[1:], 1):
        most = 1 << step["height"]
        for change in ({}, {"bound": step["bound"] + 1}, {"leaves": step.get("leaves", most) + 1}, {"by": "floor"}):
            changed = {**step, **change}
            shown = accepted(space, [*lines[:k], changed, *lines[k + 1 :]])
            leaves = min(most, changed.get("leaves", most))
            true = least.below(step["path"], step["height"], leaves) * Q * scale
            # a leaf adds 1 to a scaled cost
            assert shown is None or (changed["bound"] <= true + leaves * (scale > 1) and shown <= optimum)


@pytest.mark.slow
@seeds(200)
def test_proof_with_prices_shows_optimum_and_no_more(seed):
    """Tables with ties, equal rows, weights, penalties, smallest leaves, few leaves and free columns."""
    check_random_case(seed)


def test_proof_with_prices_of_few_tables_is_exact():
    for seed in range(12):
        check_random_case(seed)


def test_proof_of_version_without_prices_shows_weaker_bound():
    """The same steps prove less if the file asks for no prices."""
    space, lines, optimum = random_case(3)
    plain = Least(ProofSpace(**{**vars(space), "prices": {}})).below([], space.depth, 1 << space.depth)
    assert plain < optimum
    assert accepted(space, [{**lines[0], "version": 1}, *lines[1:]]) is None


@pytest.mark.parametrize("reason", ["similar", "within", "cases", "topology"])
def test_other_reasons_are_refused_with_prices(reason):
    space, lines, _ = random_case(3)
    step = {"path": [], "height": space.depth, "bound": 0, "by": reason, "of": 1}
    assert accepted(space, [*lines, step]) is None
    free = ProofSpace(**{**vars(space), "prices": {}})
    assert accepted(free, lines) is None
