"""S-OCT and OCT-H equal enumeration of separations, and agree with CUT-H and univariate trees."""

from __future__ import annotations

import pytest

from tests.seeds import seeds
from tests.trainer.oblique.tables import instance, rows_of, table
from tests.trainer.oracles.oblique import best_value
from trainer.families.oblique.local import LocalSearch
from trainer.families.oblique.oct_h import OCTH
from trainer.families.oblique.s_oct import SOCT
from trainer.families.oblique.shattering import CutHooks, CutOptions
from trainer.milo import Hooks, Point, SolveOptions, backend
from trainer.milo.lattice import Lattice
from trainer.training.run import TrainRequest, train


@pytest.mark.parametrize("name", ["scip", "gurobi"])
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_s_oct_has_the_optimum_of_cut_h(name, first):
    for seed in range(first, first + 20):
        X, inst = instance(seed)
        form = SOCT(inst, CutOptions(everywhere=seed % 2 == 0))
        lattice = Lattice(kappa=inst.kappa, leaves=1 << inst.depth)
        outcome = backend(name).solve(form.model, CutHooks(form), SolveOptions(time=60, absolute_gap=lattice.gap))
        best = best_value(X, inst.counts, inst.depth, inst.kappa)  # test_cut_h shows that CUT-H finds this value
        assert lattice.floor(outcome.bound) == best
        assert inst.value(inst.prune(form.read(outcome.values))) == best


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scip", "gurobi", "highs"])
@pytest.mark.parametrize("first", range(0, 24, 12))
def test_oct_h_has_the_same_optimum_where_its_distance_is_kept(name, first):
    # The points lie on a small grid, so hyperplanes between them can keep a distance of 0.005.
    for seed in range(first, first + 12):
        X, inst = instance(seed)
        form = OCTH(inst)
        lattice = Lattice(kappa=inst.kappa, leaves=1 << inst.depth)
        outcome = backend(name).solve(form.model, Hooks(), SolveOptions(time=60, absolute_gap=lattice.gap))
        best = best_value(X, inst.counts, inst.depth, inst.kappa)
        assert lattice.floor(outcome.bound) == best
        assert inst.value(inst.prune(form.read(outcome.values))) == best


@seeds(30)
def test_a_tree_written_into_the_models_keeps_its_exact_value(seed):
    _, inst = instance(seed)
    search = LocalSearch(inst, seed)
    search.run([inst.majority_leaf()], enough=inst.ceiling, stopped=lambda: False, most=10)
    for form, hooks in ((SOCT(inst, CutOptions()), CutHooks), (OCTH(inst), None)):
        values = form.assignment(search.best)
        if values is None:
            continue
        assert form.model.violated(values) is None
        assert form.model.value(values) == pytest.approx(float(search.value), abs=1e-9)
        assert hooks is None or not hooks(form).on_integral(Point(values), "start")
        assert inst.value(form.read(values)) >= search.value - inst.kappa * inst.size


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(1, 7), 8, 9])
def test_hyperplane_optima_are_at_least_univariate_optimum(seed):
    _, counts, depth, kappa, values, y = rows_of(seed)
    data, labels = table(values, y)
    n = int(counts.sum())

    def objective(method, **more):
        parameters = {"depth": depth, "leaf_penalty": float(kappa / n)} | more
        found = train(TrainRequest(table=data, labels=labels, method=method, parameters=parameters)).certificate
        assert found.status == "optimal"
        return found.objective

    univariate = objective("exact", bins=50)
    common = {"first_trees": "none", "search_seconds": 0.0, "solver": "scip"}
    multivariate = objective("cut-h", **common)
    assert objective("s-oct", **common) == pytest.approx(multivariate, abs=1e-9)
    assert multivariate >= univariate - 1e-9
    assert objective("oct-h", solver="scip") >= univariate - 1e-9
