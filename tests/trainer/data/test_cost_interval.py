"""The interval of a cost per unseen row."""

from __future__ import annotations

import numpy as np
import pytest

from trainer.data.share_interval import CostSums, of_cost_sums, of_costs


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


def test_interval_from_sums_of_folds_is_near_the_bootstrap():
    rng = np.random.default_rng(3)
    costs = rng.exponential(10, 300)
    n = rng.integers(1, 5, 300).astype(float)
    parts = [CostSums.of(costs[part], n[part]) for part in np.array_split(np.arange(300), 3)]
    together = parts[0] + parts[1] + parts[2]
    assert of_cost_sums(together) == pytest.approx(of_costs(costs, n), rel=0.05)
    low, high = of_cost_sums(together, folds=3)
    width = of_cost_sums(together)[1] - of_cost_sums(together)[0]
    # the trees of three folds share training rows, so the interval is wider
    assert (high - low) / width == pytest.approx(2.5**0.5)


@pytest.mark.parametrize(("costs", "folds"), [([3.0], 0), ([2.0, 2.0, 2.0], 3), ([1.0, 2.0], 1)])
def test_interval_from_sums_needs_different_costs_and_folds(costs, folds):
    assert of_cost_sums(CostSums.of(np.array(costs), np.ones(len(costs))), folds) is None
