"""Points and planes: when the hulls of two sets of points meet, and what errors of points say of the cost of a tree.

See docs/proof-format.md, "Hyperplanes".  Nothing is rounded: means are compared in whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from fractions import Fraction

import numpy as np

from trainer.verify.subject import PlaneSpace

Weights = Mapping[int, int]  # points with their weights, whole numbers above 0


def wrong(space: PlaneSpace, labels: Collection[int]) -> np.ndarray:
    """Of each point the weight that is wrong at least where only these classes are predicted."""
    return space.counts.sum(axis=1) - space.counts[:, sorted(labels)].max(axis=1)


def meets(space: PlaneSpace, left: Weights, right: Weights) -> bool:
    """True if these weighted means show that no hyperplane of the space parts the points."""
    one, two = sum(left.values()), sum(right.values())
    points = [*left, *right]
    signed = [two * w for w in left.values()] + [-one * w for w in right.values()]
    for j, near in enumerate(space.near):
        read = [space.exactly(value) for value in space.values[points, j].tolist()]
        scale = math.lcm(*(number.denominator for number in read))
        whole = (w * x.numerator * (scale // x.denominator) for w, x in zip(signed, read, strict=True))
        gap = abs(sum(whole))
        if gap and gap >= near * scale * one * two:
            return False
    return True


def needed(space: PlaneSpace, goal: Fraction, leaves: int) -> int:
    """The errors that a tree of so many leaves must make to cost at least the goal, in rows."""
    return max(0, math.ceil(goal - space.penalty * leaves - space.charge * (leaves - 1)))
