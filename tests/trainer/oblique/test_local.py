"""The Newton steps of the local search."""

from __future__ import annotations

import numpy as np

from tests.seeds import seeds
from trainer.families.oblique import local
from trainer.families.oblique.local import _newton


@seeds(100)
def test_with_more_columns_than_points_the_step_is_the_same(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    p = int(rng.integers(31, 90))
    X = np.column_stack([rng.random((n, p - 1)), np.ones(n)])
    ridge = np.append(np.full(p - 1, 10.0 ** rng.integers(-4, 1)), 1e-8)
    curvature = np.maximum(rng.random(n) / 4, 1e-6)
    gradient = rng.normal(size=p)
    curvature[rng.random(n) < 0.1] = 0.0  # some points have weight 0
    direct = np.linalg.solve((X * curvature[:, None]).T @ X + np.diag(ridge), gradient)
    step = _newton(X, ridge)(curvature, gradient)
    assert np.abs(step - direct).max() <= 1e-6 * np.abs(direct).max()


def test_with_many_of_both_the_step_goes_down(monkeypatch):
    """Conjugate gradients stop early, but the hyperplanes still separate all separable sets."""
    monkeypatch.setattr(local, "MAX_EXACT_SIZE", 10)
    rng = np.random.default_rng(0)
    for n, p in ((60, 30), (30, 60)):
        Z = rng.random((n, p))
        left = Z @ rng.normal(size=p) < 0
        beta = local.fit_logistic(Z, left, np.ones(n), 1e-4)
        assert ((np.column_stack([Z, np.ones(n)]) @ beta < 0) == left).all()


def test_a_fit_that_is_stopped_ends_at_once():
    Z = np.random.default_rng(0).random((30, 4))
    assert not local.fit_logistic(Z, Z[:, 0] > 0.5, np.ones(30), 1.0, stopped=lambda: True).any()
