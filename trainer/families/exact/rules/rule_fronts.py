"""Search Pareto fronts of trees within rules, below a cost.

A vector is (cost, errors of each class with a minimum recall, leaves if they are limited, f and o of each group). If
rates of groups
are compared, small values of f and o are not better. Then a vector dominates another only if all entries except the
cost are equal.
Each vector has the columns that its tree tests. `span`: the first and the last class of leaves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from trainer.constraints import Constraints, column_pairs
from trainer.constraints.forbidden import forbidden_columns
from trainer.data.problem import Problem
from trainer.editing.space import SearchStopped
from trainer.families.exact.editing.places import Pairs, Places, RowPlace
from trainer.families.exact.editing.space import ExactSpace
from trainer.families.exact.rules.rules import Rules, rules_of
from trainer.families.exact.search.constraints import exact_constraints
from trainer.families.exact.search.pareto import recall_limit
from trainer.methods.base import Settings

MOST_BYTES = 1 << 28  # limit on the bytes of cached vectors
MOST_SUMS = 1 << 20  # limit on the pairs of vectors in one array operation
MOST_VECTORS = 1 << 20  # limit on the vectors of one front
MAX_SUBPROBLEMS = 1_000_000  # limit on subproblems; the checker takes a few tenths of a millisecond for each
Span = tuple[int, int]


class FrontsTooLarge(Exception):
    """A front has more vectors than memory allows, or a proof more subproblems than a checker can repeat in a few minutes."""


@dataclass(frozen=True)
class RulePlace(RowPlace):
    """A subproblem with the first and the last class of its leaves."""

    span: Span

    @property
    def key(self) -> tuple[object, ...]:
        """Key of the subproblem in caches."""
        return (*super().key, self.span)


@dataclass(frozen=True)
class RuleFront:
    """The front for costs below `below`: vectors int64 (size, entries), and the columns of their trees, bool (size, columns)."""

    vectors: np.ndarray
    columns: np.ndarray
    below: int

    @property
    def least(self) -> int:
        """Return the least cost, or `below` if the front is empty."""
        return int(self.vectors[:, 0].min()) if len(self.vectors) else self.below


class RuledFronts:
    """The recursion over fronts; optima of the search without rules serve as bounds."""

    def __init__(
        self, space: ExactSpace, constraints: Constraints, pairs: Pairs, rules: Rules, most_places: float = math.inf
    ) -> None:
        self.space = space
        self.most_places = most_places
        self.rules = rules
        self.free = Places(space, pairs, alike=bool(rules.rising.any()))
        self.bounded = [k for k, _ in constraints.recalls]
        self.caps = [recall_limit(space.instance, k, share) for k, share in constraints.recalls]
        self.limited = constraints.max_leaves is not None
        if constraints.max_leaves is not None:
            self.caps.append(constraints.max_leaves)
        self.entries = 1 + len(self.caps) + 2 * len(rules.compared)
        self.columns = np.array(space.questions.columns, np.int64)
        self.width = len(space.problem.table.names)
        self.answers = (space.questions.bits[space.origin] > 0).astype(np.float64)
        classes = np.arange(space.n_classes)[:, None]
        self.weights = np.concatenate([np.where(space.classes == classes, space.weights, 0), rules.compared])
        self.memo: dict[tuple[object, ...], RuleFront] = {}
        self.bytes = self.places = 0

    def front(self, place: RulePlace, ub: int) -> RuleFront:
        """Return all vectors of cost below `ub`. Raises SearchStopped and FrontsTooLarge."""
        known = self.memo.get(place.key)
        if known is None or known.below < ub:
            known = self._search(place, ub)
            self.bytes += 300 + place.rows.nbytes + known.vectors.nbytes + known.columns.nbytes
            if self.bytes > MOST_BYTES:
                self.memo.clear()
                self.bytes = 0
            self.memo[place.key] = known
        return known if known.below == ub else self._filter_front(known.vectors, known.columns, ub)

    def _search(self, place: RulePlace, ub: int) -> RuleFront:
        self.places += 1
        if self.places > self.most_places:
            raise FrontsTooLarge
        if self.space.stopped():
            raise SearchStopped
        front = self._leaf(place, ub)
        if place.height == 1:
            return self._merge_fronts([front, *self._stumps(place, ub)], ub)
        limit = ub
        for question, sides, low in self.open(place, ub):
            for both in self.assign_spans(question, sides):
                if low[0] + low[1] < limit:
                    sums = self._sums(question, both, low, limit)
                    front = self._merge_fronts([front, sums], ub)
                    # if the vectors have one entry, only the least cost counts
                    limit = min(ub, front.least) if self.entries == 1 else ub
        return front

    # -- questions -----------------------------------------------------------------------------------------------------

    def open(self, place: RulePlace, ub: int) -> list[tuple[int, tuple[RulePlace, RulePlace], tuple[int, int]]]:
        """Return the splits whose children cost less than `ub` without rules, with these costs, cheapest first."""
        questions = []
        for question, sides in self.free.questions(place):
            low = self.free.lows(sides, self.free.floors(sides), ub)
            if low[0] + low[1] < ub:
                questions.append((question, sides, low))
        return sorted(questions, key=lambda split: (sum(split[2]), split[0]))

    def assign_spans(self, question: int, sides: tuple[RulePlace, RulePlace]) -> Iterator[tuple[RulePlace, RulePlace]]:
        """Yield the children with the spans of classes of their leaves, in each way that the rules allow."""
        direction = int(self.rules.rising[question])
        first, last = sides[0].span
        if not direction:
            yield sides
        for k in range(first, last + 1) if direction else ():
            spans = ((first, k), (k, last))[::direction]
            yield replace(sides[0], span=spans[0]), replace(sides[1], span=spans[1])

    # -- vectors -------------------------------------------------------------------------------------------------------

    def leaf_vectors(self, totals: np.ndarray, label: int) -> np.ndarray:
        """Return the vectors (size, entries) of leaves of one class; totals: weights of classes and groups, (…, size)."""
        sizes = totals[: self.space.n_classes]
        compared = totals[self.space.n_classes :]
        entries = [self.space.leaf + self.space.unit * (sizes.sum(axis=0) - sizes[label])]
        entries += [np.zeros_like(sizes[k]) if k == label else sizes[k] for k in self.bounded]
        entries += [np.ones_like(sizes[0])] if self.limited else []
        for weight in compared:
            none = np.zeros_like(weight)
            entries += [weight, none] if label == self.rules.favoured else [none, weight]
        return np.stack(entries, axis=-1)

    def _front(self, vectors: np.ndarray, columns: np.ndarray | None, ub: int) -> RuleFront:
        """Return the front of leaves, or of trees with one split on these columns."""
        used_columns = np.zeros((len(vectors), self.width), bool)
        if columns is not None:
            used_columns[np.arange(len(vectors)), columns] = True
        return self._filter_front(vectors, used_columns, ub)

    def _leaf(self, place: RulePlace, ub: int) -> RuleFront:
        totals = self.weights[:, place.rows].sum(axis=1)[:, None]
        first, last = place.span
        return self._front(np.concatenate([self.leaf_vectors(totals, k) for k in range(first, last + 1)]), None, ub)

    def _stumps(self, place: RulePlace, ub: int) -> Iterator[RuleFront]:
        """Yield fronts of the trees with one split."""
        weights = self.weights[:, place.rows]
        yes = (weights.astype(np.float64) @ self.answers[place.rows]).astype(np.int64)
        no = weights.sum(axis=1)[:, None] - yes
        least = max(1, self.space.min_leaf)
        classes = self.space.n_classes
        usable = self.space.mask(place.banned).astype(bool)
        usable &= np.minimum(yes[:classes].sum(axis=0), no[:classes].sum(axis=0)) >= least
        span = range(place.span[0], place.span[1] + 1)
        for k, other in itertools.product(span, span):
            fits = usable & ((self.rules.rising * np.sign(other - k)) >= 0)
            if fits.any():
                vectors = self.leaf_vectors(no[:, fits], k) + self.leaf_vectors(yes[:, fits], other)
                yield self._front(vectors, self.columns[: len(fits)][fits], ub)

    def _sums(self, question: int, sides: tuple[RulePlace, RulePlace], low: tuple[int, int], ub: int) -> RuleFront:
        """Return the front of the sums of both children below `ub`; search the smaller child first."""
        one = 0 if len(sides[0].rows) <= len(sides[1].rows) else 1
        a = self.front(sides[one], ub - low[1 - one])
        if not len(a.vectors):
            return a
        b = self.front(sides[1 - one], ub - a.least)
        front = self._filter_front(a.vectors[:0], a.columns[:0], ub)
        step = max(1, MOST_SUMS // (self.entries * max(1, len(b.vectors))))
        for k in range(0, len(a.vectors), step):
            some = slice(k, k + step)
            i, j = np.nonzero(a.vectors[some, None, 0] + b.vectors[None, :, 0] < ub)
            used_columns = a.columns[some][i] | b.columns[j]
            used_columns[:, self.columns[question]] = True
            sums = self._filter_front(a.vectors[some][i] + b.vectors[j], used_columns, ub)
            front = self._merge_fronts([front, sums], ub)
            if self.space.stopped():
                raise SearchStopped
        return front

    def _merge_fronts(self, fronts: list[RuleFront], ub: int) -> RuleFront:
        if len(fronts) == 1:
            return fronts[0]
        vectors, columns = (
            np.concatenate(some) for some in zip(*((f.vectors, f.columns) for f in fronts), strict=True)
        )
        return self._filter_front(vectors, columns, ub)

    def _filter_front(self, vectors: np.ndarray, columns: np.ndarray, ub: int) -> RuleFront:
        """Return the front of the vectors below `ub` and within all limits."""
        fits = self.fits(vectors, ub)
        vectors = vectors[fits]
        columns = columns[fits]
        if len(vectors) > 1:
            front = cheapest(vectors) if len(self.rules.compared) else pareto_front(vectors)
            vectors = vectors[front]
            columns = columns[front]
        if len(vectors) > MOST_VECTORS:
            raise FrontsTooLarge
        return RuleFront(vectors, columns, ub)

    def fits(self, vectors: np.ndarray, ub: int) -> np.ndarray:
        """Return which vectors are below `ub` and within all limits, bool (size,); for a tree of all rows this is exact."""
        first = 1 + len(self.caps)
        fits = (vectors[:, 0] < ub) & (vectors[:, 1:first] <= np.array(self.caps, np.int64)).all(axis=1)
        for g, h, a, b, most in self.rules.apart:
            fits &= a * vectors[:, first + 2 * g] + b * vectors[:, first + 2 * h + 1] <= most
        return fits


def ruled_fronts(
    problem: Problem, settings: Settings, most_places: float = math.inf, memory: int = 1 << 30
) -> RuledFronts:
    """Return the fronts within all restrictions of the settings except the number of columns."""
    banned = forbidden_columns(settings, problem.names) if "forbidden" in settings else set()
    space = ExactSpace(
        problem,
        depth=settings["depth"],
        min_leaf=int(settings.get("min_leaf") or 1),
        memory=memory,
        banned=frozenset(map(problem.names.columns.index, banned)),
    )
    limits = exact_constraints(problem, settings) or Constraints(max_leaves=settings["max_leaves"])
    return RuledFronts(space, limits, column_pairs(problem, settings), rules_of(problem, settings, space), most_places)


def cheapest(vectors: np.ndarray) -> np.ndarray:
    """Return the positions of the cheapest vectors among those that are equal in all other entries."""
    # `lexsort` takes the last key first, so the cost decides only among vectors that are equal otherwise
    order = np.lexsort(vectors.T)
    others = vectors[order, 1:]
    return order[np.append(True, (others[1:] != others[:-1]).any(axis=1))]


def pareto_front(vectors: np.ndarray) -> np.ndarray:
    """Return the positions of the Pareto front, one of equal vectors."""
    if vectors.shape[1] == 1:
        return np.array([vectors[:, 0].argmin()])
    candidates = np.lexsort(vectors.T[::-1])
    front = []
    while len(candidates):  # the candidates are in lexicographic order, so only earlier ones can dominate
        front.append(candidates[0])
        candidates = candidates[(vectors[candidates] < vectors[candidates[0]]).any(axis=1)]
    return np.array(front)
