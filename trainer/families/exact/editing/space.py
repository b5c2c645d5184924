"""Define `ExactSpace`: rows, questions and optimal subtrees that the workbench shares.

E(D, h, A) is the smallest cost of a tree of height ≤ h for the rows D without the banned columns A. One search for each
set A caches
optima by rows and height.
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

MOST_SEARCHES = 64  # limit on the sets of banned columns whose searches are cached


class ExactSpace(editing.EditingSpace):
    """The rows of a problem, with the searches over its questions."""

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
        rows = rows_of(problem, self.questions.bits, depth)
        g = rows.instance
        self.instance: ExactInstance = g
        # this instance compares rows by encoded features only; it serves subproblems whose path has no question that a
        # wish added
        self._unheld = replace(g, equal=rows.encoded_errors)
        self.origin = rows.origin
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
        """Return the rows that answer yes, and those that answer no."""
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
        questions: list[int] = node.features.tolist()
        return questions

    def _answers(self, question: int) -> np.ndarray:
        """Return the answers of the instance's rows to a held question."""
        if question not in self._held:
            self._held[question] = self.questions.answers(question)[self.origin]
        return self._held[question]

    # -- optimal subtrees ----------------------------------------------------------------------------------------------

    def mask(self, banned: frozenset[int]) -> np.ndarray:
        """Return 1 for the allowed questions of the encoding, uint8."""
        out = self.banned | banned
        return np.array([c not in out for c in self.questions.columns[: self.questions.encoded]], np.uint8)

    def search(self, banned: frozenset[int], *, paths: bool) -> ExactSearch:
        """Return the search without the banned columns; with `paths` it also caches small subtrees by path."""
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
                stop=_weak_stopped(self),
                flag=self.flag,
            )
            other = self._searches.get((banned, not paths))
            if other is not None:  # both searches share the optima that are cached by rows
                self._searches[key].memo = other.memo
        return self._searches[key]

    @property
    def root(self) -> RootBounds | None:
        """Bounds of the splits of the root after their search, in the search's integers."""
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
        """Return E(rows, height, banned) if below `ub`, else a lower bound of at least `ub`; less only if the search was stopped.

        path: the sorted answers on the path, 2 q + 1 for yes to q; None if it has a held question.
        """
        search, path = self._choose_search(path, height, banned)
        return search.solve(rows, path, height, min(ub, INFINITE_COST))

    def tree(
        self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, banned: frozenset[int], cost: int
    ) -> Shape:
        """Return the first tree of the optimal `cost`, as (question, yes, no)."""
        search, path = self._choose_search(path, height, banned)
        return _as_questions(extract(search, rows, path, height, cost))

    def _choose_search(
        self, path: tuple[int, ...] | None, height: int, banned: frozenset[int]
    ) -> tuple[ExactSearch, tuple[int, ...]]:
        """Return the search with caches by path if depth and height add up to the depth of the space, else the other."""
        if path is not None and len(path) == self.depth - height:
            return self.search(banned, paths=True), path
        return self.search(banned, paths=False), UNKNOWN_PATH

    @property
    def nodes(self) -> int:
        """Number of subproblems searched so far."""
        return sum(s.nodes + s.depth_two_solves for s in self._searches.values())

    def exact_cost(self, cost: int) -> Fraction:
        return self.instance.true_cost(cost)


def _weak_stopped(space: ExactSpace) -> Callable[[], bool]:
    """Return `space.stopped` through a weak reference, so that space and search form no cycle for the garbage collector."""
    reference = weakref.ref(space)

    def stopped() -> bool:
        referent = reference()
        return referent is None or referent.stopped()

    return stopped


def _as_questions(shape: Shape) -> Shape:
    """Convert (feature, where 0, where 1) to (question, yes, no)."""
    return None if shape is None else (shape[0], _as_questions(shape[2]), _as_questions(shape[1]))
