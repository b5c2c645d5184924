"""Oracle of restricted hyperplane trees: every pair of sides at every node, for few points.

A pair of sides is allowed if some a with Σ

a

<= 1 keeps the sides `least` apart. Its price is the smallest number of features with which this is possible. Distances
are dual ones (the l∞ distance of two hulls), so no code is shared with the programs of the library.
"""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
from scipy.optimize import linprog


def hull_distance(L, R):
    """Return max over Σ

    a

    <= 1 of min a·R - max a·L, as the l∞ distance of the hulls of the rows of L and R.
    """
    return _hull_distance(tuple(map(tuple, L.tolist())), tuple(map(tuple, R.tolist())))


@cache  # each solver and each setting asks for the same points
def _hull_distance(left, right):
    L = np.array(left)
    R = np.array(right)
    m = L.shape[1]
    k = len(L)
    n = len(L) + len(R)
    if m == 0:
        return 0.0
    difference = np.hstack([L.T, -R.T])
    upper = np.vstack([np.hstack([s * difference, -np.ones((m, 1))]) for s in (1.0, -1.0)])
    sums = np.zeros((2, n + 1))
    sums[0, :k] = 1.0
    sums[1, k:n] = 1.0
    found = linprog(np.append(np.zeros(n), 1.0), upper, np.zeros(2 * m), sums, np.ones(2), bounds=[(0, None)] * (n + 1))
    return float(found.fun)


def apart(L, R, least):
    """Return whether the distance of the hulls is at least `least`. Most pairs need no linear program."""
    axis = max((R.min(axis=0) - L.max(axis=0)).max(), (L.min(axis=0) - R.max(axis=0)).max())
    if axis >= least or L.shape[1] == 1:
        return bool(axis >= least)  # a single column separates the hulls
    nearest = np.abs(L[:, None] - R[None]).max(axis=2).min()
    return bool(nearest >= least) and hull_distance(L, R) >= least


class ClassOracle:
    """All trees over distinct points Z (P, m) with class counts (P, K), solved by enumeration of their partitions."""

    def __init__(self, Z, counts, *, least, min_leaf, charge, edge):
        self.Z = Z
        self.counts = counts
        self.distance = least - 1e-9 if least else edge
        self.min_leaf = min_leaf
        self.charge = charge
        self.price = cache(self._price)
        self.best = cache(self._best)

    def _price(self, left, right):
        """Return the smallest number of features with a plane that separates two sides, or None if there is no such plane."""
        L = self.Z[sorted(left)]
        R = self.Z[sorted(right)]
        features = range(self.Z.shape[1])
        if not apart(L, R, self.distance):
            return None
        for size in range(1, len(features)) if self.charge else ():
            for chosen in itertools.combinations(features, size):
                if apart(L[:, chosen], R[:, chosen], self.distance):
                    return size
        return len(features)

    def _best(self, points, height):
        """Return the largest value of a tree without the penalty of leaves, by its number of leaves."""
        values = {}
        counts = self.counts[sorted(points)]
        if counts.sum() >= self.min_leaf:
            values[1] = counts.sum(axis=0).max()
        if height == 0:
            return values
        for size in range(1, len(points)):
            for chosen in itertools.combinations(sorted(points), size):
                self._split(values, frozenset(chosen), points - frozenset(chosen), height)
        return values

    def _split(self, values, left, right, height):
        """Raise the values by the trees that separate two sides at their root."""
        one = self.best(left, height - 1)
        two = self.best(right, height - 1)
        paid = self.price(*sorted((left, right), key=sorted)) if one and two else None
        if paid is None:
            return
        for a, x in one.items():
            for b, z in two.items():
                values[a + b] = max(values.get(a + b, -(10**9)), x + z - self.charge * paid)


def best_in_class(Z, counts, depth, kappa, *, least=0.0, min_leaf=1, charge=0, edge=1e-7):
    """Return the best value of a tree over distinct points Z (P, m).

    The value is the correct weight - kappa * leaves - charge * features.
    """
    oracle = ClassOracle(Z, counts, least=least, min_leaf=min_leaf, charge=charge, edge=edge)
    values = dict(oracle.best(frozenset(range(len(Z))), depth))
    alone = int(counts.sum(axis=0).max())
    values[1] = max(values.get(1, alone), alone)
    return max(v - kappa * t for t, v in values.items())
