"""What the recursion over wishes needs of a method: rows that questions part, costs, and the best tree of a subproblem without wishes.

Costs are integers: scale * (Q errors + P leaves) + leaves, so that of two trees of the same objective the one with fewer leaves comes
first; P/Q is the penalty of a leaf in rows. Rows are int32 arrays of places in the space's own list of rows.
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

INFINITE_COST = 1 << 62  # a cost that no tree has
NONE_BANNED: frozenset[int] = frozenset()


class SearchStopped(Exception):
    """The search was stopped before it could say."""


class SubproblemBound(Protocol):
    """What is known about a subproblem: a lower bound of the cost, and whether it is exact."""

    @property
    def lower(self) -> int: ...

    @property
    def exact(self) -> bool: ...


@dataclass(frozen=True)
class DemandedQuestion:
    """A question that a wish demands: one of `named`, or any about the column where none is named."""

    column: int
    named: tuple[int, ...] = ()

    def admits(self, column: int, number: int) -> bool:
        """Whether a question about a column satisfies it."""
        return self.column == column and (not self.named or number in self.named)


class EditingSpace(ABC):
    """The trees of one method on one problem; `stop()` ends whatever is under way. Not for several threads at once."""

    problem: Problem
    questions: Questions
    depth: int
    min_leaf: int
    banned: frozenset[int]
    weights: np.ndarray  # int64, of the space's rows
    classes: np.ndarray  # their classes
    n_classes: int
    unit: int  # cost of an error of weight one, and of a leaf
    leaf: int
    leaf_rows: Fraction  # the penalty of a leaf in rows

    def __init__(self) -> None:
        self.flag = np.zeros(1, np.int64)
        self.end = math.inf
        self.asked: Callable[[], bool] | None = None

    # -- what a method gives -------------------------------------------------------------------------------------------

    def fits(self, question: int, banned: frozenset[int], asks: list[DemandedQuestion]) -> bool:
        """Whether a question may stand where `banned` and all of `asks` hold."""
        column = self.questions.columns[question]
        return not self.questions.barred(question, banned) and all(a.admits(column, question) for a in asks)

    @abstractmethod
    def split(self, rows: np.ndarray, question: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows that answer yes, and those that answer no."""

    @abstractmethod
    def solve(
        self,
        rows: np.ndarray,
        path: tuple[int, ...] | None,
        height: int,
        banned: frozenset[int],
        ub: int = INFINITE_COST,
    ) -> SubproblemBound:
        """E(rows, height, banned) if below `ub`, else a lower bound of at least `ub`, less only if the search was stopped.

        path: the answers that lead here, sorted, 2 q + 1 for yes; None if a held question is among them.
        """

    @abstractmethod
    def tree(
        self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, banned: frozenset[int], cost: int
    ) -> Shape:
        """A tree of the known optimal `cost`, as (question, yes, no)."""

    @abstractmethod
    def candidates(
        self, rows: np.ndarray, banned: frozenset[int], asks: list[DemandedQuestion], *, alike: bool
    ) -> list[int]:
        """The questions of the encoding that part the rows, ask no banned column and satisfy every one of `asks`.

        `alike`: also those that part the rows like another one.
        """

    @abstractmethod
    def exact_cost(self, cost: int) -> Fraction:
        """errors + P/Q leaves, in rows, of an integer cost; of a bound the largest value that it proves."""

    @property
    @abstractmethod
    def nodes(self) -> int:
        """Subproblems searched so far."""

    # -- time ----------------------------------------------------------------------------------------------------------

    def begin(self, time_limit: float | None, asked: Callable[[], bool] | None) -> None:
        """A new question to the space: its time runs from now; `asked` says whether somebody wants it to end."""
        self.flag[0] = 0
        self.end = math.inf if time_limit is None else time.perf_counter() + time_limit
        self.asked = asked

    def stopped(self) -> bool:
        """True once the search has to end."""
        if not self.flag[0] and (time.perf_counter() >= self.end or (self.asked is not None and self.asked())):
            self.flag[0] = 1
        return bool(self.flag[0])

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """Nothing is stopped meanwhile: for what is read off from known subproblems."""
        end = self.end
        asked = self.asked
        flag = int(self.flag[0])
        self.end = math.inf
        self.asked = None
        self.flag[0] = 0
        try:
            yield
        finally:
            self.end = end
            self.asked = asked
            self.flag[0] = flag

    # -- rows ----------------------------------------------------------------------------------------------------------

    @property
    def all_rows(self) -> np.ndarray:
        """Every row of the space."""
        return np.arange(len(self.weights), dtype=np.int32)

    def parts(self, rows: np.ndarray, question: int) -> bool:
        """True if each side of the question keeps enough rows for a leaf."""
        yes, no = self.split(rows, question)
        return self.weight(yes) >= self.min_leaf and self.weight(no) >= self.min_leaf

    def weight(self, rows: np.ndarray) -> int:
        """Total weight of rows."""
        return int(self.weights[rows].sum())

    def counts(self, rows: np.ndarray) -> np.ndarray:
        """Weight of each class, int64."""
        out = np.zeros(self.n_classes, np.int64)
        np.add.at(out, self.classes[rows], self.weights[rows])
        return out

    # -- costs ---------------------------------------------------------------------------------------------------------

    def leaf_cost(self, counts: np.ndarray, label: int | None = None) -> int:
        """Cost of a leaf of class `label`, or of its majority."""
        right = counts.max() if label is None else counts[label]
        return int(counts.sum() - right) * self.unit + self.leaf

    def floor(self, counts: np.ndarray, height: int) -> int:
        """A lower bound of any tree of the height: t leaves answer with at most t classes."""
        top = 0
        total = int(counts.sum())
        best = INFINITE_COST
        for t, count in enumerate(np.sort(counts)[::-1][: 1 << min(height, 20)].tolist(), start=1):
            top += count
            best = min(best, (total - top) * self.unit + t * self.leaf)
        return best

    def cost_of(self, tree: LabelledShape, rows: np.ndarray | None = None) -> tuple[int, int]:
        """Errors and leaves of a tree over some rows of the space, by default all."""

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
        """The objective of a cost in rows."""
        return 1 - cost / self.problem.n


def literal(path: tuple[int, ...] | None, question: int, yes: bool, encoded: int) -> tuple[int, ...] | None:
    """The path one answer further; None once a held question is on it."""
    if path is None or question >= encoded:
        return None
    return tuple(sorted((*path, 2 * question + int(yes))))
