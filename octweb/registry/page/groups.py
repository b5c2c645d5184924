"""Compute accuracy in groups of rows by any column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from octweb.datasets.stored import raw_columns
from octweb.registry.page.scene import ModelScene
from trainer.data.parsing import ColumnParsing
from trainer.data.parsing.cells import Cells
from trainer.errors import DataError
from trainer.evaluate.groups import MIN_GROUP_ROWS, group_rows
from trainer.table import ColumnKind
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
        {"name": c["name"], "asked": c["name"] in used_names, "role": c.get("role", "feature"), "kind": c.get("kind")}
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
    own = _column(scene, record)
    if own is None:
        return None
    labels, codes = group_rows(own.values[at], own.ranks)
    classes = len(scene.tree.classes)
    rows_by_group = []
    small = 0
    for k, label in enumerate(labels):
        rows = at[codes == k]
        if len(rows) < MIN_GROUP_ROWS:
            small += 1
            continue
        rows_by_group.append(_group(scene, label, rows, classes))
    return {
        "column": column,
        "asked": record["asked"],
        "groups": rows_by_group,
        "small": small,
        "fewest": MIN_GROUP_ROWS,
    }


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


class _GroupColumn(NamedTuple):
    """A column of the data set for the rows of the model: float64, or objects with None for missing values.

    `ranks` are the words of the numbers 1, 2, 3.
    """

    values: np.ndarray
    ranks: tuple[str, ...]


def _column(scene: ModelScene, record: dict[str, Any]) -> _GroupColumn | None:
    """Read a column as the data set reads it. None if it is unreadable."""
    assert scene.rows is not None
    name = record["name"]
    dataset = scene.model.dataset
    reading = ColumnParsing.from_json(dataset.reading)
    try:
        raw = raw_columns(dataset, reading.sources([name]) - {name} or {name})  # the source of a part of a date
        cells = Cells.of(reading.apply(raw, needed=()).column(name))
    except (DataError, KeyError):
        return None
    index = cells.index[scene.rows.numbers - 1]
    if record.get("kind") == ColumnKind.CATEGORICAL:
        words = [None if is_missing else word for word, is_missing in zip(cells.words, cells.missing, strict=True)]
        return _GroupColumn(np.array(words, dtype=object)[index], ())
    return _GroupColumn(cells.floats()[index], reading.columns[name].ranks if name in reading.columns else ())
