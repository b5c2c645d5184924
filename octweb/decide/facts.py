"""Build the record of one decision, for its page and its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from octweb.decide.asked import DecisionRequest, record
from octweb.registry.document.reasons import ModelReasons
from octweb.registry.document.units import statistics_of
from octweb.registry.page.scene import TRAINING, ModelScene
from octweb.workbench.agreement import votes
from octweb.workbench.models import Step, StepState
from octweb.workbench.models import StepKind as Steps
from trainer.data.column_statistics import ColumnStatistics
from trainer.dtypes import FloatArray
from trainer.errors import TrainerError
from trainer.evaluate.intervals import Interval, wilson
from trainer.explain.around import gaps, nearest_rows
from trainer.explain.flip import Flipper
from trainer.explain.record import explain_row
from trainer.explain.statistics import cost_source, with_costs
from trainer.families.exact.rashomon.chosen import amount
from trainer.tree.describe import is_weighted
from trainer.tree.nodes import Tree, tree_from_json
from trainer.tree.numbers import percent_text

SECONDS = 3.0  # time limit of a page for counterfactuals of trees with hyperplanes
NEAREST = 50
LISTED = 6
FORMAT = 1  # version of the JSON; members may be added, but never changed


def decision(scene: ModelScene, request: DecisionRequest) -> dict[str, Any]:
    """Return the record of the decision about the requested row. The row must be valid.

    If the row reaches no leaf, the record ends with the reason.
    """
    assert request.row is not None
    tree = scene.tree
    row = request.row
    statistics, source = statistics_of(scene.model, inside=scene.inside)
    sizes = with_costs(tree.schema, statistics, request.cost)
    flipper = Flipper(tree, sizes, request.allowed, seconds=SECONDS, least=request.least)
    found = explain_row(flipper, row, 0, request.wanted)
    found.pop("row")
    head: dict[str, Any] = {
        "format": FORMAT,
        "model": str(scene.model.pk),
        "name": scene.model.family.name,
        "version": scene.model.version,
        "model_sha256": scene.model.sha256,
        **_row_label(scene, request.place),
        "values": record(scene, row),
        "measured_on": cost_source(source, request.cost),
        "cost": dict(request.cost),
        "may_change": {tree.schema[j].name: request.change.get(tree.schema[j].name, "free") for j in tree.used_columns},
    }
    if found["leaf"] is None:
        return head | found
    label = found["label"]
    others = [v for v in tree.leaves if tree.classes[v.label] != label]
    aims = others if request.wanted is None else [v for v in others if v.label == request.wanted]
    return (
        head
        | found
        | {
            "compared_leaves": len(aims),
            "actual": tree.classes[scene.rows.codes[request.place]]
            if scene.rows is not None and request.place is not None
            else None,
            "certainty": certainty(scene, found["leaf"]),
            "similar": similar(scene, statistics, request, found["leaf"]),
            "other_trees": other_trees(scene, row),
            "gaps": gaps(tree, row),
            "reasons": ModelReasons(scene.model, sizes, seconds=SECONDS).record(row),
            "notes": list(request.notes),
        }
    )


def _row_label(scene: ModelScene, place: int | None) -> dict[str, int | None]:
    """Return number and line of the row at `place`. They are None for typed rows, and `line` if lines are unknown."""
    rows = scene.rows
    if rows is None or place is None:
        return {"row": None, "line": None}
    return {"row": int(rows.numbers[place]), "line": None if rows.lines is None else int(rows.lines[place])}


def certainty(scene: ModelScene, leaf: int) -> dict[str, Any]:
    """Return the accuracy of the leaf on training rows and on unseen rows. Each is None if there are no such rows."""
    v = scene.tree.nodes[leaf]
    right, n = scene.unseen_of(v)
    training = wilson(v.counts[v.label], v.rows)
    if scene.rows is not None:
        at = scene.reaching(leaf, TRAINING)
        training = scene.interval_of(scene.rows.codes[at] == v.label, at)
    return {
        "training": _share(v.counts[v.label], v.rows, training),
        "unseen": _share(right, n, scene.unseen_interval_of(v)),
    }


def _share(right: int, n: int, interval: Interval | None) -> dict[str, Any] | None:
    return {"right": right, "rows": n, "share": right / n, "interval": interval} if n else None


def similar(
    scene: ModelScene, statistics: tuple[ColumnStatistics, ...], request: DecisionRequest, leaf: int
) -> dict[str, Any] | None:
    """Return the nearest training rows of the leaf. None if the table is missing or the user may not see it."""
    if scene.rows is None or request.row is None:
        return None
    rows = scene.rows
    tree = scene.tree
    at = scene.reaching(leaf, "training")
    at = at if request.place is None else at[at != request.place]
    order, distances = nearest_rows(tree, statistics, rows.matrix[at], request.row, NEAREST)
    places = at[order]
    label = tree.nodes[leaf].label
    same = int((distances == 0).sum())
    return {
        "of": len(places),
        "with_this_answer": int((rows.codes[places] == label).sum()),
        "equal": same,
        "equal_classes": {
            tree.classes[k]: int(n)
            for k, n in enumerate(np.bincount(rows.codes[places[:same]], minlength=len(tree.classes)))
            if n
        },
        "rows": [_similar_row(scene, int(i), float(d)) for i, d in zip(places[:LISTED], distances, strict=False)],
    }


def _similar_row(scene: ModelScene, i: int, distance: float) -> dict[str, Any]:
    rows = scene.rows
    assert rows is not None
    return {
        **_row_label(scene, i),
        "values": record(scene, rows.matrix[i]),
        "actual": scene.tree.classes[rows.codes[i]],
        "distance": distance,
    }


def other_trees(scene: ModelScene, row: FloatArray) -> dict[str, Any] | None:
    """Return the predictions of all good trees or, if these are unknown, of the listed ones.

    Return None if there are none or the user may not see them.
    """
    if not scene.inside:
        return None
    if (record := votes(scene.model, row)) is not None:
        return record | {"tolerance": _tolerance_words(scene, record)}
    steps = Step.objects.filter(workbench__base=scene.model, kind=Steps.GOOD, state=StepState.DONE)
    step = steps.order_by("created").last()
    listed = (step.result.get("trees") or ()) if step else ()
    trees = [t for t in (_tree(scene, found) for found in listed) if t]
    if step is None or not trees:
        return None
    answers = [t.classes[int(t.predict(row.reshape(1, -1))[0])] for t in trees]
    return {
        "counted": step.result.get("count"),
        "at_least": step.result.get("at_least"),
        "listed": len(trees),
        "slack": step.request.get("slack"),
        "slack_rows": step.request.get("slack_rows"),
        "slack_cost": step.request.get("slack_cost"),
        "tolerance": _tolerance_words(scene, step.request),
        "answers": {label: answers.count(label) for label in scene.tree.classes if label in answers},
        "depends": len(set(answers)) > 1,
        "all_listed": step.result.get("count") == len(trees),
    }


def _tolerance_words(scene: ModelScene, request: Mapping[str, Any]) -> str:
    """Return in words how much more good trees may cost than the best: "3 training rows", "5 EUR" or "1 %"."""
    if (rows := request.get("slack_rows")) is not None:
        if is_weighted(scene.file.certificate):
            return f"{rows} of the weight of training rows"
        return f"{rows} training row{'' if str(rows) == '1' else 's'}"
    if (cost := request.get("slack_cost")) is not None:
        unit = (scene.file.certificate.get("costs") or {}).get("unit") or ""
        return f"{cost} {unit}".strip()
    share = request.get("slack")
    return percent_text(float(amount(share, "slack"))) if share else ""


def _tree(scene: ModelScene, listed: dict[str, Any]) -> Tree | None:
    try:
        return tree_from_json(listed["nodes"], schema=scene.tree.schema, classes=scene.tree.classes)
    except (TrainerError, KeyError, TypeError):
        return None  # the tree has columns that this model's file does not have
