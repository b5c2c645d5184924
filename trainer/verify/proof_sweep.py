"""Steps over all thresholds of columns of numbers, checked by sweeps of the sorted columns; the bounds of neighbours close the rest.

A question is (column, place): "is x above the distinct value at this place?".  What is proved of the rows below one threshold holds
below any larger one, and below a smaller one less the weight of the rows between (docs/proof-format.md, "Thresholds").
"""

from __future__ import annotations

import numpy as np

from trainer.verify.proof_rows import FAR, Known, Part, Table
from trainer.verify.proof_space import BadProof, Space


class Sweep(Table):
    """The ranks of the rows in each column, and their classes and weights."""

    def __init__(self, space: Space, unit: int, leaf: int) -> None:
        if space.min_leaf > 1 or space.max_leaves is not None:
            raise BadProof("the steps over thresholds allow no smallest leaf and no limit of leaves")
        self.allowed = space.allowed
        self.rank = np.array([np.unique(x, return_inverse=True)[1].reshape(-1) for x in space.X.T], np.int64)
        self.rank = self.rank.reshape(space.X.shape[1], len(space.X))
        self.order = np.argsort(self.rank, axis=1, kind="stable")
        self.starts = np.cumsum(
            [0, *(int(r.max()) for r in self.rank)]
        )  # questions of column f: starts[f] .. starts[f + 1]
        self.one_hot = np.zeros((space.classes, len(space.X)), np.int64)
        self.one_hot[space.labels, np.arange(len(space.X))] = space.weights
        group = np.zeros(len(space.X), np.int64)
        if len(self.rank):
            _, group = np.unique(self.rank, axis=1, return_inverse=True)
        super().__init__((unit, leaf), space.labels, space.weights, space.classes, group.reshape(-1))

    @property
    def deepest(self) -> int:
        return min(int(self.starts[-1]), self.patterns - 1)

    def root(self, columns: tuple[int, ...] | None = None, span: tuple[int, int] = (0, FAR)) -> Part:
        if columns is not None or span != (0, FAR):
            raise BadProof("the steps over thresholds are about all columns and classes")
        return Part(np.ones(len(self.weight), bool), self.allowed)

    def follow(self, path: list[int], columns: tuple[int, ...] | None = None, span: tuple[int, int] = (0, FAR)) -> Part:
        """The part that a path leads to; literals are 2 q for no and 2 q + 1 for yes."""
        rows = self.root(columns, span).rows
        for literal in path:
            q, yes = divmod(literal, 2)
            if q >= self.starts[-1]:
                raise BadProof(f"there is no question {q}")
            f = int(np.searchsorted(self.starts, q, side="right")) - 1
            rows &= (self.rank[f] > q - self.starts[f]) == bool(yes)
        return Part(rows, self.allowed)

    def count(self, part: Part, height: int, leaves: int, bound: int) -> int:
        """The cost of the best tree of depth one, or `bound` if no tree of depth two costs less."""
        if height < 2:
            return _Lines(self, part).one() if height else self.leaf_cost(part)
        if self.leaf_cost(part) < bound:
            return self.leaf_cost(part)
        lines = _Lines(self, part)
        lines.start(1)
        while (place := lines.short(bound)) is not None:
            sides = [lines.side(*place, yes).one() for yes in (0, 1)]
            if sum(sides) < bound:
                return sum(sides)
            lines.learn(*place, *sides)
        return bound

    def split(self, part: Part, height: int, leaves: int, bound: int, known: Known) -> None:
        """Raise BadProof unless the leaf and every split cost `bound` at least, by the bounds of steps and of neighbours."""
        if self.leaf_cost(part) < bound:
            raise BadProof("a single leaf costs less")
        lines = _Lines(self, part)
        lines.start(height - 1)
        for f in range(len(self.rank)):
            for place in np.flatnonzero(lines.ends[f]).tolist():
                low, high = (known(lines.part(f, place, yes), height - 1, 1 << (height - 1)) for yes in (0, 1))
                if low or high:
                    lines.note(f, place, low, high)
            lines.spread(f)
        if (short := lines.short(bound)) is not None:
            f, at = short
            question = int(self.starts[f] + self.rank[f, lines.order[f, at]])
            raise BadProof(f"the two sides of question {question} are proved to cost less than {bound}")


class _Lines:
    """The rows of a part in the order of each column, and bounds of both sides of each threshold between them."""

    def __init__(self, sweep: Sweep, part: Part, order: np.ndarray | None = None) -> None:
        s = self.sweep = sweep
        self.rows = part.rows
        order = s.order if order is None else order
        self.order = order[part.rows[order]].reshape(len(order), -1)
        self.cum = np.cumsum(s.one_hot[:, self.order], axis=2)  # (K, F, n): rows up to and with each place
        rank = np.take_along_axis(s.rank, self.order, axis=1)
        self.ends = np.zeros(self.order.shape, bool)  # a threshold lies behind this place
        self.ends[:, :-1] = (rank[:, 1:] != rank[:, :-1]) & s.allowed[:, None]

    def one(self) -> int:
        """The cost of the best tree of depth one."""
        s = self.sweep
        totals = s.one_hot[:, self.rows].sum(axis=1)
        leaf = s.leaf + s.unit * int(totals.sum() - totals.max())
        if not self.ends.any():
            return leaf
        if len(totals) == 2:
            low, high = (
                np.maximum(self.cum[0], self.cum[1]),
                np.maximum(totals[0] - self.cum[0], totals[1] - self.cum[1]),
            )
        else:
            low, high = self.cum.max(axis=0), (totals[:, None, None] - self.cum).max(axis=0)
        errors = int(totals.sum()) - int((low + high)[self.ends].max())
        return min(leaf, 2 * s.leaf + s.unit * errors)

    def start(self, height: int) -> None:
        """Bounds of both sides without a step: by classes and equal rows."""
        s = self.sweep
        excess, leaves = np.cumsum(s.excess[self.order], axis=1), 1 << min(height, 30)
        totals = s.one_hot[:, self.rows].sum(axis=1)[:, None, None]
        self.low = s.floors(self.cum, excess, leaves)
        self.high = s.floors(totals - self.cum, s.excess[self.rows].sum() - excess, leaves)
        self.behind = self.cum.sum(axis=0)
        for f in range(len(self.order)):
            self.spread(f)

    def note(self, f: int, place: int, low: int, high: int) -> None:
        self.low[f, place] = max(self.low[f, place], low)
        self.high[f, place] = max(self.high[f, place], high)

    def learn(self, f: int, place: int, low: int, high: int) -> None:
        """Bounds of both sides of one threshold, and what they say of the others of its column."""
        self.note(f, place, low, high)
        unit, W = self.sweep.unit, self.behind[f]
        gap = unit * (W[place] - W)
        self.low[f] = np.maximum(self.low[f], self.low[f, place] - np.maximum(gap, 0))
        self.high[f] = np.maximum(self.high[f], self.high[f, place] + np.minimum(gap, 0))

    def spread(self, f: int) -> None:
        """What the thresholds of a column say of each other: more rows cost no less, fewer at most their weight less."""
        paid = self.sweep.unit * self.behind[f]
        low, high = self.low[f], self.high[f]
        low = np.maximum.accumulate(low)
        low = np.maximum(low, np.maximum.accumulate((low - paid)[::-1])[::-1] + paid)
        high = np.maximum.accumulate(high[::-1])[::-1]
        high = np.maximum(high, np.maximum.accumulate(high + paid) - paid)
        self.low[f], self.high[f] = low, high

    def short(self, bound: int) -> tuple[int, int] | None:
        """A threshold with sides that are not yet known to cost `bound`: the middle of the run around the worst; None without any."""
        sums = np.where(self.ends, self.low + self.high, FAR)
        worst = int(sums.argmin())
        f, place = divmod(worst, sums.shape[1])
        if sums.size == 0 or sums[f, place] >= bound:
            return None
        places = np.flatnonzero(self.ends[f])
        at, open_ = int(np.searchsorted(places, place)), sums[f, places] < bound
        closed = np.flatnonzero(~open_)
        k = int(np.searchsorted(closed, at))
        first = int(closed[k - 1]) + 1 if k else 0
        last = int(closed[k]) - 1 if k < len(closed) else len(places) - 1
        return f, int(places[(first + last) // 2])

    def part(self, f: int, place: int, yes: int) -> Part:
        """The rows on one side of a threshold."""
        rows = np.zeros(len(self.rows), bool)
        rows[self.order[f, place + 1 :] if yes else self.order[f, : place + 1]] = True
        return Part(rows, self.sweep.allowed)

    def side(self, f: int, place: int, yes: int) -> _Lines:
        return _Lines(self.sweep, self.part(f, place, yes), self.order)
