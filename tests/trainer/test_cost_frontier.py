"""The least cost for each number of leaves equals enumeration."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.trainer.costs_cases import has_choice, questions_of, random_case, text_of, weighted_costs
from trainer.certificate import Status
from trainer.errors import ParameterError
from trainer.registry import get
from trainer.training.cost_frontier import cost_frontier
from trainer.training.run import TrainRequest


def least_by_leaves(answers, costs, depth):
    """Return the least cost of trees with exactly 1, 2, … leaves over binary features, if any."""

    @cache
    def best(rows, height):
        own = np.frombuffer(rows, np.int64)
        found = {1: min(costs[own].sum(axis=0))}
        for q in range(answers.shape[1]) if height else ():
            yes = answers[own, q]
            if not yes.any() or yes.all():
                continue
            below = best(own[yes].tobytes(), height - 1), best(own[~yes].tobytes(), height - 1)
            for a, left in below[0].items():
                for b, right in below[1].items():
                    found[a + b] = min(found.get(a + b, left + right), left + right)
        return found

    return best(np.arange(len(costs)).tobytes(), depth)


def test_least_cost_per_leaf_count_equals_enumeration(count):
    for seed in range(6 * count):
        table, labels, weights, costs, parameters = random_case(seed)
        weighted = weighted_costs(table, labels, weights, costs)
        if not has_choice(weighted):
            continue
        depth = parameters["depth"]
        asked = {"depth": depth, "costs": text_of(costs), "max_leaves": 2**depth, "leaf_penalty": 0}
        frontier = cost_frontier(
            TrainRequest(table=table, labels=labels, method="exact", weights=weights, parameters=asked)
        )
        answers = questions_of("exact", table, labels, weights, get("exact").settings(asked))
        least = least_by_leaves(answers, weighted, depth)
        assert frontier.status == Status.OPTIMAL
        assert frontier.floor == pytest.approx(float(weighted.min(axis=1).sum()))
        assert not frontier.unsettled
        for leaves in range(1, 2**depth + 1):
            stated = min(point["cost"] for point in frontier.points if point["leaves"] <= leaves)
            assert stated == pytest.approx(float(min(v for t, v in least.items() if t <= leaves)), abs=1e-9), seed
        assert all(point["proved"] and point["least"] == point["cost"] for point in frontier.points)


def test_costs_and_smallest_leaf_are_searched_together():
    table, labels, _, costs, _ = random_case(3)
    asked = {"depth": 2, "costs": text_of(costs), "max_leaves": 4, "leaf_penalty": 0, "min_leaf": 7}
    frontier = cost_frontier(TrainRequest(table=table, labels=labels, method="exact", parameters=asked))
    free = cost_frontier(TrainRequest(table=table, labels=labels, method="exact", parameters=asked | {"min_leaf": 1}))
    assert frontier.points[0]["cost"] == pytest.approx(free.points[0]["cost"])
    assert frontier.points[-1]["cost"] >= free.points[-1]["cost"]


def test_costs_that_cannot_be_read_are_refused():
    table, labels, _, _, _ = random_case(3)
    request = TrainRequest(table=table, labels=labels, method="exact", parameters={"costs": "a>nobody=1"})
    with pytest.raises(ParameterError, match="costs"):
        cost_frontier(request)
