"""The search for vectors of trees within rules: for a place the ones that no other tree there beats, below a cost.

A vector is (cost, errors of each class with a least recall, leaves where they are limited, f and o of each group).  Where rates of
groups are compared no number of f and o is better for being small: of two trees that agree in them and are alike in the rest the
cheaper one stays.  Beside each vector stand the columns that its tree asks.  `span`: the first and the last class of leaves.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from trainer.constraints import Constraints
from trainer.editing.space import SearchStopped
from trainer.families.exact.editing.places import Pairs, Places, RowPlace
from trainer.families.exact.editing.space import ExactSpace
from trainer.families.exact.proofs.rules import Rules
from trainer.families.exact.search.pareto import recall_limit

MOST_BYTES = 1 << 28  # of vectors that are kept
MOST_SUMS = 1 << 20  # that are looked at together
MOST_PLACES = 1_000_000  # the checker takes some tenths of a millisecond for each of them
Span = tuple[int, int]


class ProofPlacesExceeded(Exception):
    """More places were searched than a checker would search again in some minutes."""


@dataclass(frozen=True)
class RulePlace(RowPlace):
    """A place, and the first and the last class of its leaves."""

    span: Span

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it apart from others."""
        return (*super().key, self.span)


@dataclass(frozen=True)
class RuleFront:
    """The vectors int64 (size, entries) of cost below `below`, and the columns that their trees ask, bool (size, columns)."""

    vectors: np.ndarray
    asked: np.ndarray
    below: int

    @property
    def least(self) -> int:
        """The lowest cost, or the one below which there is none."""
        return int(self.vectors[:, 0].min()) if len(self.vectors) else self.below


class RuledFronts:
    """The recursion, with the optima of the search without rules as bounds."""

    def __init__(self, space: ExactSpace, constraints: Constraints, pairs: Pairs, rules: Rules) -> None:
        self.space = space
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
        """All vectors of cost below `ub`. Raises SearchStopped and TooMany."""
        known = self.memo.get(place.key)
        if known is None or known.below < ub:
            known = self._searched(place, ub)
            self.bytes += 300 + place.rows.nbytes + known.vectors.nbytes + known.asked.nbytes
            if self.bytes > MOST_BYTES:
                self.memo.clear()
                self.bytes = 0
            self.memo[place.key] = known
        return known if known.below == ub else self._kept(known.vectors, known.asked, ub)

    def _searched(self, place: RulePlace, ub: int) -> RuleFront:
        self.places += 1
        if self.places > MOST_PLACES:
            raise ProofPlacesExceeded
        if self.space.stopped():
            raise SearchStopped
        found = self._leaf(place, ub)
        if place.height == 1:
            return self._joined([found, *self._stumps(place, ub)], ub)
        limit = ub
        for question, sides, low in self.open(place, ub):
            for both in self.parted(question, sides):
                if low[0] + low[1] < limit:
                    sums = self._sums(question, both, low, limit)
                    found = self._joined([found, sums], ub)
                    limit = min(ub, found.least) if self.entries == 1 else ub  # of one number the least is enough
        return found

    # -- questions -----------------------------------------------------------------------------------------------------

    def open(self, place: RulePlace, ub: int) -> list[tuple[int, tuple[RulePlace, RulePlace], tuple[int, int]]]:
        """The questions whose sides cost less than `ub` without rules, with these costs; the cheapest first."""
        found = []
        for question, sides in self.free.questions(place):
            low = self.free.lows(sides, self.free.floors(sides), ub)
            if low[0] + low[1] < ub:
                found.append((question, sides, low))
        return sorted(found, key=lambda one: (sum(one[2]), one[0]))

    def parted(self, question: int, sides: tuple[RulePlace, RulePlace]) -> Iterator[tuple[RulePlace, RulePlace]]:
        """The sides with the classes that their leaves may predict, for each way that the rules leave."""
        way, (first, last) = int(self.rules.rising[question]), sides[0].span
        if not way:
            yield sides
        for k in range(first, last + 1) if way else ():
            spans = ((first, k), (k, last))[::way]
            yield replace(sides[0], span=spans[0]), replace(sides[1], span=spans[1])

    # -- vectors -------------------------------------------------------------------------------------------------------

    def _made(self, totals: np.ndarray, label: int) -> np.ndarray:
        """The vectors (size, entries) of leaves of one class with these weights of classes and groups, (…, size)."""
        sizes = totals[: self.space.n_classes]
        compared = totals[self.space.n_classes :]
        own = [self.space.leaf + self.space.unit * (sizes.sum(axis=0) - sizes[label])]
        own += [np.zeros_like(sizes[k]) if k == label else sizes[k] for k in self.bounded]
        own += [np.ones_like(sizes[0])] if self.limited else []
        for weight in compared:
            none = np.zeros_like(weight)
            own += [weight, none] if label == self.rules.favoured else [none, weight]
        return np.stack(own, axis=-1)

    def _front(self, vectors: np.ndarray, columns: np.ndarray | None, ub: int) -> RuleFront:
        """Those of trees of one leaf, or of one question about these columns, that are kept."""
        asked = np.zeros((len(vectors), self.width), bool)
        if columns is not None:
            asked[np.arange(len(vectors)), columns] = True
        return self._kept(vectors, asked, ub)

    def _leaf(self, place: RulePlace, ub: int) -> RuleFront:
        totals = self.weights[:, place.rows].sum(axis=1)[:, None]
        first, last = place.span
        return self._front(np.concatenate([self._made(totals, k) for k in range(first, last + 1)]), None, ub)

    def _stumps(self, place: RulePlace, ub: int) -> Iterator[RuleFront]:
        """The vectors of the trees of one question."""
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
                vectors = self._made(no[:, fits], k) + self._made(yes[:, fits], other)
                yield self._front(vectors, self.columns[: len(fits)][fits], ub)

    def _sums(self, question: int, sides: tuple[RulePlace, RulePlace], low: tuple[int, int], ub: int) -> RuleFront:
        """The sums of vectors of both sides that cost less; the smaller side first."""
        one = 0 if len(sides[0].rows) <= len(sides[1].rows) else 1
        a = self.front(sides[one], ub - low[1 - one])
        if not len(a.vectors):
            return a
        b = self.front(sides[1 - one], ub - a.least)
        parts = []
        for k in range(0, len(a.vectors), max(1, MOST_SUMS // max(1, len(b.vectors)))):
            some = slice(k, k + max(1, MOST_SUMS // max(1, len(b.vectors))))
            i, j = np.nonzero(a.vectors[some, None, 0] + b.vectors[None, :, 0] < ub)
            asked = a.asked[some][i] | b.asked[j]
            asked[:, self.columns[question]] = True
            parts.append(self._kept(a.vectors[some][i] + b.vectors[j], asked, ub))
        return self._joined(parts, ub)

    def _joined(self, fronts: list[RuleFront], ub: int) -> RuleFront:
        if len(fronts) == 1:
            return fronts[0]
        vectors, asked = (np.concatenate(some) for some in zip(*((f.vectors, f.asked) for f in fronts), strict=True))
        return self._kept(vectors, asked, ub)

    def _kept(self, vectors: np.ndarray, asked: np.ndarray, ub: int) -> RuleFront:
        """Those below the cost and within all limits that no other one beats."""
        first = 1 + len(self.caps)
        fits = (vectors[:, 0] < ub) & (vectors[:, 1:first] <= np.array(self.caps, np.int64)).all(axis=1)
        for g, h, a, b, most in self.rules.apart:
            fits &= a * vectors[:, first + 2 * g] + b * vectors[:, first + 2 * h + 1] <= most
        vectors = vectors[fits]
        asked = asked[fits]
        if len(vectors) > 1:
            chosen = cheapest(vectors) if len(self.rules.compared) else unbeaten(vectors)
            vectors = vectors[chosen]
            asked = asked[chosen]
        return RuleFront(vectors, asked, ub)


def cheapest(vectors: np.ndarray) -> np.ndarray:
    """The places of the vectors of least cost among those that are equal in all other entries."""
    order = np.lexsort(vectors.T)  # by the last entries first, at last by the cost
    rest = vectors[order, 1:]
    return order[np.append(True, (rest[1:] != rest[:-1]).any(axis=1))]


def unbeaten(vectors: np.ndarray) -> np.ndarray:
    """The places of the vectors that no other one beats or equals."""
    if vectors.shape[1] == 1:
        return np.array([vectors[:, 0].argmin()])
    left = np.lexsort(vectors.T[::-1])
    chosen = []
    while len(left):  # in the order of all entries a vector is beaten by earlier ones only
        chosen.append(left[0])
        left = left[(vectors[left] < vectors[left[0]]).any(axis=1)]
    return np.array(chosen)
