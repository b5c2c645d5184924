"""Find the best split on at most two columns by brute force in exact fractions, without code of the search."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np


def impurity(counts, measure):
    """Return the impurity of a list of counts, as a Fraction for Gini and error."""
    total = sum(counts)
    if total == 0:
        return Fraction(0)
    if measure == "gini":
        return total - Fraction(sum(c * c for c in counts), total)
    if measure == "error":
        return Fraction(total - max(counts))
    return -sum(c * math.log(c / total) for c in counts if c)


def best_value(X, y, classes, *, measure="gini", min_leaf=1, weight=None, margin=None):
    """Return the least impurity of a split into two sides of at least `min_leaf` rows, or None if there is none.

    With `margin`, the sides of a line must have a larger distance than that, where each column is scaled to a range of
    1. Rows with an empty cell (NaN) in a column of a split are together on either side.
    """
    weight = [1] * len(y) if weight is None else [int(w) for w in weight]
    y = [int(c) for c in y]

    def value(inside):
        left = [0] * classes
        right = [0] * classes
        for c, w, side in zip(y, weight, inside, strict=True):
            (left if side else right)[c] += w
        if min(sum(left), sum(right)) < max(1, min_leaf):
            return None
        return impurity(left, measure) + impurity(right, measure)

    values = []
    # Each number is taken as the decimal with which it is written, so 0.1, 0.2 and 0.3 are evenly spaced.
    columns = [[None if math.isnan(x) else Fraction(repr(float(x))) for x in column] for column in np.asarray(X).T]
    for column in columns:
        cuts = {x for x in column if x is not None}
        for side in (True, False) if None in column else (True,):
            values += [value([side if x is None else x <= cut for x in column]) for cut in cuts]
    for first, second in itertools.combinations(columns, 2):
        points = list(zip(first, second, strict=True))
        if None in first or None in second:
            values += [value(inside) for inside in _partitions_with_empty(points)]
            continue
        for inside in set(_partitions(points)):
            if margin is None or _apart(_scaled(first, second), np.array(inside)) > margin:
                values.append(value(inside))
    values = [x for x in values if x is not None]
    return min(values) if values else None


def _scaled(*columns):
    """Return the columns as float64 (n, 2), each with a range of 1."""
    return np.array([[float((x - min(c)) / ((max(c) - min(c)) or 1)) for x in c] for c in columns]).T


def _apart(points, inside):
    """Return the distance between the hulls of two sides that a line separates, as the least one from a point to a segment."""
    least = math.inf
    for ends, others in ((points[inside], points[~inside]), (points[~inside], points[inside])):
        for p, q in itertools.combinations_with_replacement(ends, 2):
            along = q - p
            for z in others:
                t = 0.0 if not along.any() else min(1.0, max(0.0, float((z - p) @ along / (along @ along))))
                least = min(least, float(np.linalg.norm(p + t * along - z)))
    return least


def _partitions_with_empty(points):
    """Yield all partitions of the points without empty cells by a line, with the other points on either side."""
    present = [i for i, point in enumerate(points) if None not in point]
    whole = [points[i] for i in present]
    for inside in {tuple(True for _ in whole), *_partitions(whole)}:
        for side in (True, False):
            found = [side] * len(points)
            for i, own in zip(present, inside, strict=True):
                found[i] = own
            yield found


def _partitions(points):
    """Yield all partitions by a line.

    The lines go through two points and are turned slightly between points on them.
    """
    for p, q in itertools.combinations(sorted(set(points)), 2):
        d = (q[0] - p[0], q[1] - p[1])
        side = [d[0] * (z[1] - p[1]) - d[1] * (z[0] - p[0]) for z in points]
        along = [d[0] * (z[0] - p[0]) + d[1] * (z[1] - p[1]) for z in points]
        places = sorted({t for t, s in zip(along, side, strict=True) if s == 0})
        for k in range(len(places) + 1):
            for kept in (set(places[:k]), set(places[k:])):
                yield tuple(s > 0 or (s == 0 and t in kept) for t, s in zip(along, side, strict=True))
