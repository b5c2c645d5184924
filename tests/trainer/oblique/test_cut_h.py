"""CUT-H and CUT_w-H equal enumeration of linear separations, and minimal inseparable sets are found."""

from __future__ import annotations

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.oblique.tables import instance
from tests.trainer.oracles.oblique import best_value, circuits, separations
from trainer.families.oblique.instance import ObliqueInstance, mirror
from trainer.families.oblique.local import LocalSearch
from trainer.families.oblique.separable import Separator
from trainer.families.oblique.shattering import CONNECT, CutHooks, CutModel, CutOptions
from trainer.milo import Point, SolveOptions, backend
from trainer.milo.hooks import NodeInfo
from trainer.milo.lattice import Lattice


def options(seed):
    return CutOptions(
        weak=seed % 2 == 0,
        connect=CONNECT[seed % 5],
        tight=seed % 3 > 0,
        symmetry=seed % 4 > 0,
        everywhere=seed % 7 > 2,
        several=1 + seed % 5,
    )


def check(name, seed, **changes):
    X, inst = instance(seed, **changes)
    form = CutModel(instance=inst, options=options(seed))
    hooks = CutHooks(form)
    lattice = Lattice(kappa=inst.kappa, leaves=1 << inst.depth)
    outcome = backend(name).solve(form.model, hooks, SolveOptions(time=60, absolute_gap=lattice.gap))
    best = best_value(X, inst.counts, inst.depth, inst.kappa, complete=inst.complete, most=inst.max_leaves)
    tree = form.read(outcome.values)
    assert lattice.floor(outcome.bound) == best
    assert inst.value(inst.prune(tree)) == best
    assert inst.ceiling >= best
    known = circuits(X)
    assert all((frozenset(a), frozenset(b)) in known for a, b in hooks.pool)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scip", "gurobi"])
@pytest.mark.parametrize("first", range(0, 200, 25))
def test_finds_and_proves_the_best_tree_of_200_instances(name, first):
    for seed in range(first, first + 25):
        check(name, seed)


@pytest.mark.parametrize("seed", range(300, 306))
def test_highs_solves_separates_and_solves_again(seed):
    check("highs", seed)


@pytest.mark.parametrize("seed", range(400, 420))
def test_balanced_trees_and_a_limit_of_leaves(seed):
    check("scip", seed, complete=True)
    check("scip", seed, max_leaves=1 + seed % 3)


@seeds(60)
def test_separability_is_exact_and_supports_are_circuits(seed):
    X, inst = instance(seed)
    separator = Separator(inst.Z)
    known = circuits(X)
    possible = separations(X)
    r = np.random.default_rng(seed)
    for _ in range(10):
        left = np.flatnonzero(r.random(len(X)) < 0.5)
        right = np.setdiff1d(np.arange(len(X)), left)
        plane = separator.plane(left, right)
        supports = separator.supports(left, right)
        if not len(left) or not len(right) or frozenset(left.tolist()) in possible:
            assert plane is not None
            assert not supports
            assert plane.left(inst.Z[left]).all()
            assert not plane.left(inst.Z[right]).any()
            continue
        assert plane is None
        assert supports
        for support in supports:
            assert (frozenset(support[0]), frozenset(support[1])) in known
            assert len(support[0]) + len(support[1]) <= X.shape[1] + 2


def test_a_point_on_both_sides_is_its_own_support():
    separator = Separator(np.array([[0.0], [1.0]]))
    assert separator.plane([0], [0, 1]) is None
    assert separator.supports([0], [0, 1]) == [((0,), (0,))]


@seeds(40)
def test_a_tree_written_into_the_model_keeps_its_exact_value(seed):
    X, inst = instance(seed, complete=seed % 3 == 0)
    search = LocalSearch(inst, seed)
    search.run([inst.majority_leaf()] if not inst.complete else [], enough=inst.ceiling, stopped=lambda: False, most=20)
    form = CutModel(instance=inst, options=options(seed))
    values = form.assignment(search.best)
    assert form.model.violated(values) is None
    assert form.model.value(values) == pytest.approx(float(inst.value(form.normal_form(search.best))), abs=1e-9)
    assert not CutHooks(form).on_integral(Point(values), "start")
    assert inst.value(form.read(values)) >= search.value
    assert search.value <= best_value(X, inst.counts, inst.depth, inst.kappa, complete=inst.complete)


@pytest.mark.slow
def test_local_search_meets_oracle_and_leaves_local_optimum():
    left = 0
    for seed in range(25):
        X, inst = instance(seed)
        best = best_value(X, inst.counts, inst.depth, inst.kappa)
        search = LocalSearch(inst, seed)
        search.run([], enough=inst.ceiling, stopped=lambda: False, most=75)
        assert search.value == inst.value(search.best) == best
        walker = LocalSearch(inst, seed)
        walker.best = walker.improve(walker.random_subtree(inst.empty(), 1), lambda: False)
        walker.value = optimum = inst.value(walker.best)
        walker._reweigh(walker.consider, inst.ceiling, lambda: False)
        assert optimum <= walker.value == inst.value(walker.best) <= best
        left += walker.value > optimum
    assert left >= 5


def test_local_search_without_success_times_out():
    X = np.array([[0.0], [1.0], [2.0]])
    counts = np.array(
        [[1, 0], [0, 1], [1, 0]]
    )  # one plane cannot classify all rows correctly, but the upper bound does not know that
    inst = ObliqueInstance(Z=X / 2, counts=counts, classes=np.arange(2, dtype=np.int32), group=np.arange(3), depth=1)
    search = LocalSearch(inst, 0)
    search.run([], enough=inst.ceiling, stopped=lambda: False, patience=30)
    assert search.value == 2 < inst.ceiling
    assert 30 <= search.rounds < 60


@seeds(20)
def test_mirroring_moves_no_point_to_another_leaf(seed):
    _, inst = instance(seed)
    tree = LocalSearch(inst, seed).random_subtree(inst.empty(), 1)
    labels = tree.label[inst.route(tree)]
    for v in tree.branches:
        other = mirror(inst, tree, v)
        assert (other.label[inst.route(other)] == labels).all()


def test_root_cuts_of_the_three_types():
    _, inst = instance(3)
    counts = {}
    for kind in ("I", "II", "III"):
        form = CutModel(instance=inst, options=CutOptions(weak=True, connect=kind, tight=False))
        values = np.zeros(form.model.size)
        values[form.s.columns.ravel()] = 0.5
        counts[kind] = len(CutHooks(form).on_fractional(Point(values), NodeInfo()))
    assert counts["I"] > counts["II"] == counts["III"] > 0
