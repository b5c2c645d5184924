"""Define the subproblems of a proof, and bounds without a step."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from trainer.check.proof.subject import ProofConstraint

INFINITE_COST = 1 << 61
ALWAYS = 1 << 20  # height of a step that holds for trees of any height
Span = tuple[int, int]  # first and last class that leaves may predict
ANY: Span = (0, INFINITE_COST)
# maps part, height and leaves to the best bound that a step proves, or 0
StepBound = Callable[["ProofPart", int, int], int]


class ProofPart(NamedTuple):
    """A subproblem without its height: rows (bool) and the questions that may be asked (bool).

    `wishes`, `max_height` and `span` describe trees within restrictions: the wishes that apply here or below, the largest height that
    they allow, and the classes of leaves. `paid` are the columns whose prices the path has paid.
    """

    rows: np.ndarray
    allowed: np.ndarray
    wishes: tuple[ProofConstraint, ...] = ()
    max_height: int = INFINITE_COST
    span: Span = ANY
    paid: frozenset[int] = frozenset()

    @property
    def rows_key(self) -> bytes:
        """Return a hash of the rows."""
        return hashlib.blake2b(np.packbits(self.rows).tobytes()).digest()

    @property
    def restricted_key(self) -> tuple[object, ...]:
        """Return a key of the rows and all restrictions."""
        return self.rows_key, np.packbits(self.allowed).tobytes(), self.wishes, self.max_height, self.span


class CountTable:
    """Rows with classes and weights, and the prices of errors and leaves.

    `prices` are those of an error and of a leaf. `sizes` are the numbers of questions and of classes. `rows` holds their labels, their
    weights, and the group of each: rows of a group have equal answers.
    """

    def __init__(self, prices: tuple[int, int], sizes: tuple[int, int], rows: tuple[np.ndarray, ...]) -> None:
        self.unit, self.leaf = prices
        questions, self.classes = sizes
        self.label, self.weight, group = rows
        counts = np.zeros((int(group.max()) + 1, self.classes), np.int64)
        np.add.at(counts, (group, self.label), self.weight)
        # if every question separates the rows that reach it, a tree has at most `groups` leaves and is at most
        # `deepest` deep
        self.groups = len(counts)
        self.deepest = min(questions, len(counts) - 1)
        self.excess = np.where(self.label == counts.argmax(axis=1)[group], 0, self.weight)

    def weight_of(self, rows: np.ndarray) -> int:
        return int(self.weight[rows].sum())

    def totals(self, part: ProofPart) -> np.ndarray:
        return np.bincount(self.label[part.rows], self.weight[part.rows], self.classes).astype(np.int64)

    def leaf_cost(self, part: ProofPart) -> int:
        totals = self.totals(part)
        return self.leaf + self.unit * int(totals.sum() - totals.max())

    def floors(self, sizes: np.ndarray, excess: np.ndarray, leaves: int) -> np.ndarray:
        """Apply rule `floor` to many parts: lower bounds from classes and equal rows.

        `sizes` are the weights of classes, shape (K, ...). `excess` are the unavoidable errors, shape (...).
        """
        top = np.cumsum(-np.sort(-sizes, axis=0), axis=0)
        total = sizes.sum(axis=0)
        best = np.full(excess.shape, INFINITE_COST, np.int64)
        # beyond INFINITE_COST // leaf leaves, the leaves alone cost more than INFINITE_COST
        for t in range(1, min(leaves, len(sizes), INFINITE_COST // max(1, self.leaf)) + 1):
            best = np.minimum(best, t * self.leaf + self.unit * np.maximum(excess, total - top[t - 1]))
        return best

    def floor(self, part: ProofPart, height: int, leaves: int) -> int:
        """Apply rule `floor`: return the bound that a part has without a step."""
        excess = np.asarray(self.excess[part.rows].sum())
        return int(self.floors(self.totals(part), excess, min(leaves, 1 << min(height, 62))))

    def many_leaves(self, sizes: np.ndarray, excess: np.ndarray, least: int) -> np.ndarray:
        """Return lower bounds on trees with at least `least` leaves, for many parts as in `floors`."""
        top = np.cumsum(-np.sort(-sizes, axis=0), axis=0)
        total = sizes.sum(axis=0)
        best = np.full(excess.shape, INFINITE_COST, np.int64)
        for t in range(least, max(least, len(sizes)) + 1):
            errors = np.maximum(excess, total - top[min(t, len(sizes)) - 1])
            best = np.minimum(best, min(t * self.leaf, INFINITE_COST // 2) + self.unit * errors)
        return best
