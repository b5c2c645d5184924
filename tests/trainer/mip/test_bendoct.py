"""BendOCT equals the plain recurrence on every solver, and its cuts exclude no tree."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.mip.cases import affordable_instance, all_trees, best_value, excess, random_instance, violated
from trainer.families.mip.bendoct import BendOCT
from trainer.families.mip.bendoct_accelerated import PAPER, AcceleratedBendOCT
from trainer.families.mip.instance import Instance
from trainer.families.mip.tree_mip import optimise
from trainer.milo import BACKENDS, Hooks, Point, SolveOptions, Termination, backend

VARIANTS = {
    "plain": {},
    "root cuts": {"root_cuts": True},
    "strengthened": {"strengthened": True},
    "no repair": {"whole_labels": True, "repair": False},
}


def check(name: str, variant: str, seed: int, inst: Instance) -> None:
    starts = [inst.majority_leaf()] if seed % 2 else []
    optimum = optimise(BendOCT(inst, **VARIANTS[variant]), backend(name), starts=starts)
    assert optimum.value == optimum.bound == best_value(inst), seed
    assert inst.value(optimum.tree) == optimum.value


@pytest.mark.parametrize("name", BACKENDS)
@seeds(24)
def test_finds_and_proves_the_best_tree(name, seed):
    check(name, list(VARIANTS)[seed % len(VARIANTS)], seed, random_instance(seed))


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", BACKENDS)
def test_every_variant_on_many_instances_on_every_solver(count, name, variant):
    first = 1000 + 200 * list(VARIANTS).index(variant)
    for seed in range(first, first + count):
        check(name, variant, seed, affordable_instance(name, seed))


@seeds(20)
def test_no_cut_removes_a_tree(seed):
    """Every cut of (9), (10), (11) and (12), and every fractional minimum cut, holds for the true scores of all labelled trees."""
    inst = random_instance(seed, max_depth=2, max_rows=6)
    form = BendOCT(inst, strengthened=True)
    rows = [form.benders.row(i, v) for i in range(inst.n) for v in inst.tree.nodes]
    rows += [form.benders.strengthened_row(i, v) for i in range(inst.n) for v in inst.tree.terminal_nodes]
    r = np.random.default_rng(seed)
    for _ in range(5):
        b = r.random((len(inst.tree.branch_nodes), len(inst.F))) / 3
        w = r.random((len(inst.tree.nodes), inst.classes)) / 3
        rows += form.benders.fractional(b, w, np.ones(inst.n), limit=99)
    trees = list(itertools.islice(all_trees(inst, labels=True), 4000))
    assert rows
    assert trees
    points = np.array([form.assignment(tree) for tree in trees])
    assert not violated(form.model, points).any()
    assert excess(rows, points).max() <= 1e-9


@seeds(20)
def test_rows_with_fewer_numbers_say_what_the_printed_ones_say(seed):
    """(9), (10) with every exit written out, at points that keep (S1)."""
    inst = random_instance(seed, max_rows=8)
    form = BendOCT(inst)
    s = form.structure
    r = np.random.default_rng(seed)
    values = r.random(form.model.size)
    for v in inst.tree.branch_nodes if len(inst.F) else ():
        columns = s.b.columns[v - 1]
        above = sum(values[s.p.column(u)] for u in inst.tree.path(v))
        values[columns] *= (1 - above) / values[columns].sum()
    for i, v in itertools.product(range(inst.n if len(inst.F) else 0), inst.tree.nodes):
        printed = values[form.theta.columns[i]]
        for u, side in inst.tree.turns(v):
            printed -= values[s.b.columns[u - 1, ~inst.ones[i] if side else inst.ones[i]]].sum()
        printed -= values[s.b.columns[v - 1]].sum() if v < 1 << inst.depth else 0.0
        printed -= sum(values[s.w.columns[u - 1, inst.y[i]]] for u in inst.tree.path(v))
        row = form.benders.row(i, v)
        assert len(set(row.columns.tolist())) == len(row.columns)
        assert values[row.columns] @ row.coefficients - row.upper == pytest.approx(printed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_separation_accepts_exactly_scores_of_a_tree(seed):
    inst = random_instance(seed, max_depth=2, max_rows=8)
    form = BendOCT(inst, whole_labels=True)
    for tree in itertools.islice(all_trees(inst, labels=True), 300):
        values = form.assignment(tree)
        hooks = form.hooks()
        assert not list(hooks.on_integral(Point(values), "lp"))
        wrong = np.flatnonzero(values[form.theta.columns] == 0)
        values[form.theta.columns] = np.where(values[form.theta.columns] > 0, 1.0, 0.4)
        cut = hooks.on_integral(Point(values), "lp")
        assert len(cut) == len(wrong)
        assert all(row.activity(values) - row.upper > 0.39 for row in cut)


FORMULATIONS = {
    "without path bounds": lambda inst: BendOCT(inst, repair=False),
    "with path bounds": lambda inst: AcceleratedBendOCT(inst, PAPER),
    "with split bounds": AcceleratedBendOCT,
}
formulations = pytest.mark.parametrize("formulation", FORMULATIONS)


def meddling(form: BendOCT, points: list[np.ndarray], asked: list[int]) -> Callable[[], Hooks]:
    """Return hooks that also propose other points at their first call. `asked` records the call."""
    make = form.hooks

    def hooks() -> Hooks:
        inner = make()
        propose = inner.propose
        waiting = [points]

        def proposals() -> list[np.ndarray]:
            asked.append(len(waiting))
            return [*propose(), *(waiting.pop() if waiting else [])]

        inner.propose = proposals
        return inner

    return hooks


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKENDS)
@formulations
def test_points_that_are_no_better_or_no_trees_do_no_harm(name, formulation):
    """These points are trees no better than the first one, scores of no tree, two questions at one node, and a label without its leaf."""
    asked: list[int] = []
    for seed in range(24):
        inst = affordable_instance(name, 3 * seed, bounded=formulation != "without path bounds", features=True)
        form = FORMULATIONS[formulation](inst)
        s = form.structure
        stump = form.assignment(inst.majority_leaf())
        unearned = stump.copy()
        double = stump.copy()
        homeless = stump.copy()
        unearned[form.theta.columns] = 1.0
        double[s.b.columns[0]] = 1.0
        homeless[s.p.columns[0]] = 0.0
        form.hooks = meddling(form, [stump, unearned, double, homeless], asked)
        optimum = optimise(form, backend(name), starts=[inst.majority_leaf()])
        assert optimum.value == optimum.bound == best_value(inst), (seed, name)
        assert form.model.violated(optimum.outcome.values) is None
        assert optimum.outcome.objective <= float(best_value(inst)) + 1e-6
    assert asked


@pytest.mark.parametrize("name", BACKENDS)
@formulations
def test_cancel_after_the_first_incumbent_keeps_it(name, formulation):
    inst = random_instance(7, max_depth=2)
    cancelled = threading.Event()

    def listener(value, bound, nodes, tree):
        if value is not None:
            cancelled.set()
        return cancelled.is_set()

    optimum = optimise(
        FORMULATIONS[formulation](inst),
        backend(name),
        starts=[inst.majority_leaf()],
        listener=listener,
        options=SolveOptions(stopped=cancelled.is_set),
    )
    assert optimum.value is not None
    assert optimum.bound >= best_value(inst) >= optimum.value
    assert optimum.outcome.ended in (Termination.CANCELLED, Termination.OPTIMAL)
