"""When the local search stops without a better tree and leaves the rest to the solver."""

from __future__ import annotations

import numpy as np
import pytest

from trainer import make_classifier
from trainer.families.oblique import tree_search
from trainer.families.oblique.local import LocalSearch


def rows(turned: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 24 points in three columns, separable by the first column except for some distant outliers."""
    draw = np.random.default_rng(3)
    X = draw.normal(size=(24, 3))
    y = (X[:, 0] > 0).astype(int)
    far = np.argsort(X[:, 0])[[0, -1, 1, -2, 2, -3][:turned]]
    y[far] = 1 - y[far]
    return X, y


@pytest.mark.parametrize(
    ("turned", "small", "expected"),
    [
        (1, 2_000, tree_search.MAX_ROUNDS_NEAR_OPTIMUM),
        (6, 2_000, tree_search.MAX_ROUNDS_WITHOUT_GAIN),
        (1, 10, tree_search.MAX_ROUNDS_WITHOUT_GAIN),
    ],
)
def test_local_search_ends_sooner_near_optimum_of_small_model(monkeypatch, turned, small, expected):
    seen = []
    real = LocalSearch.run

    def watched(self, starts, *, patience=1_000_000, **more):
        seen.append(patience)
        return real(self, starts, patience=3, **more)

    monkeypatch.setattr(LocalSearch, "run", watched)
    monkeypatch.setattr(tree_search, "SMALL_MODEL_CELLS", small)
    model = make_classifier("cut-h", depth=1, threads=1, time_limit=60, first_trees="cart")
    model.fit(*rows(turned))
    assert seen[0] == expected
    assert model.certificate_.status == "optimal"
