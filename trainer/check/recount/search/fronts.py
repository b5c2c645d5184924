"""Find the Pareto front of the errors in two classes (`odt`).

A front holds for t = 0, 1, … the least errors in class 0 of trees with at most t errors in class 1. Fronts of two sides are added.
An assignment of categories is pruned if its sides, plus each other category alone on its better side, improve no entry.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainer.check.proof.subject import Shape
from trainer.check.recount.search.assigned import JOIN, VISIT, Branch, GroupedRows, Sides, join_rows, key

INFINITE_COST = 1 << 60
HELD = 200  # work charged for each entry of a cached front, in array elements


class TopologyFronts(GroupedRows):
    """A search for the fronts of the trees of a topology, up to entry `cap`."""

    def __init__(
        self, columns: Sequence[tuple[np.ndarray, bool]], sizes: np.ndarray, card: int, most: float, cap: int
    ) -> None:
        super().__init__(columns, sizes, card, most)
        self.cap = cap
        self.memo: dict[tuple[Shape, bytes], np.ndarray] = {}

    def front(self, shape: Shape, target: np.ndarray | None = None) -> np.ndarray:
        """Return the minimum of the target and the front of all rows; raise SearchTooLarge."""
        return self._build_front(self.every, shape, target)

    def _front(self, rows: np.ndarray, shape: Shape) -> np.ndarray:
        name = shape, key(rows)
        if name not in self.memo:
            self.memo[name] = self._build_front(rows, shape)
        return self.memo[name]

    def _build_front(self, rows: np.ndarray, shape: Shape, target: np.ndarray | None = None) -> np.ndarray:
        other, limited = self.sizes[rows].sum(axis=0).tolist()
        # a leaf of the limited class misclassifies all rows of the other class, and the reverse
        front = np.full(min(self.cap, limited) + 1, other, np.int64)
        front[limited:] = 0
        self.spend(VISIT + HELD * len(front))
        if target is not None:
            front = np.minimum(front, target)
        if shape is None or not len(rows):
            return front
        if shape == (None, None):
            return self._one_question_front(rows, front)
        for side in set(shape):  # if the root separates nothing, the tree reduces to one of its sides
            np.minimum(front, self._front(rows, side), out=front)
        for j in range(len(self.spans)):
            by, order = self.branches(rows, j)
            if len(order) > 1:
                self._branch([rows[by == a] for a in order], self.ordered[j], shape, front)
        return front

    # -- one question ----------------------------------------------------------------------------------------------------

    def _one_question_front(self, rows: np.ndarray, front: np.ndarray) -> np.ndarray:
        counts = self.counts(rows)[0]
        for (a, b), ordered in zip(self.spans, self.ordered, strict=True):
            cells = counts[a:b][counts[a:b].any(axis=1)]
            self.spend(len(cells) * len(front))
            front = np.minimum(
                front, self._threshold_front(cells, len(front)) if ordered else self._label_front(cells, len(front))
            )
        return front

    def _threshold_front(self, cells: np.ndarray, length: int) -> np.ndarray:
        """Return the front of thresholds with two leaves of different labels."""
        low = cells.cumsum(axis=0)
        high = low[-1] - low
        wrong = np.append(low[:, 1], high[:, 1])
        others = np.append(high[:, 0], low[:, 0])
        front = np.full(length, INFINITE_COST)
        fits = wrong < length
        np.minimum.at(front, wrong[fits], others[fits])
        return np.minimum.accumulate(front)

    def _label_front(self, cells: np.ndarray, length: int) -> np.ndarray:
        """Return the front of a label for each category; if limited, one of the labels has at most `card` categories."""
        limited = 0 < 2 * self.card < len(cells)
        fronts = [self._limited_label_front(cells, length, rare, self.card) for rare in (0, 1)] if limited else []
        return np.minimum.reduce(fronts or [self._limited_label_front(cells, length, 0, 0)])

    def _limited_label_front(self, cells: np.ndarray, length: int, rare: int, most: int) -> np.ndarray:
        """Return the front with at most `most` categories of the label `rare`, 0 for any number; a state for each number."""
        states = np.full((most + 1, length), INFINITE_COST)
        states[0] = 0
        for n, p in cells.tolist():
            labelled = [np.full_like(states, INFINITE_COST), states + n]
            labelled[0][:, p:] = states[:, : max(0, length - p)]
            if most:
                labelled[rare] = np.concatenate([np.full((1, length), INFINITE_COST), labelled[rare][:-1]])
            states = np.minimum(*labelled)
        return np.asarray(states.min(axis=0))

    # -- more questions --------------------------------------------------------------------------------------------------

    def _branch(self, parts: Sequence[np.ndarray], ordered: bool, shape: Branch, front: np.ndarray) -> None:
        """Improve the front by a question whose categories have these rows."""
        # entry i is a bound for the last i parts, each on its better side; a threshold assigns all parts at once and
        # needs no bound
        remaining = [np.zeros(1, np.int64)]
        for part in [] if ordered else reversed(parts):
            fronts = [self._front(part, side) for side in set(shape)]
            remaining.append(self._add_fronts(np.minimum.reduce(fronts), remaining[-1], len(front)))

        def visit(assigned_parts: Sides, ways: Branch, assigned: int) -> bool:
            one, other = (
                self._front(join_rows(fronts), side) for fronts, side in zip(assigned_parts, ways, strict=True)
            )
            joined = self._add_fronts(
                self._add_fronts(one, other, len(front)), remaining[len(parts) - assigned], len(front)
            )
            if assigned == len(parts):
                np.minimum(front, joined, out=front)
            return bool((joined < front).any())

        self.walk(parts, ordered, shape, visit)

    def _add_fronts(self, one: np.ndarray, other: np.ndarray, length: int) -> np.ndarray:
        """Add two fronts up to `length` entries; a front is constant after its last entry."""
        one, other = sorted((one, other), key=len)
        sums = np.full(length, INFINITE_COST)
        falls = np.flatnonzero(np.append(True, one[1:] < one[:-1])[:length]).tolist()
        self.spend(JOIN + length * len(falls))
        for t in falls:
            shifted = one[t] + other[: length - t]
            np.minimum(sums[t : t + len(shifted)], shifted, out=sums[t : t + len(shifted)])
        return np.minimum.accumulate(sums)
