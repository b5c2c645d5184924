"""Side constraints against enumeration of all labelled trees, on every formulation that takes them and every back end."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.mip_cases import KAPPAS, all_trees
from trainer.cuts import instance as instances
from trainer.cuts.instance import Instance
from trainer.cuts.side import (
    ClassRecall,
    EqualRates,
    ForbiddenPair,
    MaxColumns,
    MaxLeaves,
    Monotone,
    RelaxedRecalls,
    SideConstraint,
)
from trainer.errors import InfeasibleError
from trainer.methods.bendoct import BendOCT
from trainer.methods.bendoct_accelerated import AcceleratedBendOCT, Techniques
from trainer.methods.flowoct import FlowOCT
from trainer.methods.tree_mip import optimise, shortfall
from trainer.milo import BACKENDS, Options, backend
from trainer.search import greedy

FORMULATIONS = {
    "flowoct": FlowOCT,
    "bendoct": BendOCT,
    "accelerated": AcceleratedBendOCT,
    "everything": lambda inst, side: AcceleratedBendOCT(
        inst, Techniques(equivalent_points="recursive", strengthened=True), side=side
    ),
}


def constrained(seed: int) -> tuple[Instance, list[SideConstraint]]:
    r = np.random.default_rng(seed)
    n, F, K = int(r.integers(4, 11)), int(r.integers(2, 4)), 2 if seed % 4 else 3
    X = (r.random((n, F)) < 0.5).astype(np.uint8)
    inst = instances.build(
        X, r.integers(0, K, n).astype(np.int32), depth=2 if seed % 5 else 1, kappa=KAPPAS[seed % len(KAPPAS)],
        weight=r.integers(1, 3, n), group=r.integers(0, 2, n).astype(np.int32),
    )  # fmt: skip
    F, K = len(inst.F), inst.classes
    pool: list[SideConstraint] = [
        MaxLeaves(limit=int(r.integers(1, 4))),
        ClassRecall(label=int(r.integers(K)), share=Fraction(int(r.integers(5, 11)), 10)),
        EqualRates(label=K - 1, delta=Fraction(int(r.integers(0, 4)), 10), only_label=K > 2 or seed % 2 == 0),
    ]
    if F:
        pool += [
            ForbiddenPair(first=(0,), second=(F - 1,)),
            Monotone(features=(int(r.integers(F)),), decreasing=bool(r.integers(2))),
            MaxColumns(limit=1, columns=tuple(range(F))),
            ClassRecall(label=0, share=Fraction(9, 10)),
        ]
    first = seed % len(pool)
    return inst, [pool[first], pool[int(r.integers(len(pool)))]] if seed % 3 == 0 else [pool[first]]


def best_value(inst: Instance, side: list[SideConstraint]) -> Fraction | None:
    values = [inst.value(t) for t in all_trees(inst, labels=True) if all(c.holds(inst, t) for c in side)]
    return max(values, default=None)


def check(name: str, formulation: str, seed: int) -> bool:
    inst, side = constrained(seed)
    best = best_value(inst, side)
    form = FORMULATIONS[formulation](inst, side=side)
    starts = form.first([greedy.cart(inst)])
    if best is None:
        with pytest.raises(InfeasibleError):
            optimise(form, backend(name), starts=starts)
        return False
    found = optimise(form, backend(name), starts=starts)
    assert found.value == found.bound == best, (seed, side)
    assert form.admits(found.tree)
    return True


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("name", BACKENDS)
def test_the_best_admitted_tree_is_found_and_proved(name, formulation):
    seeds = range(40) if name != "highs" else range(12)
    solved = [check(name, formulation, seed) for seed in seeds]
    assert any(solved)


@pytest.mark.slow
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("name", ["scip", "gurobi"])
def test_the_best_admitted_tree_of_200_instances(name, formulation):
    solved = [check(name, formulation, seed) for seed in range(1000, 1200)]
    assert sum(solved) > 150


@pytest.mark.parametrize("seed", range(25))
def test_rows_and_judgement_agree_on_every_tree(seed):
    """A labelled tree satisfies the rows of a constraint exactly when the constraint says that it holds."""
    inst, side = constrained(seed)
    form = BendOCT(replace(inst, kappa=Fraction(0)), side=side)
    for tree in all_trees(inst, labels=True):
        assert (form.model.violated(form.assignment(tree)) is None) == form.admits(tree)


def test_contradicting_constraints_are_said_to_be_infeasible():
    X = np.array([[0], [0]], np.uint8)
    inst = instances.build(X, np.array([0, 1], np.int32), depth=1, kappa=Fraction(0))
    side = [ClassRecall(label=k, share=Fraction(1)) for k in (0, 1)]
    with pytest.raises(InfeasibleError, match="No tree satisfies"):
        optimise(BendOCT(inst, side=side), backend("scip"))


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("name", ["scip", "gurobi"])
def test_what_can_be_reached_where_recalls_contradict_each_other(name, formulation):
    """The least common shortfall, against all labelled trees that satisfy the other constraints."""
    for seed in range(12):
        inst, _ = constrained(seed)
        recalls = tuple(ClassRecall(label=k, share=Fraction(1)) for k in inst.K)
        other = MaxLeaves(limit=3)
        judge = RelaxedRecalls(recalls=recalls)
        least = min(judge.shortfall(inst, t) for t in all_trees(inst, labels=True) if other.holds(inst, t))
        make = FORMULATIONS[formulation]
        found = shortfall(
            inst, [other, *recalls], lambda side, i=inst, m=make: m(i, side=side), backend(name), Options()
        )
        assert found == least
    assert shortfall(inst, [other], lambda side, i=inst, m=make: m(i, side=side), backend(name), Options()) is None
