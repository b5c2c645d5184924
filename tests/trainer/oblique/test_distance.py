"""Trees with a minimum distance to hyperplanes equal enumeration of sides; first trees of OCT-H."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.oblique.distance_cases import small
from tests.trainer.oblique.tables import table
from tests.trainer.oracles.oblique_class import best_in_class, hull_distance
from trainer import make_classifier
from trainer.families.oblique.distance import (
    DistantSearch,
    find_best_stripe,
    find_widest_normal,
    keeps_distance,
    side_distance,
)
from trainer.families.oblique.oct_h import OCTH
from trainer.families.oblique.units import distinct_rows, robust_spans
from trainer.milo import Hooks, SolveOptions, backend
from trainer.milo.lattice import Lattice
from trainer.training.run import TrainRequest, train


@seeds(100)
def test_the_widest_plane_has_the_distance_of_the_hulls(seed):
    r = np.random.default_rng(seed)
    Z = r.integers(0, 5, (int(r.integers(2, 9)), int(r.integers(1, 4)))) / 4
    left = r.random(len(Z)) < 0.5
    if left.all() or not left.any():
        return
    a = find_widest_normal(Z, left, 0.0)
    far = hull_distance(Z[left], Z[~left])
    if far > 1e-6:
        assert side_distance(Z, a, left) == pytest.approx(far, abs=1e-7)
    else:
        assert a is None or side_distance(Z, a, left) <= 1e-7


@seeds(100)
def test_the_best_stripe_is_that_of_all_thresholds(seed):
    r = np.random.default_rng(seed)
    Z = r.integers(0, 6, (7, 2)) / 5
    A = r.normal(size=(5, 2))
    gain = r.integers(-3, 4, 7)
    least = float(r.choice([0.01, 0.1, 0.3]))
    found = find_best_stripe(Z, A, gain, least)
    best = None
    for a in A / np.abs(A).sum(axis=1, keepdims=True):
        for c in Z @ a:
            left = Z @ a <= c
            if not left.all() and side_distance(Z, a, left) >= least:
                best = max(-(10**9) if best is None else best, int(gain[left].sum()))
    assert (found is None) == (best is None)
    if found is not None:
        assert found[0] == best == gain[Z @ found[1] <= found[2]].sum()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 100, 25))
def test_search_stays_in_class_and_meets_optimum_mostly(first):
    met = 0
    for seed in range(first, first + 25):
        inst, least = small(seed)
        best = best_in_class(inst.Z, inst.counts, inst.depth, inst.kappa, least=least)
        search = DistantSearch(inst, seed, None, least)
        search.run([], enough=inst.ceiling, stopped=lambda: False, most=30)
        assert keeps_distance(inst, search.best, least)
        assert search.value == inst.value(search.best) <= best
        values = OCTH(inst, least=least).assignment(search.best)
        assert values is not None
        assert OCTH(inst, least=least).model.violated(values) is None
        met += search.value == best
    assert met >= 20


def test_programs_over_many_points_are_small_and_can_be_stopped():
    """A dense block of points times points would be 120 MB here."""
    r = np.random.default_rng(0)
    Z = r.random((8_000, 2))
    left = Z[:, 0] + 0.3 * Z[:, 1] < 0.6
    assert find_widest_normal(Z, left, 0.005, np.ones(len(Z)), lambda: True) is None
    tracemalloc.start()
    find_widest_normal(Z, left, 0.005, np.ones(len(Z)))
    assert tracemalloc.get_traced_memory()[1] < 24e6
    tracemalloc.stop()


@pytest.mark.parametrize("method", ["cut-h", "s-oct", "oct-h"])
@pytest.mark.parametrize("place", ["presolve.Packing", "raising.make_plane_proof", "tree_search.backend"])
def test_memory_limit_keeps_the_tree(method, place, monkeypatch):
    def full(*_):
        raise MemoryError

    if place == "tree_search.backend":
        # otherwise the case analysis leaves nothing to the solver
        monkeypatch.setattr("trainer.families.oblique.raising.TIME_SHARE", 0.0)
    monkeypatch.setattr(f"trainer.families.oblique.{place}", full)
    r = np.random.default_rng(2)
    data, labels = table(r.integers(0, 4, (40, 3)), r.integers(0, 2, 40))
    parameters = {"depth": 1, "search_seconds": 0.1, "first_trees": "cart"}
    certificate = train(TrainRequest(table=data, labels=labels, method=method, parameters=parameters)).certificate
    assert certificate.status == "memory_limit"
    assert certificate.objective > 0.5
    assert certificate.bound > certificate.objective


@pytest.mark.parametrize("name", ["scip", "gurobi"])
@pytest.mark.parametrize("first", range(0, 30, 10))
def test_oct_h_has_the_optimum_of_its_class(name, first):
    for seed in range(first, first + 10):
        inst, least = small(seed)
        form = OCTH(inst, least=least)
        lattice = Lattice(kappa=inst.kappa, leaves=1 << inst.depth)
        outcome = backend(name).solve(form.model, Hooks(), SolveOptions(time=60, absolute_gap=lattice.gap))
        best = best_in_class(inst.Z, inst.counts, inst.depth, inst.kappa, least=least)
        assert lattice.floor(outcome.bound) == best
        search = DistantSearch(inst, 0, None, least)
        search.accept(form.read(outcome.values))
        assert search.value == best


def test_start_trees_of_oct_h_meet_bound_if_perfect_tree_exists():
    r = np.random.default_rng(0)
    X = r.normal(size=(200, 3))
    side = X @ np.array([1.0, -0.5, 0.3])
    far = np.abs(side) > 0.3
    data, labels = table(X[far], (side[far] > 0).astype(int))
    parameters = {"depth": 2, "time_limit": 600, "first_trees": "cart"}
    result = train(TrainRequest(table=data, labels=labels, method="oct-h", parameters=parameters))
    assert result.certificate.status == "optimal"
    assert result.certificate.correct == len(data)
    assert result.certificate.evidence[0]["kind"] == "bound-met"


def salaries(far):
    r = np.random.default_rng(4)
    salary = r.normal(50_000, 15_000, 41).round()
    age = r.integers(20, 65, 41).astype(float)
    y = ((salary > 50_000) ^ (age > 44)).astype(int)
    salary[7] = far
    return np.c_[salary, age], y


def test_one_far_value_does_not_set_the_distance_of_all_others():
    X, y = salaries(5e7)
    asked = {"time_limit": 1.0, "search_seconds": 0.3, "first_trees": "cart"}
    robust = make_classifier("oct-h", **asked).fit(X, y).certificate_
    (said,) = (e for e in robust.evidence if e["kind"] == "distance")
    assert said["columns"]["x0"] < 1_000 < 0.005 * 5e7  # the distance is stated in the unit of the column
    assert "inter-quartile" in robust.scope
    cart = make_classifier("cart", depth=2).fit(X, y).certificate_
    assert robust.objective >= cart.objective
    assert robust.note == ""


def test_better_univariate_tree_is_reported():
    X, y = salaries(5e7)
    asked = {"time_limit": 0.6, "search_seconds": 0.2, "first_trees": "cart", "scaling": "range"}
    found = make_classifier("oct-h", **asked).fit(X, y).certificate_
    assert found.note.startswith("A tree of questions on single columns is better: 38 of 41 rows correct")
    assert found.to_json()["note"] == found.note


def test_robust_unit_without_outliers_is_the_range():
    X = np.c_[np.arange(9.0), np.r_[np.arange(8.0), 1e6], [0, 1] * 4 + [1], np.full(9, 2.0), np.r_[np.zeros(8), 1e-300]]
    assert robust_spans(X, np.ptp(X, axis=0)).tolist() == [8.0, 1000.0, 1.0, 0.0, 1e-300]


@seeds(100)
def test_distinct_rows_are_those_of_numpy(seed):
    rng = np.random.default_rng(seed)
    X = rng.choice([0.0, -0.0, 1.0, 5e-324, 1e300, -1e-300], (int(rng.integers(1, 40)), int(rng.integers(1, 6))))
    rows, first, member = np.unique(X, axis=0, return_index=True, return_inverse=True)
    found = distinct_rows(X)
    assert all(map(np.array_equal, found, (rows, first, member.ravel())))
    none = distinct_rows(X[:, :0])
    assert (none[0].shape, none[1].tolist(), none[2].tolist()) == ((1, 0), [0], [0] * len(X))
