"""The space of trees of one problem: rows, questions, and the optimal subtrees that all parts of the workbench share.

E(D, h, A): the smallest cost of a tree of height ≤ h for the rows D that asks no banned column; one search for each set of
banned columns keeps what it has found, by rows and height. Costs are integers: scale * (Q errors + P leaves) + leaves, so that of
two trees of the same objective the one with fewer leaves comes first; P/Q is the penalty of a leaf in rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from trainer.data.problem import Problem
from trainer.families.exact.instance import ExactInstance
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.search import INFINITE, ExactOptions, Known, Search
from trainer.families.exact.workbench.questions import Questions
from trainer.families.exact.workbench.rows import instance_of
from trainer.tree.shapes import LabelledShape, Shape

NONE_BANNED: frozenset[int] = frozenset()
FAR = int(INFINITE)
MOST_SEARCHES = 64  # sets of banned columns whose searches are kept


class Space:
    """Rows of a problem with the searches over its questions; `stop()` ends whatever is under way."""

    def __init__(
        self,
        problem: Problem,
        *,
        depth: int,
        min_leaf: int = 1,
        banned: frozenset[int] = NONE_BANNED,
        memory: int = 1 << 30,
    ) -> None:
        self.problem, self.questions = problem, Questions(problem)
        self.banned, self.min_leaf = banned, min_leaf
        g, self.origin = instance_of(problem, self.questions.bits, depth)
        self.instance: ExactInstance = g
        self.depth = min(depth, max(0, len(g.rows) - 1))
        self.weights = np.int64(1) << g.shifts.astype(np.int64)
        self.flag = np.zeros(1, np.int64)
        self.end = math.inf
        self.asked: Callable[[], bool] | None = None
        self._options = ExactOptions(memory=memory)
        self._searches: dict[tuple[frozenset[int], bool], Search] = {}
        self._held: dict[int, np.ndarray] = {}

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

    # -- rows ----------------------------------------------------------------------------------------------------------

    @property
    def all_rows(self) -> np.ndarray:
        """Every row of the instance, int32, ascending."""
        return np.arange(len(self.instance.rows), dtype=np.int32)

    def split(self, rows: np.ndarray, question: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows that answer yes, and those that answer no."""
        if question < self.questions.encoded:
            no, yes = dp_node.split_rows(self.instance.rows, rows, question)
            return yes, no
        answers = self._answers(question)[rows]
        return rows[answers], rows[~answers]

    def parts(self, rows: np.ndarray, question: int) -> bool:
        """True if each side of the question keeps enough rows for a leaf."""
        yes, no = self.split(rows, question)
        return self.weight(yes) >= self.min_leaf and self.weight(no) >= self.min_leaf

    def weight(self, rows: np.ndarray) -> int:
        """Total weight of rows of the instance."""
        return int(self.weights[rows].sum())

    def counts(self, rows: np.ndarray) -> np.ndarray:
        """Weight of each class, int64."""
        out = np.zeros(self.instance.n_classes, np.int64)
        np.add.at(out, self.instance.classes[rows], self.weights[rows])
        return out

    def _answers(self, question: int) -> np.ndarray:
        """The answers of the instance's rows to a held question."""
        if question not in self._held:
            self._held[question] = self.questions.answers(question)[self.origin]
        return self._held[question]

    # -- optimal subtrees ----------------------------------------------------------------------------------------------

    def mask(self, banned: frozenset[int]) -> np.ndarray:
        """1 for the questions of the encoding that may be asked, uint8."""
        out = self.banned | banned
        return np.array([c not in out for c in self.questions.columns[: self.questions.encoded]], np.uint8)

    def search(self, banned: frozenset[int], *, paths: bool) -> Search:
        """The search over what is not banned; with `paths` it also keeps small subtrees by their path."""
        key = (banned, paths)
        if key not in self._searches:
            if len(self._searches) >= 2 * MOST_SEARCHES:
                self._searches.clear()
            self._searches[key] = Search(
                instance=self.instance,
                depth=self.depth if paths else 2,
                min_leaf=self.min_leaf,
                allowed=self.mask(banned),
                options=self._options,
                stop=self.stopped,
                flag=self.flag,
            )
            other = self._searches.get((banned, not paths))
            if other is not None:  # optima by rows serve both
                self._searches[key].memo = other.memo
        return self._searches[key]

    def solve(
        self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, banned: frozenset[int], ub: int = FAR
    ) -> Known:
        """E(rows, height, banned) if below `ub`, else a lower bound of at least `ub`, less only if the search was stopped.

        path: the answers that lead here, sorted, 2 q + 1 for yes; None if a held question is among them.
        """
        search, path = self._suited(path, height, banned)
        return search.solve(rows, path, height, min(ub, FAR))

    def tree(
        self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, banned: frozenset[int], cost: int
    ) -> Shape:
        """The first tree of the known optimal `cost`, as (question, yes, no)."""
        search, path = self._suited(path, height, banned)
        return _turned(search.extract(rows, path, height, cost))

    def _suited(
        self, path: tuple[int, ...] | None, height: int, banned: frozenset[int]
    ) -> tuple[Search, tuple[int, ...]]:
        """The tables by path are for places that are as deep as their height says."""
        if path is not None and len(path) == self.depth - height:
            return self.search(banned, paths=True), path
        return self.search(banned, paths=False), (-1,)

    @property
    def nodes(self) -> int:
        """Subproblems searched so far."""
        return sum(s.nodes + s.twos for s in self._searches.values())

    # -- costs ---------------------------------------------------------------------------------------------------------

    def leaf_cost(self, counts: np.ndarray, label: int | None = None) -> int:
        """Cost of a leaf of class `label`, or of its majority."""
        right = counts.max() if label is None else counts[label]
        return int(counts.sum() - right) * self.instance.unit + self.instance.leaf

    def floor(self, counts: np.ndarray, height: int) -> int:
        """A lower bound of any tree of the height: t leaves answer with at most t classes."""
        g, top, total = self.instance, 0, int(counts.sum())
        best = FAR
        for t, count in enumerate(np.sort(counts)[::-1][: 1 << min(height, 20)].tolist(), start=1):
            top += count
            best = min(best, (total - top) * g.unit + t * g.leaf)
        return best

    def cost_of(self, tree: LabelledShape, rows: np.ndarray | None = None) -> tuple[int, int]:
        """Errors and leaves of a tree over some rows of the instance, by default all."""

        def visit(part: LabelledShape, rows: np.ndarray) -> tuple[int, int]:
            if not isinstance(part, tuple):
                counts = self.counts(rows)
                return int(counts.sum() - (counts.max() if part is None else counts[part])), 1
            yes, no = self.split(rows, part[0])
            left, right = visit(part[1], yes), visit(part[2], no)
            return left[0] + right[0], left[1] + right[1]

        return visit(tree, self.all_rows if rows is None else rows)

    def exact_cost(self, cost: int) -> Fraction:
        """errors + P/Q leaves, in rows, of an integer cost; of a bound the largest value that it proves."""
        return self.instance.true_cost(cost)

    def objective(self, cost: Fraction) -> Fraction:
        """The objective of a cost in rows."""
        return 1 - cost / self.problem.n


def literal(path: tuple[int, ...] | None, question: int, yes: bool, encoded: int) -> tuple[int, ...] | None:
    """The path one answer further; None once a held question is on it."""
    if path is None or question >= encoded:
        return None
    return tuple(sorted((*path, 2 * question + int(yes))))


def _turned(shape: Shape) -> Shape:
    """(feature, where 0, where 1) as (question, yes, no)."""
    return None if shape is None else (shape[0], _turned(shape[2]), _turned(shape[1]))
