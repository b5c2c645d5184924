"""Proofs under fairness constraints agree with brute force over all trees and predictions."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.proof.proof_within_cases import judge_changes
from tests.trainer.check.proof.proofs_cases import Lines, accepted
from tests.trainer.check.proof.second_checker_cases import table as csv_table
from trainer.check.proof.subject import ProofSpace, RateLimit
from trainer.check.recount import verdict, verify
from trainer.check.recount.restrictions import words_of
from trainer.check.recount.search import small
from trainer.check.recount.search.small import _search
from trainer.check.recount.table.rows import load as read_rows
from trainer.data.reader import load
from trainer.training.run import TrainRequest, train

Tree = tuple[int, tuple[int, ...], int]  # cost, class predicted for each row (-1: the row is not in this part), leaves


def table(seed: int) -> ProofSpace:
    """Return a random table with groups, and other restrictions beside them."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 5))
    n = int(rng.integers(5, 12))
    classes = 2 + (seed % 4 == 0)
    X = rng.integers(0, 2, (n, m)) > 0
    labels = ((X.sum(axis=1) + (rng.random(n) < 0.4)) % classes).astype(np.int32)
    weights = rng.integers(1, 4, n).astype(np.int64) if seed % 3 == 0 else np.ones(n, np.int64)
    label = int(rng.choice(labels))
    group = rng.integers(0, 2 + (seed % 5 == 0), n)
    if seed % 2:
        group[labels != label] = -1  # opportunity counts only the rows of one class
    _, codes = np.unique(group[group >= 0], return_inverse=True)
    group[group >= 0] = codes
    sizes = tuple(int(weights[group == g].sum()) for g in range(int(group.max()) + 1))
    rates = RateLimit(label, Fraction(int(rng.integers(0, 4)), int(rng.integers(4, 12))), group, sizes)
    recalls = ((int(rng.integers(classes)), int(rng.integers(0, n // 2))),) if seed % 7 == 0 else ()
    return ProofSpace(
        "questions",
        X,
        labels,
        weights,
        classes,
        3 if m < 4 and n < 9 else 2,
        Fraction(int(rng.integers(0, 3)), 3),
        1 + (seed % 6 == 0),
        int(rng.integers(2, 4)) if seed % 5 == 1 else None,
        np.ones(m, bool),
        None,
        "rows",
        columns=np.arange(m),
        recalls=recalls,
        rates=rates,
        rising=np.eye(m, dtype=int)[0] if seed % 11 == 0 else None,
    )


class Brute:
    """All trees of a space, listed once, whatever group rates they must have."""

    def __init__(self, space: ProofSpace) -> None:
        self.space = space
        self.unit = space.penalty.denominator
        self.leaf = space.penalty.numerator
        self.every = self.trees(np.ones(len(space.X), bool), space.depth, (0, space.classes - 1))
        self.said = np.array([t[1] for t in self.every])

    def trees(self, rows: np.ndarray, height: int, span: tuple[int, int]) -> list[Tree]:
        s = self.space
        found = []
        for k in range(span[0], span[1] + 1):
            wrong = int(s.weights[rows & (s.labels != k)].sum())
            found.append((self.leaf + self.unit * wrong, tuple(np.where(rows, k, -1).tolist()), 1))
        for q in range(s.X.shape[1]) if height else ():
            sides = [rows & ~s.X[:, q], rows & s.X[:, q]]
            if min(s.weights[side].sum() for side in sides) < s.min_leaf:
                continue
            cuts = [(span, span)]
            if s.rising is not None and s.rising[q]:
                cuts = [((span[0], k), (k, span[1])) for k in range(span[0], span[1] + 1)]
            for both in cuts:
                one, two = (self.trees(side, height - 1, cut) for side, cut in zip(sides, both, strict=True))
                for a, b in itertools.product(one, two):
                    said = tuple(max(x, y) for x, y in zip(a[1], b[1], strict=True))
                    found.append((a[0] + b[0], said, a[2] + b[2]))
        return list(set(found))

    def admitted(self, rates: RateLimit) -> np.ndarray:
        """Return which trees satisfy all restrictions and rates, in integers."""
        s = self.space
        chosen = self.said == rates.label
        groups = [rates.group == g for g in sorted(set(rates.group.tolist()) - {-1})]
        weights = [int(s.weights[own].sum()) for own in groups]
        whole = math.lcm(*weights)
        shares = np.stack(
            [chosen[:, own] @ s.weights[own] * (whole // w) for own, w in zip(groups, weights, strict=True)]
        )
        kept = (shares.max(0) - shares.min(0)) * rates.delta.denominator <= rates.delta.numerator * whole
        for k, most in s.recalls:
            kept &= (self.said != k)[:, s.labels == k] @ s.weights[s.labels == k] <= most
        return kept & (np.array([t[2] for t in self.every]) <= (s.max_leaves or 1 << s.depth))

    def least(self, rates: RateLimit | None = None) -> int | None:
        kept = self.admitted(rates or self.space.rates)
        return min((t[0] for t, holds in zip(self.every, kept, strict=True) if holds), default=None)


def head(goal: int) -> Lines:
    return [{"format": "octweb-proof", "version": 6, "rows": "rows", "scale": 1, "goal": goal}]


@pytest.mark.slow
@seeds(60)
def test_one_step_proves_fair_optimum_and_no_more(seed):
    space = table(seed)
    best = Brute(space).least()
    unit = space.penalty.denominator
    found, whole = _search(space)
    assert whole
    assert found == (None if best is None else Fraction(best, unit))
    goal = 10_000 if best is None else best
    step = {"path": [], "height": space.depth, "bound": goal, "by": "within"}
    assert accepted(space, [*head(goal), step]) == Fraction(goal, unit)
    if best is not None:
        assert accepted(space, [*head(goal + 1), {**step, "bound": goal + 1}]) is None
        if seed % 5 < 2:
            judge_changes(space, [*head(goal), step], Fraction(goal, unit))


@seeds(40)
def test_groups_and_their_tolerance_change_the_result(seed):
    """A proof for one definition shows of another one only what is true of that one."""
    space = table(seed)
    brute = Brute(space)
    rng = np.random.default_rng(seed)
    best = brute.least()
    if best is None:
        return
    rates = space.rates
    group = rng.permutation(rates.group)
    sizes = tuple(int(space.weights[group == g].sum()) for g in range(len(rates.sizes)))
    others = [
        rates._replace(delta=rates.delta + Fraction(1, 10)),
        rates._replace(label=(rates.label + 1) % space.classes),
        rates._replace(group=group, sizes=sizes),
        None,
    ]
    for other in others:
        changed = replace(space, rates=other)
        least = brute.least(rates._replace(delta=Fraction(1)) if other is None else other)
        step = {"path": [], "height": space.depth, "bound": best, "by": "within"}
        shown = accepted(changed, [*head(best), step])
        assert (shown is not None) == (least is None or best <= least)


@pytest.mark.slow
def test_other_fairness_definition_is_not_proved(tmp_path):
    """A changed difference, group, class or kind, with matching words, is refuted unless it is true as well."""
    data = csv_table(tmp_path, 4)
    rows, labels, _ = load(data, target="kind", ignore=[])
    asked = {"fairness": "opportunity", "fairness_column": "flag", "fairness_delta": 0.03}
    proof = tmp_path / "proof.jsonl.gz"
    path = tmp_path / "model.json"
    request = TrainRequest(
        table=rows, labels=labels, method="bendoct", parameters={"depth": 2, "bins": 3, **asked}, proof=proof
    )
    document = json.loads(json.dumps(train(request).model.to_json()))
    claim = document["certificate"]
    path.write_text(json.dumps(document))
    assert verdict(verify(path, data, proof)) == "proved"
    said = ", ".join(words_of(document))
    false = 0
    for change in (
        {"fairness_delta": 0.5},
        {"fairness_delta": 0},
        {"fairness": "parity"},
        {"fairness_class": "no"},
        {"fairness_column": "z"},
        {"fairness_column": "colour"},
        {"fairness": "none"},
    ):
        other = document | {"parameters": document["parameters"] | change}
        words = ", ".join(words_of(other))
        other["certificate"] = claim | {"scope": claim["scope"].replace(f", {said}", f", {words}" if words else "")}
        path.write_text(json.dumps(other))
        best, _ = small.best(other, read_rows(data, other).training)
        true = best is not None and best.value <= claim["bound"] + 1e-9
        found = verdict(verify(path, data, proof))
        assert found == "refuted" or (found == "proved" and true), change
        false += found == "refuted"
    assert false > 2
