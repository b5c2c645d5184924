"""Compare a version with the served one: rules and answers."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from octweb.registry.document.common_rows import trained_before
from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import DatasetRows, rows_of
from octweb.registry.models import TreeModel
from trainer.data.reader import category_codes
from trainer.data.rows import UNKNOWN_CODE
from trainer.dtypes import FloatArray
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.describe import rules_text
from trainer.tree.nodes import Tree

SHOWN = 50


@dataclass(frozen=True, kw_only=True)
class ChangedAnswers:
    """Counts over rows that both versions can predict: all, different answers, and changes to correct or to wrong."""

    rows: int
    different: int
    now_right: int
    now_wrong: int

    @property
    def neither(self) -> int:
        return self.different - self.now_right - self.now_wrong


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Difference between a version and the served one.

    `training` and `unseen` are None if such rows cannot be compared. `unseen` counts held-out rows of the version on
    which the served one was not trained; `left_out` is the number of the others. If its training rows cannot be read,
    `overlap_unknown` is true, and `unseen` counts all.
    """

    served: TreeModel
    lines: tuple[dict[str, str], ...]
    training: ChangedAnswers | None = None
    unseen: ChangedAnswers | None = None
    examples: tuple[dict[str, Any], ...] = ()
    left_out: int = 0
    overlap_unknown: bool = False


def compare_with_served(model: TreeModel, served: TreeModel) -> Difference:
    """Compare the rules of `model` and `served`, and their answers on the data set of `model`."""
    rows = rows_of(model)
    counts = _rows(model, served, rows) if rows is not None else {}
    return Difference(served=served, lines=tuple(_lines(model, served)), **counts)


def _lines(model: TreeModel, served: TreeModel) -> list[dict[str, str]]:
    """Return the lines of both rule texts, each kept, added or removed."""
    old, new = (rules_text(model_file(m).tree, model_file(m).certificate).splitlines() for m in (served, model))
    kinds = {"+ ": "added", "- ": "removed", "  ": "kept"}
    return [{"kind": kinds[x[:2]], "text": x[2:]} for x in difflib.ndiff(old, new) if x[:2] in kinds]


def _rows(model: TreeModel, served: TreeModel, rows: DatasetRows) -> dict[str, Any]:
    """Count the rows that both versions can predict, for training and unseen rows. {} if rows cannot be matched."""
    answered = _answers_of(served, model, rows)
    if answered is None:
        return {}
    at, then = answered
    both = rows.shown[at]
    new = model_file(model).tree
    classes = np.array(new.classes, object)
    now = classes[new.predict(rows.matrix[at])]
    actual = classes[rows.codes[at]]
    training = np.isin(at, rows.training)
    held_out = np.isin(at, rows.unseen)
    trained = trained_before(model, rows, served)
    unseen = held_out if trained is None else held_out & ~trained[at]
    differs = np.flatnonzero((now != then) & (training | unseen))
    return {
        "left_out": int(held_out.sum() - unseen.sum()),
        "overlap_unknown": trained is None and bool(unseen.any()),
        "training": _count(now[training], then[training], actual[training]),
        "unseen": _count(now[unseen], then[unseen], actual[unseen]) if unseen.any() else None,
        "examples": tuple(
            {
                "number": int(both[i]), "called": rows.called, "then": then[i], "now": now[i], "actual": actual[i],
                "unseen": bool(unseen[i]), "right": bool(now[i] == actual[i]),
            }
            for i in differs[:SHOWN]
        ),
    }  # fmt: skip


def _answers_of(served: TreeModel, model: TreeModel, rows: DatasetRows) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the positions of the rows that the served tree can predict, and its predictions.

    None if rows cannot be matched. If the served version has another data set, its columns and categories are found by
    name.
    """
    old = model_file(served).tree
    labels = np.array(old.classes, object)
    if model.dataset_id == served.dataset_id:
        before = rows_of(served)
        if before is None:
            return None
        _, at, served_at = np.intersect1d(rows.numbers, before.numbers, return_indices=True)
        return at, labels[old.predict(before.matrix[served_at])]
    cells = _cells_of(old, model_file(model).tree.schema, rows.matrix)
    if cells is None:
        return None
    refused = np.isnan(cells[:, old.refused_columns]).any(axis=1)
    refused |= (cells[:, old.unknown_refused] == UNKNOWN_CODE).any(axis=1)
    at = np.flatnonzero(~refused)
    return at, labels[old.predict(cells[at])]


def _cells_of(old: Tree, schema: Sequence[ColumnSchema], matrix: FloatArray) -> FloatArray | None:
    """Return rows as the tree `old` reads them, float64 (n, columns).

    None if a column that it tests is missing or has another kind. Columns that it does not test are empty.
    """
    place = {(column.name, column.kind): j for j, column in enumerate(schema)}
    cells = np.full((len(matrix), len(old.schema)), np.nan)
    for j in old.used_columns:
        column = old.schema[j]
        source = place.get((column.name, column.kind))
        if source is None:
            return None
        values = matrix[:, source]
        if column.kind is ColumnKind.CATEGORICAL:
            codes, _ = category_codes(schema[source].categories, column)
            empty = np.nan if column.missing_code is None else column.missing_code
            values = np.where(values == schema[source].missing_code, np.nan, values)
            known = np.where(values >= 0, values, len(codes)).astype(np.intp)  # NaN and new categories are not
            values = np.where(np.isnan(values), empty, np.append(codes, UNKNOWN_CODE)[known])
        cells[:, j] = values
    return cells


def _count(now: np.ndarray, then: np.ndarray, actual: np.ndarray) -> ChangedAnswers:
    different = now != then
    return ChangedAnswers(
        rows=len(now),
        different=int(different.sum()),
        now_right=int((different & (now == actual)).sum()),
        now_wrong=int((different & (then == actual)).sum()),
    )
