"""Check that the questions of a tree belong to its space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from trainer.check.proof.model import LOCAL, QUESTIONS, THRESHOLDS, ModelTable
from trainer.check.proof.space.questions import bin_questions, column_questions
from trainer.check.proof.space.subsets import chosen_columns
from trainer.check.proof.space.wishes import number_questions, wish_answers, wishes_of
from trainer.check.recount.findings import Finding, recount_finding
from trainer.check.recount.restrictions import Model
from trainer.check.recount.trees.counts import split_rows


def questions_asked(model: Model, rows: ModelTable) -> list[Finding]:
    """Check for methods with listed questions that each question of the tree splits its rows as a listed one does."""
    if model["method"] not in QUESTIONS | THRESHOLDS | LOCAL | {"odt"}:
        return []
    place = {c["name"]: j for j, c in enumerate(model["columns"])}
    usable = chosen_columns(model)
    for v, node_rows, left in split_rows(model["nodes"], model["columns"], rows):
        split = model["nodes"][v]["split"]
        j = place[split["feature"]]
        listed = _column_answers(model, rows, j, split["kind"]) if usable is None or usable[j] else iter(())
        weighted = rows.plain[node_rows] > 0
        if listed is not None and not any(_split_alike(q[node_rows][weighted], left[weighted]) for q in listed):
            words = f"The question of node {v} is none of those that the parameters ask for."
            return [recount_finding("questions", False, words)]
    return [recount_finding("questions", True, "Every question is one of the allowed ones.")]


def _split_alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Return True if two questions split the rows alike; the sides may be swapped."""
    return bool((one == other).all() or (one != other).all())


def _column_answers(model: Model, rows: ModelTable, j: int, kind: str) -> Iterator[np.ndarray] | None:
    """Yield the answers to the questions about a column, bool of shape (n,); None if all questions of this kind are allowed."""
    values = rows.columns[j]
    method = model["method"]
    nominal = model["columns"][j]["kind"] == "categorical"
    if method in QUESTIONS:
        answers: Iterable[np.ndarray] = column_questions(model, rows, j)
    elif nominal == (method == "odt") and kind != "interval":  # any subset or threshold is allowed
        return None
    elif nominal:
        answers = (values == level for level in np.unique(values))
    elif method in THRESHOLDS:  # an interval is allowed only if a wish asks for it
        answers = ()
    else:
        answers = bin_questions(values, int(model["parameters"]["bins"]))
    _, question_wishes = number_questions(wishes_of(model), 0, rows) if model["certificate"].get("wishes") else ((), [])
    return chain(answers, (wish_answers(w, model, rows) for w in question_wishes if w.column == j))
