"""Compute accuracy in groups of rows by any column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from octweb.core.files import local_path
from octweb.registry.page.scene import ModelScene
from trainer.evaluate.groups import FEWEST, group_rows
from trainer.tree.render.palette import swatch


def columns_of(scene: ModelScene) -> list[dict[str, Any]]:
    """Return the columns to group rows by: name, role, and whether the tree tests it.

    The target is left out; [] without rows.
    """
    dataset = scene.model.dataset
    if dataset is None or scene.rows is None:
        return []
    used_names = {scene.tree.schema[j].name for j in scene.tree.used_columns}
    return [
        {"name": c["name"], "asked": c["name"] in used_names, "role": c.get("role", "feature")}
        for c in dataset.columns
        if c.get("role") != "target" and c["name"] != scene.file.target
    ]


def groups(scene: ModelScene, column: str, part: str) -> dict[str, Any] | None:
    """Return the groups of a part's rows by a column: rows, accuracy and recalls, with intervals.

    Small groups are only counted. Return None for an unknown column, or if there are no rows.
    """
    record = next((c for c in columns_of(scene) if c["name"] == column), None)
    if record is None or scene.rows is None or not len(scene.part(part)):
        return None
    at = scene.part(part)
    values = _column(scene, column)
    if values is None:
        return None
    ranks = next((c.ranks for c in scene.tree.schema if c.name == column), ())
    labels, codes = group_rows(values[at], ranks)
    classes = len(scene.tree.classes)
    rows_by_group = []
    small = 0
    for k, label in enumerate(labels):
        rows = at[codes == k]
        if len(rows) < FEWEST:
            small += 1
            continue
        rows_by_group.append(_group(scene, label, rows, classes))
    return {"column": column, "asked": record["asked"], "groups": rows_by_group, "small": small, "fewest": FEWEST}


def _group(scene: ModelScene, label: str, rows: np.ndarray, classes: int) -> dict[str, Any]:
    assert scene.rows is not None
    actual = scene.rows.codes[rows]
    predicted = scene.predicted[rows]
    weights = scene.rows.weights_of(rows)
    right = int(weights[actual == predicted].sum())
    most = int(np.argmax(scene.tree.nodes[0].counts))
    recalls = []
    for k in range(classes if classes <= 3 else 0):
        of_class = actual == k
        n = int(weights[of_class].sum())
        hit = int(weights[of_class & (predicted == k)].sum())
        share = hit / n if n else None
        recalls.append(
            {
                "label": scene.tree.classes[k],
                "share": share,
                "interval": scene.interval_of(predicted[of_class] == k, rows[of_class]),
                "look": swatch(k, classes),
                "rows": n,
            }
        )
    return {
        "label": label,
        "rows": len(rows),
        "accuracy": right / int(weights.sum()),
        # accuracy if every row gets the most frequent class of training
        "base_rate": int(weights[actual == most].sum()) / int(weights.sum()),
        "interval": scene.interval_of(actual == predicted, rows),
        "found": recalls,
    }


def _column(scene: ModelScene, name: str) -> np.ndarray | None:
    """Return a column of the data set for the rows of the model, or None if unreadable.

    It is float64, or objects with None for missing values.
    """
    assert scene.rows is not None
    for j, schema in enumerate(scene.tree.schema):
        if schema.name == name and schema.ranks:
            return scene.rows.matrix[:, j]  # the file has words
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
    """Return a column of numbers or texts as float64. Texts that are not numbers become NaN."""
    if pa.types.is_string(stored.type) or pa.types.is_large_string(stored.type):
        return np.array([_number(t) for t in stored.to_pylist()], np.float64)
    return pc.cast(stored, pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)


def _number(text: str | None) -> float:
    try:
        return float(text) if text else float("nan")
    except ValueError:
        return float("nan")
