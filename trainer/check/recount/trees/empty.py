"""Where empty cells go: each split sends them where its training rows allow it, or to its heavier side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trainer.check.proof.model import ModelTable, active_parameter
from trainer.check.recount.findings import Finding, columns_of, recounted
from trainer.check.recount.trees.counts import split_rows

CLAIM = "empty cells"
Model = dict[str, Any]


def check_empty_cells(model: Model, nodes: Sequence[Model], rows: ModelTable) -> list[Finding]:
    """Return one finding if the model learns where empty cells go, none otherwise.

    Parameters
    ----------
    model : dict
        The model document.
    nodes : sequence of dict
        The nodes of its tree, or of another tree of the document.
    rows : ModelTable
        The rows that the tree was trained on.
    """
    kinds = {column["name"]: column for column in model["columns"]}
    asked = active_parameter(model, "unseen_missing")
    if asked not in (None, "follow", "refuse"):
        return [recounted(CLAIM, False, f"'unseen_missing' is '{str(asked)[:40]}'; it can be 'follow' or 'refuse'.")]
    learns = asked is not None or any(column.get("missing") == "learn" for column in model["columns"])
    if model["method"] == "converted" or not (learns or any(_answers_empty(v["split"]) for v in nodes if "split" in v)):
        return []
    for v, own, left in split_rows(nodes, model["columns"], rows):
        split = nodes[v]["split"]
        if split["kind"] in ("missing", "subset"):
            trouble = "" if split["kind"] == "subset" else _no_number(kinds[split["feature"]])
        else:
            trouble = _trouble(model, split, rows, own, left)
        if trouble:
            return [recounted(CLAIM, False, f"Node {v} {trouble}.")]
    return [
        recounted(
            CLAIM, True, "Each question sends them where the file says, or to its heavier side if no row has one."
        )
    ]


def _answers_empty(split: Model) -> bool:
    return split["kind"] == "missing" or split.get("missing", "refuse") != "refuse"


def _no_number(column: Model) -> str:
    """Whether a cell is empty can be asked of columns of numbers that learn it."""
    return (
        ""
        if column.get("missing") == "learn"
        else f"asks whether a cell of '{column['name']}' is empty, whose rows were left out"
    )


def _trouble(model: Model, split: Model, rows: ModelTable, own: np.ndarray, left: np.ndarray) -> str:
    """Return what is wrong with the side of empty cells of a question; `own` are its rows, `left` those on its left side."""
    side = split.get("missing", "refuse")
    seen = split.get("missing_seen", True)
    place = {column["name"]: j for j, column in enumerate(model["columns"])}
    asked = [place[name] for name in columns_of(split)]
    policies = {model["columns"][j].get("missing") for j in asked}
    if "learn" not in policies:
        return "" if side == "refuse" else "answers empty cells of a column whose rows were left out"
    if side == "fill":
        wrong = seen != any(np.isnan(rows.columns[j]).any() for j in asked)
        return "does not say rightly whether a column that it fills had empty cells" if wrong else ""
    reached = any(np.isnan(rows.columns[j][own]).any() for j in asked)
    if reached:
        if side == "refuse":
            return "sends training rows with an empty cell nowhere"
        return "" if seen else "says that no training row with an empty cell came to it, and one did"
    if not policies <= {"learn", "category"}:  # an empty cell of the other columns gets no answer
        return ""
    if active_parameter(model, "unseen_missing") == "refuse":
        return "" if side == "refuse" else "answers empty cells, and no training row with one came to it"
    weights = rows.weights[own]
    heavier = "left" if weights[left].sum() >= weights[~left].sum() else "right"
    if seen:
        return "does not say that no training row with an empty cell came to it"
    return "" if side == heavier else f"sends empty cells to its lighter side, '{side}'"
