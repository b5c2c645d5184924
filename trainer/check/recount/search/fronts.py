"""What trees that ask for subsets of categories have wrong of each of two classes: all pairs that no other one beats (`odt`).

A front says for t = 0, 1, … the least weight of wrong rows of class 0 in trees that have at most t wrong of class 1. Fronts of two sides are
added. An assignment of categories is given up where its sides, and each other category by itself on its better side, improve no entry.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainer.check.proof.subject import Shape
from trainer.check.recount.search.assigned import JOIN, VISIT, Branch, GroupedRows, Sides, join_rows, key

INFINITE_COST = 1 << 60
HELD = 200  # an entry that is held counts as so many numbers


class TopologyFronts(GroupedRows):
    """The front of the trees of a topology; entries beyond `cap` are not looked at."""

    def __init__(
        self, columns: Sequence[tuple[np.ndarray, bool]], sizes: np.ndarray, card: int, most: float, cap: int
    ) -> None:
        super().__init__(columns, sizes, card, most)
        self.cap = cap
        self.memo: dict[tuple[Shape, bytes], np.ndarray] = {}

    def front(self, shape: Shape, target: np.ndarray | None = None) -> np.ndarray:
        """The front of all rows, and no more than the target: trees that are not below it are not looked for. Raises TooLarge."""
        return self._made(self.every, shape, target)

    def _front(self, rows: np.ndarray, shape: Shape) -> np.ndarray:
        name = shape, key(rows)
        if name not in self.memo:
            self.memo[name] = self._made(rows, shape)
        return self.memo[name]

    def _made(self, rows: np.ndarray, shape: Shape, target: np.ndarray | None = None) -> np.ndarray:
        other, own = self.sizes[rows].sum(axis=0).tolist()
        front = np.full(min(self.cap, own) + 1, other, np.int64)  # a leaf of either class
        front[own:] = 0
        self.spend(VISIT + HELD * len(front))
        if target is not None:
            front = np.minimum(front, target)
        if shape is None or not len(rows):
            return front
        if shape == (None, None):
            return self._of_one_question(rows, front)
        for side in set(shape):  # a question that separates nothing is left out
            np.minimum(front, self._front(rows, side), out=front)
        for j in range(len(self.spans)):
            by, order = self.branches(rows, j)
            if len(order) > 1:
                self._branch([rows[by == a] for a in order], self.ordered[j], shape, front)
        return front

    # -- one question ----------------------------------------------------------------------------------------------------

    def _of_one_question(self, rows: np.ndarray, front: np.ndarray) -> np.ndarray:
        counts = self.counts(rows)[0]
        for (a, b), ordered in zip(self.spans, self.ordered, strict=True):
            own = counts[a:b][counts[a:b].any(axis=1)]
            self.spend(len(own) * len(front))
            front = np.minimum(front, self._cuts(own, len(front)) if ordered else self._labelled(own, len(front)))
        return front

    def _cuts(self, own: np.ndarray, length: int) -> np.ndarray:
        """Thresholds with two leaves of different labels."""
        low = own.cumsum(axis=0)
        high = low[-1] - low
        wrong = np.append(low[:, 1], high[:, 1])
        others = np.append(high[:, 0], low[:, 0])
        found = np.full(length, INFINITE_COST)
        fits = wrong < length
        np.minimum.at(found, wrong[fits], others[fits])
        return np.minimum.accumulate(found)

    def _labelled(self, own: np.ndarray, length: int) -> np.ndarray:
        """A label for each category; of one of the labels at most `card`, where that is a limit."""
        limited = 0 < 2 * self.card < len(own)
        found = [self._rarely(own, length, rare, self.card) for rare in (0, 1)] if limited else []
        return np.minimum.reduce(found or [self._rarely(own, length, 0, 0)])

    def _rarely(self, own: np.ndarray, length: int, rare: int, most: int) -> np.ndarray:
        """At most so many categories of the label `rare`; 0: any number. States tell apart how many there are."""
        states = np.full((most + 1, length), INFINITE_COST)
        states[0] = 0
        for n, p in own.tolist():
            labelled = [np.full_like(states, INFINITE_COST), states + n]
            labelled[0][:, p:] = states[:, : max(0, length - p)]
            if most:
                labelled[rare] = np.concatenate([np.full((1, length), INFINITE_COST), labelled[rare][:-1]])
            states = np.minimum(*labelled)
        return np.asarray(states.min(axis=0))

    # -- more questions --------------------------------------------------------------------------------------------------

    def _branch(self, parts: Sequence[np.ndarray], ordered: bool, shape: Branch, front: np.ndarray) -> None:
        """Improve the front by a question whose categories have these rows."""
        rest = [np.zeros(1, np.int64)]  # behind each part, of which a threshold leaves none over
        for part in [] if ordered else reversed(parts):
            own = [self._front(part, side) for side in set(shape)]
            rest.append(self._added(np.minimum.reduce(own), rest[-1], len(front)))

        def visit(given: Sides, ways: Branch, done: int) -> bool:
            one, other = (self._front(join_rows(own), side) for own, side in zip(given, ways, strict=True))
            joined = self._added(self._added(one, other, len(front)), rest[len(parts) - done], len(front))
            if done == len(parts):
                np.minimum(front, joined, out=front)
            return bool((joined < front).any())

        self.walk(parts, ordered, shape, visit)

    def _added(self, one: np.ndarray, other: np.ndarray, length: int) -> np.ndarray:
        """The sums of two fronts, up to so many entries; behind its last entry a front stays as it is."""
        one, other = sorted((one, other), key=len)
        found = np.full(length, INFINITE_COST)
        falls = np.flatnonzero(np.append(True, one[1:] < one[:-1])[:length]).tolist()
        self.spend(JOIN + length * len(falls))
        for t in falls:
            own = one[t] + other[: length - t]
            np.minimum(found[t : t + len(own)], own, out=found[t : t + len(own)])
        return np.minimum.accumulate(found)
