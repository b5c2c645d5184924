"""`depth=None` finds and proves the best tree of any depth, as brute force does."""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from trainer.check.proof.steps.steps import check_proof
from trainer.check.proof.subject import BadProof, ProofSpace
from trainer.errors import ParameterError
from trainer.families.exact.proofs.any_depth import prove_any_depth
from trainer.families.exact.search import any_depth
from trainer.registry import get
from trainer.sklearn_api.estimators import make_classifier
from trainer.solver_common.binary_problem import BinaryProblem, never

PENALTIES = (0.02, 0.05, 0.1, 0.3)


@pytest.fixture
def early(monkeypatch):
    """Let the search without a limit begin at depth 2, so that small tables reach it."""
    monkeypatch.setattr(any_depth, "SHALLOW", 1)


def random_table(seed):
    """Return few rows with ties, duplicates, constant columns, empty cells and weights. Some tables have one class."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    X = rng.integers(0, rng.integers(2, 4), (n, int(rng.integers(1, 4)))).astype(float)
    if seed % 3 == 0:
        X[rng.random(X.shape) < 0.2] = np.nan
    if seed % 4 == 0:
        X[rng.integers(n, size=n // 2)] = X[0]
    y = rng.integers(0, rng.integers(1, 4), n)
    if seed % 5 == 0:
        y = (np.nan_to_num(X).sum(axis=1) % 2).astype(int)
    weights = rng.integers(1, 5, n) if seed % 2 else None
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    return frame, y, weights, PENALTIES[seed % 4]


def plain_optimum(X, y, weights, leaf_cost, *, depth=None, min_leaf=1):
    """Return the least cost in rows and its fewest leaves, by plain recursion over sets of rows. None is any depth."""

    @functools.cache
    def best(rows, height):
        sizes = np.bincount(y[list(rows)], weights[list(rows)]).astype(int)
        found = [(int(sizes.sum() - sizes.max()) + leaf_cost, 1)]
        for x in X.T if height != 0 else ():
            sides = [frozenset(i for i in rows if bool(x[i]) == side) for side in (False, True)]
            if all(side and sum(int(weights[i]) for i in side) >= min_leaf for side in sides):
                (one, few), (other, more) = (best(side, None if height is None else height - 1) for side in sides)
                found.append((one + other, few + more))
        return min(found)

    return best(frozenset(range(len(y))), depth)


def optimum(classifier, depth, min_leaf):
    """Return the least cost, in rows, and its fewest leaves over the questions of a fitted classifier."""
    problem = classifier._search.problem
    bits = problem.binary.bits(problem.table)
    return plain_optimum(bits, problem.y, problem.row_weights, problem.kappa, depth=depth, min_leaf=min_leaf)


@pytest.mark.parametrize("part", range(10))
def test_tree_of_any_depth_is_that_of_brute_force(early, part):
    for seed in range(30 * part, 30 * part + 30):
        X, y, weights, penalty = random_table(seed)
        min_leaf = 1 + seed % 3 if seed % 7 == 0 else 1
        classifier = make_classifier(
            "exact", depth=None, leaf_penalty=penalty, min_leaf=min_leaf, binarise="all-thresholds"
        ).fit(X, y, weights)
        certificate = classifier.certificate_
        cost, leaves = optimum(classifier, None, min_leaf)
        assert certificate.status == "optimal", seed
        assert certificate.objective == certificate.bound == float(1 - cost / certificate.n), seed
        assert classifier.tree_.n_leaves == leaves, seed
        assert certificate.scope.startswith("all trees of any depth with "), seed
        # A search at the smallest depth with this cost must find the same tree size.
        assert optimum(classifier, classifier.get_depth(), min_leaf) == (cost, leaves), seed


def test_limit_of_depth_finds_same_objective_from_some_depth_on():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (200, 8))
    y = (X[:, :4].sum(axis=1) % 2) ^ (rng.random(200) < 0.05)
    objectives = [
        make_classifier("exact", depth=depth, leaf_penalty=0.005).fit(X, y).certificate_.objective
        for depth in (*range(1, 8), None)
    ]
    assert objectives == sorted(objectives)
    assert objectives[3] == objectives[-1] > objectives[2]


@pytest.mark.parametrize("penalty", [0, "auto"])
def test_leaf_that_costs_nothing_is_refused_without_limit(penalty):
    with pytest.raises(ParameterError, match="leaf_penalty: it must be a number above 0 without a limit of depth"):
        make_classifier("exact", depth=None, leaf_penalty=penalty).fit([[0], [1]] * 40, [0, 1] * 40)


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_leaves", 3), ("recall", "0: 0.9"), ("forbidden_pairs", "x0 + x1"), ("max_columns", 1), ("optimal_trees", 5),
     ("column_price", "x0=1"), ("goal", "f1")],
)  # fmt: skip
def test_setting_that_needs_depth_is_refused(name, value):
    with pytest.raises(ParameterError, match=r"depth: it needs a number of questions with .*, not 'none'"):
        make_classifier("exact", depth=None, leaf_penalty=0.1, **{name: value}).fit([[0, 1], [1, 1]] * 4, [0, 1] * 4)


def test_workbench_needs_depth():
    classifier = make_classifier("exact", depth=None, leaf_penalty=0.1)
    with pytest.raises(ParameterError, match="the workbench and good trees need a number of questions"):
        classifier.workbench([[0], [1]] * 4, [0, 1] * 4)


@pytest.mark.parametrize("raw", [None, "none", " None "])
def test_none_is_no_limit_of_exact_alone(raw):
    assert get("exact").settings({"depth": raw})["depth"] is None
    with pytest.raises(ParameterError, match="depth"):
        get("cart").settings({"depth": raw})


def test_parameter_says_that_it_takes_none():
    depth = get("exact").parameter("depth")
    assert depth.describe_allowed() == "a whole number from 0 to 20, or none"
    assert depth.to_json()["unlimited"]
    with pytest.raises(ValueError, match=r"a value is needed \(a whole number from 0 to 20, or none\)"):
        depth.parse("")


# The tests below are about proofs.


def binary_case(seed):
    """Return a problem over yes/no questions, its space, and the lines of its proof."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 7))
    n = int(rng.integers(10, 24))
    classes = int(rng.integers(1, 4))
    X = rng.integers(0, 2, (n, m)).astype(np.uint8)
    X[:, rng.integers(m)] = X[:, 0] if seed % 3 else 1
    y = ((X[:, :3].sum(axis=1) + (rng.random(n) < 0.2)) % classes).astype(np.int32)
    weights = rng.integers(1, 4, n).astype(np.int64) if seed % 4 == 0 else np.ones(n, np.int64)
    penalty = Fraction(int(rng.integers(1, 5)), int(rng.integers(1, 4)))
    least = 1 + 2 * (seed % 5 == 0)
    allowed = np.ones(m, np.uint8)
    allowed[0] = seed % 6 != 0
    problem = BinaryProblem(
        X, y, n_classes=classes, depth=m, leaf_cost=penalty, weights=weights, min_leaf=least, allowed=allowed
    )
    space = ProofSpace(
        "questions",
        X > 0,
        y,
        weights,
        classes,
        min(m, n - 1),
        penalty,
        least,
        None,
        allowed > 0,
        None,
        "rows",
        any_depth=True,
    )
    cost, _ = plain_optimum(X[:, allowed > 0], y, weights, penalty, min_leaf=least)
    proof = prove_any_depth(problem, cost, stop=never)
    header = {"format": "octweb-proof", "version": 9, "rows": "rows", "scale": proof.scale, "goal": proof.goal}
    return space, [header, *proof.steps], cost


def accepted(space, lines):
    try:
        return check_proof(iter(list(enumerate(lines))), space).cost
    except BadProof:
        return None


def least(space, lines, path):
    """Return the least cost of the rows below a path, in the integers of the proof, by plain recursion."""
    rows = np.all([space.X[:, q // 2] == bool(q % 2) for q in path], axis=0) if path else np.ones(len(space.X), bool)
    unit = lines[0]["scale"] * space.penalty.denominator
    leaf = lines[0]["scale"] * space.penalty.numerator + (lines[0]["scale"] > 1)
    X = space.X[:, space.allowed].astype(np.uint8)[rows]
    cost, _ = plain_optimum(X, space.labels[rows], space.weights[rows], Fraction(leaf, unit), min_leaf=space.min_leaf)
    return cost * unit


@pytest.mark.parametrize("part", range(5))
def test_proof_shows_optimum_and_every_step_is_true(part):
    for seed in range(part * 8, part * 8 + 8):
        space, lines, cost = binary_case(seed)
        assert accepted(space, lines) == cost, seed
        for step in lines[1:]:
            assert step["height"] is None
            assert step["bound"] <= least(space, lines, step["path"]), (seed, step)


@pytest.mark.parametrize("seed", range(8))
def test_no_change_makes_proof_show_what_is_false(seed):
    space, lines, cost = binary_case(seed)
    assert accepted(space, [{**lines[0], "goal": lines[0]["goal"] + 1}, *lines[1:]]) is None
    assert accepted(space, [{**lines[0], "version": 1}, *lines[1:]]) is None or len(lines) == 1
    for k in {1, 2, len(lines) // 2, len(lines) - 1} & {*range(1, len(lines))}:
        for changed in changes(lines[k]):
            shown = accepted(space, [*lines[:k], changed, *lines[k + 1 :]])
            assert shown is None or shown <= cost
            if shown is not None and changed["height"] is None:
                assert changed["bound"] <= least(space, lines, changed["path"])


def changes(step):
    """Return variants of the step: stronger, with a height, another path or reason, or for some trees only."""
    path = step["path"]
    return [
        *({**step, "bound": step["bound"] + d} for d in (1, 7, 1000)),
        *({**step, "height": h} for h in (1, 2, 3)),
        *({**step, "path": [*path[:k], path[k] ^ 1, *path[k + 1 :]]} for k in range(len(path))),
        *({**step, "path": path[:-1]} for _ in path[:1]),
        *({**step, "by": by} for by in ("floor", "count", "split", "similar", "within") if by != step["by"]),
        {**step, "leaves": 2},
        {**step, "columns": [0]},
    ]


def test_step_of_some_height_does_not_prove_any_height():
    """The class is a parity of three columns. Trees of height two are far from the optimum of height three."""
    X = np.array([[i >> j & 1 for j in range(3)] for i in range(8)] * 4, bool)
    y = (X.sum(axis=1) % 2).astype(np.int32)
    space = ProofSpace(
        "questions",
        X,
        y,
        np.ones(32, np.int64),
        2,
        3,
        Fraction(1),
        1,
        None,
        np.ones(3, bool),
        None,
        "rows",
        any_depth=True,
    )
    steps = {height: {"path": [], "height": height, "bound": 17, "by": "count"} for height in (2, None)}
    for height, goal in ((2, 17), (None, 17), (2, 9)):
        header = {"format": "octweb-proof", "version": 9, "rows": "rows", "scale": 1, "goal": goal}
        assert accepted(space, [header, steps[height]]) is None
    header = {"format": "octweb-proof", "version": 9, "rows": "rows", "scale": 1, "goal": 4}
    assert accepted(space, [header, {**steps[None], "bound": 4}]) == 4  # four leaves of cost 1 each


def test_other_version_may_not_have_steps_of_any_height():
    """Only version 8, for rows with empty cells, names another version."""
    space, lines, cost = binary_case(1)
    assert accepted(space, lines) == cost
    for change in ({"version": 1}, {"version": 1, "like": 9}):
        assert accepted(space, [lines[0] | change, *lines[1:]]) is None
