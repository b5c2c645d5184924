"""Steps over all thresholds of columns of numbers, checked by sweeps of one column after the other; the bounds of neighbours close the rest.

A question is (column, value): "is x above this distinct value?".  What is proved of the rows below one threshold holds
below any larger one, and below a smaller one less the weight of the rows between (docs/proof-format.md, "Thresholds").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from trainer.check.proof.steps.parts import ANY, CountTable, Known, ProofPart, Span
from trainer.check.proof.subject import ProofSpace, require

SPARSE = 8  # a column with so many more values than rows are left is sorted, and not counted by value


class Sweep(CountTable):
    """For each column the rank of the value of each row and its class in one number, rank * classes + class; weights of the rows."""

    def __init__(self, space: ProofSpace, unit: int, leaf: int) -> None:
        free = space.min_leaf == 1 and space.max_leaves is None
        require(free, "the steps over thresholds allow no smallest leaf and no limit of leaves")
        (n, columns), K = space.X.shape, space.classes
        self.allowed = space.allowed
        self.plain = bool((space.weights == 1).all())
        self.code = np.empty((columns, n), np.int32 if n * K < 1 << 31 else np.int64)
        self.levels = np.zeros(columns, np.int64)
        group = np.zeros(n, np.int64)
        groups = 1
        for f in range(columns):
            rank = np.unique(space.X[:, f], return_inverse=True)[1].reshape(-1)
            self.levels[f] = rank.max() + 1
            self.code[f] = rank * K + space.labels
            if groups < n:
                _, group = np.unique(group * self.levels[f] + rank, return_inverse=True)
                groups = int(group.max()) + 1
        self.starts = np.cumsum([0, *(self.levels - 1)])  # questions of column f: starts[f] .. starts[f + 1]
        self.seen: set[int] = set()  # weights of the rows of steps
        super().__init__((unit, leaf), (int(self.starts[-1]), K), (space.labels, space.weights, group.reshape(-1)))

    def root(self, columns: Sequence[int] | None = None, span: Span = ANY) -> ProofPart:
        require(columns is None and span == ANY, "the steps over thresholds are about all columns and classes")
        return ProofPart(np.ones(len(self.weight), bool), self.allowed)

    def follow(self, path: Sequence[int], columns: Sequence[int] | None = None, span: Span = ANY) -> ProofPart:
        """The part that a path leads to; literals are 2 q for no and 2 q + 1 for yes."""
        part = self.root(columns, span)
        for literal in path:
            q, yes = divmod(literal, 2)
            require(q < self.starts[-1], f"there is no question {q}")
            f = int(np.searchsorted(self.starts, q, side="right")) - 1
            part = self.side(part, f, int(q - self.starts[f]), yes)
        self.seen.add(self.weight_of(part.rows))
        return part

    def side(self, part: ProofPart, f: int, value: int, yes: int) -> ProofPart:
        """The rows of a part above a value (yes) or not."""
        return ProofPart(part.rows & ((self.code[f] >= (value + 1) * self.classes) == bool(yes)), self.allowed)

    def counts(self, f: int, rows: np.ndarray, *weights: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """The values of column f that rows have, the weights (K, values) of their classes, and the sums of the further weights."""
        own = self.code[f][rows]
        K = self.classes
        present = np.arange(self.levels[f])
        if SPARSE * len(own) < len(present):
            present, place = np.unique(own // K, return_inverse=True)
            own = place.reshape(-1) * K + own % K
        first, *others = weights
        sizes = np.bincount(own, first, len(present) * K).astype(np.int64).reshape(-1, K).T
        held = sizes.any(axis=0)
        sums = np.array([np.bincount(own // K, w, len(present))[held] for w in others], np.int64)
        return present[held], sizes[:, held], sums

    def count(self, part: ProofPart, height: int, leaves: int, bound: int) -> int:
        """The cost of the best tree of depth one, or `bound` if no tree of depth two costs less."""
        if height < 2:
            return self.one(part) if height else self.leaf_cost(part)
        if self.leaf_cost(part) < bound:
            return self.leaf_cost(part)
        for f in np.flatnonzero(self.allowed).tolist():
            line = _Line(self, part, f, 2)
            while (place := line.short(bound)) is not None:
                found = [self.one(self.side(part, f, int(line.values[place]), yes)) for yes in (0, 1)]
                if sum(found) < bound:
                    return sum(found)
                line.learn(place, found)
        return bound

    def one(self, part: ProofPart) -> int:
        """The cost of the best tree of depth one."""
        totals = self.totals(part)
        weights = None if self.plain else self.weight[part.rows]
        leaf = self.leaf + self.unit * int(totals.sum() - totals.max())
        right = -1
        for f in np.flatnonzero(self.allowed).tolist():
            _, sizes, _ = self.counts(f, part.rows, weights)
            if sizes.shape[1] > 1:
                below = np.cumsum(sizes, axis=1)[:, :-1]
                above = totals[:, None] - below
                right = max(right, int((reduce(np.maximum, below) + reduce(np.maximum, above)).max()))
        return leaf if right < 0 else min(leaf, 2 * self.leaf + self.unit * (int(totals.sum()) - right))

    def split(self, part: ProofPart, height: int, leaves: int, bound: int, known: Known) -> None:
        """Raise BadProof unless the leaf and every split cost `bound` at least, by the bounds of steps and of neighbours."""
        require(self.leaf_cost(part) >= bound, "a single leaf costs less")
        whole = self.weight_of(part.rows)
        most = 1 << (height - 1)
        for f in np.flatnonzero(self.allowed).tolist():
            line = _Line(self, part, f, height)
            for place, (value, weight) in enumerate(zip(line.values.tolist(), line.behind.tolist(), strict=True)):
                if weight in self.seen or whole - weight in self.seen:
                    line.note(place, [known(self.side(part, f, value, yes), height - 1, most) for yes in (0, 1)])
            line.spread()
            require(line.short(bound) is None, f"two sides at a threshold of column {f} are not proved to cost {bound}")


class _Line:
    """The thresholds of one column that part the rows of a part, and bounds (2, t) of both sides of each; trees of this height above."""

    def __init__(self, sweep: Sweep, part: ProofPart, f: int, height: int) -> None:
        rows = part.rows
        leaves = 1 << min(height - 1, 30)
        self.unit = sweep.unit
        values, sizes, (excess,) = sweep.counts(f, rows, sweep.weight[rows], sweep.excess[rows])
        low = np.cumsum(sizes, axis=1)
        kept = np.cumsum(excess)
        # behind: the weight of the rows below
        self.values = values[:-1]
        self.behind = low[:, :-1].sum(axis=0)
        sides = (low[:, :-1], kept[:-1]), (low[:, -1:] - low[:, :-1], kept[-1] - kept[:-1])
        self.bounds = np.array([sweep.floors(own, least, leaves) for own, least in sides])
        self.spread()

    def note(self, place: int, found: Sequence[int]) -> None:
        self.bounds[:, place] = np.maximum(self.bounds[:, place], found)

    def learn(self, place: int, found: Sequence[int]) -> None:
        """Bounds of both sides of one threshold, and what they say of the others: more rows cost no less, fewer at most their weight less."""
        self.note(place, found)
        gap = self.unit * (self.behind[place] - self.behind)
        own = self.bounds[:, [place]]
        self.bounds = np.maximum(self.bounds, own - [np.maximum(gap, 0), np.maximum(-gap, 0)])

    def spread(self) -> None:
        """What all thresholds say of each other."""
        paid = self.unit * self.behind
        most = np.maximum.accumulate
        low = most(self.bounds[0])
        high = most(self.bounds[1][::-1])[::-1]
        self.bounds = np.array([most((low - paid)[::-1])[::-1] + paid, most(high + paid) - paid])

    def short(self, bound: int) -> int | None:
        """A threshold with sides that are not yet known to cost `bound`: the middle of the run around the worst; None without any."""
        sums = self.bounds.sum(axis=0)
        if not sums.size or sums.min() >= bound:
            return None
        closed = np.flatnonzero(sums >= bound)
        k = int(np.searchsorted(closed, sums.argmin()))
        first = int(closed[k - 1]) + 1 if k else 0
        last = int(closed[k]) - 1 if k < len(closed) else len(sums) - 1
        return (first + last) // 2
