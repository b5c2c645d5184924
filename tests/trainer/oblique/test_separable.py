"""Separability is decided by checking the solver's answer, or exactly in fractions."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from trainer import make_classifier
from trainer.families.oblique import separable
from trainer.families.oblique.exact_margin import least_distance
from trainer.families.oblique.separable import MARGIN, Separator, _Program


def sets(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Z = rng.random((int(rng.integers(3, 14)), int(rng.integers(1, 4)))).round(int(rng.integers(1, 3)))
    side = rng.integers(0, 2, len(Z)).astype(bool)
    side[0] = True
    side[1] = False
    return Z, np.flatnonzero(side), np.flatnonzero(~side)


@seeds(150)
def test_fractions_and_solver_agree(seed):
    Z, L, R = sets(seed)
    verdict = Separator(Z).verdict(L, R)
    distance = least_distance(Z[L], Z[R], Fraction(MARGIN))
    assert distance is not None
    assert (verdict.plane is not None) == (distance > Fraction(MARGIN))
    assert verdict.proved == (distance <= Fraction(MARGIN))
    if verdict.plane is not None:
        assert verdict.plane.left(Z[L]).all()
        assert not verdict.plane.left(Z[R]).any()


@pytest.mark.parametrize("seed", range(60))
def test_fractions_decide_separability_if_solver_fails(seed, monkeypatch):
    monkeypatch.setattr(_Program, "run", lambda self: None)
    Z, L, R = sets(seed)
    separator = Separator(Z)
    met = least_distance(Z[L], Z[R], Fraction(MARGIN)) <= Fraction(MARGIN)
    assert separator.verdict(L, R).proved == met
    assert separator.undecided == (0 if met else 1)
    assert separator.supports(L, R) == [], "nothing is claimed that was not shown"


def test_sets_that_are_too_large_for_fractions_stay_undecided(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(_Program, "run", lambda self: None)
    separator = Separator(rng.random((300, 9)))
    verdict = separator.verdict(np.arange(150), np.arange(150, 300))
    assert (verdict.plane, verdict.proved, separator.undecided) == (None, False, 1)


@pytest.mark.parametrize("method", ["cut-h", "s-oct", "oct-h"])
@pytest.mark.parametrize("seed", range(2))
def test_no_tree_is_lost_beside_columns_of_another_size(method, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 4)) * [1, 1, 1e9, 1]
    X[0, 1] = 1e12
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    model = make_classifier(method, depth=2, time_limit=0.4, search_seconds=0.1, first_trees="cart").fit(X, y)
    assert model.certificate_.bound >= model.certificate_.objective
    assert (model.predict(X) == y).mean() == pytest.approx(model.certificate_.objective)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_undecided_separability_loosens_bound_and_loses_no_tree(share, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(24, 2))
    y = rng.integers(0, 2, 24)
    asked = {"depth": 1, "time_limit": 600.0, "first_trees": "cart", "search_seconds": 0.2, "solver": "scip"}
    truth = make_classifier("cut-h", **asked).fit(X, y).certificate_
    run = _Program.run
    draw = np.random.default_rng(0)
    monkeypatch.setattr(_Program, "run", lambda self: None if draw.random() < share else run(self))
    monkeypatch.setattr(separable, "least_distance", lambda *_: None)
    found = make_classifier("cut-h", **asked).fit(X, y).certificate_
    assert found.bound >= truth.objective - 1e-9
    assert found.objective <= truth.bound + 1e-9


def test_thousands_of_columns_make_no_dense_program():
    """A matrix of all columns by all columns would be 144 MB, and seconds of a short limit."""
    Z = np.random.default_rng(0).random((20, 3000))
    tracemalloc.start()
    plane = Separator(Z).plane(np.arange(10), np.arange(10, 20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert plane is not None
    assert peak < 20_000_000


def test_one_plane_over_many_points_can_be_stopped():
    """A cancelled run must not wait for the linear program of the presolve."""
    rng = np.random.default_rng(0)
    Z = rng.random((200, 300))
    side = rng.permutation(np.arange(200) % 2).astype(bool)
    asked = []
    sides = np.flatnonzero(side), np.flatnonzero(~side)
    assert Separator(Z).plane_within(lambda: bool(asked.append(1)) or len(asked) > 5, *sides) is None
    assert 5 < len(asked) < 30
    found = Separator(Z).plane_within(lambda: False, *sides)
    assert found is not None
    assert np.array_equal(Z @ found.a <= found.c, side)
