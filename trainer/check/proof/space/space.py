"""Build the space of a proof from the model document and rows.

See docs/proof-format.md, "The space".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain

import numpy as np

from trainer.check.proof.model import (
    QUESTIONS,
    THRESHOLDS,
    Model,
    ModelTable,
    active_parameter,
    has_threshold_questions,
    read_fraction,
    split_items,
)
from trainer.check.proof.space.limits import forbidden_pairs, question_directions, rates_of, recalls_of
from trainer.check.proof.space.questions import answer_matrix, column_questions, features, questions, threshold_features
from trainer.check.proof.space.subsets import MOST_SUBSETS, subsets
from trainer.check.proof.space.wishes import number_questions, wish_answers, wishes_of, with_separating_questions
from trainer.check.proof.subject import NoProof, ProofSpace, Shape, depth_of

MAX_TOPOLOGY_CHARACTERS = 500
LIMITS = ("max_leaves", "max_columns")
PAIRED_DEPTH = 2  # trees up to this depth are counted from one table of pairs
MOST_PAIRED = 2400  # thresholds of such trees: 31 steps over 2,400 of them took 25 s and 551 MB

NAMED = {
    "depth-1": "[..]", "depth-2": "[[..][..]]", "depth-2.5": "[[..][[..][..]]]", "depth-3": "[[[..][..]][[..][..]]]",
    "imbalanced": "[[..][[..][[..][..]]]]",
}  # fmt: skip
CHOSEN = ("depth-2", "depth-2.5", "depth-3", "imbalanced")  # with `topology: auto`, training chooses one of these


def read_space(model: Model, rows: ModelTable) -> ProofSpace:
    """Build the space of a model over its training rows; raise NoProof if the format has no steps for its method."""
    method = model["method"]
    if model["certificate"].get("goal"):
        raise NoProof("proof steps prove bounds on errors and leaves, and this model has another goal")
    penalty = read_fraction(model["certificate"].get("leaf_penalty") or "0")
    if method == "binoct" and penalty:
        raise NoProof("there are no proof steps for the leaf penalty of 'binoct'")
    return space_of(model, rows, *_question_answers(model, rows), penalty)


def space_of(model: Model, rows: ModelTable, X: np.ndarray, asks: list[int], penalty: Fraction) -> ProofSpace:
    """Build the space from answers of shape (n, m) and the column of each question, with all restrictions."""
    wishes, question_wishes = number_questions(wishes_of(model), X.shape[1], rows)
    yes_right = [_yes_goes_right(model, rows, X[:, q], j) for q, j in enumerate(asks)] if wishes else []
    mirrored = _mirrored_questions(model, asks) if wishes else []
    if question_wishes or mirrored:
        X = np.column_stack(
            [X, *(wish_answers(w, model, rows) for w in question_wishes), *(~X[:, q] for q in mirrored)]
        )
    columns = np.array(asks + [w.column for w in question_wishes] + [asks[q] for q in mirrored], np.int64)
    wishes = tuple(
        with_separating_questions(w, X, columns, wish_answers(w, model, rows)) if w.verb == "together" else w
        for w in wishes
    )
    weighted = rows.weights > 0
    method = model["method"]
    wide = method in THRESHOLDS and not has_threshold_questions(model)
    limits = {
        name: None if active_parameter(model, name) is None else int(active_parameter(model, name)) for name in LIMITS
    }
    shape = topology_of(model)
    rates = rates_of(model, rows)
    limit = model["parameters"]["depth"]
    any_depth = limit is None and method == "exact"
    deepest = max(0, min(X.shape[1], int(weighted.sum()) - 1)) if any_depth else int(limit)
    banned = set(split_items(active_parameter(model, "forbidden")))
    return ProofSpace(
        kind="thresholds" if wide else "questions",
        X=X if weighted.all() else X[weighted],
        labels=rows.labels[weighted],
        weights=rows.weights[weighted],
        classes=len(model["classes"]),
        depth=deepest if shape is None else depth_of(shape),
        any_depth=any_depth,
        penalty=penalty * int(rows.weights.sum()),
        min_leaf=int(active_parameter(model, "min_leaf") or 1),
        max_leaves=limits["max_leaves"],
        allowed=np.array([column["name"] not in banned for column in model["columns"]], bool)[columns],
        apart=None if wide else forbidden_pairs(model, columns),
        digest=digest(model, rows),
        empty=has_empty_cell(rows),
        columns=columns,
        yes_left=~np.array(yes_right + [False] * (len(question_wishes) + len(mirrored)), bool) if wishes else None,
        listed=np.repeat([True, False, True], [len(asks), len(question_wishes), len(mirrored)]),
        wishes=wishes,
        recalls=recalls_of(model, rows),
        max_columns=limits["max_columns"],
        shape=shape,
        rates=None if rates is None else rates._replace(group=rates.group[weighted]),
        rising=None if wide else question_directions(model, rows, X, columns),
    )


def topology_of(model: Model) -> Shape:
    """Read the topology of `odt`: brackets around the two sides of a question, a dot for a leaf.

    Returns None if all trees of the depth are searched. Raises NoProof if the text is not a topology.
    """
    text = str(active_parameter(model, "topology") or "").strip() if model["method"] == "odt" else ""
    if text == "auto":
        parts = [part for part in model["certificate"].get("evidence") or () if part.get("kind") == "topology-choice"]
        text = str(parts[0].get("chosen")) if len(parts) == 1 else ""
        if text not in CHOSEN:
            raise NoProof(f"the evidence does not name the chosen topology, which is one of {', '.join(CHOSEN)}")
    if len(text) > MAX_TOPOLOGY_CHARACTERS:
        raise NoProof(f"its topology has more than {MAX_TOPOLOGY_CHARACTERS} characters")
    signs = iter("".join(NAMED.get(text, text).split()))
    shape = _read_shape(next(signs), signs) if text else None
    if next(signs, "") or (text and shape is None):
        raise NoProof("its topology is not one of brackets and dots such as '[.[..]]'")
    return shape


def _read_shape(sign: str, signs: Iterator[str]) -> Shape:
    """Read the topology that begins with `sign`; take its other signs from `signs`."""
    if sign == ".":
        return None
    one, two = (_read_shape(next(signs, ""), signs) if sign == "[" else None for _ in range(2))
    if sign != "[" or next(signs, "") != "]":
        raise NoProof("its topology is not one of brackets and dots such as '[.[..]]'")
    return one, two


def _mirrored_questions(model: Model, asks: list[int]) -> list[int]:
    """Return the questions about columns of two categories; with wishes their complements are questions, too."""
    return [q for q, j in enumerate(asks) if model["columns"][j]["kind"] == "categorical" and asks.count(j) == 1]


def _yes_goes_right(model: Model, rows: ModelTable, yes: np.ndarray, column: int) -> bool:
    """Return True if the answer yes goes right, as it does in a numeric column if it has the largest value."""
    values = rows.columns[column]
    present = values[~np.isnan(values)]
    nominal = model["columns"][column]["kind"] == "categorical"
    return not nominal and len(present) > 0 and bool(yes[values == present.max()].any())


def _question_answers(model: Model, rows: ModelTable) -> tuple[np.ndarray, list[int]]:
    """Return the answers of all rows, shape (n, m), and the column of each question."""
    method = model["method"]
    if method == "odt":
        if str(active_parameter(model, "topology") or "").strip() and model["certificate"].get("wishes"):
            raise NoProof("there are no proof steps for topologies with wishes")
        if active_parameter(model, "negative_weight") not in (None, "1", 1):
            raise NoProof("proof steps count all errors alike, and here the errors of one class have another weight")
        return subsets(model, rows)
    if method in THRESHOLDS:
        if has_threshold_questions(model):
            return _threshold_questions(model, rows)
        features = list(threshold_features(model, rows))
        return answer_matrix([x for _, x in features], rows, np.float64), [j for j, _ in features]
    if method not in QUESTIONS or not model["parameters"].get("binarise"):
        raise NoProof(f"there are no proof steps for the trees of '{method}'")
    return questions(model, rows)


def _threshold_questions(model: Model, rows: ModelTable) -> tuple[np.ndarray, list[int]]:
    """Return all thresholds as yes/no questions, in the order of `column_questions` for columns with empty cells."""
    plain = model | {
        "columns": [column | {"special": []} for column in model["columns"]],
        "parameters": model["parameters"] | {"binarise": "all-thresholds"},
    }
    weighted = rows.weights > 0
    column_answers = list[tuple[int, np.ndarray]]()
    full = (np.zeros(len(values)) if np.isnan(values).any() else values for values in rows.columns)
    by_column = dict[int, list[np.ndarray]]()
    for j, x in features(model, replace(rows, columns=list(full))):
        by_column.setdefault(j, []).extend(x > cut for cut in np.unique(x[weighted])[:-1])
    for j, values in enumerate(rows.columns):
        yes_sides = column_questions(plain, rows, j) if np.isnan(values).any() else by_column.get(j, [])
        column_answers += [(j, yes) for yes in yes_sides]
    is_low = int(model["parameters"]["depth"]) <= PAIRED_DEPTH
    most = MOST_PAIRED if is_low else MOST_SUBSETS
    if len(column_answers) > most:
        raise NoProof(f"there are {len(column_answers)} thresholds; as yes/no questions at most {most} are checked")
    return answer_matrix([yes for _, yes in column_answers], rows), [j for j, _ in column_answers]


def has_empty_cell(rows: ModelTable) -> bool:
    return any(bool(np.isnan(values).any()) for values in rows.columns)


def digest(model: Model, rows: ModelTable) -> str:
    """Return the SHA-256 of the columns (float64), the class numbers (int32) and the weights (int64), all little-endian.

    Every empty cell is the same NaN. With costs the rows are copies, and copies of weight 0 are left out.
    """
    sha = hashlib.sha256()
    weighted = rows.weights > 0 if active_parameter(model, "costs") else np.ones(len(rows), bool)
    values = (np.where(np.isnan(column), np.nan, column + 0.0)[weighted].astype("<f8") for column in rows.columns)
    for part in chain(values, [rows.labels[weighted].astype("<i4"), rows.weights[weighted].astype("<i8")]):
        sha.update(part.tobytes())
    return sha.hexdigest()
