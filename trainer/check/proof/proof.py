"""Check the proof of a model.

Build the space of its trees, then check the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trainer.check.proof.model import OBLIQUE, Model, ModelTable, active_parameter
from trainer.check.proof.space.counted import counted_space
from trainer.check.proof.space.planes import plane_space
from trainer.check.proof.space.space import digest, has_empty_cell, read_space
from trainer.check.proof.steps.error_lines import LineSpace, check_error_lines
from trainer.check.proof.steps.lines import ProvedBounds, read_proof
from trainer.check.proof.steps.planes import check_planes
from trainer.check.proof.steps.steps import check_proof
from trainer.check.proof.subject import CountedSets, NoProof, require

COUNT_GOALS = ("f1", "mcc")  # goals that depend on the errors of both classes
MOST_WEIGHT = 1 << 53  # float64 holds smaller sums exactly


def proved_bounds(
    model: Model, rows: ModelTable, path: Path, prices: Mapping[int, Fraction] | None = None
) -> ProvedBounds:
    """Check the proof at `path` and return its lower bounds on all trees of the model's space.

    `rows` are the training rows. `prices` are those of columns for one unit of weight, in rows. Raises BadProof if a step does not hold, and NoProof if the format has no steps for this space.
    """
    if model["method"] in OBLIQUE:
        return check_planes(read_proof(path), plane_space(model, rows))
    if (model["certificate"].get("goal") or {}).get("maximise") in COUNT_GOALS:
        return _proved_lines(model, rows, path)
    return check_proof(read_proof(path), replace(read_space(model, rows), prices=prices or {}))


def proved_counts(model: Model, sets: CountedSets, questions: Sequence[Model], digest: str, path: Path) -> ProvedBounds:
    """Check the proof at `path` against counts and return its lower bounds on all trees of the model's space.

    The other arguments are those of `counted_space`. Raises BadProof if a step does not hold, and NoProof if the format has no steps.
    """
    return check_proof(read_proof(path), counted_space(model, sets, questions, digest))


def _proved_lines(model: Model, rows: ModelTable, path: Path) -> ProvedBounds:
    """Check the proof of a model whose goal depends on the errors of both classes."""
    if len(model["classes"]) != 2:  # errors between other classes are errors of a line, and none of the goal
        raise NoProof("F1 and MCC need two classes")
    positive = model["classes"].index(model["certificate"]["goal"]["positive"])
    certificate = {**model["certificate"], "goal": None, "leaf_penalty": "0"}

    def space_of(leaves: int, a: int, b: int) -> LineSpace:
        require(2 * max(a, b) * int(rows.weights.sum()) < MOST_WEIGHT, "the factors of a line are too large")
        line = _line_rows(model, rows, np.where(rows.labels == positive, a, b))
        sized = {"min_leaf": line.min_leaf} | ({"max_leaves": leaves} if leaves else {})
        own = {**model, "certificate": certificate, "parameters": model["parameters"] | sized}
        return LineSpace(read_space(own, line.rows), line.divisor, line.copies, line.padding)

    return check_error_lines(read_proof(path), digest(model, rows), space_of, empty=has_empty_cell(rows))


class _LineRows(NamedTuple):
    """The rows of a line and its smallest leaf, in their weights; the other members are those of `LineSpace`."""

    rows: ModelTable
    min_leaf: int
    divisor: int
    copies: int
    padding: int


def _line_rows(model: Model, rows: ModelTable, factors: np.ndarray) -> _LineRows:
    """Multiply the weight of each row by its factor. With a smallest leaf, each row becomes two copies, one of each class.

    The copies of a row weigh 2 M times the row, where M is the largest factor, so the weight of a leaf counts rows. See
    docs/proof-format.md, "Errors of two classes".
    """
    smallest = int(active_parameter(model, "min_leaf") or 1)
    if smallest <= 1:
        weights = rows.weights * factors
        divisor = max(1, int(np.gcd.reduce(weights)))
        return _LineRows(replace(rows, weights=weights // divisor), 1, divisor, 1, 0)
    largest = int(factors.max())
    weights = np.column_stack([largest - factors, largest + factors]) * rows.weights[:, None]
    labels = np.column_stack([1 - rows.labels, rows.labels])
    divisor = max(1, int(np.gcd.reduce(weights, axis=None)))
    copies = ModelTable(
        [np.repeat(column, 2) for column in rows.columns],
        labels.reshape(-1).astype(np.int32),
        (weights // divisor).reshape(-1),
        np.column_stack([rows.plain, np.zeros_like(rows.plain)]).reshape(-1),  # quantiles count each row once
    )
    return _LineRows(copies, -(-2 * largest * smallest // divisor), divisor, 2, int(weights[:, 0].sum()))
