"""Oracle of hyperplane trees: all linear separations of a few points in exact arithmetic.

A circuit is a smallest affinely dependent set of points. The signs of its dependency define two sides whose hulls meet
in one point. Two sets can be separated if and only if no circuit has one sign in the one set and the other sign in the
other (Radon, Kirchberger). No code is shared with the library, and there are only integers and fractions, no linear
programming.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache

import numpy as np

KAPPAS = (Fraction(0), Fraction(0), Fraction(1, 3), Fraction(1), Fraction(1, 2))


def dependency(points):
    """Return the dependency of affinely dependent points.

    Return None unless it is the only one and uses all points.
    """
    size = len(points)
    rows = [list(row) for row in zip(*points, strict=True)] + [[1] * size]
    pivots = []
    for column in range(size):
        pivot = next((r for r in range(len(pivots), len(rows)) if rows[r][column]), None)
        if pivot is None:
            if len(pivots) < column:
                return None  # there is a second dependent point, so the set is not minimal
            continue
        at = len(pivots)
        rows[at], rows[pivot] = rows[pivot], rows[at]
        for r in range(len(rows)):
            if r != at and rows[r][column]:  # no division takes place, so integers stay integers
                here = rows[at][column]
                there = rows[r][column]
                rows[r] = [x * here - z * there for x, z in zip(rows[r], rows[at], strict=True)]
        pivots.append(column)
    free = [c for c in range(size) if c not in pivots]
    if len(free) != 1:
        return None
    values = [Fraction(0)] * size
    values[free[0]] = Fraction(1)
    for r, column in enumerate(pivots):
        values[column] = Fraction(-rows[r][free[0]], rows[r][column])
    return values if all(values) else None


def listed(X):
    """Return the points as tuples of integers, which serve as cache keys."""
    return tuple(tuple(map(int, p)) for p in X)


def circuits(X):
    """Return all circuits as pairs of sets of indices (positive, negative), each also with the two exchanged."""
    return _circuits(listed(X))


@cache  # each solver and each setting asks for the same points
def _circuits(X):
    found = set()
    for size in range(2, len(X[0]) + 3):
        for chosen in itertools.combinations(range(len(X)), size):
            values = dependency([X[i] for i in chosen])
            if values is not None:
                one = frozenset(i for i, v in zip(chosen, values, strict=True) if v > 0)
                two = frozenset(chosen) - one
                found |= {(one, two), (two, one)}
    return found


def separations(X):
    """Return all sets of distinct points that a hyperplane separates from the others."""
    return _separations(listed(X))


@cache
def _separations(X):
    # A set of points is an integer with one bit for each point.
    found = [tuple(sum(1 << i for i in side) for side in sides) for sides in _circuits(X)]
    out = set()
    for left in range(1, (1 << len(X)) - 1):
        if not any(a & left == a and not b & left for a, b in found):
            out.add(frozenset(i for i in range(len(X)) if left >> i & 1))
    return out


def best_value(X, counts, depth, kappa, *, complete=False, most=None, min_leaf=0):
    """Return the largest correct weight - kappa * leaves of a tree over distinct integer points X (P, m).

    `counts` (P, K) are the weights by class. A leaf of the tree has at least `min_leaf` rows, unless it is the only
    one.
    """
    values = _most_correct(listed(X), listed(counts), depth, complete, min_leaf)
    return max(v - kappa * t for t, v in values if t <= (1 << depth if most is None else most))


@cache
def _most_correct(X, counts, depth, complete, min_leaf):
    """Return pairs of a number of leaves and the largest correct weight."""
    sides = _separations(X)
    counts = np.array(counts)

    @cache
    def best(points, height):
        """Return the largest correct weight by number of leaves."""
        value = {}
        large = len(points) == len(X) or int(counts[sorted(points)].sum()) >= min_leaf
        if large and (not complete or height == 0):
            value[1] = int(counts[sorted(points)].sum(axis=0).max()) if points else 0
        if height:
            parts = {frozenset(points & side) for side in sides} | {frozenset(), points}
            for left in parts:
                for a, x in best(left, height - 1).items():
                    for b, z in best(points - left, height - 1).items():
                        value[a + b] = max(value.get(a + b, 0), x + z)
        return value

    return tuple(best(frozenset(range(len(X))), depth).items())


def random_points(seed, *, most=9, depths=(1, 2)):
    """Return X int (P, m), counts (P, K), the depth and kappa.

    The points are distinct. There are ties, and several classes at one point.
    """
    r = np.random.default_rng(seed)
    depth = int(r.choice(depths))
    m = int(r.integers(1, 4))
    size = int(r.integers(1, most + 1))
    k = int(r.integers(1, 5))
    X = r.integers(0, int(r.integers(2, 4)), (size, m))
    if seed % 7 == 0:
        X[:, 0] = 1  # makes the column constant
    X = np.unique(X, axis=0)
    counts = np.zeros((len(X), k), np.int64)
    counts[np.arange(len(X)), r.integers(0, k, len(X))] = 1
    for _ in range(int(r.integers(0, 4))):
        counts[r.integers(0, len(X)), r.integers(0, k)] += int(r.integers(1, 3))
    return X, counts[:, counts.any(axis=0)], depth, KAPPAS[int(r.integers(len(KAPPAS)))]
