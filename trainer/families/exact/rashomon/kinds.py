"""Distinguish kinds of rows by class, group and required prediction.

Counting under filters needs them. A leaf predicts the majority class. Its numbers of rows by kind determine its groups
and whether it makes the required predictions. So the rows of a node are counted by kind instead of by class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.data.problem import Problem
from trainer.errors import ParameterError
from trainer.families.exact.editing.rows import same_rows
from trainer.families.exact.instance import ExactInstance
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.kernels.count_node import weigh_kinds
from trainer.families.exact.kernels.node import DataRows

ANY = -1  # no prediction is required


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """Kinds in the order of their classes: `classes`, `groups` (0 without groups) and `answers` (ANY or a class), int64 each."""

    classes: np.ndarray
    groups: np.ndarray
    answers: np.ndarray
    codes: np.ndarray  # for each row of the instance, its kind
    weights: np.ndarray
    data: DataRows
    places: np.ndarray | None  # for each row of the instance, its position in `data`; None if the positions are equal

    def counts(self, rows: np.ndarray) -> np.ndarray:
        """Return the weight of each kind among some rows, int64."""
        return np.asarray(weigh_kinds(self.codes, self.weights, rows, len(self.classes)))

    def node(self, rows: np.ndarray, mask: np.ndarray, min_leaf: int, reduce: bool) -> dp_node.NodeView:
        """Return the node of some rows with counts by kind."""
        return dp_node.prepare(*self.subproblem(rows, mask, min_leaf, reduce), False)

    def subproblem(
        self, rows: np.ndarray, mask: np.ndarray, min_leaf: int, reduce: bool
    ) -> tuple[DataRows, np.ndarray, np.ndarray, int, bool]:
        """Return the arguments of `prepare` that count some rows by kind."""
        if self.places is not None:
            rows = np.sort(self.places[rows])
        return self.data, rows, mask, min_leaf, reduce


def kinds_of(g: ExactInstance, groups: np.ndarray | None, answers: np.ndarray | None) -> Kinds:
    """Return the kinds of the rows of an instance; `groups` and `answers` int (rows,) or None."""
    weights = g.weights
    if groups is None and answers is None:
        nothing = np.zeros(g.n_classes, np.int64)
        return Kinds(
            classes=np.arange(g.n_classes),
            groups=nothing,
            answers=nothing + ANY,
            codes=g.classes.astype(np.int64),
            weights=weights,
            data=g.data,
            places=None,
        )
    zeros = np.zeros(len(g.rows), np.int64)
    marks = np.column_stack(
        (g.classes, zeros if groups is None else groups, zeros + ANY if answers is None else answers)
    )
    kinds, codes = np.unique(marks.astype(np.int64), axis=0, return_inverse=True)
    data, places = _sort_by_kind(g, codes.reshape(-1), len(kinds))
    return Kinds(
        classes=kinds[:, 0].copy(),
        groups=kinds[:, 1].copy(),
        answers=kinds[:, 2].copy(),
        codes=codes.reshape(-1),
        weights=weights,
        data=data,
        places=places,
    )


def _sort_by_kind(g: ExactInstance, codes: np.ndarray, kinds: int) -> tuple[DataRows, np.ndarray]:
    """Sort the rows into segments of one kind and one power of two; return them and the new position of each row."""
    shifts = g.segments[g.segment_of, 1]
    order = np.lexsort((shifts, codes))
    marks = np.column_stack((codes, shifts))[order]
    segments, segment_of = np.unique(marks, axis=0, return_inverse=True)
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    data = DataRows(
        np.ascontiguousarray(g.rows[order]),
        segment_of.reshape(-1).astype(np.int32),
        segments.astype(np.int32),
        np.zeros(len(order), np.uint8),  # counting uses no bounds, so no error needs a mark as unavoidable
        g.listed_weights[order] if g.weighted else g.listed_weights,
        kinds,
    )
    return data, places


def answers_of(problem: Problem, origin: np.ndarray, required: dict[int, int]) -> np.ndarray:
    """Return the class that a tree must predict for each row of the instance, or ANY.

    required: class by row of the table. origin: for each row of the instance a row of the table with the same values. Raises
    ParameterError if equal rows require different predictions.
    """
    _, same = same_rows(problem.matrix)
    by_group = np.full(int(same.max()) + 1, ANY, np.int64)
    for row, label in required.items():
        if by_group[same[row]] not in (ANY, label):
            raise ParameterError(
                {
                    "agrees": "two rows with the same values have different answers, which no tree gives. Choose other rows."
                }
            )
        by_group[same[row]] = label
    return by_group[same[origin]]
