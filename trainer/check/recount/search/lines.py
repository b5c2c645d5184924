"""All ways in which a line parts points of a plane, by turning a line about each point in turn, in exact whole numbers.

A line that touches no point can be turned a little and then moved to its left until it touches one point. So every way is also the way of a line
through one point i in a direction of no other point, with i on its left. While the line turns by half a circle about i, the points in its
direction change sides: O(m log m) for each i.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

BESIDE = Fraction(1, 10**9)
RANGE = 1 << 29  # products of differences of such numbers, and the difference of two, are exact in int64


def as_integers(values: np.ndarray) -> np.ndarray | None:
    """A column as whole numbers, up to a shift and a scale: the decimals that its numbers (n,) are written as, int64 or (for wide ones) objects.

    None if a decimal lies so far from the number in the computer that what is on a line as decimals need not be there for a tree.
    """
    levels, place = np.unique(values, return_inverse=True)
    written = [Fraction(repr(v)) for v in levels.tolist()]
    stored = [Fraction(v) for v in levels.tolist()]
    moved = max(abs((w - written[0]) - (v - stored[0])) for w, v in zip(written, stored, strict=True))
    if moved > BESIDE * (stored[-1] - stored[0]):
        return None
    scale = math.lcm(*(w.denominator for w in written))
    found = [int((w - written[0]) * scale) for w in written]
    shared = math.gcd(*found) or 1
    wide = found[-1] // shared > RANGE
    return np.array([v // shared for v in found], dtype=object if wide else np.int64)[place]


def sides(points: np.ndarray, counts: np.ndarray) -> Iterator[np.ndarray]:
    """For each of the different `points` (m, 2) the class counts (k, classes) on the left of the lines next to it, the point included.

    `counts` (m, classes) float64 holds whole numbers below 2^53. Each way to part the points appears for some point, with one of its sides.
    """
    for i in range(len(points)):
        step = np.delete(points - points[i], i, axis=0)
        other = np.delete(counts, i, axis=0)
        behind = (step[:, 1] < 0) | ((step[:, 1] == 0) & (step[:, 0] < 0))
        step = np.where(behind[:, None], -step, step)  # now all within half a circle
        order, ends = _around(step)
        change = np.where(behind[:, None], other, -other)[order]
        first = counts[i] + other[~behind].sum(axis=0)[None]
        yield np.concatenate([first, first + np.cumsum(change, axis=0)[ends]])


def _around(step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order of directions (k, 2) of half a circle by their angle, and the place of the last one of each angle."""
    order = np.argsort(np.arctan2(step[:, 1].astype(float), step[:, 0].astype(float)), kind="stable")
    turn = _turns(step[order])
    if (turn < 0).any():  # nearer angles than the computer's numbers tell apart
        exact_steps = [(int(x), int(y)) for x, y in step.tolist()]

        def turned(a: int, b: int) -> int:
            return exact_steps[b][0] * exact_steps[a][1] - exact_steps[a][0] * exact_steps[b][1]

        order = np.array(sorted(range(len(step)), key=functools.cmp_to_key(turned)), np.int64)
        turn = _turns(step[order])
    return order, np.append(np.flatnonzero(turn > 0), len(order) - 1).astype(np.int64) if len(order) else order


def _turns(step: np.ndarray) -> np.ndarray:
    """Above 0 where the next direction has a larger angle, 0 where it has the same."""
    return step[:-1, 0] * step[1:, 1] - step[:-1, 1] * step[1:, 0]
