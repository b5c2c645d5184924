"""With many digits per number, the claim covers the best line that does not depend on rounding."""

from __future__ import annotations

import numpy as np
import pytest

from tests.trainer.oracles.bivariate import best_value
from trainer import make_classifier
from trainer.families.bivariate.pair import SearchOptions
from trainer.families.bivariate.search import best_split
from trainer.growing.node_split import SplitData

MARGIN = 1e-14  # derived in docs/methods/bivariate.md


def derived(rng, n):
    x = np.round(rng.normal(size=n), int(rng.integers(1, 4)))
    return np.column_stack([x, x * rng.choice([0.1, 0.3, 1 / 3, 0.7, 1.1]) + rng.integers(0, 3, n) * 0.1])


def nearly_on_a_line(rng, n):
    x = rng.normal(size=n)
    return np.column_stack([x, x * 0.37 + rng.integers(-3, 4, n) * 10.0 ** -rng.integers(8, 16)])


def an_outlier(rng, n):
    X = rng.integers(0, 9, (n, 2)).astype(float)
    X[rng.integers(n), rng.integers(2)] = 10.0 ** rng.integers(6, 19)
    return X


def proportional(rng, n):
    x = rng.normal(size=n)
    return np.column_stack([x, x * (2.0 if rng.random() < 0.5 else 1 / 3)])


@pytest.mark.slow
@pytest.mark.parametrize("make", [derived, nearly_on_a_line, an_outlier, proportional])
def test_no_line_that_keeps_a_margin_beats_what_is_proved(make):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(4, 9))
        X = make(rng, n)
        y = rng.integers(0, 2, n)
        split = best_split(SplitData.of(X, y, 2), np.arange(n), SearchOptions())
        least = best_value(X, y, 2, margin=MARGIN)
        if split is None:
            assert least is None
        elif least is not None:
            assert split.bound <= least + 1e-9, (make.__name__, seed)


def test_scope_states_the_rounding():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(40, 2)), 2)
    y = rng.integers(0, 2, 40)
    plain = make_classifier("bivariate", depth=1).fit(X, y).certificate_
    assert "more digits" not in plain.scope
    computed = make_classifier("bivariate", depth=1).fit(X / 3, y).certificate_
    assert "more digits" in computed.scope
