"""Accuracy in groups of rows, by any column of the data set, even one that the tree does not use."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from octweb.core.files import local_path
from octweb.figures.palette import swatch
from octweb.registry.workspace.scene import Scene
from trainer.evaluate.intervals import wilson
from trainer.tree.numbers import number_text, shortest_between

MOST, QUARTERS = 12, 4
GAP = "\x1a"  # stands for an empty cell while categories are counted
FEWEST = 30  # rows; shares of smaller groups say nothing


def columns_of(scene: Scene) -> list[dict[str, Any]]:
    """The columns that rows can be grouped by, without the target: name, and whether the tree asks it."""
    dataset = scene.model.dataset
    if dataset is None or scene.rows is None:
        return []
    asked = {scene.tree.schema[j].name for j in scene.tree.used_columns}
    return [
        {"name": c["name"], "asked": c["name"] in asked, "role": c.get("role", "feature")}
        for c in dataset.columns
        if c.get("role") != "target" and c["name"] != scene.file.target
    ]


def groups(scene: Scene, column: str, part: str) -> dict[str, Any] | None:
    """The rows of a part by the values of a column: rows, accuracy, share found of each class, each with its interval."""
    record = next((c for c in columns_of(scene) if c["name"] == column), None)
    if record is None or scene.rows is None or not len(scene.part(part)):
        return None
    at = scene.part(part)
    values = _column(scene, column)
    if values is None:
        return None
    labels, codes = _grouped(values, at)
    classes = len(scene.tree.classes)
    found, small = [], 0
    for k, label in enumerate(labels):
        rows = at[codes == k]
        if len(rows) < FEWEST:
            small += 1
            continue
        found.append(_group(scene, label, rows, classes))
    return {"column": column, "asked": record["asked"], "groups": found, "small": small, "fewest": FEWEST}


def _group(scene: Scene, label: str, rows: np.ndarray, classes: int) -> dict[str, Any]:
    assert scene.rows is not None
    actual, predicted = scene.rows.codes[rows], scene.predicted[rows]
    right = int((actual == predicted).sum())
    found = []
    for k in range(classes if classes <= 3 else 0):
        n = int((actual == k).sum())
        hit = int(((actual == k) & (predicted == k)).sum())
        share = hit / n if n else None
        found.append({"share": share, "interval": wilson(hit, n), "look": swatch(k, classes), "rows": n})
    return {
        "label": label,
        "rows": len(rows),
        "accuracy": right / len(rows),
        "interval": wilson(right, len(rows)),
        "found": found,
    }


def _column(scene: Scene, name: str) -> np.ndarray | None:
    """The column as it was uploaded, for the rows that the model reads: float64, or objects with None for missing."""
    assert scene.rows is not None
    dataset = scene.model.dataset
    try:
        stored = pq.read_table(local_path(dataset.file), columns=[name]).column(0)
    except (OSError, KeyError, IndexError, pa.ArrowException):
        return None
    record = next(c for c in dataset.columns if c["name"] == name)
    numbers = scene.rows.numbers - 1
    if record.get("kind") == "categorical":
        texts = np.array(stored.cast(pa.string()).to_pylist(), dtype=object)
        return np.array([None if t is None or t == "" else t for t in texts[numbers]], dtype=object)
    return _as_numbers(stored)[numbers]


def _as_numbers(stored: pa.ChunkedArray) -> np.ndarray:
    """A column of numbers or of texts as float64; what is not a number is NaN."""
    if pa.types.is_string(stored.type) or pa.types.is_large_string(stored.type):
        return np.array([_number(t) for t in stored.to_pylist()], np.float64)
    return pc.cast(stored, pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)


def _number(text: str | None) -> float:
    try:
        return float(text) if text else float("nan")
    except ValueError:
        return float("nan")


def _grouped(values: np.ndarray, at: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The name of each group, and the group of each of the rows `at`; -1 for none."""
    chosen = values[at]
    if values.dtype == object:
        return _by_category(chosen)
    known = chosen[np.isfinite(chosen)]
    distinct = np.unique(known)
    if len(distinct) <= QUARTERS + 2:
        labels = [number_text(float(d), full=True) for d in distinct]
        codes = np.where(np.isfinite(chosen), np.searchsorted(distinct, chosen), -1)
    else:
        cuts = np.unique([_cut(float(q), distinct) for q in np.quantile(known, [0.25, 0.5, 0.75])])
        labels = _ranges(cuts)
        codes = np.where(np.isfinite(chosen), np.searchsorted(cuts, chosen, side="left"), -1)
    if len(known) < len(chosen):
        codes = np.where(np.isfinite(chosen), codes, len(labels))
        labels = [*labels, "missing"]
    return labels, codes


def _cut(quantile: float, distinct: np.ndarray) -> float:
    """The shortest number that divides the values as the quantile does, so that the words of a group say exactly who is in it."""
    above = distinct[distinct > quantile]
    return shortest_between(float(distinct[distinct <= quantile].max()), float(above.min())) if len(above) else quantile


def _by_category(chosen: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The most frequent categories, the others together, missing ones apart."""
    texts = np.array([GAP if t is None else str(t) for t in chosen], dtype=object)
    names, places, counts = np.unique(texts.astype(str), return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    kept = order[: MOST - 1] if len(order) > MOST else order
    group = np.full(len(names), len(kept))
    group[kept] = np.arange(len(kept))
    labels = ["missing" if names[i] == GAP else str(names[i]) for i in kept]
    if len(order) > len(kept):
        labels.append(f"{len(order) - len(kept)} other categories")
    return labels, group[places]


def _ranges(cuts: np.ndarray) -> list[str]:
    words = [number_text(float(c), full=True) for c in cuts]
    middle = [f"above {a} to {b}" for a, b in itertools.pairwise(words)]
    return [f"at most {words[0]}", *middle, f"above {words[-1]}"]
