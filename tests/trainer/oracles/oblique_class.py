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


def best_in_class(Z, counts, depth, kappa, *, least=0.0, min_leaf=1, charge=0, edge=1e-7):
    """Return the best value of a tree over distinct points Z (P, m).

    The value is the correct weight - kappa * leaves - charge * features.
    """
    every = range(Z.shape[1])

    @cache
    def price(left, right):
        """Return the smallest number of features with a plane that separates two sides, or None if there is no such plane."""
        L = Z[sorted(left)]
        R = Z[sorted(right)]
        far = least - 1e-9 if least else edge
        if not apart(L, R, far):
            return None
        for size in range(1, Z.shape[1]) if charge else ():
            for chosen in itertools.combinations(every, size):
                if apart(L[:, chosen], R[:, chosen], far):
                    return size
        return Z.shape[1]

    def cost(left, right):
        return price(*sorted((left, right), key=sorted))

    def weight(points):
        return int(counts[sorted(points)].sum())

    @cache
    def best(points, height):
        found = {}
        if weight(points) >= min_leaf:
            found[1] = counts[sorted(points)].sum(axis=0).max()
        if height == 0:
            return found
        for size in range(1, len(points)):
            for chosen in itertools.combinations(sorted(points), size):
                left = frozenset(chosen)
                one = best(left, height - 1)
                two = best(points - left, height - 1)
                if not one or not two:
                    continue
                paid = cost(left, points - left)
                if paid is None:
                    continue
                for a, x in one.items():
                    for b, z in two.items():
                        found[a + b] = max(found.get(a + b, -(10**9)), x + z - charge * paid)
        return found

    values = best(frozenset(range(len(Z))), depth) | {}
    alone = int(counts.sum(axis=0).max())
    values[1] = max(values.get(1, alone), alone)
    return max(v - kappa * t for t, v in values.items())
