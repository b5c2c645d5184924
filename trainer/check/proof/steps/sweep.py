"""Check steps over all thresholds of numeric columns by sweeps.

The rules are `count` and `split`, for `exact-numeric`. A question is (column, value): "is x above this distinct
value?". A bound on the rows below one threshold holds below any larger threshold. Below a smaller one it holds minus
the weight of the rows between (docs/proof-format.md, "Thresholds").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from trainer.check.proof.steps.parts import ANY, CountTable, ProofPart, Span, StepBound
from trainer.check.proof.subject import ProofSpace, require

SPARSE = 8  # if a column has more values per row of the part than this, its values are sorted instead of counted


class Sweep(CountTable):
    """Rows as codes, rank * classes + class for each column, with their weights."""

    def __init__(self, space: ProofSpace, unit: int, leaf: int) -> None:
        free = space.min_leaf == 1 and space.max_leaves is None
        require(free, "steps over thresholds are not possible with a smallest leaf or a limit of leaves")
        n, columns = space.X.shape
        K = space.classes
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
            if groups < n and space.allowed[f]:
                _, group = np.unique(group * self.levels[f] + rank, return_inverse=True)
                groups = int(group.max()) + 1
        # the questions about column f have the numbers starts[f] to starts[f + 1] - 1
        self.starts = np.cumsum([0, *(self.levels - 1)])
        # total row weights of the steps so far; no step can apply to a part of another weight
        self.seen: set[int] = set()
        super().__init__((unit, leaf), (int(self.starts[-1]), K), (space.labels, space.weights, group.reshape(-1)))

    def root(self, columns: Sequence[int] | None = None, span: Span = ANY) -> ProofPart:
        require(
            columns is None and span == ANY,
            "steps over thresholds are about all columns and classes, and this one names some",
        )
        return ProofPart(np.ones(len(self.weight), bool), self.allowed)

    def follow(self, path: Sequence[int], columns: Sequence[int] | None = None, span: Span = ANY) -> ProofPart:
        """Return the part that a path leads to; literals are 2 q for no and 2 q + 1 for yes."""
        part = self.root(columns, span)
        for literal in path:
            q, yes = divmod(literal, 2)
            require(q < self.starts[-1], f"its path asks question {q}, which does not exist")
            f = int(np.searchsorted(self.starts, q, side="right")) - 1
            part = self.side(part, f, int(q - self.starts[f]), yes)
        self.seen.add(self.weight_of(part.rows))
        return part

    def side(self, part: ProofPart, f: int, value: int, yes: int) -> ProofPart:
        """Return the rows of a part above a value (yes) or not."""
        return ProofPart(part.rows & ((self.code[f] >= (value + 1) * self.classes) == bool(yes)), self.allowed)

    def counts(self, f: int, rows: np.ndarray, *weights: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """Return the values of column f among the rows, their class weights, shape (K, values), and sums of further weights."""
        codes = self.code[f][rows]
        K = self.classes
        present = np.arange(self.levels[f])
        if SPARSE * len(codes) < len(present):
            present, place = np.unique(codes // K, return_inverse=True)
            codes = place.reshape(-1) * K + codes % K
        first, *others = weights
        sizes = np.bincount(codes, first, len(present) * K).astype(np.int64).reshape(-1, K).T
        occurs = sizes.any(axis=0)
        sums = np.array([np.bincount(codes // K, w, len(present))[occurs] for w in others], np.int64)
        return present[occurs], sizes[:, occurs], sums

    def count(self, part: ProofPart, height: int, leaves: int, bound: int) -> int:
        """Apply rule `count`: return the least cost at height 0 or 1; at height 2 a cost below `bound`, or `bound` if no tree has
        one.
        """
        if height < 2:
            return self.stump_cost(part) if height else self.leaf_cost(part)
        if self.leaf_cost(part) < bound:
            return self.leaf_cost(part)
        for f in np.flatnonzero(self.allowed).tolist():
            line = _Line(self, part, f, 2)
            while (place := line.unproved_threshold(bound)) is not None:
                side_costs = [self.stump_cost(self.side(part, f, int(line.values[place]), yes)) for yes in (0, 1)]
                if sum(side_costs) < bound:
                    return sum(side_costs)
                line.learn(place, side_costs)
        return bound

    def stump_cost(self, part: ProofPart) -> int:
        """Return the cost of the best tree of depth one."""
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

    def check_split(self, part: ProofPart, height: int, leaves: int, bound: int, step_bound: StepBound) -> None:
        """Apply rule `split`: raise BadProof unless the leaf and every split cost at least `bound`."""
        require(self.leaf_cost(part) >= bound, f"a single leaf costs less than {bound}")
        total = self.weight_of(part.rows)
        most = 1 << (height - 1)
        for f in np.flatnonzero(self.allowed).tolist():
            line = _Line(self, part, f, height)
            for place, (value, weight) in enumerate(zip(line.values.tolist(), line.behind.tolist(), strict=True)):
                if weight in self.seen or total - weight in self.seen:
                    line.raise_bounds(
                        place, [step_bound(self.side(part, f, value, yes), height - 1, most) for yes in (0, 1)]
                    )
            line.propagate()
            require(
                line.unproved_threshold(bound) is None,
                f"two sides at a threshold of column {f} are not proved to cost {bound}",
            )


class _Line:
    """The thresholds of one column that separate the rows of a part, with lower bounds on both sides, shape (2, thresholds).

    `height` is that of the trees whose root asks one of them.
    """

    def __init__(self, sweep: Sweep, part: ProofPart, f: int, height: int) -> None:
        rows = part.rows
        leaves = 1 << min(height - 1, 30)
        self.unit = sweep.unit
        values, sizes, (excess,) = sweep.counts(f, rows, sweep.weight[rows], sweep.excess[rows])
        low = np.cumsum(sizes, axis=1)
        excess_below = np.cumsum(excess)
        # `behind` is the total weight of the rows below each threshold
        self.values = values[:-1]
        self.behind = low[:, :-1].sum(axis=0)
        sides = (low[:, :-1], excess_below[:-1]), (low[:, -1:] - low[:, :-1], excess_below[-1] - excess_below[:-1])
        self.bounds = np.array(
            [sweep.floors(class_weights, side_excess, leaves) for class_weights, side_excess in sides]
        )
        self.propagate()

    def raise_bounds(self, place: int, side_bounds: Sequence[int]) -> None:
        self.bounds[:, place] = np.maximum(self.bounds[:, place], side_bounds)

    def learn(self, place: int, side_bounds: Sequence[int]) -> None:
        """Raise the bounds of both sides of one threshold, and of the others by similarity."""
        self.raise_bounds(place, side_bounds)
        gap = self.unit * (self.behind[place] - self.behind)
        learned = self.bounds[:, [place]]
        self.bounds = np.maximum(self.bounds, learned - [np.maximum(gap, 0), np.maximum(-gap, 0)])

    def propagate(self) -> None:
        """Raise the bounds of all thresholds by similarity with their neighbours."""
        paid = self.unit * self.behind
        most = np.maximum.accumulate
        low = most(self.bounds[0])
        high = most(self.bounds[1][::-1])[::-1]
        self.bounds = np.array([most((low - paid)[::-1])[::-1] + paid, most(high + paid) - paid])

    def unproved_threshold(self, bound: int) -> int | None:
        """Return a threshold whose sides are not proved to cost `bound`; None if there is none.

        It is the middle of the run of such thresholds around the worst.
        """
        sums = self.bounds.sum(axis=0)
        if not sums.size or sums.min() >= bound:
            return None
        closed = np.flatnonzero(sums >= bound)
        k = int(np.searchsorted(closed, sums.argmin()))
        first = int(closed[k - 1]) + 1 if k else 0
        last = int(closed[k]) - 1 if k < len(closed) else len(sums) - 1
        return (first + last) // 2
