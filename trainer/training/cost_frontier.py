"""The least cost of trees with at most 1, 2, … leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trainer.certificate import Evidence, Status
from trainer.methods.monitor import Monitor
from trainer.registry import get
from trainer.solver_common.problem_setup import limits_of, pose, searched_settings
from trainer.training.run import TrainRequest
from trainer.training.supervised_thread import prepare


@dataclass(frozen=True, kw_only=True)
class CostFrontier:
    """The least cost by number of leaves, in a unit.

    `points` have `leaves`, `cost`, `least` (no tree of so many leaves costs less) and `proved`, for each number of leaves that makes a tree
    cheaper. `unsettled` are the numbers for which nothing better was found and `least` is open. `floor` is what no answer avoids.
    """

    unit: str
    floor: float
    status: Status
    seconds: float
    points: list[dict[str, Any]]
    unsettled: list[dict[str, Any]]


def cost_frontier(request: TrainRequest, on_start: Callable[[Monitor], None] | None = None) -> CostFrontier | None:
    """Search the least cost for each number of leaves up to `max_leaves`; None if there is nothing to search.

    Raises
    ------
    ParameterError
        If the parameters name no costs, or contradict each other.
    """
    method = get(request.method)
    settings = method.settings(request.parameters)
    problem = pose(request.table, request.labels, settings, weights=request.weights, given_costs=request.costs)
    costs = problem.costs
    assert costs is not None
    method.check(settings, problem.names)
    prepare(problem)
    monitor = Monitor(limits_of(settings))
    if on_start is not None:
        on_start(monitor)
    searched = problem.searched
    solution = method.solve(searched, searched_settings(problem, settings), monitor)
    kept = next((part for part in solution.evidence if part["kind"] == Evidence.LEAF_FRONTIER), None)
    if kept is None:
        return None

    def cost_of(weight: int) -> float:
        return costs.in_unit(costs.cost_of(Fraction(weight, searched.n)))

    return CostFrontier(
        unit=costs.matrix.unit,
        floor=costs.in_unit(costs.floor),
        status=solution.status(method.guarantee, monitor),
        seconds=monitor.elapsed(),
        points=[
            {
                "leaves": point["leaves"],
                "cost": cost_of(point["correct"]),
                "least": cost_of(point["bound"]),
                "proved": point["proved"],
            }
            for point in kept["points"]
        ],
        unsettled=[{"leaves": part["leaves"], "least": cost_of(part["bound"])} for part in kept["unsettled"]],
    )
