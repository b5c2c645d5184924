"""OCT and BinOCT against the plain recurrence on every back end (big-M models are hopeless at depth 3)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest

from tests.trainer.mip_cases import all_trees, best_value, random_instance
from trainer.cuts.instance import Instance
from trainer.methods.binoct import BinOCT
from trainer.methods.oct import OCT
from trainer.methods.tree_mip import Formulation, optimise
from trainer.milo import BACKENDS, backend


def formulation(seed: int, inst: Instance) -> Formulation:
    if seed % 3 == 0 and len(inst.F):
        return BinOCT(replace(inst, kappa=Fraction(0)))
    return OCT(inst, single_features=seed % 3 == 1)


def check(name: str, seed: int) -> None:
    form = formulation(seed, random_instance(seed, max_depth=2, max_rows=10))
    inst = form.instance
    found = optimise(form, backend(name), starts=[inst.stump()] if seed % 2 else [])
    assert found.value == found.bound == best_value(inst)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("seed", range(15))
def test_finds_and_proves_the_best_tree(name, seed):
    check(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("first", range(4000, 4600, 60))
def test_finds_and_proves_the_best_tree_of_600_instances(name, first):
    for seed in range(first, first + 60):
        check(name, seed)


@pytest.mark.parametrize("seed", range(18))
def test_every_tree_is_a_solution_of_its_value(seed):
    inst = random_instance(seed, max_depth=2, max_rows=7)
    form = formulation(seed, inst)
    # (O3) lets a terminal node of OCT predict its majority class only
    for tree in itertools.islice(all_trees(form.instance, labels=isinstance(form, BinOCT)), 300):
        values = form.assignment(tree)
        assert form.model.violated(values) is None
        assert form.model.value(values) == pytest.approx(float(form.instance.value(tree)))
        assert form.instance.value(form.read(values)) >= form.instance.value(tree)
