"""Read the incumbents of a run for its live page."""

from __future__ import annotations

from typing import Any

from octweb.runs.models import TrainingRun
from trainer.errors import TrainerError
from trainer.table import ColumnSchema
from trainer.tree.nodes import Tree, tree_from_json
from trainer.tree.render.outline import tree_outline

SHOWN = 50


def incumbents(records: list[dict[str, Any]], unit: str = "rows") -> list[dict[str, Any]]:
    """Return the newest records with a tree, newest first, each with its change from the previous one.

    `unit` is that of the counts, see `count_unit`.
    """
    entries: list[dict[str, Any]] = []
    for record in records:
        if "tree" not in record:
            continue
        before = entries[-1] if entries else None
        entry = {
            "line": record["line"],
            "t": record["t"],
            "objective": record.get("incumbent"),
            "correct": record.get("correct"),
            "unit": unit,
            "leaves": record.get("leaves"),
            "change": "first tree" if before is None else _change(before, record, unit),
        }
        entries.append(entry)
    return entries[::-1][:SHOWN]


def tree_of(run: TrainingRun, record: dict[str, Any]) -> Tree | None:
    """Return the tree of a record, or None if it can no longer be read."""
    features = [c for c in run.dataset.columns if c.get("role", "feature") == "feature"]
    try:
        schema = [ColumnSchema.from_json(c) for c in record.get("columns") or features]
        return tree_from_json(
            record["tree"], schema=schema, classes=record.get("classes") or run.dataset.profile.get("classes", ())
        )
    except (TrainerError, KeyError, TypeError):
        return None


def outline(run: TrainingRun, record: dict[str, Any]) -> Any:
    """Return the nested outline of a record's tree, or None if it can no longer be read."""
    tree = tree_of(run, record)
    return None if tree is None else tree_outline(tree)


def of_earlier_attempts(run: TrainingRun) -> Tree | None:
    """Return the best tree that earlier attempts reported, or None."""
    records = run.records.filter(attempt__lt=run.attempt, record__has_key="tree").values_list("record", flat=True)
    best = max(records, key=lambda record: record.get("incumbent") or 0.0, default=None)
    return None if best is None else tree_of(run, best)


def _change(before: dict[str, Any], after: dict[str, Any], unit: str) -> str:
    parts = []
    for key, one, many in (("correct", "row" if unit == "rows" else unit, unit), ("leaves", "leaf", "leaves")):
        a = before.get(key)
        b = after.get(key)
        if a is not None and b is not None and a != b:
            size = abs(b - a)
            parts.append(f"{'+' if b > a else '−'}{size} {one if size == 1 else many}")
    return ", ".join(parts) or "same size"
