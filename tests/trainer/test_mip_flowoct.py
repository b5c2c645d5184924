"""FlowOCT against the plain recurrence on every back end, and its cuts against all trees of small instances."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.trainer.mip_cases import all_trees, best_value, random_instance
from trainer.methods.flowoct import FlowOCT
from trainer.methods.tree_mip import optimise
from trainer.milo import BACKENDS, backend


def check(name: str, seed: int) -> None:
    inst = random_instance(seed)
    starts = [inst.stump()] if seed % 2 else []
    found = optimise(FlowOCT(inst, strengthen=seed % 3 == 0), backend(name), starts=starts)
    assert found.value == found.bound == best_value(inst)
    assert inst.value(found.tree) == found.value


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("seed", range(20))
def test_finds_and_proves_the_best_tree(name, seed):
    check(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("first", range(2000, 2240, 24))
def test_finds_and_proves_the_best_tree_of_240_instances(name, first):
    for seed in range(first, first + 24):
        check(name, seed)


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
    for tree in itertools.islice(all_trees(inst, labels=True), 500):
        values = form.assignment(tree)
        assert form.model.violated(values) is None
        assert inst.kappa * len(tree.leaves) + form.model.value(values) == pytest.approx(inst.correct(tree))
        assert all(row.violation(values) <= 1e-9 for row in rows)
