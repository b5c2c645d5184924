"""Define `EditingSpace`, the interface of a method to the search with wishes.

Costs are integers: scale * (Q errors + P leaves) + leaves, so ties are broken by fewer leaves. P/Q is the leaf penalty
in rows. Rows are
int32 arrays of positions in the space's own list of rows.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from trainer.data.problem import Problem
from trainer.editing.questions import Questions
from trainer.tree.shapes import LabelledShape, Shape

INFINITE_COST = 1 << 62  # larger than the cost of any tree
NONE_BANNED: frozenset[int] = frozenset()


class SearchStopped(Exception):
    """The search was stopped before it had a result."""


class SubproblemBound(Protocol):
    """A lower bound on a subproblem's cost, and whether it is exact."""

    @property
    def lower(self) -> int: ...

    @property
    def exact(self) -> bool: ...


@dataclass(frozen=True)
class DemandedQuestion:
    """A demand of a wish: one of `questions`, or any question about the column if `questions` is empty."""

    column: int
    questions: tuple[int, ...] = ()

    def admits(self, column: int, number: int) -> bool:
        """Return whether a question about a column satisfies the demand."""
        return self.column == column and (not self.questions or number in self.questions)


class EditingSpace(ABC):
    """The trees of one method on one problem. Not thread-safe."""

    problem: Problem
    questions: Questions
    depth: int
    min_leaf: int
    banned: frozenset[int]
    weights: np.ndarray  # int64, weights of the space's rows
    classes: np.ndarray  # classes of the space's rows
    n_classes: int
    unit: int  # cost of an error of weight one; `leaf` is the cost of a leaf
    leaf: int
    leaf_rows: Fraction  # penalty of a leaf, in rows

    def __init__(self) -> None:
        self.flag = np.zeros(1, np.int64)
        self.end = math.inf
        self.stop: Callable[[], bool] | None = None

    # -- methods of a family -------------------------------------------------------------------------------------------

    def fits(self, question: int, banned: frozenset[int], asks: list[DemandedQuestion]) -> bool:
        """Return whether `banned` and all of `asks` allow a question."""
        column = self.questions.columns[question]
        return not self.questions.is_barred(question, banned) and all(a.admits(column, question) for a in asks)

    @abstractmethod
    def split(self, rows: np.ndarray, question: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that answer yes, and those that answer no."""

    @abstractmethod
    def solve(
        self,
        rows: np.ndarray,
        path: tuple[int, ...] | None,
        height: int,
        banned: frozenset[int],
        ub: int = INFINITE_COST,
    ) -> SubproblemBound:
        """Return E(rows, height, banned) if it is below `ub`, else a lower bound of at least `ub`; less only if stopped.

        path: the sorted answers on the path, 2 q + 1 for yes to q; None if it has a held question.
        """

    @abstractmethod
    def tree(
        self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, banned: frozenset[int], cost: int
    ) -> Shape:
        """Return a tree of the optimal `cost`, as (question, yes, no)."""

    @abstractmethod
    def candidates(
        self, rows: np.ndarray, banned: frozenset[int], asks: list[DemandedQuestion], *, alike: bool
    ) -> list[int]:
        """Return the questions of the encoding that separate the rows, have no banned column and satisfy all of `asks`.

        `alike`: whether to include questions that separate the rows like another one.
        """

    @abstractmethod
    def exact_cost(self, cost: int) -> Fraction:
        """Convert an integer cost to errors + P/Q leaves in rows, and an integer bound to the largest value that it proves."""

    @property
    @abstractmethod
    def nodes(self) -> int:
        """Number of subproblems searched so far."""

    # -- time ----------------------------------------------------------------------------------------------------------

    def begin(self, time_limit: float | None, stop: Callable[[], bool] | None) -> None:
        """Start the clock of a new search; `stop` returns True to end it."""
        self.flag[0] = 0
        self.end = math.inf if time_limit is None else time.perf_counter() + time_limit
        self.stop = stop

    def stopped(self) -> bool:
        """Return True once the search has to end."""
        if not self.flag[0] and (time.perf_counter() >= self.end or (self.stop is not None and self.stop())):
            self.flag[0] = 1
        return bool(self.flag[0])

    @contextmanager
    def without_limits(self) -> Iterator[None]:
        """Suspend time limit and stop, to read results from memoised subproblems."""
        end = self.end
        stop = self.stop
        flag = int(self.flag[0])
        self.end = math.inf
        self.stop = None
        self.flag[0] = 0
        try:
            yield
        finally:
            self.end = end
            self.stop = stop
            self.flag[0] = flag

    # -- rows ----------------------------------------------------------------------------------------------------------

    @property
    def all_rows(self) -> np.ndarray:
        """Every row of the space."""
        return np.arange(len(self.weights), dtype=np.int32)

    def separates(self, rows: np.ndarray, question: int) -> bool:
        """Return whether both children of the question have enough rows for a leaf."""
        yes, no = self.split(rows, question)
        return self.weight(yes) >= self.min_leaf and self.weight(no) >= self.min_leaf

    def weight(self, rows: np.ndarray) -> int:
        """Return the total weight of rows."""
        return int(self.weights[rows].sum())

    def counts(self, rows: np.ndarray) -> np.ndarray:
        """Return the weight of each class, int64."""
        out = np.zeros(self.n_classes, np.int64)
        np.add.at(out, self.classes[rows], self.weights[rows])
        return out

    # -- costs ---------------------------------------------------------------------------------------------------------

    def leaf_cost(self, counts: np.ndarray, label: int | None = None) -> int:
        """Return the cost of a leaf of class `label`, by default its majority."""
        correct = counts.max() if label is None else counts[label]
        return int(counts.sum() - correct) * self.unit + self.leaf

    def floor(self, counts: np.ndarray, height: int) -> int:
        """Return a lower bound on all trees of the height: t leaves predict at most t classes."""
        top = 0
        total = int(counts.sum())
        best = INFINITE_COST
        for t, count in enumerate(np.sort(counts)[::-1][: 1 << min(height, 20)].tolist(), start=1):
            top += count
            best = min(best, (total - top) * self.unit + t * self.leaf)
        return best

    def cost_of(self, tree: LabelledShape, rows: np.ndarray | None = None) -> tuple[int, int]:
        """Return errors and leaves of a tree over some rows of the space, by default all."""

        def visit(part: LabelledShape, rows: np.ndarray) -> tuple[int, int]:
            if not isinstance(part, tuple):
                counts = self.counts(rows)
                return int(counts.sum() - (counts.max() if part is None else counts[part])), 1
            yes, no = self.split(rows, part[0])
            left = visit(part[1], yes)
            right = visit(part[2], no)
            return left[0] + right[0], left[1] + right[1]

        return visit(tree, self.all_rows if rows is None else rows)

    def objective(self, cost: Fraction) -> Fraction:
        """Convert a cost in rows to the objective."""
        return 1 - cost / self.problem.n


def literal(path: tuple[int, ...] | None, question: int, yes: bool, encoded: int) -> tuple[int, ...] | None:
    """Return the path with one more answer; None if a held question is on it."""
    if path is None or question >= encoded:
        return None
    return tuple(sorted((*path, 2 * question + int(yes))))
