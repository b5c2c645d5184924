"""Trees that learn where empty cells go, against brute force over all of them (missing.md, section 8)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.trainer.oracles.missing import least_cost, random_table, route, rows_of
from trainer.registry import get
from trainer.training.run import TrainRequest, train

ALL_THRESHOLDS = {"binarise": "all-thresholds"}
EXACT = {
    "exact": ALL_THRESHOLDS,
    "exact-numeric": {},
}


def settings_of(method: str, depth: int, penalty: float) -> dict:
    names = {p.name for p in get(method).parameters}
    wanted = EXACT.get(method, {}) | {"depth": depth, "leaf_penalty": penalty}
    return {k: v for k, v in wanted.items() if k in names}


@pytest.mark.parametrize("method", EXACT)
def test_missing_learned_sides_have_least_cost(method, count):
    rng = np.random.default_rng(430)
    for _ in range(count):
        table, labels = random_table(rng)
        weights = rng.integers(1, 4, len(table))
        depth = int(rng.integers(1, 4))
        penalty = float(rng.choice([0.0, 0.01, 0.05]))
        result = train(
            TrainRequest(
                table=table,
                labels=labels,
                method=method,
                weights=weights,
                parameters=settings_of(method, depth, penalty),
            )
        )
        n = int(weights.sum())
        cost = least_cost(table, labels, weights, depth, penalty * n)
        assert result.certificate.objective == pytest.approx(1 - cost / n, abs=1e-12)
        assert result.certificate.bound == pytest.approx(1 - cost / n, abs=1e-12)
        check_routing(result, table)


def check_routing(result, table):
    """Every row reaches the leaf that the model file says."""
    document = result.model.to_json()
    leaves = result.tree.apply(table.matrix())
    for row, leaf in zip(rows_of(table), leaves, strict=True):
        assert route(document["nodes"], document["columns"], row) == leaf
