"""The ODT mixed-integer program equals brute force, for its options and solvers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.odt.odt_cases import brute, problem_of
from tests.trainer.odt.odt_goal_cases import reachable, reached, two_classes
from trainer.certificate import Limits, Status
from trainer.errors import InfeasibleError, ParameterError
from trainer.families.odt import method as odt
from trainer.families.odt.grouping import make_groups, predict_labels
from trainer.families.odt.model import ModelTechniques, OdtModel
from trainer.families.odt.search import SubsetSearch
from trainer.families.odt.topology import parse
from trainer.methods.monitor import Monitor
from trainer.milo import Hooks, SolveOptions, backend
from trainer.table import ColumnKind
from trainer.training.run import fit

BACKENDS = ("scip", "gurobi")
TOPOLOGIES = ("depth-2", "depth-2.5", "[.[..]]", "depth-3", "imbalanced", "[[..][.[..]]]")
WITHOUT = ("", "anchor", "relax", "strengthen", "anchor, relax, strengthen")


def small(seed, classes=2):
    """Return a problem of at most nine rows: equal rows, constant columns, numeric columns, or weights by repetition."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 10))
    p = int(rng.integers(1, 4))
    kinds = [ColumnKind.CATEGORICAL if rng.random() < 0.6 else ColumnKind.NUMERIC for _ in range(p)]
    columns = [rng.integers(0, int(rng.integers(1, 5)), n) for _ in range(p)]
    y = [int(c) for c in rng.integers(0, classes, n)]
    y[0], y[1] = 0, classes - 1
    return problem_of(columns, y, kinds)


def solved(problem, **settings):
    values = odt.METHOD.settings({"bins": 60, "positive": f"k{problem.n_classes - 1}"} | settings)
    return fit(odt.METHOD, problem, values, Monitor())


@pytest.mark.slow
@pytest.mark.parametrize("solver", BACKENDS)
@seeds(100)
def test_finds_the_best_tree_and_proves_it(solver, seed):
    problem = small(seed)
    topology = TOPOLOGIES[seed % 6]
    card = (0, 0, 1)[seed % 3]
    tree, certificate, _ = solved(
        problem,
        solver=solver,
        topology=topology,
        max_card=card,
        without=WITHOUT[seed % 5],
        first_tree=("none", "cart", "exact")[seed % 3],
    )
    assert certificate.status is Status.OPTIMAL
    assert problem.correct(tree) == brute(problem, parse(topology), card)
    assert certificate.bound == pytest.approx(problem.correct(tree) / problem.n)


@pytest.mark.slow
@pytest.mark.parametrize("solver", BACKENDS)
@seeds(60)
def test_required_shares_and_weights(solver, seed):
    problem = small(400 + seed)
    topology = TOPOLOGIES[seed % 5]
    kind = ("sensitivity", "specificity", "negative_weight")[seed % 3]
    pairs = reachable(problem, parse(topology), 0)
    rows = [int((problem.y == 1).sum()), int((problem.y == 0).sum())]
    if kind == "negative_weight":
        best = max(tp + Fraction(5, 2) * tn for tp, tn in pairs)
        found = reached(problem, solved(problem, solver=solver, topology=topology, negative_weight="2.5")[0])
        assert found[0] + Fraction(5, 2) * found[1] == best
        return
    own = 0 if kind == "sensitivity" else 1
    least = Fraction(1 + seed % 4, 5)
    tree, certificate, _ = solved(problem, solver=solver, topology=topology, **{kind: float(least)})
    found = reached(problem, tree)
    assert certificate.proved_optimal
    assert found[own] >= least * rows[own]
    assert found[1 - own] == max(pair[1 - own] for pair in pairs if pair[own] >= least * rows[own])


@pytest.mark.slow
@pytest.mark.parametrize("solver", BACKENDS)
@seeds(25)
def test_more_than_two_classes(solver, seed):
    problem = small(700 + seed, classes=3)
    topology = ("depth-2", "[.[..]]", "depth-2.5")[seed % 3]
    tree, certificate, _ = solved(problem, solver=solver, topology=topology)
    assert certificate.proved_optimal
    assert problem.correct(tree) == brute(problem, parse(topology), 0)


@pytest.mark.parametrize("seed", range(8))
def test_highs_agrees(seed):
    problem = small(seed)
    topology = TOPOLOGIES[seed % 4]
    tree, certificate, _ = solved(problem, solver="highs", topology=topology)
    assert certificate.proved_optimal
    assert problem.correct(tree) == brute(problem, parse(topology), 0)


@pytest.mark.parametrize("solver", ["scip"])
def test_unreachable_pair_is_answered_with_the_best(solver):
    answered = 0
    for seed in range(40):
        problem = two_classes(900 + seed)
        pairs = reachable(problem, parse("depth-1"), 0)
        positives = int((problem.y == 1).sum())
        negatives = int((problem.y == 0).sum())
        if (positives, negatives) in pairs:
            continue
        with pytest.raises(InfeasibleError) as caught:
            solved(problem, solver=solver, depth=1, sensitivity=1, specificity=1)
        assert caught.value.best == pytest.approx(max(b for a, b in pairs if a == positives) / negatives)
        answered += 1
        if answered == 4:
            return
    raise AssertionError("no such case")


@pytest.mark.slow
@seeds(60)
def test_every_tree_has_an_assignment_that_the_rows_accept(seed):
    """Optimal trees satisfy the model under every combination of techniques, with the tree's objective."""
    problem = two_classes(2000 + seed)
    topology = TOPOLOGIES[seed % 6]
    card = (0, 1)[seed % 2]
    groups = make_groups(problem, 60, card)
    shape = parse(topology)
    if not len(groups.sizes):
        return
    value, draft = SubsetSearch(groups=groups, root=shape).solve(shape, np.arange(len(problem.y)))
    for anchor, strengthen in ((True, True), (False, True), (True, False)):
        form = OdtModel(groups, shape, techniques=ModelTechniques(anchor=anchor, strengthen=strengthen))
        values = form.assignment(draft)
        assert values is not None
        assert form.model.violated(values) is None
        assert form.model.value(values) == value
        again = form.read(values, best_last=seed % 3 == 0)
        assert (predict_labels(again, problem.matrix) == problem.y).sum() == value


def test_anchoring_where_subtrees_differ_would_lose_trees():
    """With anchors at every node, some optimum would be cut off."""
    lost = 0
    for seed in range(60):
        problem = small(seed)
        groups = make_groups(problem, 60, 0)
        if not len(groups.sizes):
            continue
        form = OdtModel(groups, parse("depth-2"))
        assert form.anchored == {0}
        for p in form.places:
            for g in range(len(groups.sizes)):
                if p.number:
                    column = int(groups.start[g]) + form.anchor[g]
                    form.model.add(form.z[p.number][column] == form.u[p.number][g])
        outcome = backend("scip").solve(form.model, Hooks(), SolveOptions(absolute_gap=0.5))
        lost += round(outcome.objective) < brute(problem, parse("depth-2"), 0)
    assert lost > 0


def test_integers_do_not_grow_with_the_rows():
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 4, 300) for _ in range(3)]
    y = [int(k) for k in rng.integers(0, 2, 300)]
    whole, part = ([c[:n] for c in columns] for n in (300, 60))
    sizes = [
        OdtModel(
            make_groups(problem_of(c, y[: len(c[0])], [ColumnKind.CATEGORICAL] * 3), 10, 0), parse("depth-2")
        ).model.integers.sum()
        for c in (whole, part)
    ]
    assert sizes[0] == sizes[1] == 12  # one integer for each category at the root


def test_a_stopped_solver_keeps_its_first_tree():
    rng = np.random.default_rng(7)
    problem = problem_of(
        [rng.integers(0, 8, 200) for _ in range(6)], list(rng.integers(0, 2, 200)), [ColumnKind.CATEGORICAL] * 6
    )
    values = odt.METHOD.settings({"solver": "scip", "depth": 3})
    tree, certificate, _ = fit(odt.METHOD, problem, values, Monitor(Limits(time=1)))
    assert certificate.status is Status.TIME_LIMIT
    assert certificate.bound > certificate.objective
    assert problem.correct(tree) >= certificate.warm_start_objective * problem.n > 100


@pytest.mark.parametrize(("asked", "name"), [({"without": "magic"}, "without"), ({"frontier": True}, "frontier")])
def test_unsupported_solver_options_are_refused(asked, name):
    with pytest.raises(ParameterError) as caught:
        solved(small(1), solver="scip", **asked)
    assert name in caught.value.errors
