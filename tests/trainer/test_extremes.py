"""No method fails on the largest and smallest floats, and a column's unit changes no optimum."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from trainer import make_classifier
from trainer.certificate import Status
from trainer.errors import DataError
from trainer.registry import METHODS

N = 10
ULP = np.nextafter(1.0, 2)


HYPERPLANES = ("cut-h", "cutw-h", "s-oct", "oct-h")


def signs(rng: np.random.Generator, *values: float) -> np.ndarray:
    return rng.choice(values, N)


CASES = {
    "1e-300": lambda r: np.c_[signs(r, -1e-300, 1e-300), r.normal(size=N)],
    "1e300": lambda r: np.c_[r.normal(size=N) * 1e300, r.normal(size=N)],
    "both ends": lambda r: np.c_[signs(r, -1e308, 1e308), signs(r, 1e-300, 1e300), r.normal(size=N)],
    "denormal": lambda r: np.c_[r.integers(0, 5, N) * 5e-324, r.normal(size=N)],
    "one unit in the last place": lambda r: np.c_[signs(r, 1.0, ULP, np.nextafter(ULP, 2)), signs(r, 1e9, np.nextafter(1e9, 2e9))],
    "signed zeros": lambda r: np.c_[signs(r, -0.0, 0.0), r.normal(size=N)],
    "one far value": lambda r: np.c_[[5e7, *r.normal(size=N - 1)], r.normal(size=N)],
}  # fmt: skip


def fitted(method: str, X: np.ndarray, y: np.ndarray):
    # The tests check the tree and its claim, so a short search for hyperplanes is enough.
    brief = {"search_seconds": 0.2, "first_trees": "cart"} if method in HYPERPLANES else {}
    model = make_classifier(method, depth=2, time_limit=5.0, **brief)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        return model.fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", [m.id for m in METHODS])
def test_a_tree_and_no_traceback(method, case):
    rng = np.random.default_rng(7)
    X = CASES[case](rng)
    y = rng.integers(0, 2, N)
    y[:2] = 0, 1
    if case == "both ends" and method in HYPERPLANES:  # these methods need a range that a float can represent
        with pytest.raises(DataError, match="Scale the column"):
            fitted(method, X, y)
        return
    model = fitted(method, X, y)
    leaf = max(np.mean(y == 0), np.mean(y == 1))
    assert (model.predict(X) == y).mean() == pytest.approx(model.certificate_.objective, abs=1e-9)
    assert model.certificate_.bound is None or model.certificate_.bound >= model.certificate_.objective
    if method != "binoct":  # in a complete tree each leaf needs rows, so it may be worse than a single leaf
        assert model.certificate_.objective >= leaf - 1e-9


@pytest.mark.parametrize("seed", [16, 21, 24])
def test_slopes_beyond_the_largest_number_are_no_warning(seed):
    rng = np.random.default_rng(seed)
    n = 14
    X = np.c_[rng.random(n) * 1e308, *(10.0 ** rng.uniform(-300, 300, (2, n)) * rng.choice([-1, 1], (2, n)))]
    y = np.r_[0, 1, rng.integers(0, 2, n)[2:]]
    model = fitted("bivariate", X, y)
    assert (model.predict(X) == y).mean() == pytest.approx(model.certificate_.objective, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("method", [m.id for m in METHODS])
def test_the_unit_of_a_column_changes_no_optimum(method):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(N, 3))
        y = (X[:, 0] * X[:, 1] + rng.normal(scale=0.3, size=N) > 0).astype(int)
        y[:2] = 0, 1
        as_it_is = fitted(method, X, y).certificate_
        for factor in (1e-9, 1e9):
            scaled = fitted(method, X * [factor, 1, 1], y).certificate_
            if as_it_is.status is scaled.status is Status.OPTIMAL or method in ("cart", "bivariate"):
                assert scaled.objective == pytest.approx(as_it_is.objective, abs=1e-9)
            if as_it_is.status is Status.OPTIMAL and scaled.bound is not None:
                assert scaled.bound >= as_it_is.objective - 1e-9


@pytest.mark.parametrize("method", ["exact", "bendoct", "flowoct", "exact-numeric"])
def test_thresholds_are_found_between_tiny_values(method):
    x = np.linspace(1e-10, 1e-8, 40)[:, None]
    y = (np.arange(40) >= 16).astype(int)  # the class changes at a quantile
    assert fitted(method, np.c_[x, np.zeros(40)], y).certificate_.objective == 1.0
