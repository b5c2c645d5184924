"""The trees that a proof is about, made from the model document and the rows alone: questions, weights, prices, limits.

See docs/proof-format.md, "The space".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain

import numpy as np

from trainer.check.proof.model import QUESTIONS, THRESHOLDS, Model, ModelTable, active_parameter, exact, items
from trainer.check.proof.space.limits import forbidden_pairs, rates_of, recalls_of, rising
from trainer.check.proof.space.questions import features, matrix, of_column, questions, threshold_features
from trainer.check.proof.space.subsets import MOST_SUBSETS, subsets
from trainer.check.proof.space.wishes import answers, numbered, wishes_of, with_parted
from trainer.check.proof.subject import NoProof, ProofSpace, Shape, depth_of

LONGEST = 500  # text of a topology
LIMITS = ("max_leaves", "max_columns")

NAMED = {
    "depth-1": "[..]", "depth-2": "[[..][..]]", "depth-2.5": "[[..][[..][..]]]", "depth-3": "[[[..][..]][[..][..]]]",
    "imbalanced": "[[..][[..][[..][..]]]]",
}  # fmt: skip
CHOSEN = ("depth-2", "depth-2.5", "depth-3", "imbalanced")  # one of these, where the data decide


def read_space(model: Model, rows: ModelTable) -> ProofSpace:
    """The space of a model over its training rows; raises NoProof if no step of the format fits its method."""
    method = model["method"]
    if model["certificate"].get("goal"):
        raise NoProof("the proof steps prove bounds of errors and leaves, and this goal is a different one")
    penalty = exact(model["certificate"].get("leaf_penalty") or "0")
    if method == "binoct" and penalty:
        raise NoProof("'binoct' prices leaves in its own way")
    return space_of(model, rows, *_answers(model, rows), penalty)


def space_of(model: Model, rows: ModelTable, X: np.ndarray, asks: list[int], penalty: Fraction) -> ProofSpace:
    """The space of the trees over these answers (n, m), about these columns, with all that restricts them."""
    wishes, named = numbered(wishes_of(model), X.shape[1], rows)
    right = [_yes_goes_right(model, rows, X[:, q], j) for q, j in enumerate(asks)] if wishes else []
    others = _mirrored(model, asks) if wishes else []
    if named or others:
        X = np.column_stack([X, *(answers(w, model, rows) for w in named), *(~X[:, q] for q in others)])
    columns = np.array(asks + [w.column for w in named] + [asks[q] for q in others], np.int64)
    wishes = tuple(with_parted(w, X, columns, answers(w, model, rows)) if w.verb == "together" else w for w in wishes)
    kept = rows.weights > 0
    wide = model["method"] in THRESHOLDS and not wishes
    limits = {
        name: None if active_parameter(model, name) is None else int(active_parameter(model, name)) for name in LIMITS
    }
    shape = topology_of(model)
    rates = rates_of(model, rows)
    banned = set(items(active_parameter(model, "forbidden")))
    return ProofSpace(
        kind="thresholds" if wide else "questions",
        X=X if kept.all() else X[kept],
        labels=rows.labels[kept],
        weights=rows.weights[kept],
        classes=len(model["classes"]),
        depth=int(model["parameters"]["depth"]) if shape is None else depth_of(shape),
        penalty=penalty * int(rows.weights.sum()),
        min_leaf=int(active_parameter(model, "min_leaf") or 1),
        max_leaves=limits["max_leaves"],
        allowed=np.array([column["name"] not in banned for column in model["columns"]], bool)[columns],
        apart=None if wide else forbidden_pairs(model, columns),
        digest=digest(model, rows),
        empty=has_empty_cell(rows),
        columns=columns,
        yes_left=~np.array(right + [False] * (len(named) + len(others)), bool) if wishes else None,
        listed=np.repeat([True, False, True], [len(asks), len(named), len(others)]),
        wishes=wishes,
        recalls=recalls_of(model, rows),
        max_columns=limits["max_columns"],
        shape=shape,
        rates=None if rates is None else rates._replace(group=rates.group[kept]),
        rising=None if wide else rising(model, rows, X, columns),
    )


def topology_of(model: Model) -> Shape:
    """The topology of `odt`: brackets around the two sides of a question, a dot for a leaf. None: all trees of the depth.

    Raises NoProof where none can be read.
    """
    text = str(active_parameter(model, "topology") or "").strip() if model["method"] == "odt" else ""
    if text == "auto":
        parts = [part for part in model["certificate"].get("evidence") or () if part.get("kind") == "topology-choice"]
        text = str(parts[0].get("chosen")) if len(parts) == 1 else ""
        if text not in CHOSEN:
            raise NoProof("it is not said which topology was chosen")
    if len(text) > LONGEST:
        raise NoProof("its topology cannot be read")
    signs = iter("".join(NAMED.get(text, text).split()))
    shape = _shape(next(signs), signs) if text else None
    if next(signs, "") or (text and shape is None):
        raise NoProof("its topology cannot be read")
    return shape


def _shape(sign: str, signs: Iterator[str]) -> Shape:
    """What a sign begins; the signs behind it are taken as far as they belong to it."""
    if sign == ".":
        return None
    one, two = (_shape(next(signs, ""), signs) if sign == "[" else None for _ in range(2))
    if sign != "[" or next(signs, "") != "]":
        raise NoProof("its topology cannot be read")
    return one, two


def _mirrored(model: Model, asks: list[int]) -> list[int]:
    """The questions about a column of two categories, each the only one: with wishes the other category is asked for as well."""
    return [q for q, j in enumerate(asks) if model["columns"][j]["kind"] == "categorical" and asks.count(j) == 1]


def _yes_goes_right(model: Model, rows: ModelTable, yes: np.ndarray, column: int) -> bool:
    """Whether the answer yes goes right: in a column of numbers, if it has the largest value."""
    values = rows.columns[column]
    present = values[~np.isnan(values)]
    nominal = model["columns"][column]["kind"] == "categorical"
    return not nominal and len(present) > 0 and bool(yes[values == present.max()].any())


def _answers(model: Model, rows: ModelTable) -> tuple[np.ndarray, list[int]]:
    """What the questions ask of all rows, and the column of each."""
    method = model["method"]
    if method == "odt":
        if str(active_parameter(model, "topology") or "").strip() and model["certificate"].get("wishes"):
            raise NoProof("there are proof steps for topologies without wishes only")
        if active_parameter(model, "negative_weight") not in (None, "1", 1):
            raise NoProof("the proof steps prove bounds of errors, and here those of one class count otherwise")
        return subsets(model, rows)
    if method in THRESHOLDS:
        if model["certificate"].get("wishes"):
            return _threshold_questions(model, rows)
        made = list(threshold_features(model, rows))
        return matrix([x for _, x in made], rows, np.float64), [j for j, _ in made]
    if method not in QUESTIONS or not model["parameters"].get("binarise"):
        raise NoProof(f"there are no proof steps for the trees of '{method}' yet")
    return questions(model, rows)


def _threshold_questions(model: Model, rows: ModelTable) -> tuple[np.ndarray, list[int]]:
    """Return all thresholds as yes/no questions; those of a column with empty cells have the order of `of_column`."""
    plain = model | {
        "columns": [column | {"special": []} for column in model["columns"]],
        "parameters": model["parameters"] | {"binarise": "all-thresholds"},
    }
    kept = rows.weights > 0
    made = list[tuple[int, np.ndarray]]()
    full = (np.zeros(len(own)) if np.isnan(own).any() else own for own in rows.columns)
    found = dict[int, list[np.ndarray]]()
    for j, x in features(model, replace(rows, columns=list(full))):
        found.setdefault(j, []).extend(x > cut for cut in np.unique(x[kept])[:-1])
    for j, own in enumerate(rows.columns):
        asked = of_column(plain, rows, j) if np.isnan(own).any() else found.get(j, [])
        made += [(j, yes) for yes in asked]
    if len(made) > MOST_SUBSETS:
        raise NoProof(f"there are more thresholds than the {MOST_SUBSETS} that are checked together with wishes")
    return matrix([yes for _, yes in made], rows), [j for j, _ in made]


def has_empty_cell(rows: ModelTable) -> bool:
    return any(bool(np.isnan(own).any()) for own in rows.columns)


def digest(model: Model, rows: ModelTable) -> str:
    """SHA-256 of the columns (float64, one NaN for every empty cell), the class numbers (int32) and the weights (int64), all little-endian.

    With costs the rows are copies, and those of no weight are left out.
    """
    sha = hashlib.sha256()
    kept = rows.weights > 0 if active_parameter(model, "costs") else np.ones(len(rows), bool)
    values = (np.where(np.isnan(own), np.nan, own + 0.0)[kept].astype("<f8") for own in rows.columns)
    for part in chain(values, [rows.labels[kept].astype("<i4"), rows.weights[kept].astype("<i8")]):
        sha.update(part.tobytes())
    return sha.hexdigest()
