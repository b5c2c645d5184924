"""Count the optimal trees by plain recursion.

They have the best objective and, among these, the fewest leaves.
Trees differ if their questions do, even if these have equal answers. The classes of leaves do not count.
"""

from __future__ import annotations

import math

import numpy as np

from trainer.check.proof.steps.counting import Counting, FrameSides, PairFrame
from trainer.check.proof.steps.parts import ProofPart
from trainer.check.recount.search.exhaustive_search import SearchTooLarge


class Optima:
    """A count of the cheapest trees of parts of a space; it raises SearchTooLarge beyond `most` parts."""

    def __init__(self, counting: Counting, most: int) -> None:
        self.c = counting
        self.left = most
        self.memo: dict[tuple[object, ...], tuple[int, int]] = {}

    def of(self, part: ProofPart, height: int) -> tuple[int, int]:
        """Return the least cost of trees of this height, and the number of trees that have it."""
        key = height, *part.restricted_key
        if key not in self.memo:
            self.left -= 1
            if self.left < 0:
                raise SearchTooLarge
            self.memo[key] = self._of(part, height)
        return self.memo[key]

    def _of(self, part: ProofPart, height: int) -> tuple[int, int]:
        best = self.c.leaf_cost(part)
        number = 1
        frame = PairFrame(self.c, part, alike=True)
        if height == 0 or not len(frame.columns):
            return best, number
        sides = FrameSides(self.c, frame, height - 1, [(1 << height, 1 << height)])
        if height == 2:
            sides.bounds[:, 0] = frame.side_costs()
        for a in np.argsort(sides.split_bounds(), kind="stable").tolist():
            if height == 3 and sides.split_bounds()[a] <= best:
                sides.count(a)
            if sides.split_bounds()[a] > best:
                continue
            side_optima = [self.of(sides.part(a, yes), height - 1) for yes in (0, 1)]
            cost = sum(cost for cost, _ in side_optima)
            ways = math.prod(ways for _, ways in side_optima)
            if cost <= best:
                number = ways + (number if cost == best else 0)
                best = cost
        return best, number
