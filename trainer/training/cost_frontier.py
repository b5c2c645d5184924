"""Find the least cost of trees for each number of leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trainer.certificate import Evidence, Status
from trainer.methods.base import Settings
from trainer.methods.monitor import Monitor
from trainer.registry import get
from trainer.solver_common.problem_setup import limits_of, pose, searched_settings
from trainer.training.run import TrainRequest
from trainer.training.supervised_thread import prepare
from trainer.tree.nodes import to_draft, tree_from_json


@dataclass(frozen=True, kw_only=True)
class CostFrontier:
    """The least cost by number of leaves, in a unit.

    `points` have `leaves`, `cost`, `least` (no tree with these leaves costs less) and `proved`, for each number of
    leaves that makes a tree cheaper. `unsettled` are the numbers without a better tree whose `least` is open. `floor`
    is the unavoidable cost, and `best_constant` the cheapest single answer with its cost. Trees of hyperplanes also
    have points by `coefficients`, and their points the nodes of the `tree`.
    """

    unit: str
    floor: float
    status: Status
    seconds: float
    best_constant: dict[str, Any]
    points: list[dict[str, Any]]
    unsettled: list[dict[str, Any]]
    coefficients: list[dict[str, Any]] | None = None


def cost_frontier(request: TrainRequest, on_start: Callable[[Monitor], None] | None = None) -> CostFrontier | None:
    """Find the least cost for each number of leaves up to `max_leaves`; None if there is nothing to search.

    For trees of hyperplanes, the setting `pareto` must be on.

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
    changes: list[dict[str, Any]] = [{}]
    # training refuses `pareto` together with costs, because a model file has no frontier of costs
    if settings.get("pareto"):
        changes = [{"pareto": False}, {"costs": "", "cost_unit": ""}]
    for change in changes:
        method.check(Settings(settings.to_json() | change), problem.names)
    prepare(problem)
    monitor = Monitor(limits_of(settings))
    if on_start is not None:
        on_start(monitor)
    searched = problem.searched
    solution = method.solve(searched, searched_settings(problem, settings), monitor)
    evidence = {part["kind"]: part for part in solution.evidence}
    if Evidence.LEAF_FRONTIER not in evidence:
        return None
    frontier = evidence[Evidence.LEAF_FRONTIER]
    coefficients = evidence.get(Evidence.COEFFICIENT_FRONTIER)

    def cost_of(weight: int) -> float:
        return costs.in_unit(costs.cost_of(Fraction(weight, searched.n)))

    def in_unit(point: dict[str, Any]) -> dict[str, Any]:
        record: dict[str, Any] = {
            axis: point[axis] for axis in ("leaves", "branchings", "coefficients") if axis in point
        }
        record |= {"cost": cost_of(point["correct"]), "least": cost_of(point["bound"]), "proved": point["proved"]}
        if "tree" in point:  # the tree counts copies of rows, so count the rows again
            copies = tree_from_json(point["tree"], schema=searched.table.schema, classes=searched.labels.classes)
            record["tree"] = problem.settle(problem.tree(to_draft(copies))).to_json()
        return record

    best = costs.best_constant
    return CostFrontier(
        unit=costs.matrix.unit,
        floor=costs.in_unit(costs.floor),
        status=solution.status(method.guarantee, monitor),
        seconds=monitor.elapsed(),
        best_constant={
            "answer": problem.labels.classes[best],
            "cost": costs.in_unit(costs.constants[best]),
        },
        points=[in_unit(point) for point in frontier["points"]],
        coefficients=None if coefficients is None else [in_unit(point) for point in coefficients["points"]],
        unsettled=[{"leaves": part["leaves"], "least": cost_of(part["bound"])} for part in frontier["unsettled"]],
    )
