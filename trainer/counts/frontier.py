"""Find the most correct rows, or the least cost, for each number of leaves from counts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trainer.certificate import Evidence, Status
from trainer.counts.folder import Counts
from trainer.counts.objective import CountedObjective, counted_objective
from trainer.counts.train import counted_settings, setting_names, tree_of, tree_search
from trainer.errors import InfeasibleError, ParameterError
from trainer.methods.base import unsettled
from trainer.training.cost_frontier import CostFrontier


@dataclass(frozen=True, kw_only=True)
class CountedFrontier:
    """The best trees by number of leaves; `evidence` is that of `exact` for the frontier of leaves.

    Its `correct` and `bound` are rows, or with costs the savings of the answers in steps.
    """

    evidence: dict[str, Any]
    objective: CountedObjective
    status: Status
    seconds: float

    def costs(self) -> CostFrontier:
        """Return the least cost by number of leaves; the settings must have costs."""
        costs = self.objective.costs
        assert costs is not None

        def cost_of(gain: int) -> float:
            return costs.in_unit(costs.most - gain)

        points = [
            {
                "leaves": point["leaves"],
                "cost": cost_of(point["correct"]),
                "least": cost_of(point["bound"]),
                "proved": point["proved"],
                "tree": point["tree"],
            }
            for point in self.evidence["points"]
        ]
        return CostFrontier(
            unit=costs.matrix.unit,
            floor=costs.in_unit(costs.floor),
            status=self.status,
            seconds=self.seconds,
            best_constant=costs.record(cost=0, price=Fraction(0), least=None)["best_constant"],
            points=points,
            unsettled=[],  # costs need exact counts, which leave nothing open
        )


def leaf_frontier(counts: Counts, parameters: Mapping[str, Any] | None = None) -> CountedFrontier:
    """Find the best tree for each number of leaves up to `max_leaves`, whatever a leaf costs.

    Parameters
    ----------
    counts : Counts
    parameters : Mapping, optional
        Settings as for `train_counts`.

    Returns
    -------
    CountedFrontier
        Suppressed counts may leave a gap between the rows of a point and their bound.

    Raises
    ------
    ParameterError
        If a setting needs more than the counts have.
    InfeasibleError
        If no tree satisfies the settings.
    """
    start = time.monotonic()
    settings = counted_settings(parameters or {}, asked=counts.questions.asked, depth=counts.depth)
    if settings["recall"]:
        raise ParameterError({"recall": "the frontier from counts does not support it. Leave it out."})
    low, high = counts.total
    objective = counted_objective(
        settings, setting_names(counts), low[:, 0], rows=counts.rows, suppressed=bool(counts.suppress)
    )
    search = tree_search(counts, settings, low, high, objective.gains)
    upper = search if high is low else tree_search(counts, settings, high, low)
    most = min(settings["max_leaves"] or len(search.best.correct), len(search.best.correct))
    correct = search.best.correct[:most]
    if correct[-1] < 0:
        raise InfeasibleError(f"No tree has {settings['min_leaf']} rows or more in each leaf. Set a lower min_leaf.")
    bounds = [min(upper.best.correct[min(k, len(upper.best.correct) - 1)], objective.total) for k in range(most)]
    better = [k for k, won in enumerate(correct) if won >= 0 and (k == 0 or won > correct[k - 1])]
    points = [
        {
            "leaves": k + 1,
            "correct": correct[k],
            "bound": bounds[k],
            "proved": correct[k] == bounds[k],
            "tree": tree_of(search.shape(k + 1), counts, objective).to_json(),
        }
        for k in better
    ]
    open_sizes = unsettled(correct, bounds, {k + 1 for k in better})
    closed = not open_sizes and all(point["proved"] for point in points)
    return CountedFrontier(
        evidence={
            "kind": Evidence.LEAF_FRONTIER,
            "n": counts.rows,
            "most": most,
            "points": points,
            "unsettled": open_sizes,
        },
        objective=objective,
        status=Status.OPTIMAL if closed else Status.INTERVALS,
        seconds=time.monotonic() - start,
    )
