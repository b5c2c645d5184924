"""What a version changes against the one that is served: questions that are new or gone, and rows that get another answer."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np

from octweb.registry.data import Rows, rows_of
from octweb.registry.models import TreeModel
from octweb.registry.parsed import model_file
from trainer.tree.describe import rules_text

SHOWN = 50


@dataclass(frozen=True, kw_only=True)
class Changed:
    """Rows that both versions can answer: how many, how many answers differ, and who is right where they do."""

    rows: int
    different: int
    now_right: int
    now_wrong: int

    @property
    def neither(self) -> int:
        return self.different - self.now_right - self.now_wrong


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A version beside the one that is served. `training` and `unseen` are None if the rows cannot be read."""

    served: TreeModel
    lines: tuple[dict[str, str], ...]
    training: Changed | None = None
    unseen: Changed | None = None
    examples: tuple[dict[str, Any], ...] = ()


def difference(model: TreeModel, served: TreeModel) -> Difference:
    """The difference of `model` to `served`, in rules and in rows of the data that `model` was trained on."""
    rows, before = rows_of(model), rows_of(served)
    found = _rows(model, served, rows, before) if rows is not None and before is not None else {}
    return Difference(served=served, lines=tuple(_lines(model, served)), **found)


def _lines(model: TreeModel, served: TreeModel) -> list[dict[str, str]]:
    """The rules as a unified list: kept, added or removed."""
    old, new = (rules_text(model_file(m).tree).splitlines() for m in (served, model))
    kinds = {"+ ": "added", "- ": "removed", "  ": "kept"}
    return [{"kind": kinds[x[:2]], "text": x[2:]} for x in difflib.ndiff(old, new) if x[:2] in kinds]


def _rows(model: TreeModel, served: TreeModel, rows: Rows, before: Rows) -> dict[str, Any]:
    """Counts over the rows that both versions can answer, training and unseen rows of `model` apart."""
    if model.dataset_id != served.dataset_id:
        return {}
    both, here, there = np.intersect1d(rows.numbers, before.numbers, return_indices=True)
    new, old = model_file(model).tree, model_file(served).tree
    now = np.array(new.classes, object)[new.predict(rows.matrix[here])]
    then = np.array(old.classes, object)[old.predict(before.matrix[there])]
    actual = np.array(new.classes, object)[rows.codes[here]]
    training = np.isin(here, rows.training)
    differs = np.flatnonzero(now != then)
    return {
        "training": _count(now[training], then[training], actual[training]),
        "unseen": _count(now[~training], then[~training], actual[~training]) if (~training).any() else None,
        "examples": tuple(
            {
                "number": int(both[i]), "then": then[i], "now": now[i], "actual": actual[i],
                "unseen": not training[i], "right": bool(now[i] == actual[i]),
            }
            for i in differs[:SHOWN]
        ),
    }  # fmt: skip


def _count(now: np.ndarray, then: np.ndarray, actual: np.ndarray) -> Changed:
    different = now != then
    return Changed(
        rows=len(now),
        different=int(different.sum()),
        now_right=int((different & (now == actual)).sum()),
        now_wrong=int((different & (then == actual)).sum()),
    )
