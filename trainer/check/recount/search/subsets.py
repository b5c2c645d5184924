"""The least errors of trees that ask for subsets of many categories, searched without a list of the subsets (`odt`).

A question sends each category that occurs to one of its sides. What the sides cost for the categories that are assigned, and what each of the
others costs by itself on its better side, adds up to a lower bound, since the errors of a tree are a sum over rows. Above two leaves
nothing has to be tried: for two labels each category has the one that it has more of, or, where a subset may not be large, as many as
may be of those that gain most.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from trainer.check.proof.subject import Shape, leaves_of
from trainer.check.recount.search.assigned import JOIN, VISIT, Branch, GroupedRows, Sides, height, join_rows, key

SLICE = 1 << 22  # numbers that are looked at in one go


class Subsets(GroupedRows):
    """The least errors of the trees of a topology."""

    def __init__(self, columns: Sequence[tuple[np.ndarray, bool]], sizes: np.ndarray, card: int, most: float) -> None:
        super().__init__(columns, sizes, card, most)
        self.pairs = list(itertools.combinations(range(sizes.shape[1]), 2))
        self.excess = self.sizes.sum(axis=1) - self.sizes.max(axis=1)
        self.memo: dict[tuple[Shape, bytes], tuple[int, bool]] = {}  # a lower bound, and whether it is met

    def least(self, shape: Shape, limit: int) -> int:
        """The least errors of all rows, or `limit` if no tree has fewer. Raises TooLarge."""
        return self._least(self.every, shape, limit)

    def _least(self, rows: np.ndarray, shape: Shape, limit: int) -> int:
        """The least errors of some rows, or `limit` if no tree has fewer."""
        if limit <= 0 or not len(rows):
            return min(limit, 0)
        name = shape, key(rows)
        low, met = self.memo.get(name) or (self._floor(rows, shape), False)
        if low >= limit or met:
            return min(low, limit)
        self.spend(VISIT)
        found = self._searched(rows, shape, limit)
        self.memo[name] = found, found < limit
        return found

    def _floor(self, rows: np.ndarray, shape: Shape) -> int:
        """Rows of equal answers share a leaf, and t leaves predict t classes."""
        totals = np.sort(self.sizes[rows].sum(axis=0))
        return max(int(self.excess[rows].sum()), int(totals[: -leaves_of(shape)].sum()))

    def _searched(self, rows: np.ndarray, shape: Shape, limit: int) -> int:
        totals = self.sizes[rows].sum(axis=0)
        limit = min(limit, int(totals.sum() - totals.max()))
        if shape is None or not self.spans:
            return limit
        if height(shape) == 1:
            return min(limit, int(self._last(self.counts(rows), shape)[0]))
        for side in set(shape):  # a question that separates nothing is left out
            limit = self._least(rows, side, limit)
        for j in range(len(self.spans)):
            by, order = self.branches(rows, j)
            if len(order) > 1 and max(map(height, shape)) == 1:
                limit = self._at_once(self.counts(rows, by)[order], self.ordered[j], shape, limit)
            elif len(order) > 1:
                limit = self._in_turn([rows[by == a] for a in order], self.ordered[j], shape, limit)
        return limit

    # -- one more question at most ---------------------------------------------------------------------------------------

    def _last(self, counts: np.ndarray, shape: Shape) -> np.ndarray:
        """The least errors (M,) of a leaf, or of one question, for rows of the weights counts (M, cells, K)."""
        self.spend(counts.size)
        totals = counts[:, slice(*self.spans[0])].sum(axis=1)
        right = totals.max(axis=1)
        if shape is not None:
            for (a, b), ordered in zip(self.spans, self.ordered, strict=True):
                right = np.maximum(right, (self._cut if ordered else self._labelled)(counts[:, a:b], totals))
        return np.asarray(totals.sum(axis=1) - right)

    def _cut(self, own: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """The most weight that is right below a threshold."""
        low = own.cumsum(axis=1)[:, :-1]
        return np.asarray((low.max(axis=2) + (totals[:, None] - low).max(axis=2)).max(axis=1))

    def _labelled(self, own: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """The most weight that is right where each category has one of two labels."""
        best = np.zeros(len(own), np.int64)
        limited = 0 < self.card < own.shape[1]
        for a, b in self.pairs:
            gain = own[:, :, a] - own[:, :, b]
            for label, sign in ((b, 1), (a, -1)) if limited else ((b, 1),):
                some = np.maximum(sign * gain, 0)
                some = np.sort(some, axis=1)[:, -self.card :] if limited else some
                best = np.maximum(best, totals[:, label] + some.sum(axis=1))
        return best

    def _at_once(self, counts: np.ndarray, ordered: bool, shape: Branch, limit: int) -> int:
        """A question whose categories have the weights counts (k, cells, K), above at most one more on each side."""
        if ordered:
            low = counts.cumsum(axis=0)
            for below, above in {shape, shape[::-1]}:
                costs = self._last(low[:-1], below) + self._last(low[-1] - low[:-1], above)
                limit = min(limit, int(costs.min()))
            return limit
        alone = np.minimum(*(self._last(counts, side) for side in shape))
        rest = np.append(alone[::-1].cumsum()[::-1], 0)
        alike = int(shape[0] == shape[1])  # the first category is left then
        none = np.zeros_like(counts[:1])
        stack = [(alike, counts[:1] if alike else none, none, np.array([[alike, 0]]))]
        while stack and rest[0] < limit:
            done, one, other, number = stack.pop()
            cost = self._last(one, shape[0]) + self._last(other, shape[1]) + rest[done]
            if done == len(counts):
                limit = min(limit, int(cost.min(initial=limit)))
                continue
            open_ = cost < limit
            stack += self._next(counts[done], done + 1, one[open_], other[open_], number[open_])
        return limit

    def _next(
        self, own: np.ndarray, done: int, one: np.ndarray, other: np.ndarray, number: np.ndarray
    ) -> list[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """A category of the weights `own` on either side of assignments with these weights and numbers of categories."""
        left = np.concatenate([one + own, one])
        right = np.concatenate([other, other + own])
        number = np.concatenate([number + np.array(side) for side in ((1, 0), (0, 1))])
        if self.card:
            fits = number.min(axis=1) <= self.card
            left = left[fits]
            right = right[fits]
            number = number[fits]
        many = max(1, SLICE // max(1, own.size))
        slices = [slice(k, k + many) for k in range(0, len(number), many)]
        return [(done, left[s], right[s], number[s]) for s in slices]

    # -- more questions --------------------------------------------------------------------------------------------------

    def _in_turn(self, parts: Sequence[np.ndarray], ordered: bool, shape: Branch, limit: int) -> int:
        """A question whose categories have these rows, above deeper sides."""
        alone = [0 if ordered else min(self._least(part, side, limit) for side in set(shape)) for part in parts]
        rest = [*np.cumsum(alone[::-1]).tolist()[::-1], 0]
        best = limit

        def visit(given: Sides, ways: Branch, done: int) -> bool:
            nonlocal best
            found = self._both(given, ways, best, rest[done]) if rest[0] < best else best
            if done == len(parts):
                best = found
            return found < best

        self.walk(parts, ordered, shape, visit)
        return best

    def _both(self, given: Sides, shape: Branch, limit: int, rest: int) -> int:
        """What two sides and the rest cost; `limit` if that is not less."""
        self.spend(JOIN)
        own = [join_rows(parts) for parts in given]
        floors = [self._floor(rows, side) for rows, side in zip(own, shape, strict=True)]
        if sum(floors) + rest >= limit:
            return limit
        first = 0 if len(own[0]) >= len(own[1]) else 1
        cost = self._least(own[first], shape[first], limit - rest - floors[1 - first])
        cost += self._least(own[1 - first], shape[1 - first], limit - rest - cost)
        return min(limit, cost + rest)
