"""Answer the steps of a workbench on counts; what needs rows is left out, and the answer says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trainer.counts.good_trees import count_good_trees
from trainer.counts.train import node_paths
from trainer.counts.workbench import CountedSession
from trainer.editing.complete import ConflictError
from trainer.errors import ParameterError, SolverError
from trainer.families.exact.rashomon.chosen import RATES, amount
from trainer.methods.monitor import Monitor
from trainer.tree.file import from_json
from trainer.tree.nodes import Tree
from trainer.tree.numbers import decimal_text
from trainer.workbench.answers import Emit, price_record, proof_name
from trainer.workbench.good_trees import GoodRequest, good_request

FIELDS_OF_ROWS = ("slack_cost", "recalls", "difference", "agree_rows", "sample", "distinct")
NO_CHANGES = "Counts do not show which rows get another answer. Compare the leaves of both trees."


def answer(
    session: CountedSession, base: Tree | None, step: dict[str, Any], monitor: Monitor, partial: Emit, folder: Path
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the result of a step and, for a completion, the model file; write proofs to the folder. Raise TrainerError."""
    if step["kind"] == "complete":
        return _complete(session, base, step["wishes"], monitor, step["request"].get("reasons"))
    if step["kind"] == "proof":
        return session.prove(from_json(step["tree"]), folder / proof_name(step["step"])), None
    if step["kind"] == "prices":
        place = str(step["request"].get("place", "root"))
        prices = session.price_list(place, step["wishes"], monitor)
        has_costs = session.objective.costs is not None
        record = price_record(session, session.space.questions, place, prices, monitor, partial, has_costs=has_costs)
        return record, None
    return good_trees(session, good_request(step["request"])), None


def good_trees(session: CountedSession, request: GoodRequest) -> dict[str, Any]:
    """Return the record of `good-trees` for a request; what needs rows is None. Raises ParameterError for such fields."""
    if refused := [name for name in FIELDS_OF_ROWS if getattr(request, name)]:
        raise ParameterError({refused[0]: "needs the rows, which counts do not have. Leave it empty."})
    if request.rate != RATES[0]:
        raise ParameterError({"rate": "needs the rows, which counts do not have. Leave it empty."})
    slack, slack_rows = (
        None if getattr(request, name) is None else amount(getattr(request, name), name)
        for name in ("slack", "slack_rows")
    )
    good = count_good_trees(
        session.counts,
        session.settings.to_json(),
        slack=slack,
        slack_rows=slack_rows,
        must=request.must,
        without=request.without,
        max_leaves=request.max_leaves,
        listed=request.listed,
    )
    return good.to_json()


def _complete(
    session: CountedSession, base: Tree | None, wishes: list[str], monitor: Monitor, reasons: dict[str, str] | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    try:
        result = session.complete(wishes, monitor, reasons=reasons)
    except ConflictError as error:
        return {"status": "infeasible", "conflict": list(error.conflict), "reason": error.reason}, None
    except SolverError as error:
        return {"status": "stopped", "reason": str(error)}, None
    record = dict(result.summary)
    record.pop("metrics", None)
    record["seconds"] = monitor.elapsed()
    if base is not None:
        record["changes"] = {"rows": None, "why": NO_CHANGES}
    record["spreads"] = spreads(session, result.model.tree)
    return record, result.model.to_json()


def spreads(session: CountedSession, tree: Tree) -> dict[str, dict[str, Any]]:
    """Return, for each node with a threshold split, the counted thresholds and the rows by class between them.

    The record is that of `trainer.workbench.spreads`. Columns with empty cells are left out, since counts do not show how
    many of a node's rows have one.
    """
    counts = session.counts
    stops = _stops(session)
    paths = {node: (yes, no) for node, yes, no in node_paths(tree, counts)}
    places = {0: "root"}
    found: dict[str, dict[str, Any]] = {}
    for node in tree.nodes:
        if node.split is None:
            continue
        place = places[node.id]
        path = "" if place == "root" else place
        places |= {node.left: f"{path}y", node.right: f"{path}n"}
        of_column = stops.get(node.split.used[0], {})
        if node.split.cut is None or len(of_column) < 2:
            continue
        yes, no = paths[node.id]
        below = [
            counts.of_path(yes | {q} if one_left else yes, no if one_left else no | {q})[0]
            for q, one_left in of_column.values()
        ]
        ends = np.array([np.zeros_like(below[0]), *below, node.counts])
        found[place] = {
            "column": tree.schema[node.split.used[0]].name,
            "values": [decimal_text(value) for value in of_column],
            "counts": np.diff(ends, axis=0).tolist(),
            "empty": [0] * len(tree.classes),
        }
    return found


def _stops(session: CountedSession) -> dict[int, dict[float, tuple[int, bool]]]:
    """Return by column its thresholds, ascending, each with its question and whether yes means at most the threshold."""
    stops: dict[int, dict[float, tuple[int, bool]]] = {}
    for question, feature in enumerate(session.counts.questions.encoding.features):
        split, one_left = feature.split()
        if split.cut is not None and feature.empty is None:
            stops.setdefault(feature.column, {})[split.cut[1]] = question, one_left
    return {column: dict(sorted(own.items())) for column, own in stops.items()}
