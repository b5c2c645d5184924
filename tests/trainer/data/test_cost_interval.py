"""The interval of a cost per unseen row."""

from __future__ import annotations

import numpy as np
import pytest

from trainer.data.share_interval import of_costs


@pytest.mark.slow
def test_cost_interval_covers_the_mean_in_most_samples():
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(100):
        costs = np.where(rng.random(200) < 0.3, rng.exponential(10, 200), 0.0)
        low, high = of_costs(costs, np.ones(200))
        covered += low <= 3.0 <= high
    assert covered >= 88


def test_cost_interval_of_groups_is_wider_than_of_rows():
    costs = np.repeat(np.arange(20.0), 10)
    rows = of_costs(costs, np.ones(200))
    groups = of_costs(10 * np.arange(20.0), np.full(20, 10.0))
    assert groups[1] - groups[0] > 2.5 * (rows[1] - rows[0])


@pytest.mark.parametrize("costs", [[], [3.0], [2.0, 2.0, 2.0]])
def test_cost_interval_needs_rows_of_different_cost(costs):
    assert of_costs(np.array(costs), np.ones(len(costs))) is None
