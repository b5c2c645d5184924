"""Proofs with prices of columns agree with brute force, and false steps are refused."""

from __future__ import annotations

import gzip
import itertools
import json
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.proof.changes import changed_proofs, page
from tests.trainer.check.proof.proofs_cases import accepted, never, with_header
from tests.trainer.check.recount.goals_cases import _file
from tests.trainer.column_prices_cases import priced_text, random_prices
from tests.trainer.goal_cases import ALL_THRESHOLDS
from tests.trainer.goal_cases import random_case as random_table
from trainer.check.proof.subject import ProofSpace
from trainer.check.recount.proof import check_model_proof
from trainer.check.recount.table.rows import load
from trainer.check.recount.trees.prices import column_prices
from trainer.constraints import Constraints
from trainer.families.exact.proofs.priced import priced_cases_proof, priced_proof
from trainer.families.exact.search.constrained import solve_constrained
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
        "questions",
        X > 0,
        y,
        weights,
        classes,
        depth,
        penalty,
        smallest,
        leaves,
        allowed,
        None,
        "rows",
        columns=columns,
        prices=prices,
    )
    optimum = Least(space).below([], depth, leaves or 1 << depth)
    problem = BinaryProblem(X, y, n_classes=classes, depth=depth, leaf_cost=penalty, weights=weights, min_leaf=smallest)
    proof = priced_proof(
        problem, ColumnPrices(columns, prices), optimum, options=ExactOptions(), max_leaves=leaves, stop=never
    )
    assert proof is not None
    header, *steps = with_header(proof)
    return space, [{**header, "version": PRICED}, *steps], optimum


def with_column_limit(space: ProofSpace, most: int) -> tuple[ProofSpace, Fraction]:
    """Return the space with a limit of columns, and its optimum, by one recursion for each set of columns."""
    columns = sorted(set(space.column_of.tolist()))
    optima = []
    for kept in itertools.combinations(columns, min(most, len(columns))):
        allowed = space.allowed & np.isin(space.column_of, kept)
        part = replace(space, allowed=allowed)
        optima.append(Least(part).below([], space.depth, space.max_leaves or 1 << space.depth))
    return replace(space, max_columns=most), min(optima)


def column_limit_case(seed: int) -> tuple[ProofSpace, list[dict[str, Any]], Fraction]:
    """Return a random space with prices and a limit of columns, the proof of its optimum, and the optimum in rows."""
    space, optimum = with_column_limit(random_case(seed)[0], 1 + seed // 4 % 2)
    problem = BinaryProblem(
        space.X.astype(np.uint8),
        space.labels,
        n_classes=space.classes,
        depth=space.depth,
        leaf_cost=space.penalty,
        weights=space.weights,
        min_leaf=space.min_leaf,
    )
    prices = ColumnPrices(space.column_of, space.prices)
    limits = Constraints(max_columns=space.max_columns, columns=space.column_of, max_leaves=space.max_leaves)
    found = solve_constrained(problem, limits, prices=prices)
    assert found.cost == found.bound == optimum
    assert found.cases is not None
    proof = priced_cases_proof(
        problem, prices, found.cases, optimum, options=ExactOptions(), max_leaves=space.max_leaves, stop=never
    )
    assert proof is not None
    header, *steps = with_header(proof)
    return space, [{**header, "version": PRICED}, *steps], optimum


def check_column_limit_case(seed: int) -> int:
    """Check a proof and all proofs with one changed field; return how many of these are accepted."""
    space, lines, optimum = column_limit_case(seed)
    assert accepted(space, lines) == optimum
    scale = lines[0]["scale"]
    assert accepted(space, [{**lines[0], "goal": lines[0]["goal"] + scale}, *lines[1:]]) is None
    shown = [accepted(space, changed) for changed in changed_proofs(lines)]
    assert all(value is None or value <= optimum for value in shown)
    return sum(value is not None for value in shown)


@pytest.mark.slow
@seeds(300)
def test_proof_with_prices_and_few_columns_shows_optimum(seed):
    check_column_limit_case(seed)


def test_proof_with_prices_and_few_columns_of_few_tables():
    accepted_changes = [check_column_limit_case(seed) for seed in (0, 1, 2, 4, 5, 6)]
    assert any(accepted_changes)  # a weaker bound of a step that is not needed


def test_cases_with_prices_need_a_limit_of_columns():
    """Without `max_columns` the trees that ask more columns are not among the cases."""
    seed = next(k for k in range(40) if any(step["by"] == "cases" for step in column_limit_case(k)[1][1:]))
    space, lines, _ = column_limit_case(seed)
    assert accepted(replace(space, max_columns=None), lines) is None


def priced_file(folder, seed: int):
    """Train `exact` with prices and a limit of columns; return the document, the lines of the proof, and the data."""
    table, labels, _, parameters = random_table(seed)
    prices = random_prices(np.random.default_rng(seed), table.columns) | {0: "0.03"}
    parameters |= {"column_price": priced_text(prices, table.names), "max_columns": 1 + seed % 3, "depth": 1 + seed % 4}
    parameters |= ALL_THRESHOLDS | ({"max_leaves": 4} if seed % 5 == 0 else {})
    _file(table, labels, parameters, folder, "exact", proof=folder / "proof.jsonl.gz")
    lines = [json.loads(line) for line in gzip.decompress((folder / "proof.jsonl.gz").read_bytes()).splitlines()]
    return json.loads((folder / "model.json").read_text()), lines, (folder / "rows.csv").read_text()


def check_both_checkers(folder, seeds_of_files, most: int) -> None:
    """Compare the checker and the page on the proofs of several files, and on at most `most` changes of each."""
    cases = []
    own = []
    honest = []
    for seed in seeds_of_files:
        document, lines, data = priced_file(folder, seed)
        rows = load(folder / "rows.csv", document).training
        changed = list(changed_proofs(lines))
        picked = np.random.default_rng(seed).permutation(len(changed))[:most].tolist()
        for proof in (lines, *(changed[k] for k in picked)):
            text = "\n".join(map(json.dumps, proof))
            (folder / "changed").write_text(text)
            found = check_model_proof(document, rows, folder / "changed", column_prices(document))[0]
            cases.append((json.dumps(document), text, data))
            own.append([f.verdict for f in found] == ["proved"])
            honest += [own[-1]] if proof is lines else []
    assert all(honest)
    assert page(cases) == own


def test_checkers_agree_on_few_prices_beside_few_columns(tmp_path):
    check_both_checkers(tmp_path, range(5), 8)


@pytest.mark.slow
@seeds(300)
def test_checkers_agree_on_prices_beside_few_columns(tmp_path, seed):
    check_both_checkers(tmp_path, [seed], 25)


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


@pytest.mark.parametrize("reason", ["similar", "within", "topology"])
def test_other_reasons_are_refused_with_prices(reason):
    space, lines, _ = random_case(3)
    step = {"path": [], "height": space.depth, "bound": 0, "by": reason, "of": 1}
    assert accepted(space, [*lines, step]) is None
    free = ProofSpace(**{**vars(space), "prices": {}})
    assert accepted(free, lines) is None
