"""The proof of a frontier of leaves against errors: for each number of leaves, no tree of at most so many makes fewer errors.

Up to depth three the checker counts by itself: one step for each number of leaves. For depth four each side of a question gets the
bounds that these need of it. Deeper frontiers have no proof. The format is docs/proof-format.md, "Frontiers".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.dtypes import BitArray, BoolArray, CodeArray, CountArray
from trainer.families.exact.frontier import solve_frontier
from trainer.method import Proof

DEEPEST = 4
MOST_LEAVES = 1 << (DEEPEST - 1)  # of a side
Step = dict[str, Any]


def frontier_proof(
    X: BitArray, y: CodeArray, errors: list[int], *, most: int, n_classes: int, depth: int, weights: CountArray | None, min_leaf: int,
    allowed: BitArray, leaf_cost: Fraction, stop: Callable[[], bool],
) -> Proof | None:  # fmt: skip
    """The proof that trees of at most t leaves make `errors[t - 1]` errors at least, and all up to `most` leaves the last number.

    None if it is too deep or was stopped.  Arguments as for `solve_frontier`.
    """
    if depth > DEEPEST or stop():
        return None
    goals = np.minimum.accumulate(errors).tolist()
    steps: list[Step] = []
    if depth == DEEPEST:
        own = np.ones(len(y), np.int64) if weights is None else weights
        sides = _Sides(X, y, own, n_classes, min_leaf, np.flatnonzero(allowed), stop)
        for step in sides.steps(goals, most):
            steps.append(step)
            if stop():
                return None
    for t, goal in enumerate(goals, start=1):
        if t == len(goals) or goals[t] < goal:  # else the next one says more
            last = most if t == len(goals) else t
            leaves = {"leaves": last} if last < 1 << depth else {}
            steps.append({"path": [], "height": depth, "bound": goal, "by": "split" if depth > 2 else "count"} | leaves)
    paid = min(goal + t * leaf_cost for t, goal in enumerate(goals, start=1))
    goal = paid * leaf_cost.denominator
    return Proof(scale=1, goal=int(goal), steps=steps, goals=goals)


class _Sides:
    """The steps of the sides of each question, height three."""

    def __init__(
        self, X: BitArray, y: CodeArray, weights: CountArray, n_classes: int, min_leaf: int, asked: CountArray,
        stop: Callable[[], bool],
    ) -> None:  # fmt: skip
        used = weights > 0
        self.X, self.y, self.weights = X[used], y[used], weights[used]
        self.asked, self.n_classes, self.min_leaf, self.stop = asked, n_classes, max(1, min_leaf), stop
        _, group = np.unique(self.X, axis=0, return_inverse=True)
        counts = np.zeros((int(group.max()) + 1, n_classes), np.int64)
        np.add.at(counts, (group.reshape(-1), self.y), self.weights)
        self.excess = np.where(self.y == counts.argmax(axis=1)[group.reshape(-1)], 0, self.weights)

    def steps(self, goals: list[int], most: int) -> Iterator[Step]:
        """As far as what is known of any rows falls short of the goals."""
        done: set[bytes] = set()
        for q in self.asked.tolist():
            yes = self.X[:, q] == 1
            held = int(self.weights[yes].sum())
            key = min(np.packbits(yes).tobytes(), np.packbits(~yes).tobytes())
            if min(held, int(self.weights.sum()) - held) < self.min_leaf or key in done:
                continue
            done.add(key)
            floors = [self._floors(~yes), self._floors(yes)]
            needed = _needed(goals, most, floors)
            for answer, rows in ((0, ~yes), (1, yes)):
                if (needed[answer] > floors[answer]).any():
                    yield from self._side(2 * q + answer, rows, needed[answer], floors[answer])

    def _side(self, literal: int, rows: BoolArray, needed: CountArray, floors: CountArray) -> Iterator[Step]:
        allowed = np.zeros(self.X.shape[1], np.uint8)
        allowed[self.asked] = 1
        points = solve_frontier(
            self.X[rows], self.y[rows], n_classes=self.n_classes, depth=DEEPEST - 1, weights=self.weights[rows],
            min_leaf=self.min_leaf, allowed=allowed, stop=self.stop,
        )  # fmt: skip
        least = np.array([points[min(t, len(points) - 1)].bound for t in range(MOST_LEAVES)])
        bounds = np.minimum(least, needed)
        for t in range(MOST_LEAVES):
            if bounds[t] > floors[t] and (t == MOST_LEAVES - 1 or bounds[t + 1] < bounds[t]):
                leaves = {} if t == MOST_LEAVES - 1 else {"leaves": t + 1}
                yield {"path": [literal], "height": DEEPEST - 1, "bound": int(bounds[t]), "by": "split"} | leaves

    def _floors(self, rows: BoolArray) -> CountArray:
        """Errors for 1, 2, … leaves by equal rows and classes, int64 (8,)."""
        sizes = np.sort(np.bincount(self.y[rows], self.weights[rows], self.n_classes).astype(np.int64))[::-1]
        left = int(sizes.sum()) - np.cumsum(sizes)
        wide = np.concatenate([left, np.zeros(MOST_LEAVES, np.int64)])[:MOST_LEAVES]
        return np.maximum(wide, int(self.excess[rows].sum()))


def _needed(goals: list[int], most: int, floors: list[CountArray]) -> list[CountArray]:
    """What the sides must have for 1, 2, … leaves if the other side has its floor; both together then reach each goal, where they can."""
    needed = [floor.copy() for floor in floors]
    for t in range(2, min(most, 2 * MOST_LEAVES) + 1):
        goal = goals[min(t, len(goals)) - 1]
        for a in range(max(1, t - MOST_LEAVES), min(MOST_LEAVES, t - 1) + 1):
            for side, own, other in ((0, a, t - a), (1, t - a, a)):
                lacking = goal - int(floors[1 - side][other - 1])
                needed[side][own - 1] = max(needed[side][own - 1], lacking)
    return needed
