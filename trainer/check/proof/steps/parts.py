"""The rows that the steps of a proof are about, and what holds for any of them without a step."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from trainer.check.proof.subject import ProofConstraint

INFINITE_COST = 1 << 61
Span = tuple[int, int]  # the first and the last class that leaves may predict
ANY: Span = (0, INFINITE_COST)
Known = Callable[["ProofPart", int, int], int]  # a part, height and leaves: the best bound that is proved, or 0


class ProofPart(NamedTuple):
    """A subproblem without its height: rows (bool) and the questions that may be asked (bool).

    The rest concerns trees within the restrictions: the wishes that bind here or below, their largest height, the classes of leaves.
    """

    rows: np.ndarray
    allowed: np.ndarray
    wishes: tuple[ProofConstraint, ...] = ()
    room: int = INFINITE_COST
    span: Span = ANY

    @property
    def key(self) -> bytes:
        """What tells its rows from others."""
        return hashlib.blake2b(np.packbits(self.rows).tobytes()).digest()

    @property
    def within(self) -> tuple[object, ...]:
        """What tells apart subproblems within the restrictions."""
        return self.key, np.packbits(self.allowed).tobytes(), self.wishes, self.room, self.span


class CountTable:
    """Rows with classes and weights, and what errors and leaves cost.

    `prices` of an error and of a leaf; `sizes`: the numbers of questions and of classes; `rows`: their labels, weights, and the group of
    each, in which all answers are equal.
    """

    def __init__(self, prices: tuple[int, int], sizes: tuple[int, int], rows: tuple[np.ndarray, ...]) -> None:
        (self.unit, self.leaf), (questions, self.classes), (self.label, self.weight, group) = prices, sizes, rows
        counts = np.zeros((int(group.max()) + 1, self.classes), np.int64)
        np.add.at(counts, (group, self.label), self.weight)
        # no tree in which every question separates its rows has more leaves, or is deeper
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
        """Lower bounds by classes and equal rows: sizes (K, ...) weights, excess (...) unavoidable errors."""
        top = np.cumsum(-np.sort(-sizes, axis=0), axis=0)
        total = sizes.sum(axis=0)
        best = np.full(excess.shape, INFINITE_COST, np.int64)
        for t in range(
            1, min(leaves, len(sizes), INFINITE_COST // max(1, self.leaf)) + 1
        ):  # more leaves cost more than that
            best = np.minimum(best, t * self.leaf + self.unit * np.maximum(excess, total - top[t - 1]))
        return best

    def floor(self, part: ProofPart, height: int, leaves: int) -> int:
        """The bound that any part has without a step."""
        excess = np.asarray(self.excess[part.rows].sum())
        return int(self.floors(self.totals(part), excess, min(leaves, 1 << height)))
