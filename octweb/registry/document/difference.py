"""Compare a version with the served one: rules and answers."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np

from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import DatasetRows, rows_of
from octweb.registry.models import TreeModel
from trainer.tree.describe import rules_text

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

    `training` and `unseen` are None if such rows cannot be compared. `other_data` says that the served version was
    trained on another data set, which may contain these rows. `learned` is the number of unseen rows on which the
    served version was trained, 0 if unknown.
    """

    served: TreeModel
    lines: tuple[dict[str, str], ...]
    training: ChangedAnswers | None = None
    unseen: ChangedAnswers | None = None
    examples: tuple[dict[str, Any], ...] = ()
    other_data: bool = False
    learned: int = 0


def compare_with_served(model: TreeModel, served: TreeModel) -> Difference:
    """Compare the rules of `model` and `served`, and their answers on the data set of `model`."""
    rows = rows_of(model)
    counts = _rows(model, served, rows) if rows is not None else {}
    other = model.dataset_id != served.dataset_id
    return Difference(served=served, lines=tuple(_lines(model, served)), other_data=other, **counts)


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
    unseen = np.isin(at, rows.unseen)
    differs = np.flatnonzero(now != then)
    before = rows_of(served) if model.dataset_id == served.dataset_id else None
    learned = 0 if before is None else np.isin(rows.numbers[at][unseen], before.numbers[before.training]).sum()
    return {
        "learned": int(learned),
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

    None if rows cannot be matched. If the served version has another data set, its columns and categories must be those
    of `model`.
    """
    old = model_file(served).tree
    labels = np.array(old.classes, object)
    if model.dataset_id == served.dataset_id:
        before = rows_of(served)
        if before is None:
            return None
        _, at, served_at = np.intersect1d(rows.numbers, before.numbers, return_indices=True)
        return at, labels[old.predict(before.matrix[served_at])]
    columns = [(c.name, c.kind, c.categories) for c in old.schema]
    if columns != [(c.name, c.kind, c.categories) for c in model_file(model).tree.schema]:
        return None
    return np.arange(len(rows.numbers)), labels[old.predict(rows.matrix)]


def _count(now: np.ndarray, then: np.ndarray, actual: np.ndarray) -> ChangedAnswers:
    different = now != then
    return ChangedAnswers(
        rows=len(now),
        different=int(different.sum()),
        now_right=int((different & (now == actual)).sum()),
        now_wrong=int((different & (then == actual)).sum()),
    )
