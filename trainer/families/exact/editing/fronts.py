"""Search trees under wishes and limits on the tree, by fronts.

A vector is (cost, errors of each class with a minimum recall, leaves if they are limited), as in the constrained search. A subproblem
without a wish at or below it has the front of that search; only ancestors of wishes need fronts of their own. Columns that exclude the
column of a split on one path are banned below the split.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from trainer.constraints import Constraints
from trainer.editing.prefix import Prefix, Spot
from trainer.editing.questions import asked_questions, leaves_of
from trainer.editing.space import INFINITE_COST, EditingSpace
from trainer.families.exact.editing.space import MOST_SEARCHES, ExactSpace
from trainer.families.exact.kernels import pareto as dp_pareto
from trainer.families.exact.search.frontier import FrontierSearch
from trainer.families.exact.search.pareto import NO_LIMIT, ParetoSearch, recall_limit
from trainer.tree.shapes import LabelledShape

MOST_BYTES = 1 << 28  # limit on the bytes of cached vectors


@dataclass(frozen=True, kw_only=True)
class TreeLimits:
    """Limits on the whole tree; `pairs`: by column, the columns that no path tests together with it.

    `constraints` are over the features of the encoding; for held questions only their columns count.
    """

    constraints: Constraints
    pairs: Mapping[int, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Vectors:
    """The front of a subproblem, int64 (size, entries), complete for costs below `below`.

    `aux`, int64 (size, AUX): how to build the trees. `parts`: by used split, the fronts of the children yes and no. `common`: returns
    the tree of a vector of the search without wishes.
    """

    vectors: np.ndarray
    aux: np.ndarray
    below: int
    parts: dict[int, tuple[Vectors, Vectors]] = field(default_factory=dict)
    common: Callable[[int], LabelledShape] | None = None


class VectorSearch(ABC):
    """The search for fronts; the values of a prefix search are its lower bounds.

    `caps` are the most errors of each class with a minimum recall.
    """

    def __init__(self, prefix: Prefix, limits: TreeLimits, caps: Sequence[int]) -> None:
        self.prefix = prefix
        self.space: EditingSpace = prefix.space
        self.limits = limits
        c = limits.constraints
        self.bounded = [k for k, _ in c.recalls]
        self.caps = list(caps) if c.max_leaves is None else [*caps, c.max_leaves]
        self.memo: dict[tuple[object, ...], Vectors] = {}
        self.bytes = 0

    @abstractmethod
    def common(self, spot: Spot, ub: int) -> Vectors:
        """Return the front where no wish applies, for costs below `ub`."""

    # -- limits --------------------------------------------------------------------------------------------------------

    def most(self, ub: int) -> np.ndarray:
        """Return the largest admissible vector of cost below `ub`."""
        return np.array([min(ub - 1, NO_LIMIT), *self.caps], np.int64)

    def satisfies_limits(self, tree: LabelledShape) -> bool:
        """Return whether a tree with classes in its leaves is within all limits."""
        c = self.limits.constraints
        space = self.space
        if c.max_leaves is not None and leaves_of(tree) > c.max_leaves:
            return False
        columns = space.questions.columns
        if c.max_columns is not None and len({columns[q] for q in asked_questions(tree)}) > c.max_columns:
            return False
        wrong = np.zeros(space.n_classes, np.int64)

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
        """Return the front for costs below `ub`; incomplete if the search was stopped."""
        spot = self.prefix.settle(spot)
        if not spot.items:
            return self.common(spot, ub)
        key = (spot.height, spot.rows.tobytes(), spot.banned, spot.items)
        cached = self.memo.get(key)
        if cached is not None and cached.below >= ub:
            return cached
        vectors = self.search(spot, ub)
        if not self.space.stopped():
            self.bytes += 300 + spot.rows.nbytes + vectors.vectors.nbytes + vectors.aux.nbytes
            if self.bytes > MOST_BYTES:
                self.memo.clear()
                self.bytes = 0
            self.memo[key] = vectors
        return vectors

    def search(self, spot: Spot, ub: int, *, cheapest: bool = False, first: bool = False) -> Vectors:
        """Return the front of a settled subproblem. With `cheapest` only the least cost is exact; with `first` any vector suffices."""
        items_here = [i for i in spot.items if not i.place]
        asks = any(i.verb == "ask" for i in spot.items)
        classes = {i.number for i in items_here if i.verb == "leaf"}
        vectors, aux = self._leaves(spot, classes - {-1}, ub, possible=not asks)
        if classes or (first and len(vectors)):
            return Vectors(vectors, aux, ub)
        parts: dict[int, tuple[Vectors, Vectors]] = {}
        least = ub
        alike = bool(self.limits.pairs)  # splits that separate rows alike may exclude different columns below them
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
        """Return the fronts of both children, or None if no sum of them can cost less than `ub`."""
        low = list(bounds)
        for s in (0, 1):  # bounds from the search without limits
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

    def _leaves(self, spot: Spot, classes: set[int], ub: int, *, possible: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the front of a leaf with the class in `classes`, or with any class if `classes` is empty.

        The front is empty if `classes` has several members, or if no leaf is `possible`.
        """
        counts = self.space.counts(spot.rows)
        labels = [int(k) for k in classes] if classes else list(range(len(counts)))
        entries = len(self.caps) + 1
        most = self.most(ub)
        entries_of_front: list[tuple[list[int], int]] = []
        for label in labels if possible and len(classes) < 2 else ():
            v = [self.space.leaf_cost(counts, label), *(0 if k == label else int(counts[k]) for k in self.bounded)]
            v += [1] * (entries - len(v))
            dominated = any(all(a <= b for a, b in zip(other, v, strict=True)) for other, _ in entries_of_front)
            if not dominated and all(a <= b for a, b in zip(v, most.tolist(), strict=True)):
                entries_of_front = [
                    (o, k) for o, k in entries_of_front if not all(a <= b for a, b in zip(v, o, strict=True))
                ]
                entries_of_front.append((v, label))
        vectors = np.array([v for v, _ in entries_of_front], np.int64).reshape(len(entries_of_front), entries)
        aux = np.full((len(entries_of_front), dp_pareto.AUX), -1, np.int64)
        aux[:, 3] = [label for _, label in entries_of_front]
        return vectors, aux

    # -- trees ---------------------------------------------------------------------------------------------------------

    def tree(self, vectors: Vectors, place: int) -> LabelledShape:
        """Return the tree of a vector, with a class in each leaf."""
        if vectors.common is not None:
            return vectors.common(place)
        question, yes, no, label = (int(x) for x in vectors.aux[place][:4])
        if question < 0:
            return label
        left, right = vectors.parts[question]
        return question, self.tree(left, yes), self.tree(right, no)


class ExactVectorSearch(VectorSearch):
    """The search for fronts over rows: without wishes, the fronts are those of the constrained search."""

    def __init__(self, prefix: Prefix, space: ExactSpace, limits: TreeLimits) -> None:
        recalls = limits.constraints.recalls
        super().__init__(prefix, limits, [recall_limit(space.instance, k, share) for k, share in recalls])
        self.exact = space
        self._searches: dict[frozenset[int], ParetoSearch] = {}
        self._frontiers: dict[frozenset[int], FrontierSearch] = {}

    def common(self, spot: Spot, ub: int) -> Vectors:
        c = self.limits.constraints
        if c.max_leaves is not None and not self.bounded and c.conflict is None:
            return self._fewest(spot, c.max_leaves)
        search = self._searches.get(spot.banned)
        if search is None:
            if len(self._searches) >= MOST_SEARCHES:
                self._searches.clear()
            g = self.exact.instance
            unconstrained = self.exact.search(spot.banned, paths=False)
            search = ParetoSearch(unconstrained, replace(c, max_columns=None), g.unit, g.leaf)
            self._searches[spot.banned] = search
        front = search.solve(spot.rows, spot.height, search.allowed, min(ub, INFINITE_COST))
        return Vectors(front.vectors, front.aux, ub, common=lambda at: _as_questions(search.tree(front, at)))

    def _fewest(self, spot: Spot, most: int) -> Vectors:
        """Return the fewest errors for each number of leaves, from the frontier search, for all costs at once."""
        search = self._frontiers.get(spot.banned)
        if search is None:
            if len(self._frontiers) >= MOST_SEARCHES:
                self._frontiers.clear()
            search = FrontierSearch(self.exact.search(spot.banned, paths=False), most)
            self._frontiers[spot.banned] = search
        vector = search.solve(spot.rows, spot.height)
        g = self.exact.instance
        errors = vector.best[:most]
        fewer = np.flatnonzero(np.diff(errors, prepend=np.iinfo(np.int64).max) < 0)
        vectors = np.column_stack((g.unit * errors[fewer] + g.leaf * (fewer + 1), fewer + 1)).astype(np.int64)
        # keep a tree with more leaves only if it costs less
        vectors = vectors[np.diff(np.minimum.accumulate(vectors[:, 0]), prepend=np.iinfo(np.int64).max) < 0]
        aux = np.full((len(vectors), dp_pareto.AUX), -1, np.int64)
        leaves = vectors[:, 1].tolist()
        return Vectors(
            vectors,
            aux,
            INFINITE_COST,
            common=lambda at: _as_questions(search.tree(spot.rows, spot.height, vector, leaves[at])),
        )


def _as_questions(shape: LabelledShape) -> LabelledShape:
    """Convert (feature, where 0, where 1) to (question, yes, no)."""
    return (shape[0], _as_questions(shape[2]), _as_questions(shape[1])) if isinstance(shape, tuple) else shape
