"""Wishes together with limits on the whole tree: the vectors of a place that no other tree there dominates.

A vector is (cost, errors of each class with a least recall, leaves where they are limited), as in the search under constraints. Where
no wish lies at or below a place the vectors are those of that search; only places on the way to a wish have fronts of their own.
Columns that may not stand on one path with the question of a place are banned below it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from trainer.constraints import Constraints
from trainer.editing.prefix import Prefix, Spot
from trainer.editing.questions import asked_questions, leaves_of
from trainer.editing.space import INFINITE_COST
from trainer.families.exact.editing.space import MOST_SEARCHES, ExactSpace
from trainer.families.exact.kernels import pareto as dp_pareto
from trainer.families.exact.search.frontier import FrontierSearch
from trainer.families.exact.search.pareto import NO_LIMIT, ParetoSearch, recall_limit
from trainer.tree.shapes import LabelledShape

MOST_BYTES = 1 << 28  # vectors that are kept


@dataclass(frozen=True, kw_only=True)
class TreeLimits:
    """Limits on the whole tree; `pairs`: for a column those that no path asks beside it.

    `constraints` are over the questions of the encoding; held questions are known by their columns alone.
    """

    constraints: Constraints
    pairs: Mapping[int, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Vectors:
    """The vectors of a place, int64 (size, entries), with how they arise, int64 (size, AUX); all of cost below `below` are here.

    `parts`: for each question that is used the vectors of its sides yes and no; `common`: the tree of a vector of the search without
    wishes, as (feature, where 0, where 1).
    """

    vectors: np.ndarray
    aux: np.ndarray
    below: int
    parts: dict[int, tuple[Vectors, Vectors]] = field(default_factory=dict)
    common: Callable[[int], LabelledShape] | None = None


class VectorSearch:
    """The search for vectors over the places of one prefix search, whose values bound it from below."""

    def __init__(self, prefix: Prefix, space: ExactSpace, limits: TreeLimits) -> None:
        self.prefix = prefix
        self.space = space
        self.limits = limits
        g = self.space.instance
        c = limits.constraints
        self.bounded = [k for k, _ in c.recalls]
        self.caps = [recall_limit(g, k, share) for k, share in c.recalls]
        if c.max_leaves is not None:
            self.caps.append(c.max_leaves)
        self.memo: dict[tuple[object, ...], Vectors] = {}
        self.bytes = 0
        self._searches: dict[frozenset[int], ParetoSearch] = {}
        self._frontiers: dict[frozenset[int], FrontierSearch] = {}

    # -- limits --------------------------------------------------------------------------------------------------------

    def most(self, ub: int) -> np.ndarray:
        """The largest admissible vector of cost below `ub`."""
        return np.array([min(ub - 1, NO_LIMIT), *self.caps], np.int64)

    def keeps(self, tree: LabelledShape) -> bool:
        """Whether a tree with classes in its leaves is within all limits."""
        c = self.limits.constraints
        space = self.space
        if c.max_leaves is not None and leaves_of(tree) > c.max_leaves:
            return False
        columns = space.questions.columns
        if c.max_columns is not None and len({columns[q] for q in asked_questions(tree)}) > c.max_columns:
            return False
        wrong = np.zeros(space.instance.n_classes, np.int64)

        def visit(part: LabelledShape, rows: np.ndarray, banned: frozenset[int]) -> bool:
            if not isinstance(part, tuple):
                counts = space.counts(rows)
                counts[int(counts.argmax()) if part is None else part] = 0
                wrong[:] += counts
                return True
            column = columns[part[0]]
            yes, no = space.split(rows, part[0])
            below = banned | self.limits.pairs.get(column, frozenset())
            return column not in banned and visit(part[1], yes, below) and visit(part[2], no, below)

        if not visit(tree, space.all_rows, frozenset()):
            return False
        return all(wrong[k] <= cap for k, cap in zip(self.bounded, self.caps, strict=False))

    # -- the recursion -------------------------------------------------------------------------------------------------

    def front(self, spot: Spot, ub: int) -> Vectors:
        """All vectors of cost below `ub`; fewer if the search was stopped."""
        spot = self.prefix.settle(spot)
        if not spot.items:
            return self._common(spot, ub)
        key = (spot.height, spot.rows.tobytes(), spot.banned, spot.items)
        known = self.memo.get(key)
        if known is not None and known.below >= ub:
            return known
        found = self.search(spot, ub)
        if not self.space.stopped():
            self.bytes += 300 + spot.rows.nbytes + found.vectors.nbytes + found.aux.nbytes
            if self.bytes > MOST_BYTES:
                self.memo.clear()
                self.bytes = 0
            self.memo[key] = found
        return found

    def search(self, spot: Spot, ub: int, *, cheapest: bool = False, first: bool = False) -> Vectors:
        """The vectors of a settled place. `cheapest`: only the one of least cost is needed; `first`: any one is enough."""
        here = [i for i in spot.items if not i.place]
        asks = any(i.verb == "ask" for i in spot.items)
        named = {i.number for i in here if i.verb == "leaf"}
        vectors, aux = self._leaves(spot, named - {-1}, ub, possible=not asks)
        if named or (first and len(vectors)):
            return Vectors(vectors, aux, ub)
        parts: dict[int, tuple[Vectors, Vectors]] = {}
        least = ub
        alike = bool(self.limits.pairs)  # questions that part rows alike rule out different columns below them
        sides = []
        for question in self.prefix.candidates(spot, alike=alike):
            side = self.prefix._sides(spot, question)
            apart = self.limits.pairs.get(self.space.questions.columns[question], frozenset())
            side.spots = tuple(replace(s, banned=s.banned | apart) for s in side.spots)
            sides.append(side)
        for side in sorted(sides, key=lambda side: side.lower):
            if cheapest and len(vectors):
                least = min(least, int(vectors[:, 0].min()))
            if self.space.stopped() or (first and len(vectors)):
                break
            pair = self._pair(side.spots, side.bounds, least)
            if pair is None:
                continue
            vectors, aux = dp_pareto.combine(
                vectors, aux, side.question, pair[0].vectors, pair[1].vectors, self.most(least)
            )
            parts[side.question] = pair
        used = {int(q) for q in aux[:, 0]}
        return Vectors(vectors, aux, ub, {q: pair for q, pair in parts.items() if q in used})

    def _pair(self, spots: tuple[Spot, ...], bounds: list[int], ub: int) -> tuple[Vectors, Vectors] | None:
        """The vectors of both sides, or None if no sum of them can cost less than `ub`."""
        low = list(bounds)
        for s in (0, 1):  # what the wishes alone cost
            if low[0] + low[1] >= ub:
                return None
            low[s] = max(low[s], self.prefix.value(spots[s], ub - low[1 - s]).lower)
        if low[0] + low[1] >= ub or self.space.stopped():
            return None
        one = 0 if len(spots[0].rows) <= len(spots[1].rows) else 1
        a = self.front(spots[one], ub - low[1 - one])
        if not len(a.vectors):
            return None
        b = self.front(spots[1 - one], ub - int(a.vectors[:, 0].min()))
        if not len(b.vectors):
            return None
        return (a, b) if one == 0 else (b, a)

    def _leaves(self, spot: Spot, named: set[int], ub: int, *, possible: bool) -> tuple[np.ndarray, np.ndarray]:
        """The vectors of a leaf: of the one class that is named, of any if none is, and none where several are."""
        counts = self.space.counts(spot.rows)
        labels = [int(k) for k in named] if named else list(range(len(counts)))
        entries = len(self.caps) + 1
        most = self.most(ub)
        found: list[tuple[list[int], int]] = []
        for label in labels if possible and len(named) < 2 else ():
            v = [self.space.leaf_cost(counts, label), *(0 if k == label else int(counts[k]) for k in self.bounded)]
            v += [1] * (entries - len(v))
            beaten = any(all(a <= b for a, b in zip(other, v, strict=True)) for other, _ in found)
            if not beaten and all(a <= b for a, b in zip(v, most.tolist(), strict=True)):
                found = [(o, k) for o, k in found if not all(a <= b for a, b in zip(v, o, strict=True))]
                found.append((v, label))
        vectors = np.array([v for v, _ in found], np.int64).reshape(len(found), entries)
        aux = np.full((len(found), dp_pareto.AUX), -1, np.int64)
        aux[:, 3] = [label for _, label in found]
        return vectors, aux

    def _common(self, spot: Spot, ub: int) -> Vectors:
        """The vectors where no wish binds, from the search under constraints."""
        c = self.limits.constraints
        if c.max_leaves is not None and not self.bounded and c.conflict is None:
            return self._fewest(spot, c.max_leaves)
        search = self._searches.get(spot.banned)
        if search is None:
            if len(self._searches) >= MOST_SEARCHES:
                self._searches.clear()
            g = self.space.instance
            given = self.space.search(spot.banned, paths=False)
            search = ParetoSearch(given, replace(c, max_columns=None), g.unit, g.leaf)
            self._searches[spot.banned] = search
        front = search.solve(spot.rows, spot.height, search.allowed, min(ub, INFINITE_COST))
        return Vectors(front.vectors, front.aux, ub, common=partial(search.tree, front))

    def _fewest(self, spot: Spot, most: int) -> Vectors:
        """The fewest errors for each number of leaves, from the search that serves a limit of leaves alone: all costs at once."""
        search = self._frontiers.get(spot.banned)
        if search is None:
            if len(self._frontiers) >= MOST_SEARCHES:
                self._frontiers.clear()
            search = FrontierSearch(self.space.search(spot.banned, paths=False), most)
            self._frontiers[spot.banned] = search
        found = search.solve(spot.rows, spot.height)
        g = self.space.instance
        errors = found.best[:most]
        fewer = np.flatnonzero(np.diff(errors, prepend=np.iinfo(np.int64).max) < 0)
        vectors = np.column_stack((g.unit * errors[fewer] + g.leaf * (fewer + 1), fewer + 1)).astype(np.int64)
        # a tree with more leaves is of use only if it costs less
        vectors = vectors[np.diff(np.minimum.accumulate(vectors[:, 0]), prepend=np.iinfo(np.int64).max) < 0]
        aux = np.full((len(vectors), dp_pareto.AUX), -1, np.int64)
        leaves = vectors[:, 1].tolist()
        return Vectors(
            vectors, aux, INFINITE_COST, common=lambda at: search.tree(spot.rows, spot.height, found, leaves[at])
        )

    # -- trees ---------------------------------------------------------------------------------------------------------

    def tree(self, found: Vectors, place: int) -> LabelledShape:
        """The tree behind a vector, with a class in each leaf."""
        if found.common is not None:
            return _as_questions(found.common(place))
        question, yes, no, label = (int(x) for x in found.aux[place][:4])
        if question < 0:
            return label
        left, right = found.parts[question]
        return question, self.tree(left, yes), self.tree(right, no)


def _as_questions(shape: LabelledShape) -> LabelledShape:
    """(feature, where 0, where 1) as (question, yes, no)."""
    return (shape[0], _as_questions(shape[2]), _as_questions(shape[1])) if isinstance(shape, tuple) else shape
