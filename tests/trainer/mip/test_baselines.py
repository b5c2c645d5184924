"""OCT and BinOCT equal the plain recurrence on every solver (big-M models are too slow at depth 3)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.mip.cases import KAPPAS, all_trees, best_value, mixed_instance, random_instance, violated
from trainer.families.mip import instance as instances
from trainer.families.mip.binoct_bits import BitsBinOCT
from trainer.families.mip.binoct_model import BinOCT
from trainer.families.mip.instance import Instance
from trainer.families.mip.ladders import Ladders, make_ladders
from trainer.families.mip.oct_model import OCT
from trainer.families.mip.oct_numeric import NumericOCT
from trainer.families.mip.tree_mip import Formulation, optimise
from trainer.milo import BACKENDS, SolveOptions, backend


def alone(inst: Instance) -> Ladders:
    """Return ladders of one feature each."""
    return make_ladders(inst, [[f] for f in inst.F])


VARIANTS = {
    "binoct": lambda inst: BinOCT(replace(inst, kappa=Fraction(0))),  # its trees are complete, so leaves cost nothing
    "oct": OCT,
    "oct, single features": lambda inst: OCT(inst, single_features=True),
    "binoct, bits": lambda inst: BitsBinOCT(replace(inst, kappa=Fraction(0)), alone(inst)),
    "oct, variables": lambda inst: NumericOCT(inst, alone(inst)),
}
NUMERIC = {
    "binoct, bits": lambda inst, ladders: BitsBinOCT(replace(inst, kappa=Fraction(0)), ladders),
    "oct, variables": NumericOCT,
}


def formulation(seed: int, inst: Instance) -> Formulation:
    variant = list(VARIANTS)[seed % len(VARIANTS)]
    return VARIANTS["oct" if variant.startswith("binoct") and not len(inst.F) else variant](inst)


def numeric(seed: int) -> tuple[Instance, Ladders]:
    """Return rows of two or three columns of few values, over all thresholds.

    There are ties, equal rows, constant columns and weights.
    """
    r = np.random.default_rng(seed)
    n = int(r.integers(2, 10))
    p = int(r.integers(1, 4))
    most = int(r.integers(1, 7))
    values = r.integers(0, most + 1, (n, p))
    above = [(j, c) for j in range(p) for c in range(values[:, j].min(), values[:, j].max())]
    X = np.array([[row[j] > c for j, c in above] for row in values], np.uint8).reshape(n, len(above))
    inst = instances.build(
        X,
        r.integers(0, 3, n).astype(np.int32),
        depth=int(r.integers(1, 3)),
        kappa=KAPPAS[seed % len(KAPPAS)],
        weight=r.integers(1, 3, n),
    )
    columns = [above[f][0] for f in inst.features.tolist()]
    return inst, make_ladders(inst, [[f for f in inst.F if columns[f] == j] for j in sorted(set(columns))])


def check(name: str, form: Formulation, seed: int) -> None:
    inst = form.instance
    optimum = optimise(form, backend(name), starts=[inst.majority_leaf()] if seed % 2 else [])
    assert optimum.value == optimum.bound == best_value(inst), seed


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("seed", range(15))
def test_finds_and_proves_the_best_tree(name, seed):
    check(name, formulation(seed, random_instance(seed, max_depth=2, max_rows=10)), seed)


@pytest.mark.slow
@pytest.mark.parametrize("variant", [v for v in VARIANTS if v not in NUMERIC])
@pytest.mark.parametrize("name", BACKENDS)
def test_every_formulation_on_many_instances_on_every_solver(count, name, variant):
    first = 4000 + 200 * list(VARIANTS).index(variant)
    for seed in range(first, first + count):
        inst = mixed_instance(seed, features=variant.startswith("binoct"), max_depth=2, deep=2)
        check(name, VARIANTS[variant](inst), seed)


@pytest.mark.parametrize("variant", NUMERIC)
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.slow
def test_thresholds_inside_of_the_model_find_what_questions_find(count, name, variant):
    """The recurrence has one question for each threshold, with up to six thresholds per column."""
    tried = 0
    for seed in itertools.count(9000):
        inst, ladders = numeric(seed)
        if len(inst.F):
            form = NUMERIC[variant](inst, ladders)
            check(name, form, seed)
            tried += 1
        if tried == count:
            break


def test_without_o11_unbranched_node_sends_rows_both_ways():
    """The printed rows (O6) and (O7) alone: two rows of two classes at no price, where the price of a leaf forbids it."""
    inst = instances.build(np.array([[0], [1]], np.uint8), np.array([0, 1], np.int32), depth=1, kappa=Fraction(2))
    form = NumericOCT(inst, alone(inst))
    assert backend("scip").solve(form.model, form.hooks(), SolveOptions()).bound == pytest.approx(
        float(best_value(inst))
    )
    form.model.rows[:] = [row for row in form.model.rows if row.name != "O11"]
    assert backend("scip").solve(form.model, form.hooks(), SolveOptions()).bound == pytest.approx(0.0)
    assert best_value(inst) == -1


@pytest.mark.slow
@seeds(40)
def test_every_tree_is_a_solution_of_its_value_over_ladders(seed):
    inst, ladders = numeric(seed)
    for variant, make in NUMERIC.items() if len(inst.F) else ():
        form = make(inst, ladders)
        trees = list(itertools.islice(all_trees(form.instance), 200))
        points = np.array([form.assignment(tree) for tree in trees])
        assert not violated(form.model, points).any(), variant
        for tree, values in zip(trees, points, strict=True):
            assert form.model.value(values) == pytest.approx(float(form.instance.value(tree)))
            assert form.instance.value(form.read(values)) >= form.instance.value(tree)


@seeds(30)
def test_every_tree_is_a_solution_of_its_value(seed):
    inst = random_instance(seed, max_depth=2, max_rows=7)
    form = formulation(seed, inst)
    # Constraint (O3) lets a terminal node of OCT predict only its majority class.
    for tree in itertools.islice(all_trees(form.instance, labels=isinstance(form, BinOCT)), 300):
        values = form.assignment(tree)
        assert form.model.violated(values) is None
        assert form.model.value(values) == pytest.approx(float(form.instance.value(tree)))
        assert form.instance.value(form.read(values)) >= form.instance.value(tree)
