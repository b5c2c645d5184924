"""What lines that no pair of error counts crosses leave open of F1 and MCC.

Both fall with the errors of each class, and the pairs with a value of at most v are convex for v >= 0. So the value is largest at a corner of the
region that the lines leave.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from trainer.check.recount.trees.counts import goal_value

Pair = tuple[Fraction, Fraction]  # errors in positive and in negative rows


class GoalLines:
    """The regions that lines leave to trees of so many leaves; `sizes`: weights of the positive rows and of the others."""

    def __init__(self, goal: dict[str, Any], price: Fraction, sizes: tuple[int, ...]) -> None:
        self.goal = goal
        self.price = price
        self.sizes = sizes
        self.lines: list[tuple[int, int, int, Fraction]] = []

    def add(self, leaves: int, a: int, b: int, least: Fraction) -> None:
        """Take up that a fn + b fp is at least `least` for trees with at most so many leaves; 0: for all."""
        self.lines.append((leaves, a, b, least))

    def top(self, most: int) -> Fraction:
        """The best value that is open to trees with at most `most` leaves, less the price of these."""
        if not self.price:
            return self._value(self._region(0))
        single = [self._single(pair) for pair in ((0, self.sizes[1]), (self.sizes[0], 0))]
        values = [max(single) - self.price]
        for leaves in range(2, most + 1):
            if 1 - self.price * leaves <= max(values):  # no tree of so many leaves, or more, is better
                break
            values.append(self._value(self._region(leaves)) - self.price * leaves)
        return max(values)

    def _region(self, leaves: int) -> list[Pair]:
        p, n = map(Fraction, self.sizes)
        region = [(Fraction(0), Fraction(0)), (p, Fraction(0)), (p, n), (Fraction(0), n)]
        for own, a, b, least in self.lines:
            if not own or leaves <= own:
                region = _inside(region, a, b, least)
        return region

    def _value(self, region: list[Pair]) -> Fraction:
        return max(map(self._single, region), default=Fraction(-1))

    def _single(self, pair: tuple[Any, Any]) -> Fraction:
        p, n = self.sizes
        return max(Fraction(0), goal_value(self.goal, p - pair[0], p, n - pair[1], n)[0])


def _inside(region: list[Pair], a: int, b: int, least: Fraction) -> list[Pair]:
    """The corners of the part of a convex region beyond a line."""
    found = []
    sums = [a * fn + b * fp - least for fn, fp in region]
    for i, (fn, fp) in enumerate(region):
        j = (i + 1) % len(region)
        if sums[i] >= 0:
            found.append((fn, fp))
        if sums[i] * sums[j] < 0:
            part = sums[i] / (sums[i] - sums[j])
            found.append((fn + part * (region[j][0] - fn), fp + part * (region[j][1] - fp)))
    return found
