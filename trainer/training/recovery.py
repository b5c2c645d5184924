"""Recover the last reported tree and bound of a killed training.

The tree is counted again. The search is not resumed, so the claim covers only what tree and bound show.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.certificate import Guarantee
from trainer.data.problem import Problem
from trainer.errors import ParameterError, SolverError, TrainerError
from trainer.methods.base import Method, Settings, Solution
from trainer.solver_common.warm_start import adapt
from trainer.table import ColumnSchema
from trainer.training.supervised_thread import demands_more
from trainer.tree.nodes import Tree, tree_from_json

NOTE = (
    "The training process was killed. The tree is the last one that it reported, counted again on the rows. "
    "The bound is the last one that it reported."
)
OBJECTIVE_TOLERANCE = 1e-9  # objectives that differ by less are equal
UNPROVED = "whether the search would have agreed, since it was killed"


@dataclass(frozen=True, kw_only=True)
class RecoveredRun:
    """The state of a killed training."""

    tree: Tree  # the last tree in the progress file, or else the warm start
    worth: float | None = None  # objective of a better tree that was reported without its nodes
    bound: float | None  # lowest reported bound
    seconds: float
    nodes: int


def left_in(progress: Path, start: Tree | None = None) -> RecoveredRun:
    """Read the state of a killed training from its progress file; `start` is its warm start.

    Raise SolverError if the file has no complete tree.
    """
    records = list(_records(progress))
    written = next((record for record in reversed(records) if "tree" in record), None)
    worth = next((r["incumbent"] for r in reversed(records) if r.get("incumbent") is not None), None)
    last = records[-1] if records else {}
    tree = None
    if written is not None:
        tree = _tree(written)
    elif worth is not None:
        tree = start
    if tree is None:
        raise SolverError(_lost_tree_message(worth, last.get("leaves")))
    return RecoveredRun(
        tree=tree,
        worth=worth if written is None else None,
        bound=min((r["bound"] for r in records if r.get("bound") is not None), default=None),
        seconds=float(last.get("t") or 0.0),
        nodes=int(last.get("nodes") or 0),
    )


def solution_from_progress(method: Method, problem: Problem, settings: Settings, left: RecoveredRun) -> Solution:
    """Return the solution of a killed training; raise SolverError if only the search could evaluate its tree."""
    if demands_more(method, settings) or method.unsearched(problem, settings):
        raise SolverError(
            "The best tree could not be recovered: only the search itself can evaluate it. Train again with a higher limit."
        )
    try:
        draft = adapt(left.tree, problem.table, problem.labels)
    except ParameterError as error:
        raise SolverError(
            "The best tree could not be recovered: its columns are not those of the table. Give the file of the training."
        ) from error
    if left.worth is not None and abs(problem.objective(problem.tree(draft)) - left.worth) > OBJECTIVE_TOLERANCE:
        raise SolverError(
            "The best tree could not be recovered: it was never saved and differs from the start tree. Train again."
        )
    return Solution(
        draft=draft,
        bound=left.bound if method.guarantee is Guarantee.TREE else None,
        finished=False,
        nodes=left.nodes,
        unproved=UNPROVED if method.guarantee is Guarantee.TREE else "",
        note=NOTE,
    )


def _records(progress: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of the file; its last line may be incomplete."""
    with progress.open(encoding="utf-8", errors="replace") as stream:
        for line in stream:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


def _tree(record: dict[str, Any]) -> Tree:
    try:
        schema = [ColumnSchema.from_json(column) for column in record["columns"]]
        return tree_from_json(record["tree"], schema=schema, classes=record["classes"])
    except (TrainerError, KeyError, TypeError, ValueError) as error:
        raise SolverError("The best tree could not be recovered: the progress file is damaged. Train again.") from error


def _lost_tree_message(worth: float | None, leaves: int | None) -> str:
    if worth is None and leaves is None:
        return "The training had found no tree yet. Give it more time or memory."
    if leaves is None:
        return "The best tree could not be recovered: it was never saved. Train again."
    return f"The best tree, of {leaves:,} leaves, could not be recovered: only smaller trees were saved. Train again."
