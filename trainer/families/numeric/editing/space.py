"""Define `NumericSpace`: ordered rows, and best subtrees over all thresholds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.data.problem import Problem
from trainer.editing import space as editing
from trainer.editing.space import INFINITE_COST, NONE_BANNED, DemandedQuestion
from trainer.errors import DataError
from trainer.families.numeric.editing.questions import ThresholdQuestions
from trainer.families.numeric.intervals import NumericSearch, TimeOver
from trainer.families.numeric.search import INFINITE, MOST_WEIGHT
from trainer.tree.shapes import Shape

ENTRY_BYTES = 300  # estimated bytes of a memoised subproblem without its rows


@dataclass(frozen=True)
class SubproblemTree:
    """A lower bound for a subproblem and, if exact, its tree (question, yes, no)."""

    lower: int
    exact: bool
    tree: Shape = None


class NumericSpace(editing.EditingSpace):
    """The space of trees of height ≤ `depth` over all thresholds, with a search for each set of banned columns."""

    questions: ThresholdQuestions

    def __init__(
        self, problem: Problem, *, depth: int, banned: frozenset[int] = NONE_BANNED, memory: int = 1 << 30
    ) -> None:
        super().__init__()
        weights = problem.row_weights
        self.origin = np.flatnonzero(weights > 0)
        if not len(self.origin) or int(weights.sum()) > MOST_WEIGHT:
            raise DataError(
                f"The weights add up to {int(weights.sum()):,}, but this search takes 1 to {MOST_WEIGHT:,}. Scale the weights."
            )
        self.problem = problem
        self.questions = ThresholdQuestions(problem, self.origin)
        self.depth = depth
        self.min_leaf = 1
        self.banned = banned
        self.weights = np.ascontiguousarray(weights[self.origin], dtype=np.int64)
        self.classes = np.ascontiguousarray(problem.y[self.origin], dtype=np.int32)
        self.n_classes = problem.n_classes
        P = problem.kappa.numerator
        Q = problem.kappa.denominator
        self.Q = Q
        self.scale = (1 << depth) + 1
        self.leaf_rows = problem.kappa
        self.unit = self.scale * Q
        self.leaf = self.scale * P + 1
        if self.scale * (Q * int(self.weights.sum()) + P * (1 << depth)) >= INFINITE:
            raise DataError("The leaf penalty has too many digits for exact integer costs. Round it to six digits.")
        X = problem.numeric.matrix(problem.table)[self.origin]
        levels = self.questions.levels
        ranks = [np.searchsorted(levels[f], X[:, f]) for f in range(X.shape[1])]
        self.rank = np.array(ranks, np.int32).reshape(X.shape[1], len(X))
        self.order = np.argsort(self.rank, axis=1, kind="stable").astype(np.int32)
        self.memory = memory
        self.bytes = 0
        self._memo: dict[tuple[int, frozenset[int], bytes], SubproblemTree] = {}
        self._searches: dict[frozenset[int], tuple[NumericSearch, np.ndarray]] = {}

    # -- questions -----------------------------------------------------------------------------------------------------

    def split(self, rows: np.ndarray, question: int) -> tuple[np.ndarray, np.ndarray]:
        if question < self.questions.encoded:
            f, rank = self.questions.locate(question)
            yes = self.rank[f, rows] <= rank
            if self.questions.flipped[f]:
                yes = ~yes
        else:
            yes = self.questions.answers(question)[self.origin[rows]]
        return rows[yes], rows[~yes]

    def candidates(
        self, rows: np.ndarray, banned: frozenset[int], asks: list[DemandedQuestion], *, alike: bool
    ) -> list[int]:
        demanded = sorted({q for a in asks for q in a.questions})
        if demanded:
            return [q for q in demanded if self.fits(q, banned, asks) and self.separates(rows, q)]
        questions: list[int] = []
        for f in self.allowed_features(banned):
            if all(a.column == self.questions.features[f].column for a in asks):
                present = np.unique(self.rank[f, rows])
                ranks = present[:-1]
                questions += (self.questions.starts[f] + ranks[ranks < self.questions.sizes[f]]).tolist()
        return questions

    def allowed_features(self, banned: frozenset[int]) -> list[int]:
        """Return the features of columns that are not banned."""
        out = self.banned | banned
        return [f for f, feature in enumerate(self.questions.features) if feature.column not in out]

    # -- optimal subtrees ----------------------------------------------------------------------------------------------

    def begin(self, time_limit: float | None, stop: Callable[[], bool] | None) -> None:
        """Start the clock of a new search, and clear the cache if it is too large."""
        super().begin(time_limit, stop)
        if self.bytes > self.memory // 2:
            self._memo.clear()
            self.bytes = 0

    def cached_bound(self, rows: np.ndarray, height: int, banned: frozenset[int]) -> int:
        """Return the memoised lower bound for a subproblem, 0 if there is none."""
        entry = self._memo.get((height, banned, rows.tobytes()))
        return entry.lower if entry is not None else 0

    def solve(
        self,
        rows: np.ndarray,
        path: tuple[int, ...] | None,
        height: int,
        banned: frozenset[int],
        ub: int = INFINITE_COST,
    ) -> SubproblemTree:
        key = (height, banned, rows.tobytes())
        cached = self._memo.get(key)
        if cached is not None and (cached.exact or cached.lower >= ub):
            return cached
        entry = self._search(rows, height, banned, min(ub, INFINITE))
        if cached is None:
            self.bytes += ENTRY_BYTES + rows.nbytes
        elif not entry.exact and cached.lower > entry.lower:
            entry = cached
        self._memo[key] = entry
        return entry

    def _search(self, rows: np.ndarray, height: int, banned: frozenset[int], ub: int) -> SubproblemTree:
        counts = self.counts(rows)
        leaf = self.leaf_cost(counts)
        floor = self.floor(counts, height)
        search, features = self._search_of(banned)
        if height == 0 or not len(features) or floor >= leaf:
            return SubproblemTree(leaf, True)
        if floor >= ub:
            return SubproblemTree(floor, False)
        member = np.zeros(len(self.weights), bool)
        member[rows] = True
        order = self.order[features]
        order = np.ascontiguousarray(order[member[order]].reshape(len(features), len(rows)))
        try:
            result = search.solve(order, height, ub)
        except TimeOver:
            return SubproblemTree(floor, False)
        return SubproblemTree(
            max(result.cost, floor), result.exact, self._shape(result.tree, features) if result.exact else None
        )

    def _search_of(self, banned: frozenset[int]) -> tuple[NumericSearch, np.ndarray]:
        if banned not in self._searches:
            features = np.array(self.allowed_features(banned), np.int64)
            search = NumericSearch(
                np.ascontiguousarray(self.rank[features]),
                self.classes,
                self.weights,
                self.n_classes,
                np.array([self.unit, self.leaf], np.int64),
                self.flag,
                self.stopped,
            )
            self._searches[banned] = (search, features)
        return self._searches[banned]

    def _shape(self, tree: tuple[int, int, Any, Any] | None, features: np.ndarray) -> Shape:
        if tree is None:
            return None
        f = int(features[tree[0]])
        low = self._shape(tree[2], features)
        high = self._shape(tree[3], features)
        # the question that separates all values from empty cells belongs to the previous feature
        if tree[1] >= self.questions.sizes[f]:
            return (int(self.questions.starts[f - 1]), high, low)
        question = int(self.questions.starts[f]) + tree[1]
        return (question, high, low) if self.questions.flipped[f] else (question, low, high)

    def tree(
        self, rows: np.ndarray, path: tuple[int, ...] | None, height: int, banned: frozenset[int], cost: int
    ) -> Shape:
        return self.solve(rows, path, height, banned).tree

    def exact_cost(self, cost: int) -> Fraction:
        return Fraction(cost // self.scale, self.Q)

    @property
    def nodes(self) -> int:
        return sum(search.nodes for search, _ in self._searches.values())
