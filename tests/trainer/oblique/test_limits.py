"""Minimum leaf size, coefficient prices, big-M constants and complete routes equal enumeration of sides."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.oblique.distance_cases import small
from tests.trainer.oblique.tables import instance, table
from tests.trainer.oracles.oblique_class import best_in_class
from trainer.check.recount import refuted, verify
from trainer.errors import ParameterError
from trainer.families.oblique.distance import DistantSearch
from trainer.families.oblique.local import LocalSearch
from trainer.families.oblique.oct_h import OCTH
from trainer.families.oblique.s_oct import SOCT
from trainer.families.oblique.shattering import CutHooks, CutModel, CutOptions
from trainer.milo import Hooks, Point, SolveOptions, backend
from trainer.milo.lattice import Lattice
from trainer.training.run import TrainRequest, save, train

SOLVERS = ("scip", "gurobi")
CHARGES = (Fraction(0), Fraction(1, 4), Fraction(1, 3), Fraction(1), Fraction(3, 2))


def points(seed, most=6):
    """Return an instance of few points, with `min_leaf` from 2 to 4."""
    inst = instance(seed)[1]
    keep = np.random.default_rng(seed).permutation(len(inst.Z))[:most]
    inst = replace(inst, Z=inst.Z[keep], counts=inst.counts[keep], group=np.arange(len(keep)))
    return replace(inst, min_leaf=min(inst.total, 2 + seed % 3))


def optimum(name, form, hooks, inst):
    """Return the proved value, and the best tree that the point of the solver gives."""
    lattice = Lattice(kappa=inst.kappa, leaves=1 << inst.depth, charge=inst.charge, columns=inst.Z.shape[1])
    outcome = backend(name).solve(form.model, hooks, SolveOptions(time=60, absolute_gap=lattice.gap))
    return lattice.floor(outcome.bound), form.read(outcome.values)


def test_bounds_are_rounded_down_to_possible_tree_values():
    r = np.random.default_rng(8)
    for _ in range(120):
        kappa, charge = (Fraction(int(r.integers(0, 4)), int(r.integers(1, 40))) for _ in range(2))
        leaves = int(r.integers(1, 5))
        columns = int(r.integers(1, 4))
        charge *= bool(r.integers(4))
        values = sorted(
            {
                c - kappa * t - charge * u
                for c in range(-3, 50)
                for t in range(1, leaves + 1)
                for u in range(t - 1, (t - 1) * columns + 1)
            }
        )
        lattice = Lattice(kappa=kappa, leaves=leaves, charge=charge, columns=columns)
        inside = [v for v in values if -2 <= v <= 12]
        assert lattice.step == min(b - a for a, b in pairwise(inside))
        for bound in (*r.uniform(0, 10, 5), float(inside[len(inside) // 2])):
            limit = Fraction(bound) + Fraction(1, 10**6)
            assert lattice.floor(bound) == max(v for v in values if v <= limit), (kappa, charge, leaves, columns, bound)


def test_many_leaves_and_coefficients_round_to_common_fraction():
    lattice = Lattice(kappa=Fraction(1, 7), leaves=64, charge=Fraction(1, 30), columns=500)
    assert lattice.rests == []
    assert lattice.step == Fraction(1, 210)
    assert lattice.floor(3.0 + 1 / 300) == 3


@pytest.mark.parametrize("solver", ["scip", "highs"])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_small_objective_with_priced_coefficients_is_proved(solver, depth):
    data, labels = table(np.arange(6.0)[:, None], np.arange(6) % 2)
    parameters = {"depth": depth, "leaf_penalty": 0.49, "coefficient_penalty": 0.001, "first_trees": "cart"}
    request = TrainRequest(
        table=data, labels=labels, method="oct-h", parameters=parameters | {"search_seconds": 0.2, "solver": solver}
    )
    certificate = train(request).certificate
    assert (certificate.status, certificate.gap) == ("optimal", 0.0)
    assert certificate.objective == pytest.approx(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("first", range(0, 60, 15))
def test_no_leaf_is_smaller_than_asked(name, first):
    for seed in range(first, first + 15):
        inst = points(seed)
        best = best_in_class(inst.Z, inst.counts, inst.depth, inst.kappa, min_leaf=inst.min_leaf)
        assert inst.ceiling >= best
        form = SOCT(inst, CutOptions())
        if seed % 3:
            form = CutModel(instance=inst, options=CutOptions(weak=seed % 3 == 1, symmetry=seed % 2 == 0))
        bound, tree = optimum(name, form, CutHooks(form), inst)
        assert bound == best
        assert inst.admits(inst.prune(tree))
        assert inst.value(inst.prune(tree)) == best


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("first", range(0, 30, 15))
def test_routes_of_all_rows_change_no_optimum(name, first):
    for seed in range(first, first + 15):
        inst = replace(points(seed, 8), min_leaf=1)
        values = []
        for full in (False, True):
            form = CutModel(instance=inst, options=CutOptions(full=full, weak=seed % 2 == 0))
            values.append(optimum(name, form, CutHooks(form), inst)[0])
        assert values[0] == values[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("constants", ["data", "paper"])
@pytest.mark.parametrize("first", range(0, 15, 15))
def test_planes_as_variables_have_the_optimum_of_their_class(name, constants, first):
    for seed in range(first, first + 15):
        inst, least = small(seed)
        inst = replace(inst, min_leaf=1 + seed % 3)
        best = best_in_class(inst.Z, inst.counts, inst.depth, inst.kappa, least=least, min_leaf=inst.min_leaf)
        form = (OCTH if seed % 2 else soct)(inst, least=least, constants=constants)
        bound, tree = optimum(name, form, Hooks(), inst)
        assert bound == best
        search = DistantSearch(inst, 0, None, least)
        search.accept(tree)
        assert search.value == best


def soct(inst, **more):
    return SOCT(inst, CutOptions(), **more)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("first", range(0, 24, 12))
def test_a_coefficient_costs_its_price(name, first):
    met = 0
    for seed in range(first, first + 12):
        inst, least = small(seed)
        inst = replace(inst, charge=CHARGES[seed % 5], min_leaf=1 + seed % 2)
        best = best_in_class(
            inst.Z, inst.counts, inst.depth, inst.kappa, least=least, min_leaf=inst.min_leaf, charge=inst.charge
        )
        assert inst.ceiling >= best
        form = OCTH(inst, least=least)
        bound, tree = optimum(name, form, Hooks(), inst)
        assert bound == best
        assert inst.value(inst.prune(tree)) == best
        search = DistantSearch(inst, seed, None, least)
        search.run([], enough=inst.ceiling, stopped=lambda: False, most=20)
        assert search.value == inst.value(search.best) <= best
        met += search.value == best
        values = form.assignment(search.best)
        assert form.model.violated(values) is None
        assert form.model.value(values) == pytest.approx(float(search.value), abs=1e-9)
    assert met >= 9


@seeds(60)
def test_trees_are_pruned_to_large_leaves_and_fit_the_models(seed):
    inst = points(seed, 9)
    search = LocalSearch(inst, seed)
    search.run([], enough=inst.ceiling, stopped=lambda: False, most=10)
    assert inst.admits(search.best)
    for form in (CutModel(instance=inst, options=CutOptions(weak=seed % 2 == 0)), SOCT(inst, CutOptions())):
        values = form.assignment(search.best)
        assert form.model.violated(values) is None
        assert form.model.value(values) == pytest.approx(float(search.value), abs=1e-9)
        assert not CutHooks(form).on_integral(Point(values), "start")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["cut-h", "cutw-h", "s-oct", "oct-h"])
@pytest.mark.parametrize("seed", range(4))
def test_methods_respect_min_leaf_and_their_files_verify(method, seed, tmp_path):
    inst = points(seed + 10)
    if inst.counts.shape[1] < 2:
        return
    g, k = np.nonzero(inst.counts)
    times = inst.counts[g, k]
    X = np.repeat(inst.Z[g] * 4, times, axis=0)
    y = np.repeat(k, times)
    data, labels = table(X, y)
    parameters = {"depth": 2, "min_leaf": inst.min_leaf, "first_trees": "cart", "search_seconds": 1.0, "solver": "scip"}
    parameters |= {"coefficient_penalty": 0.01} if method == "oct-h" else {}
    parameters |= {"big_m": "data"} if method == "s-oct" and seed % 2 else {}
    result = train(TrainRequest(table=data, labels=labels, method=method, parameters=parameters))
    charge = Fraction(inst.total, 100) if method == "oct-h" else 0
    near = 0.005 if method == "oct-h" else 0.0
    best = best_in_class(inst.Z, inst.counts, 2, 0, min_leaf=inst.min_leaf, charge=charge, least=near)
    assert result.certificate.status == "optimal"
    assert result.certificate.objective == pytest.approx(float(best / inst.total), abs=1e-7)
    model = tmp_path / "model.json"
    rows = tmp_path / "rows.csv"
    save(result.model, model)
    lines = [",".join([*data.names, "class"])]
    lines += [",".join([*(repr(float(x)) for x in row), str(c)]) for row, c in zip(X, y, strict=True)]
    rows.write_text("\n".join(lines) + "\n")
    findings = verify(model, rows)
    assert not refuted(findings)
    assert {f.verdict for f in findings if f.claim in ("objective", "min_leaf", "counts")} == {"recounted"}


def test_balanced_trees_have_no_smallest_leaf():
    data, labels = table(np.arange(6.0)[:, None], np.array([0, 1, 0, 1, 0, 1]))
    request = TrainRequest(
        table=data, labels=labels, method="cut-h", parameters={"depth": 2, "balanced": True, "min_leaf": 2}
    )
    with pytest.raises(ParameterError):
        train(request)
