"""Proofs for hyperplane trees with minimum leaf size or coefficient prices agree with brute force."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import random
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.trainer.check.proof.changes import page
from tests.trainer.check.proof.proof_planes_cases import (
    GAP_OF_POINTS,
    TOUCHING,
    Lines,
    accepted,
    changes,
    never,
    scaled,
)
from tests.trainer.check.proof.second_checker_cases import proved_alone, raised
from tests.trainer.oracles.oblique import random_points
from tests.trainer.oracles.oblique_class import best_in_class
from trainer.check.proof.subject import PlaneSpace
from trainer.check.recount import verdict, verify
from trainer.data.reader import load
from trainer.families.oblique.proving import PlaneProof, PlaneTrees
from trainer.training.run import TrainRequest, save, train

CASES = [
    (seed, kind, least)
    for kind in ("leaf", "price", "both")
    for seed, least in [*((seed, TOUCHING) for seed in range(11)), *((seed, GAP_OF_POINTS) for seed in range(4))]
]
PRICES = Fraction(1, 2), Fraction(1, 3), Fraction(1), Fraction(3, 10)


@cache
def space_of(seed: int, kind: str, least: float) -> PlaneSpace:
    """Return a space of few points. Two of three tables have rows that must be wrong."""
    X, counts, depth, kappa = random_points(100 * seed + len(kind), most=6)
    rng = np.random.default_rng(seed)
    if seed % 3:
        X = np.unique(rng.integers(0, [5, 2 + seed % 3], (6, 2)), axis=0)
        depth = 1 + seed % 2
        kappa = (Fraction(0), Fraction(1, 3))[seed % 2]
        counts = np.eye(3, dtype=np.int64)[rng.integers(0, 2 + (seed % 4 == 0), len(X))] * rng.integers(
            1, 3, (len(X), 1)
        )
    if least:
        X = X[:5]
        counts = counts[:5]
    counts = counts[:, counts.any(axis=0)]
    near = [Fraction(least) * int(w) - Fraction(1, 10**9) * bool(least) for w in np.maximum(np.ptp(X, axis=0), 1)]
    leaves = 1 if counts.shape[1] < 2 else min(1 << depth, len(X))
    charge = Fraction(0) if kind == "leaf" else PRICES[seed % 4]
    smallest = 1 if kind == "price" else min(2 + seed % 3, int(counts.sum()))
    return PlaneSpace(X.astype(float), Fraction, near, counts, depth, leaves, kappa, charge, "rows", smallest)


@cache
def best(seed: int, kind: str, least: float) -> Fraction:
    space = space_of(seed, kind, least)
    found = best_in_class(
        scaled(space.values),
        space.counts,
        space.depth,
        space.penalty,
        least=least,
        min_leaf=space.min_leaf,
        charge=space.charge,
    )
    return int(space.counts.sum()) - Fraction(found)


def unit(space: PlaneSpace) -> int:
    return math.lcm(space.penalty.denominator, space.charge.denominator)


def proof(space: PlaneSpace, least: float, cost: Fraction) -> Lines | None:
    made = PlaneProof(
        space.values,
        scaled(space.values),
        space.counts,
        list(range(space.counts.shape[1])),
        PlaneTrees(
            depth=space.depth,
            leaves=1 << space.depth,
            penalty=space.penalty,
            charge=space.charge,
            min_leaf=space.min_leaf,
        ),
        least=least,
        stop=never,
    )
    steps = made.all_steps(cost)
    return None if steps is None else [header(space, cost), *steps]


def header(space: PlaneSpace, cost: Fraction) -> dict[str, Any]:
    return {"format": "octweb-proof", "version": 7, "rows": "rows", "scale": 1, "goal": int(cost * unit(space))}


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "kind", "least"), CASES)
def test_the_optimum_is_proved_and_nothing_better(seed, kind, least):
    space = space_of(seed, kind, least)
    cost = best(seed, kind, least)
    lines = proof(space, least, cost)
    assert lines is not None
    assert accepted(lines, space) == cost
    more = cost + Fraction(1, unit(space))
    assert proof(space, least, more) is None
    assert accepted([header(space, more), *lines[1:]], space) is None


def test_these_proofs_need_the_new_steps():
    """Without these steps the optimum is not shown, and most tables need them."""
    kinds = {"few": 0, "weigh": 0}
    for seed, kind, least in CASES:
        steps = proof(space_of(seed, kind, least), least, best(seed, kind, least))
        for name in kinds:
            kinds[name] += any(step["by"] == name for step in steps[1:])
    assert min(kinds.values()) > 6, kinds


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "kind", "least"), CASES[::2])
def test_no_change_makes_a_proof_show_what_is_false(seed, kind, least):
    space = space_of(seed, kind, least)
    cost = best(seed, kind, least)
    draw = random.Random(seed)
    lines = proof(space, least, cost)
    places = draw.sample(range(1, len(lines)), min(25, len(lines) - 1))
    for k in places:
        for one in [
            *changes(lines[k], draw, len(space.counts)),
            {**lines[k], "charged": True},
            {**lines[k], "beside": [0]},
            None,
        ]:
            changed = [*lines[:k], *([] if one is None else [one]), *lines[k + 1 :]]
            shown = accepted(changed, space)
            assert shown is None or shown <= cost
            raised = [header(space, cost + Fraction(1, unit(space))), *changed[1:]]
            assert accepted(raised, space) is None


@pytest.mark.slow
def test_end_of_case_does_not_hold_for_smaller_leaves():
    """The same steps for a space whose leaves may be smaller, or whose coefficients cost less, are refused."""
    refused = 0
    for seed, kind, least in CASES:
        space = space_of(seed, kind, least)
        cost = best(seed, kind, least)
        lines = proof(space, least, cost)
        for own in (
            PlaneSpace(**{**vars(space), "min_leaf": 1}),
            PlaneSpace(**{**vars(space), "charge": Fraction(0)}),
        ):
            goal = {**lines[0], "goal": int(cost * unit(own))}
            shown = accepted([goal, *lines[1:]], own)
            found = best_in_class(
                scaled(own.values),
                own.counts,
                own.depth,
                own.penalty,
                least=least,
                min_leaf=own.min_leaf,
                charge=own.charge,
            )
            assert shown is None or shown <= int(own.counts.sum()) - Fraction(found)
            refused += shown is None
    assert refused > 6


def line_of(seed: int, n: int) -> str:
    """Return rows of two columns and a category. The sum of the columns determines the class, except in some rows."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, (n, 2))
    classes = np.where(rng.random(n) < 0.15, rng.integers(0, 2, n), X.sum(axis=1) > 8)
    colours = rng.choice(["red", "green"], n)
    rows = [f"{x},{y},{c},{'ab'[k]}" for (x, y), c, k in zip(X, colours, classes.astype(int), strict=True)]
    return "\n".join(["x,y,colour,class", *rows]) + "\n"


def scattered() -> str:
    """Return ten rows whose classes follow no rule, so that small leaves would separate them."""
    rng = np.random.default_rng(4)
    X = rng.integers(0, 9, (10, 2))
    classes = rng.integers(0, 2, 10)
    return "\n".join(["x,y,class", *(f"{x},{y},{'ab'[k]}" for (x, y), k in zip(X, classes, strict=True))]) + "\n"


FILES = [
    ("cut-h", {"depth": 1, "min_leaf": 5}, "few"), ("s-oct", {"depth": 2, "min_leaf": 3}, "few"),
    ("cutw-h", {"depth": 2, "min_leaf": 3, "pareto": True}, "few"), ("cut-h", {"depth": 2, "min_leaf": 3, "then_fewest": True}, "few"),
    ("oct-h", {"depth": 2, "min_leaf": 3, "leaf_penalty": 0.04}, "few"), ("oct-h", {"depth": 1, "coefficient_penalty": 0.03}, "weigh"),
    ("oct-h", {"depth": 1, "coefficient_penalty": 0.02, "min_leaf": 6}, "weigh"),
    ("oct-h", {"depth": 2, "coefficient_penalty": 0.05, "leaf_penalty": 0.01}, "weigh"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("method", "parameters", "step"), FILES)
def test_both_checkers_agree_on_every_change_of_file(method, parameters, step, tmp_path):
    model, data, file = (tmp_path / name for name in ("model.json", "rows.csv", "proof.jsonl.gz"))
    data.write_text(scattered() if step == "few" else line_of(1, 14))
    table, labels, *_ = load(data, target="class")
    asked = {"first_trees": "cart", "search_seconds": 1.0, "time_limit": 60.0} | parameters
    save(train(TrainRequest(table=table, labels=labels, method=method, parameters=asked, proof=file)).model, model)
    findings = verify(model, data, file)
    assert verdict(findings) == "proved", findings
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    assert step in {line.get("by") for line in lines}
    draw = random.Random(0)
    size = 14
    more = raised(lines[0], 1)
    cases = [lines, [more, *lines[1:]], lines[:-1]]
    for k in draw.sample(range(1, len(lines)), min(20, len(lines) - 1)):
        one = draw.choice([*changes(lines[k], draw, size), None])
        cases.append([*lines[:k], *([] if one is None else [one]), *lines[k + 1 :]])
    for name in ("charged", "beside", "at", "column"):
        for k in [k for k, line in enumerate(lines) if name in line][:2]:
            cases += [[*lines[:k], {key: v for key, v in lines[k].items() if key != name}, *lines[k + 1 :]]]
    texts = ["\n".join(json.dumps(line) for line in one) for one in cases]
    said = page([(model.read_text(), text, data.read_text()) for text in texts])
    assert proved_alone(model, data, texts, tmp_path) == said
    assert said[:3] == [True, False, False]


def large_leaves(right: list[int], smallest: int, bound: int) -> Lines:
    """Return a block for points 0, 1, … on one line, whose classes are `right`.

    Its trees have the labels 0 and 1 and leaves that are not too small.
    """
    vectors: dict[tuple[int, int, int], int] = {}
    cases: Lines = [{"by": "errors", "tree": [0, 1], "bound": bound}]

    def end(side: dict[int, int]) -> bool:
        """Return whether the case with these sides of the first points ends here."""
        between = [(a, b, c) for a, b, c in itertools.combinations(sorted(side), 3) if side[a] == side[c] != side[b]]
        if between:
            cases.append({"by": "meet", "of": vectors.setdefault(between[0], len(vectors) + 1), "at": 1})
            return True
        full = [k for k in (0, 1) if list(side.values()).count(k) > len(right) - smallest]
        cases.extend({"by": "few", "at": 3 - k} for k in full)
        return bool(full)

    def look(side: dict[int, int]) -> None:
        if sum(right[p] != k for p, k in side.items()) >= bound or end(side):
            return
        cases.append({"by": "side", "point": len(side)})
        for k in (0, 1):
            look(side | {len(side): k})

    look({})
    means = [{"by": "vector", "left": [[a, c - b], [c, b - a]], "right": [[b, c - a]]} for a, b, c in vectors]
    return [*means, *cases]


def test_errors_of_large_leaves_are_not_those_of_smaller_trees(tmp_path):
    """Two leaves of five rows have five errors, and one leaf has two.

    No proof shows that trees of at most two leaves have more.
    """
    right = [int(p in (2, 7)) for p in range(10)]
    model, data, file = (tmp_path / name for name in ("model.json", "rows.csv", "proof.jsonl"))
    data.write_text("\n".join(["x,class", *(f"{p},{'ab'[k]}" for p, k in enumerate(right))]) + "\n")
    table, labels, *_ = load(data, target="class")
    asked = {"depth": 1, "min_leaf": 5, "pareto": True, "search_seconds": 1.0, "time_limit": 60.0}
    request = TrainRequest(
        table=table, labels=labels, method="cut-h", parameters=asked, proof=tmp_path / "own.jsonl.gz"
    )
    document = json.loads(json.dumps(train(request).model.to_json()))
    own = [json.loads(line) for line in gzip.decompress((tmp_path / "own.jsonl.gz").read_bytes()).splitlines()]
    part = next(e for e in document["certificate"]["evidence"] if e["kind"] == "leaf-frontier")
    texts = []
    for unsettled, goals, steps in (
        ([], own[0]["goals"], own[1:]),
        ([], [2, 5], large_leaves(right, 5, 5)),
        ([{"leaves": 2, "bound": 5}], [2, 5], large_leaves(right, 5, 5)),
    ):
        part["unsettled"] = unsettled
        model.write_text(json.dumps(document))
        text = "\n".join(json.dumps(line) for line in [own[0] | {"goals": goals}, *steps])
        file.write_text(text)
        found = next(f for f in verify(model, data, file) if f.claim == "leaf-frontier")
        texts.append((model.read_text(), text, data.read_text()))
        assert (found.verdict == "proved") == (not unsettled), found
    assert page(texts) == [True, True, False]
