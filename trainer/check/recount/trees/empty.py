"""Check the sides of empty cells.

A split follows its training rows, or else its heavier side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trainer.check.proof.model import ModelTable, active_parameter
from trainer.check.recount.findings import Finding, columns_of, recount_finding
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
    policy = active_parameter(model, "unseen_missing")
    if policy not in (None, "follow", "refuse"):
        return [
            recount_finding(CLAIM, False, f"'unseen_missing' is '{str(policy)[:40]}'; it can be 'follow' or 'refuse'.")
        ]
    learns = policy is not None or any(column.get("missing") == "learn" for column in model["columns"])
    if model["method"] == "converted" or not (learns or any(_answers_empty(v["split"]) for v in nodes if "split" in v)):
        return []
    for v, node_rows, left in split_rows(nodes, model["columns"], rows):
        split = nodes[v]["split"]
        if split["kind"] in ("missing", "subset"):
            trouble = "" if split["kind"] == "subset" else _no_number(kinds[split["feature"]])
        else:
            trouble = _trouble(model, split, rows, node_rows, left)
        if trouble:
            return [recount_finding(CLAIM, False, f"Node {v} {trouble}.")]
    return [
        recount_finding(
            CLAIM, True, "Each question sends them where the file says, or to its heavier side if no row has one."
        )
    ]


def _answers_empty(split: Model) -> bool:
    return split["kind"] == "missing" or split.get("missing", "refuse") != "refuse"


def _no_number(column: Model) -> str:
    """Return an error unless the column learns from empty cells, as its question about them needs."""
    if column.get("missing") == "learn":
        return ""
    return f"asks whether a cell of '{column['name']}' is empty, but rows with empty cells were left out"


def _trouble(model: Model, split: Model, rows: ModelTable, node_rows: np.ndarray, left: np.ndarray) -> str:
    """Return an error of the side of empty cells; `node_rows` reach the split, and `left` marks those that go left."""
    side = split.get("missing", "refuse")
    has_empty = split.get("missing_seen", True)
    place = {column["name"]: j for j, column in enumerate(model["columns"])}
    places = [place[name] for name in columns_of(split)]
    policies = {model["columns"][j].get("missing") for j in places}
    if "learn" not in policies:
        return "" if side == "refuse" else "answers empty cells of a column whose rows were left out"
    if side == "fill":
        wrong = has_empty != any(np.isnan(rows.columns[j]).any() for j in places)
        return "has a wrong 'missing_seen' for the columns that it fills" if wrong else ""
    reached = any(np.isnan(rows.columns[j][node_rows]).any() for j in places)
    if reached:
        if side == "refuse":
            return "gives training rows with an empty cell no side"
        return "" if has_empty else "has 'missing_seen' false, but a training row with an empty cell reached it"
    if not policies <= {"learn", "category"}:  # other columns refuse empty cells, so that the side does not matter
        return ""
    if active_parameter(model, "unseen_missing") == "refuse":
        return "" if side == "refuse" else "answers empty cells, but no training row with one reached it"
    weights = rows.weights[node_rows]
    heavier = "left" if weights[left].sum() >= weights[~left].sum() else "right"
    if has_empty:
        return "must have 'missing_seen' false: no training row with an empty cell reached it"
    return "" if side == heavier else f"sends empty cells to its lighter side, '{side}'"
