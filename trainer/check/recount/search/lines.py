"""Enumerate the separations of points by a line, in exact integers.

A line that touches no point can be turned a little and then moved to its left until it touches one point. So a line through one point i,
in a direction of no other point and with i on its left, separates the points alike. While this line turns by half a circle about i, the
points in its direction change sides: O(m log m) for each i.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

BESIDE = Fraction(1, 10**9)
MAX_EXACT_DIFFERENCE = 1 << 29  # up to this size, a difference of two products of differences is exact in int64


def as_integers(values: np.ndarray) -> np.ndarray | None:
    """Return the decimals of a column as integers, up to a shift and a scale: int64, or objects for wide ranges.

    Returns None if decimals differ too much from their doubles. Points on a line of decimals might then not be on a
    line for a tree.
    """
    levels, place = np.unique(values, return_inverse=True)
    written = [Fraction(repr(v)) for v in levels.tolist()]
    stored = [Fraction(v) for v in levels.tolist()]
    moved = max(abs((w - written[0]) - (v - stored[0])) for w, v in zip(written, stored, strict=True))
    if moved > BESIDE * (stored[-1] - stored[0]):
        return None
    scale = math.lcm(*(w.denominator for w in written))
    integers = [int((w - written[0]) * scale) for w in written]
    shared = math.gcd(*integers) or 1
    wide = integers[-1] // shared > MAX_EXACT_DIFFERENCE
    return np.array([v // shared for v in integers], dtype=object if wide else np.int64)[place]


def sides(points: np.ndarray, counts: np.ndarray) -> Iterator[np.ndarray]:
    """Yield for each point the class counts on the left of the lines through it, the point included, shape (k, classes).

    `points` are distinct, shape (m, 2). `counts` are float64 of shape (m, classes) and hold integers below 2^53. Each way to separate
    the points appears for some point, with one of its sides.
    """
    for i in range(len(points)):
        step = np.delete(points - points[i], i, axis=0)
        other = np.delete(counts, i, axis=0)
        behind = (step[:, 1] < 0) | ((step[:, 1] == 0) & (step[:, 0] < 0))
        step = np.where(behind[:, None], -step, step)  # now all directions lie within half a circle
        order, ends = _sort_directions(step)
        change = np.where(behind[:, None], other, -other)[order]
        first = counts[i] + other[~behind].sum(axis=0)[None]
        yield np.concatenate([first, first + np.cumsum(change, axis=0)[ends]])


def _sort_directions(step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort directions of half a circle, shape (k, 2), by angle; return the order and the position of the last of each angle."""
    order = np.argsort(np.arctan2(step[:, 1].astype(float), step[:, 0].astype(float)), kind="stable")
    turn = _turns(step[order])
    if (turn < 0).any():  # doubles round these angles to a wrong order, so they are compared as integers
        exact_steps = [(int(x), int(y)) for x, y in step.tolist()]

        def compare_angles(a: int, b: int) -> int:
            return exact_steps[b][0] * exact_steps[a][1] - exact_steps[a][0] * exact_steps[b][1]

        order = np.array(sorted(range(len(step)), key=functools.cmp_to_key(compare_angles)), np.int64)
        turn = _turns(step[order])
    return order, np.append(np.flatnonzero(turn > 0), len(order) - 1).astype(np.int64) if len(order) else order


def _turns(step: np.ndarray) -> np.ndarray:
    """Return a positive number where the next direction has a larger angle, 0 where it has the same."""
    return step[:-1, 0] * step[1:, 1] - step[:-1, 1] * step[1:, 0]
