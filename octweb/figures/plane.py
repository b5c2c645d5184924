"""Clip half-planes and lines to the rectangle of a scatter plot."""

from __future__ import annotations

from collections.abc import Sequence

from trainer.dtypes import FloatArray

Point = tuple[float, float]


def half_plane(a: FloatArray, c: float, span: Sequence[Sequence[float]]) -> list[Point]:
    """Return the corners, in order, of the part of the rectangle `span` where a·x ≤ c. Empty if there is none.

    `span` is ((x0, x1), (y0, y1)).
    """
    (x0, x1), (y0, y1) = span
    corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    value = [float(a[0]) * x + float(a[1]) * y - c for x, y in corners]
    polygon: list[Point] = []
    for i in range(4):
        j = (i + 1) % 4
        if value[i] <= 0:
            polygon.append(corners[i])
        if (value[i] <= 0) != (value[j] <= 0):
            polygon.append(_crossing(corners[i], corners[j], value[i], value[j]))
    return polygon


def cut_segment(a: FloatArray, c: float, span: Sequence[Sequence[float]]) -> tuple[Point, Point] | None:
    """Return both ends of the line a·x = c inside the rectangle, or None if the line misses it."""
    (x0, x1), (y0, y1) = span
    corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    value = [float(a[0]) * x + float(a[1]) * y - c for x, y in corners]
    ends = [
        _crossing(corners[i], corners[(i + 1) % 4], value[i], value[(i + 1) % 4])
        for i in range(4)
        if (value[i] <= 0) != (value[(i + 1) % 4] <= 0)
    ]
    return (ends[0], ends[1]) if len(ends) == 2 else None


def _crossing(p: Point, q: Point, at_p: float, at_q: float) -> Point:
    share = at_p / (at_p - at_q)
    return p[0] + share * (q[0] - p[0]), p[1] + share * (q[1] - p[1])
