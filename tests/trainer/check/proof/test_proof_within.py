"""Proofs under constraints, minimum recalls, column limits and monotone features agree with brute force."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.proof.proof_within_cases import INFINITE_COST, document, judge_changes, lines, with_taller
from tests.trainer.check.proof.proofs_cases import Lines, accepted
from tests.trainer.check.recount.files import csv_text
from tests.trainer.exact.limited_wishes_cases import Limited, random_limits
from tests.trainer.exact.workbench_cases import Brute as Wished
from tests.trainer.exact.workbench_cases import random_wishes
from tests.trainer.oracles.workbench import random_table
from trainer.check.proof.model import ModelTable
from trainer.check.proof.space.space import read_space
from trainer.check.proof.steps.counting import Counting
from trainer.check.proof.steps.steps import check_proof
from trainer.check.proof.subject import BadProof, ProofConstraint, ProofSpace
from trainer.check.recount import verdict, verify
from trainer.check.recount.search.exhaustive_search import ExhaustiveSearch
from trainer.check.recount.search.small import optimum_without
from trainer.data.reader import load
from trainer.errors import InfeasibleError
from trainer.families.exact.proofs.editing import restricted_proof
from trainer.families.exact.workbench import Workbench
from trainer.training.run import TrainRequest
from trainer.workbench.requests import WorkbenchSession


class Brute:
    """All trees of a space, one by one: cost, errors by class, leaves and columns, without bounds or stored results."""

    def __init__(self, space: ProofSpace, unit: int, leaf: int) -> None:
        self.space = space
        self.unit = unit
        self.leaf = leaf

    def trees(self, rows, height, wishes, banned, path_columns, span):
        """Return (cost, errors of each class, leaves, columns) of each tree that keeps all constraints on a path."""
        s = self.space
        here = [w for w in wishes if not w.place]
        banned = banned | {w.column for w in here if w.verb == "forbid"}
        height = min([height, *(w.height for w in here if w.verb == "depth")])
        asks = any(w.verb == "ask" for w in wishes)
        named = {w.label for w in here if w.verb == "leaf"}
        found = []
        sizes = np.bincount(s.labels[rows], s.weights[rows], s.classes).astype(int)
        for k in range(span[0], span[1] + 1):
            if not asks and (not named - {-1} or named - {-1} == {k}):
                wrong = [0 if c == k else int(sizes[c]) for c in range(s.classes)]
                found.append((self.leaf + self.unit * sum(wrong), tuple(wrong), 1, frozenset()))
        if named or not height:
            return found
        for q in range(s.X.shape[1]):
            column = int(s.column_of[q])
            own = [w for w in here if w.verb == "ask"]
            if column in banned or not s.allowed[q] or any(s.apart is not None and s.apart[q, p] for p in path_columns):
                continue
            if any(w.column != column or (w.numbers and q not in w.numbers) for w in own):
                continue
            if not np.broadcast_to(s.listed, s.allowed.shape)[q] and not any(q in w.numbers for w in own):
                continue
            yes = rows & s.X[:, q]
            no = rows & ~s.X[:, q]
            if min(s.weights[yes].sum(), s.weights[no].sum()) < max(1, s.min_leaf):
                continue
            letters = ("n", "y") if s.yes_left is None or s.yes_left[q] else ("y", "n")
            parts = [tuple(replace(w, place=w.place[1:]) for w in wishes if w.place[:1] == x) for x in letters]
            rise = 0 if s.rising is None else int(s.rising[q])
            spans = [(span, span)]
            if rise:
                spans = [((span[0], k), (k, span[1])) for k in range(span[0], span[1] + 1)]
                spans = spans if rise > 0 else [(b, a) for a, b in spans]
            for a, b in spans:
                inner = (*path_columns, q)
                sides = [
                    self.trees(side, height - 1, part, banned, inner, own)
                    for side, part, own in ((no, parts[0], a), (yes, parts[1], b))
                ]
                found += [
                    (x[0] + y[0], tuple(map(sum, zip(x[1], y[1], strict=True))), x[2] + y[2], x[3] | y[3] | {column})
                    for x, y in itertools.product(*sides)
                ]
        return list(set(found))

    def least(self) -> int:
        s = self.space
        every = self.trees(np.ones(len(s.X), bool), s.depth, s.wishes, frozenset(), (), (0, s.classes - 1))
        kept = [
            t[0]
            for t in every
            if all(t[1][k] <= most for k, most in s.recalls)
            and (s.max_leaves is None or t[2] <= s.max_leaves)
            and (s.max_columns is None or len(t[3]) <= s.max_columns)
        ]
        return min(kept, default=INFINITE_COST)


def some_wishes(
    rng: np.random.Generator, m: int, held: int, column: np.ndarray, classes: int
) -> tuple[ProofConstraint, ...]:
    found = [
        ProofConstraint("", "ask", str(rng.choice(["", "y", "n"])), int(column[q]), ("<=", q), numbers=(q,))
        for q in range(m - held, m)
    ]
    for _ in range(int(rng.integers(0, 3))):
        place = str(rng.choice(["", "y", "n", "yn"]))
        verb = str(rng.choice(["ask", "forbid", "leaf", "depth"]))
        if verb == "leaf":
            found.append(ProofConstraint("", "leaf", place or "n", label=int(rng.integers(-1, classes))))
        elif verb == "depth":
            found.append(ProofConstraint("", "depth", place, height=int(rng.integers(0, 3))))
        else:
            found.append(ProofConstraint("", verb, place, int(column[rng.integers(m)])))
    return tuple(found)


def table(seed: int, depth: int = 2) -> ProofSpace:
    """Return a random table with any mixture of restrictions."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 5))
    n = int(rng.integers(6, 13))
    classes = int(rng.integers(2, 4))
    X = rng.integers(0, 2, (n, m)) > 0
    X[:, 1] = X[:, 0] if seed % 5 == 0 else X[:, 1]
    y = ((X.sum(axis=1) + (rng.random(n) < 0.3)) % classes).astype(np.int32)
    weights = rng.integers(1, 4, n).astype(np.int64) if seed % 4 == 0 else np.ones(n, np.int64)
    column = np.sort(rng.integers(0, 3, m))
    kind = seed % 7
    held = int(rng.integers(0, 2)) if kind in (0, 1, 2) else 0
    apart = (column[:, None] == 0) & (column[None, :] == 1)
    apart = apart | apart.T
    recalls = ()
    if kind in (1, 3, 4):
        sizes = np.bincount(y, weights, classes).astype(int)
        recalls = tuple((k, int(sizes[k] * rng.random() * 0.7)) for k in range(int(rng.integers(1, 3))))
    return ProofSpace(
        "questions",
        X,
        y,
        weights,
        classes,
        depth,
        Fraction(int(rng.integers(0, 3)), int(rng.integers(1, 4))),
        1 + (seed % 6 == 0),
        int(rng.integers(2, 4)) if kind in (2, 4) else None,
        np.ones(m, bool),
        apart if kind in (0, 3) and apart.any() else None,
        "rows",
        columns=column,
        yes_left=rng.random(m) < 0.5,
        listed=np.arange(m) < m - held,
        wishes=some_wishes(rng, m, held, column, classes) if kind in (0, 1, 2) else (),
        recalls=recalls,
        max_columns=int(rng.integers(0, 3)) if kind == 5 else None,
        rising=np.where(column == 1, int(rng.choice([-1, 1])), 0) if kind in (6, 4) else None,
    )


@pytest.mark.parametrize("height", [1, 2, 3])
def test_classes_bind_also_where_nothing_else_does(height):
    """Trees whose leaves predict the last class alone have all other rows wrong."""
    rng = np.random.default_rng(height)
    X = rng.integers(0, 2, (20, 4)) > 0
    y = rng.integers(0, 3, 20).astype(np.int32)
    one = np.ones(20, np.int64)
    every = np.ones(4, bool)
    space = ProofSpace("questions", X, y, one, 3, 3, Fraction(0), 1, None, every, None, "rows", columns=np.arange(4))
    wrong = int((y < 2).sum())
    step = {"path": [], "height": height, "classes": [2, 2], "bound": wrong, "by": "within"}
    assert accepted(space, lines(space, [step], 0)) is not None
    assert accepted(space, lines(space, [step | {"bound": wrong + 1}], 0)) is None
    assert accepted(space, lines(space, [step | {"classes": [1, 2]}], 0)) is None


@pytest.mark.slow
@seeds(210)
def test_one_step_proves_restricted_optimum_and_no_more(seed):
    space = table(seed)
    unit = space.penalty.denominator
    leaf = space.penalty.numerator
    best = Brute(space, unit, leaf).least()
    if space.max_columns is not None:
        space = replace(space, max_columns=None)
        best = Brute(space, unit, leaf).least()
    if best >= INFINITE_COST:
        best = 10_000
        step = {"path": [], "height": space.depth, "bound": best, "by": "within"}
        assert accepted(space, lines(space, [step], best)) is not None
        return
    step = {"path": [], "height": space.depth, "bound": best, "by": "within"}
    assert accepted(space, lines(space, [step], best)) == Fraction(best, unit)
    assert accepted(space, lines(space, [step | {"bound": best + 1}], best + 1)) is None
    assert accepted(space, lines(space, [step], best + 1)) is None
    for by in ("floor", "count", "split"):  # a bound without the restrictions also holds with them
        for bound in (best, best + 1):
            shown = accepted(space, lines(space, [step | {"by": by, "bound": bound}], bound))
            assert shown is None or shown <= Fraction(best, unit)


# The tests below give the checker what the search writes, with a document.


def written(seed: int, *, wishes: bool, limited: bool, deep: bool = False) -> tuple[ProofSpace, Lines, Fraction] | None:
    """Return the checker's space, the proof of the best tree, and its cost in rows, or None if no tree is possible."""
    rng = np.random.default_rng(seed)
    problem = random_table(seed, max_rows=16 if deep else 10)
    depth = 4 + seed % 2 if deep else 3 if seed % 4 == 0 and len(problem.binary.features) < 5 else 2
    limits = random_limits(rng, problem) if limited else None
    bench = Workbench(problem, depth=depth, limits=limits)
    texts = random_wishes(rng, problem, bench.space.questions)[:3] if wishes else []
    asked = bench.wishes(texts)
    try:
        completion = bench.complete(texts, prices=False)
    except InfeasibleError:
        return None
    if not completion.found:
        return None
    if not deep:  # for deeper trees, other tests compare the search with brute force
        brute = Limited(problem, bench, asked, depth, limits) if limits else Wished(problem, bench, asked, depth)
        assert completion.cost == brute.best(asked)
    proof = restricted_proof(bench, asked, completion.cost, depth, lambda: False)
    assert proof is not None
    rows = ModelTable(
        [np.asarray(c.values, float) for c in problem.table.columns],
        problem.y,
        problem.row_weights,
        problem.row_weights,
    )
    space = read_space(document(problem, depth, limits, [w.text for w in asked]), rows)
    header = {"format": "octweb-proof", "version": 2, "rows": space.digest, "scale": proof.scale, "goal": proof.goal}
    return space, [header, *proof.steps], completion.cost


@pytest.mark.slow
@seeds(120)
def test_written_proof_shows_optimum_and_no_change_shows_more(seed):
    made = written(seed, wishes=seed % 3 != 0, limited=seed % 3 != 1)
    if made is None:
        return
    space, proof, optimum = made
    assert accepted(space, proof) == optimum
    judge_changes(space, proof, optimum)


@seeds(20)
def test_deep_proofs_within_restrictions(seed):
    made = written(1000 + seed, wishes=seed % 3 != 0, limited=seed % 3 != 1, deep=True)
    if made is None:
        return
    space, proof, optimum = made
    assert accepted(space, proof) == optimum
    judge_changes(space, proof, optimum, most=2)


def test_step_for_taller_trees_hides_no_stronger_one():
    larger = 0
    for seed in range(1000, 1030):
        made = written(seed, wishes=False, limited=True, deep=True)
        if made is not None:
            space, proof, optimum = made
            longer = with_taller(proof, Counting(space, 1, 0).deepest)
            larger += len(longer) > len(proof)
            assert accepted(space, longer) == optimum
    assert larger


def test_strongest_step_about_all_rows_counts():
    """A step about taller trees counts for those of the depth if it shows more than the other step."""
    X = np.array(list(itertools.product((False, True), repeat=3)))
    y = X.sum(axis=1).astype(np.int32) % 2
    one = np.ones(8, np.int64)
    space = ProofSpace(
        "questions", X, y, one, 2, 1, Fraction(0), 1, None, np.ones(3, bool), None, "rows", columns=np.arange(3)
    )
    low = [{"path": [], "height": height, "bound": bound, "by": "within"} for height, bound in ((2, 4), (1, 1))]
    for goal, holds in ((4, True), (5, False)):
        assert (accepted(space, lines(space, low, goal)) is not None) == holds
        assert (accepted(space, lines(space, low[::-1], goal)) is not None) == holds


def test_steps_below_the_root_are_needed():
    """Most proofs fail without one of the steps for their deep trees."""
    tried = missed = 0
    for seed in range(1000, 1070):
        made = written(seed, wishes=True, limited=seed % 2 == 0, deep=True)
        if made is None or len(made[1]) < 3:
            continue
        space, proof, _ = made
        for k in range(1, min(len(proof), 6)):
            tried += 1
            missed += accepted(space, [*proof[:k], *proof[k + 1 :]]) is None
    assert tried > 10
    assert missed > tried / 3, (missed, tried)


@seeds(60)
def test_prices_of_wishes_are_those_of_workbench(seed):
    """The checker's search drops a constraint, but keeps its split as a candidate at its place."""
    problem = random_table(seed, max_rows=10)
    rng = np.random.default_rng(seed)
    limits = random_limits(rng, problem) if seed % 2 else None
    bench = Workbench(problem, depth=2, limits=limits)
    texts = random_wishes(rng, problem, bench.space.questions)[:3]
    try:
        completion = bench.complete(texts)
    except InfeasibleError:
        return
    if not completion.found:
        return
    rows = ModelTable(
        [np.asarray(c.values, float) for c in problem.table.columns],
        problem.y,
        problem.row_weights,
        problem.row_weights,
    )
    model = document(problem, 2, limits, [w.text for w in completion.wishes])
    n = int(problem.row_weights.sum())
    assert optimum_without(model, rows, []) == 1 - completion.cost / n
    assert optimum_without(model, rows, range(len(completion.wishes))) == 1 - completion.optimum.cost / n
    for i, price in enumerate(completion.prices):
        assert optimum_without(model, rows, [i]) == 1 - (completion.cost - price.price) / n


def test_false_prices_and_a_false_optimum_are_refuted(tmp_path):
    data = tmp_path / "rows.csv"
    data.write_text(csv_text())
    table, labels, _ = load(data, target="class")
    session = WorkbenchSession(
        TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 3, "bins": 3})
    )
    monitor = session.monitor()
    proof = tmp_path / "proof.jsonl.gz"
    result = session.result(session.complete(["ask root flag", "leaf yy"], monitor), monitor, proof)
    true = json.loads(json.dumps(result.model.to_json()))
    path = tmp_path / "model.json"
    claim = true["certificate"]
    for change, expected in (
        ({}, "proved"),
        ({"optimum": claim["optimum"] | {"objective": claim["optimum"]["objective"] + 0.01}}, "refuted"),
        ({"optimum": claim["optimum"] | {"proved": False}}, "refuted"),
        (
            {"wishes": [claim["wishes"][0] | {"price": claim["wishes"][0]["price"] + 0.001}, claim["wishes"][1]]},
            "refuted",
        ),
        ({"wishes": claim["wishes"][:1]}, "refuted"),
    ):
        path.write_text(json.dumps(true | {"certificate": claim | change}))
        assert verdict(verify(path, data, proof)) == expected, change


def test_a_step_about_rows_holds_on_any_path_to_them():
    """A constraint may bind on one of two paths to the same rows, so a step must not depend on it."""
    rows = np.array(list(itertools.product((False, True), repeat=7)))
    a, b, c, d, e, f, g = rows.T
    X = np.vstack([np.column_stack([rows, np.full(128, side)]) for side in (True, False)])
    y = np.append(np.where(a, b ^ c ^ g, d ^ e ^ f), np.zeros(128, bool)).astype(np.int32)
    wish = ProofConstraint("forbid yy g", "forbid", "yy", column=6)
    every = np.ones(8, bool)
    one = np.ones(256, np.int64)
    space = ProofSpace(
        "questions", X, y, one, 2, 5, Fraction(0), 1, None, every, None, "", np.arange(8), wishes=(wish,)
    )
    # Some tree of four splits classifies all rows of this block correctly.
    counting = Counting(space, 1, 0)
    path = [15]
    sides = [[*path, 2 * q + yes] for q in range(7) for yes in (0, 1)]
    costs = [ExhaustiveSearch(counting, 10**6).optimum(counting.follow(side), 3) for side in sides]
    assert costs[:2] == [0, 32]  # the constraint forbids g there, so the tree does without it
    steps = [{"path": p, "height": 3, "bound": cost, "by": "split"} for p, cost in zip(sides, costs, strict=True)]
    header = {"format": "octweb-proof", "version": 2, "rows": "", "scale": 1, "goal": 0}
    assert check_proof(iter(enumerate([header, *steps])), space).steps == 14
    for bound in (1, 16, 32):
        split = {"path": path, "height": 4, "bound": bound, "by": "split"}
        with pytest.raises(BadProof, match="the two sides of question 0"):
            check_proof(iter(enumerate([header, *steps, split])), space)
