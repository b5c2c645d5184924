"""Whether the questions of a tree are questions of the space that its claim is about: a tree of other questions lies outside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from trainer.check.proof.model import QUESTIONS, THRESHOLDS, ModelTable
from trainer.check.proof.space.questions import bin_questions, column_questions
from trainer.check.proof.space.subsets import chosen_columns
from trainer.check.proof.space.wishes import number_questions, wish_answers, wishes_of
from trainer.check.recount.findings import Finding, recounted
from trainer.check.recount.restrictions import Model
from trainer.check.recount.trees.counts import split_rows


def questions_asked(model: Model, rows: ModelTable) -> list[Finding]:
    """One line, for methods that ask listed questions: each question of the tree parts its rows as one of these does."""
    if model["method"] not in QUESTIONS | THRESHOLDS | {"odt"}:
        return []
    place = {c["name"]: j for j, c in enumerate(model["columns"])}
    chosen = chosen_columns(model)
    for v, own, left in split_rows(model["nodes"], model["columns"], rows):
        split = model["nodes"][v]["split"]
        j = place[split["feature"]]
        listed = _column_answers(model, rows, j, split["kind"]) if chosen is None or chosen[j] else iter(())
        counted = rows.plain[own] > 0
        if listed is not None and not any(_split_alike(q[own][counted], left[counted]) for q in listed):
            words = f"The question of node {v} is none of those that the parameters ask for."
            return [recounted("questions", False, words)]
    return [recounted("questions", True, "Every question is one of the allowed ones.")]


def _split_alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two questions part these rows alike; either side may be the left one."""
    return bool((one == other).all() or (one != other).all())


def _column_answers(model: Model, rows: ModelTable, j: int, kind: str) -> Iterator[np.ndarray] | None:
    """The answers to the questions about a column, bool (n,) each, one after the other; None if every question of its kind is one."""
    values = rows.columns[j]
    method = model["method"]
    nominal = model["columns"][j]["kind"] == "categorical"
    if method in QUESTIONS:
        found: Iterable[np.ndarray] = column_questions(model, rows, j)
    elif nominal == (method == "odt") and kind != "interval":  # any subset of the categories, or any threshold
        return None
    elif nominal:
        found = (values == level for level in np.unique(values))
    elif method in THRESHOLDS:  # an interval: only a wish asks for one
        found = ()
    else:
        found = bin_questions(values, int(model["parameters"]["bins"]))
    _, named = number_questions(wishes_of(model), 0, rows) if model["certificate"].get("wishes") else ((), [])
    return chain(found, (wish_answers(w, model, rows) for w in named if w.column == j))
