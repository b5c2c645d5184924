"""The space of the exact search: rows, questions, and the optimal subtrees that all parts of the workbench share.

E(D, h, A): the smallest cost of a tree of height ≤ h for the rows D that asks no banned column; one search for each set of
banned columns keeps what it has found, by rows and height.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from trainer.data.problem import Problem
from trainer.editing import space as editing
from trainer.editing.questions import Questions
from trainer.editing.space import INFINITE_COST, NONE_BANNED, DemandedQuestion
from trainer.families.exact.editing.rows import rows_of
from trainer.families.exact.instance import ExactInstance
from trainer.families.exact.kernels import node as dp_node
from trainer.families.exact.search.frame import RootBounds
from trainer.families.exact.search.memo import UNKNOWN_PATH, ExactOptions, MemoEntry
from trainer.families.exact.search.search import ExactSearch
from trainer.families.exact.search.tree_reader import extract
from trainer.tree.shapes import Shape

MOST_SEARCHES = 64  # sets of banned columns for which searches are kept


class ExactSpace(editing.EditingSpace):
    """Rows of a problem with the searches over its questions."""

    def __init__(
        self,
        problem: Problem,
        *,
        depth: int,
        min_leaf: int = 1,
        banned: frozenset[int] = NONE_BANNED,
        memory: int = 1 << 30,
    ) -> None:
        super().__init__()
        self.problem = problem
        self.questions = Questions(problem)
        self.banned = banned
        self.min_leaf = min_leaf
        made = rows_of(problem, self.questions.bits, depth)
        g = made.instance
        self.instance: ExactInstance = g
        self._unheld = replace(g, equal=made.encoded_errors)  # where no held question was asked
        self.origin = made.origin
        self.depth = min(depth, max(0, len(g.rows) - 1))
        self.weights = g.weights
        self.classes = g.classes
        self.n_classes = g.n_classes
        self.unit = g.unit
        self.leaf = g.leaf
        self.leaf_rows = Fraction(g.P, g.Q)
        self._options = ExactOptions(memory=memory)
        self._searches: dict[tuple[frozenset[int], bool], ExactSearch] = {}
        self._held: dict[int, np.ndarray] = {}

    # -- rows ----------------------------------------------------------------------------------------------------------

    def split(self, rows: np.ndarray, question: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows that answer yes, and those that answer no."""
        if question < self.questions.encoded:
            no, yes = dp_node.split_rows(self.instance.rows, rows, question)
            return yes, no
        answers = self._answers(question)[rows]
        return rows[answers], rows[~answers]

    def candidates(
        self, rows: np.ndarray, banned: frozenset[int], asks: list[DemandedQuestion], *, alike: bool
    ) -> list[int]:
        mask = self.mask(banned)
        for ask in asks:
            for q in np.flatnonzero(mask).tolist():
                if not ask.admits(self.questions.columns[q], q):
                    mask[q] = 0
        if not mask.any():
            return []
        node = dp_node.prepare(self.instance.data, rows, mask, self.min_leaf, not alike, True)
        found: list[int] = node.features.tolist()
        return found

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

    def search(self, banned: frozenset[int], *, paths: bool) -> ExactSearch:
        """The search over what is not banned; with `paths` it also keeps small subtrees by their path."""
        key = (banned, paths)
        if key not in self._searches:
            if len(self._searches) >= 2 * MOST_SEARCHES:
                self._searches.clear()
            self._searches[key] = ExactSearch(
                instance=self._unheld if paths else self.instance,
                depth=self.depth if paths else 2,
                min_leaf=self.min_leaf,
                allowed=self.mask(banned),
                options=self._options,
                stop=_asking(self),
                flag=self.flag,
            )
            other = self._searches.get((banned, not paths))
            if other is not None:  # optima by rows serve both
                self._searches[key].memo = other.memo
        return self._searches[key]

    @property
    def root(self) -> RootBounds | None:
        """What is known of the questions at the root, once they were searched; costs in the search's integers."""
        search = self._searches.get((NONE_BANNED, True))
        return None if search is None else search.root

    def solve(
        self,
        rows: np.ndarray,
        path: tuple[int, ...] | None,
        height: int,
        banned: frozenset[int],
        ub: int = INFINITE_COST,
    ) -> MemoEntry:
        """E(rows, height, banned) if below `ub`, else a lower bound of at least `ub`, less only if the search was stopped.

        path: the answers that lead here, sorted, 2 q + 1 for yes; None if a held question is among them.
        """
        search, path = self._suited(path, height, banned)
        return search.solve(rows, path, height, min(ub, INFINITE_COST))

    def tree(
        self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, banned: frozenset[int], cost: int
    ) -> Shape:
        """The first tree of the known optimal `cost`, as (question, yes, no)."""
        search, path = self._suited(path, height, banned)
        return _as_questions(extract(search, rows, path, height, cost))

    def _suited(
        self, path: tuple[int, ...] | None, height: int, banned: frozenset[int]
    ) -> tuple[ExactSearch, tuple[int, ...]]:
        """The tables by path are for places that are as deep as their height says."""
        if path is not None and len(path) == self.depth - height:
            return self.search(banned, paths=True), path
        return self.search(banned, paths=False), UNKNOWN_PATH

    @property
    def nodes(self) -> int:
        """Subproblems searched so far."""
        return sum(s.nodes + s.depth_two_solves for s in self._searches.values())

    def exact_cost(self, cost: int) -> Fraction:
        return self.instance.true_cost(cost)


def _asking(space: ExactSpace) -> Callable[[], bool]:
    """`stopped` of a space that need not stay for it: a search that held its space would keep both until memory is searched for circles."""
    held = weakref.ref(space)

    def stopped() -> bool:
        there = held()
        return there is None or there.stopped()

    return stopped


def _as_questions(shape: Shape) -> Shape:
    """(feature, where 0, where 1) as (question, yes, no)."""
    return None if shape is None else (shape[0], _as_questions(shape[2]), _as_questions(shape[1]))
