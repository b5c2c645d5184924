"""BendOCT against the plain recurrence on every back end, and its cuts against all trees of small instances."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

from tests.trainer.mip_cases import all_trees, best_value, random_instance
from trainer.methods.bendoct import BendOCT
from trainer.methods.tree_mip import optimise
from trainer.milo import BACKENDS, Ended, Options, Point, backend

VARIANTS = {
    "plain": {},
    "root cuts": {"root_cuts": True},
    "strengthened": {"strengthened": True},
    "no repair": {"whole_labels": True, "repair": False},
}


def check(name: str, seed: int) -> None:
    inst = random_instance(seed)
    variant = VARIANTS[list(VARIANTS)[seed % len(VARIANTS)]]
    starts = [inst.stump()] if seed % 2 else []
    found = optimise(BendOCT(inst, **variant), backend(name), starts=starts)
    best = best_value(inst)
    assert found.value == best
    assert found.bound == best
    assert inst.value(found.tree) == best


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("seed", range(24))
def test_finds_and_proves_the_best_tree(name, seed):
    check(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("first", range(1000, 1240, 24))
def test_finds_and_proves_the_best_tree_of_240_instances(name, first):
    for seed in range(first, first + 24):
        check(name, seed)


@pytest.mark.parametrize("seed", range(20))
def test_no_cut_removes_a_tree(seed):
    """Every (9), (10), (11), (12) and fractional minimum cut holds for the true scores of every tree and labelling."""
    inst = random_instance(seed, max_depth=2, max_rows=6)
    form = BendOCT(inst, strengthened=True)
    rows = [form.benders.row(i, v) for i in range(inst.n) for v in inst.tree.nodes]
    rows += [form.benders.strengthened_row(i, v) for i in range(inst.n) for v in inst.tree.terminal_nodes]
    r = np.random.default_rng(seed)
    for _ in range(5):
        b, w = (
            r.random((len(inst.tree.branch_nodes), len(inst.F))) / 3,
            r.random((len(inst.tree.nodes), inst.classes)) / 3,
        )
        rows += form.benders.fractional(b, w, np.ones(inst.n), limit=99)
    trees = list(itertools.islice(all_trees(inst, labels=True), 4000))
    assert rows
    assert trees
    for tree in trees:
        values = form.assignment(tree)
        assert form.model.violated(values) is None
        assert max(row.violation(values) for row in rows) <= 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_the_separation_accepts_exactly_the_scores_that_a_tree_earns(seed):
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
        assert all(row.violation(values) > 0.39 for row in cut)


@pytest.mark.parametrize("name", BACKENDS)
def test_cancel_after_the_first_incumbent_keeps_it(name):
    inst = random_instance(7, max_depth=2)
    cancelled = threading.Event()

    def news(value, bound, nodes, tree):
        if value is not None:
            cancelled.set()
        return cancelled.is_set()

    found = optimise(
        BendOCT(inst), backend(name), starts=[inst.stump()], news=news, options=Options(stopped=cancelled.is_set)
    )
    assert found.value is not None
    assert found.bound >= best_value(inst) >= found.value
    assert found.outcome.ended in (Ended.CANCELLED, Ended.OPTIMAL)
