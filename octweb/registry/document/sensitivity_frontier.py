"""Read the frontier of sensitivity and specificity from a model file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from octweb.figures.reach import describe_point, reach_figure
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from trainer.certificate import Evidence
from trainer.registry import METHODS
from trainer.training.sensitivity_frontier import frontier_bounds, frontier_points, open_bound_text

LATEST = 20  # at most this many newest models of a data set are searched for a frontier
CARRIED = ("depth", "topology", "select", "max_card", "positive", "bins", "time_limit", "seed")


def frontier_of(certificate: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the recorded frontier, or None."""
    return next((e for e in certificate.get("evidence") or () if e.get("kind") == Evidence.FRONTIER), None)


def points_of(certificate: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the pairs as shares, by ascending sensitivity. [] if the file has none.

    `required` is the minimum recall with which a run reaches the point. It is rounded down, so that it requires no
    further row.
    """
    frontier = frontier_of(certificate)
    if frontier is None:
        return []
    return [p | {"required": math.floor(1e6 * p["sensitivity"]) / 1e6} for p in frontier_points(frontier)]


def frontier_context(model: TreeModel) -> dict[str, Any] | None:
    """Return the context of `registry/_reach.html`, or None for a model without a frontier."""
    file = model_file(model)
    frontier = frontier_of(file.certificate)
    points = points_of(file.certificate)
    if frontier is None or not points:
        return None
    # older files do not state whether pairs are missing; `finished` is then None
    finished = frontier.get("finished")
    goal = file.certificate.get("goal") or {}
    settings = {f"p_{name}": file.parameters.get(name) for name in CARRIED}
    settings = {name: value for name, value in settings.items() if value not in (None, "")}
    settings |= _rows_of(float(file.parameters.get("test_share") or 0))
    dataset = str(model.dataset_id) if model.dataset_id else ""
    for point in points:
        query = {"dataset": dataset, "method": model.method, **settings}
        point["query"] = urlencode({**query, "p_sensitivity": repr(point["required"])})
        point["words"] = describe_point(point)
        point["open"] = open_bound_text(point, 2)
    best = max(range(len(points)), key=lambda i: points[i]["sensitivity"] + points[i]["specificity"])
    return {
        "points": points,
        "chosen": best,
        "words": points[best]["words"],
        "query": points[best]["query"],
        "last": len(points) - 1,
        "positive": goal.get("positive", ""),
        "proved": sum(p["proved"] for p in points),
        "unfinished": finished is False,
        "figure": reach_figure(points, best, bounds=frontier_bounds(frontier), finished=bool(finished)),
        "model": model,
        "dataset": dataset,
    }


def _rows_of(test_share: float) -> dict[str, Any]:
    """Return form values that hold out the same rows as the frontier."""
    percent = round(100 * test_share)
    return {"evaluation": "test", "test_percent": percent} if percent else {"evaluation": "none"}


def latest_frontier_context(user: Any, dataset: Any) -> dict[str, Any] | None:
    """Return the context of the user's newest model of a data set with a frontier, or None."""
    methods = [method.id for method in METHODS if method.parameter("frontier")]
    candidates = TreeModel.objects.kept().filter(owner=user, dataset=dataset, method__in=methods)
    models = candidates.order_by("-created")[:LATEST]
    return next((reach for reach in map(frontier_context, models) if reach is not None), None)
