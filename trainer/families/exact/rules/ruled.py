"""Find the best tree under rules that couple its leaves: monotone columns and rates of groups.

Trees of height one, two, … are searched in turn. A split of the root combines the fronts of its children (`RuledFronts`). Splits are
visited in order of the bounds of the search without rules, so the first one above the incumbent ends the search.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from trainer.editing.space import INFINITE_COST, SearchStopped
from trainer.errors import InfeasibleError, SolverError
from trainer.families.exact.rules.rule_fronts import FrontsTooLarge, RuledFronts, RuleFront, RulePlace
from trainer.tree.shapes import LabelledShape

Sides = tuple[RulePlace, RulePlace]


class RuledTree(NamedTuple):
    """The best tree, with its cost and the bound on all trees, in rows; `note` says why the search ended early."""

    shape: LabelledShape
    cost: Fraction
    bound: Fraction
    is_optimal: bool
    note: str


class RootSplit(NamedTuple):
    """A split of the root with the vectors of its children."""

    question: int
    sides: Sides
    vectors: tuple[np.ndarray, np.ndarray]


class RuledSearch:
    """The search over one set of fronts.

    Parameters
    ----------
    fronts : RuledFronts
        The fronts within all limits except the number of columns.
    most_columns : int, optional
        The limit on the number of columns.
    stop : callable
        Returns True to end the search.
    report : callable
        Called with each better tree and its cost in rows.
    """

    def __init__(
        self,
        fronts: RuledFronts,
        most_columns: int | None,
        stop: Callable[[], bool],
        report: Callable[[LabelledShape, Fraction], None],
    ) -> None:
        self.fronts = fronts
        self.space = fronts.space
        self.most_columns = most_columns
        self.report = report
        self.best: LabelledShape = None
        self.cost = INFINITE_COST
        self.bound = 0
        self.space.begin(None, stop)

    def run(self, floor: Fraction) -> RuledTree:
        """Return the best tree; if stopped, the incumbent. `floor` is a bound on its cost in rows.

        Raises
        ------
        InfeasibleError
            No tree is within the restrictions.
        SolverError
            The search was stopped before it had a tree.
        """
        note = ""
        every = frozenset(range(self.fronts.width))
        with self.space.without_limits():  # a single leaf takes no time, and is often within the restrictions
            self._search_root(self._top(0, every), INFINITE_COST)
        try:
            self._search_cases(every)
            is_optimal = True
        except SearchStopped:
            is_optimal = False
        except FrontsTooLarge:
            is_optimal = False
            note = (
                "Trees differ in too many combinations of rates, recalls and leaves to search them all. "
                "The tree is the best that was found. Compare fewer groups, or set a lower depth."
            )
        if is_optimal and self.cost >= INFINITE_COST:
            raise InfeasibleError("No tree satisfies the constraints. Relax one of them or allow a deeper tree.")
        if self.cost >= INFINITE_COST:
            raise SolverError(
                "The search was stopped before it found a tree within the constraints. Give it more time."
            )
        cost = self.space.exact_cost(self.cost)
        bound = cost if is_optimal else min(cost, max(floor, self.space.exact_cost(self.bound)))
        return RuledTree(self.best, cost, bound, is_optimal, note)

    def _search_cases(self, every: frozenset[int]) -> None:
        """Search all trees; while the best tree tests too many columns, distinguish trees with and without one of them."""
        open_cases = [(frozenset[int](), every)]
        while open_cases:
            required, usable = open_cases.pop()
            is_full = self.most_columns is not None and len(required) >= self.most_columns
            tree = self._search_heights(required if is_full else usable)
            columns = self._columns_of(tree)
            if self._is_too_wide(columns):
                column = min(columns - required)
                open_cases += [(required | {column}, usable), (required, usable - {column})]

    def _search_heights(self, within: frozenset[int]) -> LabelledShape:
        """Return the best tree over the columns `within` that costs less than the incumbent, or None."""
        best = None
        limit = self.cost
        for height in range(1, self.space.depth + 1):
            tree, limit = self._search_root(self._top(height, within), limit)
            if tree is not None:
                best = tree
        return best

    def _top(self, height: int, within: frozenset[int]) -> RulePlace:
        """Return the subproblem of all rows, for trees over the columns `within`."""
        banned = frozenset(range(self.fronts.width)) - within
        return RulePlace(self.space.all_rows, height, banned, (0, self.space.n_classes - 1))

    def _search_root(self, top: RulePlace, ub: int) -> tuple[LabelledShape, int]:
        """Return the best tree below `ub` and its cost, or None and `ub`."""
        if top.height < 2:
            front = self.fronts.front(top, ub)
            if not len(front.vectors):
                return None, ub
            vector = front.vectors[front.vectors[:, 0].argmin()]
            return self._accept(self.tree(top, vector), int(vector[0])), int(vector[0])
        best = None
        is_last = top.height == self.space.depth and self.most_columns is None
        for question, sides, low in self.fronts.open(top, ub):
            if is_last:
                self.bound = max(self.bound, min(ub, sum(low)))
            for both in self.fronts.assign_spans(question, sides):
                split = self._cheapest(question, both, low, ub)
                if split is not None:
                    ub = int(split.vectors[0][0] + split.vectors[1][0])
                    best = self._accept(self._join(split), ub)
        return best, ub

    def _cheapest(self, question: int, sides: Sides, low: tuple[int, int], ub: int) -> RootSplit | None:
        """Return the cheapest pair of children below `ub` within all limits."""
        if low[0] + low[1] >= ub:
            return None
        one = 0 if len(sides[0].rows) <= len(sides[1].rows) else 1
        a = self.fronts.front(sides[one], ub - low[1 - one])
        if not len(a.vectors):
            return None
        b = self.fronts.front(sides[1 - one], ub - a.least)
        pair = self._cheapest_pair(a, b, ub)
        if pair is None:
            return None
        return RootSplit(question, sides, pair if one == 0 else pair[::-1])

    def _cheapest_pair(self, a: RuleFront, b: RuleFront, ub: int) -> tuple[np.ndarray, np.ndarray] | None:
        others = b.vectors[b.vectors[:, 0].argsort(kind="stable")]
        best = None
        for vector in a.vectors[a.vectors[:, 0].argsort(kind="stable")]:
            size = int(np.searchsorted(others[:, 0], ub - vector[0]))
            if not size:
                break
            if self.space.stopped():
                raise SearchStopped
            fits = self.fronts.fits(others[:size] + vector, ub)
            if fits.any():  # the others are in order of cost, so the first one is the cheapest
                best = vector, others[int(fits.argmax())]
                ub = int(best[0][0] + best[1][0])
        return best

    def _accept(self, tree: LabelledShape, cost: int) -> LabelledShape:
        """Store a better tree as the incumbent if it is within the limit of columns; return it."""
        if cost < self.cost and not self._is_too_wide(self._columns_of(tree)):
            self.best = tree
            self.cost = cost
            self.report(tree, self.space.exact_cost(cost))
        return tree

    # -- trees ---------------------------------------------------------------------------------------------------------

    def tree(self, place: RulePlace, vector: np.ndarray) -> LabelledShape:
        """Return a tree with this vector of the front of a subproblem, as (question, no, yes)."""
        label = self._label(place, vector)
        if label is not None or place.height == 0:
            return label
        ub = int(vector[0]) + 1
        for question, sides, low in self.fronts.open(place, ub):
            for both in self.fronts.assign_spans(question, sides):
                vectors = self._split_vector(both, low, vector)
                if vectors is not None:
                    return self._join(RootSplit(question, both, vectors))
        raise AssertionError("no tree has a vector of the front")

    def _join(self, split: RootSplit) -> LabelledShape:
        low, high = (self.tree(side, vector) for side, vector in zip(split.sides, split.vectors, strict=True))
        return split.question, low, high

    def _label(self, place: RulePlace, vector: np.ndarray) -> int | None:
        """Return the class of a leaf with this vector, or None."""
        totals = self.fronts.weights[:, place.rows].sum(axis=1)[:, None]
        first, last = place.span
        # prefer classes that have rows
        for label in sorted(range(first, last + 1), key=lambda k: not totals[k, 0]):
            if np.array_equal(self.fronts.leaf_vectors(totals, label)[0], vector):
                return label
        return None

    def _split_vector(
        self, sides: Sides, low: tuple[int, int], vector: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return vectors of both children whose sum is `vector`, or None."""
        ub = int(vector[0]) + 1
        a = self.fronts.front(sides[0], ub - low[1]).vectors
        if not len(a):
            return None
        b = self.fronts.front(sides[1], ub - int(a[:, 0].min())).vectors
        place_of = {other.tobytes(): k for k, other in enumerate(b)}
        for one in a:
            k = place_of.get((vector - one).tobytes())
            if k is not None:
                return one, b[k]
        return None

    def _columns_of(self, tree: LabelledShape) -> set[int]:
        if not isinstance(tree, tuple):
            return set()
        return {self.space.questions.columns[tree[0]], *self._columns_of(tree[1]), *self._columns_of(tree[2])}

    def _is_too_wide(self, columns: set[int]) -> bool:
        return self.most_columns is not None and len(columns) > self.most_columns
