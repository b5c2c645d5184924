"""FlowOCT equals the plain recurrence on every solver, and its cuts exclude no tree."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.mip.cases import affordable_instance, all_trees, best_value, excess, random_instance, violated
from trainer.families.mip.flowoct import FlowOCT
from trainer.families.mip.instance import Instance
from trainer.families.mip.tree_mip import optimise
from trainer.milo import BACKENDS, backend

VARIANTS = {"plain": {}, "strengthened": {"strengthen": True}}


def check(name: str, variant: str, seed: int, inst: Instance) -> None:
    starts = [inst.majority_leaf()] if seed % 2 else []
    optimum = optimise(FlowOCT(inst, **VARIANTS[variant]), backend(name), starts=starts)
    assert optimum.value == optimum.bound == best_value(inst), seed
    assert inst.value(optimum.tree) == optimum.value


@pytest.mark.parametrize("name", BACKENDS)
@seeds(20)
def test_finds_and_proves_the_best_tree(name, seed):
    check(name, "plain" if seed % 3 else "strengthened", seed, random_instance(seed))


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", BACKENDS)
def test_every_variant_on_many_instances_on_every_solver(count, name, variant):
    first = 2000 + 200 * list(VARIANTS).index(variant)
    for seed in range(first, first + count):
        check(name, variant, seed, affordable_instance(name, seed))


@pytest.mark.parametrize("seed", range(12))
def test_every_tree_is_a_solution_and_no_cut_removes_one(seed):
    inst = random_instance(seed, max_depth=2, max_rows=6)
    form = FlowOCT(inst, strengthen=True)
    cuts = form.hooks().cuts
    r = np.random.default_rng(seed)
    rows = []
    for _ in range(20):
        rows += cuts.fractional(
            r.random((len(inst.tree.branch_nodes), len(inst.F))), r.random((inst.n, len(inst.tree.nodes)))
        )
    trees = list(itertools.islice(all_trees(inst, labels=True), 500))
    points = np.array([form.assignment(tree) for tree in trees])
    assert not violated(form.model, points).any()
    assert not rows or excess(rows, points).max() <= 1e-9
    for tree, values in zip(trees, points, strict=True):
        assert inst.kappa * len(tree.leaves) + form.model.value(values) == pytest.approx(inst.correct(tree))
