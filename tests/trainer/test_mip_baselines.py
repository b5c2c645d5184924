"""OCT and BinOCT against the plain recurrence on every back end (big-M models are hopeless at depth 3)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest

from tests.trainer.mip_cases import all_trees, best_value, mixed_instance, random_instance
from trainer.cuts.instance import Instance
from trainer.methods.binoct import BinOCT
from trainer.methods.oct import OCT
from trainer.methods.tree_mip import Formulation, optimise
from trainer.milo import BACKENDS, backend

VARIANTS = {
    "binoct": lambda inst: BinOCT(replace(inst, kappa=Fraction(0))),  # complete trees; leaves cost nothing
    "oct": OCT,
    "oct, single features": lambda inst: OCT(inst, single_features=True),
}


def formulation(seed: int, inst: Instance) -> Formulation:
    variant = list(VARIANTS)[seed % 3]
    return VARIANTS["oct" if variant == "binoct" and not len(inst.F) else variant](inst)


def check(name: str, form: Formulation, seed: int) -> None:
    inst = form.instance
    found = optimise(form, backend(name), starts=[inst.stump()] if seed % 2 else [])
    assert found.value == found.bound == best_value(inst), seed


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("seed", range(15))
def test_finds_and_proves_the_best_tree(name, seed):
    check(name, formulation(seed, random_instance(seed, max_depth=2, max_rows=10)), seed)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", BACKENDS)
def test_every_formulation_on_200_instances_on_every_solver(name, variant):
    first = 4000 + 200 * list(VARIANTS).index(variant)
    for seed in range(first, first + 200):
        inst = mixed_instance(seed, features=variant == "binoct", max_depth=2)
        check(name, VARIANTS[variant](inst), seed)


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
