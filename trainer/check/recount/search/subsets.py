"""Find the least errors of `odt` trees without listing their subsets.

A question sends each category to one of its sides. The errors of a tree are a sum over rows. So the errors of the sides for the assigned
categories, plus those of each other category alone on its better side, are a lower bound.
Above two leaves no search is needed: each category takes the label that is more frequent in it. If the size of a subset is limited, the
categories with the largest gain are taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from trainer.check.proof.subject import Shape, leaves_of
from trainer.check.recount.search.assigned import JOIN, VISIT, Branch, GroupedRows, Sides, height, join_rows, key

SLICE = 1 << 22  # limit on array elements that are processed at once


class Subsets(GroupedRows):
    """A search for the least errors of the trees of a topology."""

    def __init__(self, columns: Sequence[tuple[np.ndarray, bool]], sizes: np.ndarray, card: int, most: float) -> None:
        super().__init__(columns, sizes, card, most)
        self.pairs = list(itertools.combinations(range(sizes.shape[1]), 2))
        self.excess = self.sizes.sum(axis=1) - self.sizes.max(axis=1)
        # for a topology and its rows, a lower bound, and whether some tree attains it
        self.memo: dict[tuple[Shape, bytes], tuple[int, bool]] = {}

    def least(self, shape: Shape, limit: int) -> int:
        """Return the least errors of all rows, or `limit` if no tree has fewer; raise SearchTooLarge."""
        return self._least(self.every, shape, limit)

    def _least(self, rows: np.ndarray, shape: Shape, limit: int) -> int:
        """Return the least errors of some rows, or `limit` if no tree has fewer."""
        if limit <= 0 or not len(rows):
            return min(limit, 0)
        name = shape, key(rows)
        low, met = self.memo.get(name) or (self._floor(rows, shape), False)
        if low >= limit or met:
            return min(low, limit)
        self.spend(VISIT)
        least = self._search(rows, shape, limit)
        self.memo[name] = least, least < limit
        return least

    def _floor(self, rows: np.ndarray, shape: Shape) -> int:
        """Return a lower bound: rows with equal answers share a leaf, and t leaves predict t classes."""
        totals = np.sort(self.sizes[rows].sum(axis=0))
        return max(int(self.excess[rows].sum()), int(totals[: -leaves_of(shape)].sum()))

    def _search(self, rows: np.ndarray, shape: Shape, limit: int) -> int:
        totals = self.sizes[rows].sum(axis=0)
        limit = min(limit, int(totals.sum() - totals.max()))
        if shape is None or not self.spans:
            return limit
        if height(shape) == 1:
            return min(limit, int(self._one_question_errors(self.counts(rows), shape)[0]))
        for side in set(shape):  # if the root separates nothing, all rows go to one child, of shape `side`
            limit = self._least(rows, side, limit)
        for j in range(len(self.spans)):
            by, order = self.branches(rows, j)
            if len(order) > 1 and max(map(height, shape)) == 1:
                limit = self._shallow_branch(self.counts(rows, by)[order], self.ordered[j], shape, limit)
            elif len(order) > 1:
                limit = self._deep_branch([rows[by == a] for a in order], self.ordered[j], shape, limit)
        return limit

    # -- at most one more question ---------------------------------------------------------------------------------------

    def _one_question_errors(self, counts: np.ndarray, shape: Shape) -> np.ndarray:
        """Return the least errors, shape (M,), of a leaf or of one question; `counts` has shape (M, cells, K)."""
        self.spend(counts.size)
        totals = counts[:, slice(*self.spans[0])].sum(axis=1)
        right = totals.max(axis=1)
        if shape is not None:
            for (a, b), ordered in zip(self.spans, self.ordered, strict=True):
                right = np.maximum(
                    right, (self._best_threshold if ordered else self._best_labels)(counts[:, a:b], totals)
                )
        return np.asarray(totals.sum(axis=1) - right)

    def _best_threshold(self, counts: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """Return the most correct weight with one threshold."""
        low = counts.cumsum(axis=1)[:, :-1]
        return np.asarray((low.max(axis=2) + (totals[:, None] - low).max(axis=2)).max(axis=1))

    def _best_labels(self, counts: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """Return the most correct weight if each category has one of two labels."""
        best = np.zeros(len(counts), np.int64)
        limited = 0 < self.card < counts.shape[1]
        for a, b in self.pairs:
            gain = counts[:, :, a] - counts[:, :, b]
            for label, sign in ((b, 1), (a, -1)) if limited else ((b, 1),):
                gained = np.maximum(sign * gain, 0)
                gained = np.sort(gained, axis=1)[:, -self.card :] if limited else gained
                best = np.maximum(best, totals[:, label] + gained.sum(axis=1))
        return best

    def _shallow_branch(self, counts: np.ndarray, ordered: bool, shape: Branch, limit: int) -> int:
        """Search a question above at most one more on each side; `counts` of its categories has shape (k, cells, K)."""
        if ordered:
            low = counts.cumsum(axis=0)
            for below, above in {shape, shape[::-1]}:
                costs = self._one_question_errors(low[:-1], below) + self._one_question_errors(
                    low[-1] - low[:-1], above
                )
                limit = min(limit, int(costs.min()))
            return limit
        alone = np.minimum(*(self._one_question_errors(counts, side) for side in shape))
        remaining = np.append(alone[::-1].cumsum()[::-1], 0)
        # if both sides have the same shape, the first category goes left, so that mirrored subsets are not repeated
        alike = int(shape[0] == shape[1])
        none = np.zeros_like(counts[:1])
        stack = [(alike, counts[:1] if alike else none, none, np.array([[alike, 0]]))]
        while stack and remaining[0] < limit:
            assigned, one, other, number = stack.pop()
            cost = (
                self._one_question_errors(one, shape[0])
                + self._one_question_errors(other, shape[1])
                + remaining[assigned]
            )
            if assigned == len(counts):
                limit = min(limit, int(cost.min(initial=limit)))
                continue
            open_ = cost < limit
            stack += self._assign_next(counts[assigned], assigned + 1, one[open_], other[open_], number[open_])
        return limit

    def _assign_next(
        self, weights: np.ndarray, assigned: int, one: np.ndarray, other: np.ndarray, number: np.ndarray
    ) -> list[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Assign a category with these `weights` to either side of partial assignments."""
        left = np.concatenate([one + weights, one])
        right = np.concatenate([other, other + weights])
        number = np.concatenate([number + np.array(side) for side in ((1, 0), (0, 1))])
        if self.card:
            fits = number.min(axis=1) <= self.card
            left = left[fits]
            right = right[fits]
            number = number[fits]
        many = max(1, SLICE // max(1, weights.size))
        slices = [slice(k, k + many) for k in range(0, len(number), many)]
        return [(assigned, left[s], right[s], number[s]) for s in slices]

    # -- more questions --------------------------------------------------------------------------------------------------

    def _deep_branch(self, parts: Sequence[np.ndarray], ordered: bool, shape: Branch, limit: int) -> int:
        """Search a question whose categories have these rows, above deeper sides."""
        alone = [0 if ordered else min(self._least(part, side, limit) for side in set(shape)) for part in parts]
        remaining = [*np.cumsum(alone[::-1]).tolist()[::-1], 0]
        best = limit

        def visit(assigned_parts: Sides, ways: Branch, assigned: int) -> bool:
            nonlocal best
            cost = self._both_sides(assigned_parts, ways, best, remaining[assigned]) if remaining[0] < best else best
            if assigned == len(parts):
                best = cost
            return cost < best

        self.walk(parts, ordered, shape, visit)
        return best

    def _both_sides(self, assigned_parts: Sides, shape: Branch, limit: int, remaining: int) -> int:
        """Return the errors of two sides plus `remaining`; `limit` if they are not less."""
        self.spend(JOIN)
        side_rows = [join_rows(parts) for parts in assigned_parts]
        floors = [self._floor(rows, side) for rows, side in zip(side_rows, shape, strict=True)]
        if sum(floors) + remaining >= limit:
            return limit
        first = 0 if len(side_rows[0]) >= len(side_rows[1]) else 1
        cost = self._least(side_rows[first], shape[first], limit - remaining - floors[1 - first])
        cost += self._least(side_rows[1 - first], shape[1 - first], limit - remaining - cost)
        return min(limit, cost + remaining)
