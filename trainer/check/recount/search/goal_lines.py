"""Bound F1 and MCC by lines.

Each line is a lower bound on a weighted sum of both kinds of errors. Both goals fall with the errors of each class, and
the pairs of errors with a value of at most v form a convex set for v >= 0. So the largest value lies at a corner of the
region that the lines leave.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from trainer.check.recount.trees.counts import goal_value

Pair = tuple[Fraction, Fraction]  # errors in positive rows and in negative rows


class GoalLines:
    """The regions of errors that lines leave for each number of leaves; `sizes` are the weights of positives and others."""

    def __init__(self, goal: dict[str, Any], price: Fraction, sizes: tuple[int, ...]) -> None:
        self.goal = goal
        self.price = price
        self.sizes = sizes
        self.lines: list[tuple[int, int, int, Fraction]] = []

    def add(self, leaves: int, a: int, b: int, least: Fraction) -> None:
        """Add the line a fn + b fp >= least for trees with at most `leaves` leaves, or for all with 0."""
        self.lines.append((leaves, a, b, least))

    def top(self, most: int) -> Fraction:
        """Return an upper bound on the goal minus the price of leaves, for at most `most` leaves."""
        if not self.price:
            return self._value(self._region(0))
        single = [self._pair_value(pair) for pair in ((0, self.sizes[1]), (self.sizes[0], 0))]
        values = [max(single) - self.price]
        for leaves in range(2, most + 1):
            # even without errors, a tree with this many leaves cannot beat the best one so far
            if 1 - self.price * leaves <= max(values):
                break
            values.append(self._value(self._region(leaves)) - self.price * leaves)
        return max(values)

    def _region(self, leaves: int) -> list[Pair]:
        """Return the corners of the region of trees with so many leaves, or of all trees with 0."""
        p, n = map(Fraction, self.sizes)
        region = [(Fraction(0), Fraction(0)), (p, Fraction(0)), (p, n), (Fraction(0), n)]
        for most_leaves, a, b, least in self.lines:
            if not most_leaves or 0 < leaves <= most_leaves:
                region = _clip(region, a, b, least)
        return region

    def _value(self, region: list[Pair]) -> Fraction:
        return max(map(self._pair_value, region), default=Fraction(-1))

    def _pair_value(self, pair: tuple[Any, Any]) -> Fraction:
        p, n = self.sizes
        return max(Fraction(0), goal_value(self.goal, p - pair[0], p, n - pair[1], n)[0])


def _clip(region: list[Pair], a: int, b: int, least: Fraction) -> list[Pair]:
    """Return the corners of the part of a convex region on the upper side of a line."""
    corners = []
    sums = [a * fn + b * fp - least for fn, fp in region]
    for i, (fn, fp) in enumerate(region):
        j = (i + 1) % len(region)
        if sums[i] >= 0:
            corners.append((fn, fp))
        if sums[i] * sums[j] < 0:
            part = sums[i] / (sums[i] - sums[j])
            corners.append((fn + part * (region[j][0] - fn), fp + part * (region[j][1] - fp)))
    return corners
