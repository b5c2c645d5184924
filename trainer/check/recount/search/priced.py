"""Search all trees of a small space with prices of columns.

A subproblem is a set of rows, a height, a number of leaves, and the columns paid so far.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from operator import add

import numpy as np

from trainer.check.proof.steps.parts import INFINITE_COST
from trainer.check.proof.subject import ProofSpace
from trainer.check.recount.search.exhaustive_search import SearchTooLarge


class PricedTrees:
    """A search for the cheapest trees of parts of a space; `charges` are the prices of columns per unit of weight, in rows.

    Raises SearchTooLarge beyond `most` parts.
    """

    def __init__(self, space: ProofSpace, charges: Mapping[int, Fraction], most: int) -> None:
        allowed = np.flatnonzero(space.allowed)
        self.X = space.X[:, allowed]
        self.columns = space.column_of[allowed]
        self.Y = np.where(space.labels[:, None] == np.arange(space.classes), space.weights[:, None], 0)
        self.min_leaf = max(1, space.min_leaf)
        self.left = most
        self.unit = math.lcm(space.penalty.denominator, *(price.denominator for price in charges.values()))
        self.leaf = int(space.penalty * self.unit)
        charge = [int(charges.get(int(j), Fraction(0)) * self.unit) for j in self.columns]
        total = int(space.weights.sum())
        if (
            self.unit * total + (self.leaf << space.depth) + max(charge, default=0) * total * space.depth
            >= INFINITE_COST
        ):
            raise SearchTooLarge
        self.charge = np.array(charge, np.int64)
        self.known: dict[tuple[int, int, frozenset[int], bytes], int] = {}
        self.most_leaves = (1 << space.depth) if space.max_leaves is None else space.max_leaves

    def least(self, depth: int) -> Fraction | None:
        """Return the least cost of a tree of all rows, in rows; None if no tree is within the restrictions."""
        return Fraction(self._least(np.arange(len(self.X)), depth, self.most_leaves, frozenset()), self.unit)

    def _least(self, rows: np.ndarray, height: int, leaves: int, paid: frozenset[int]) -> int:
        leaves = min(leaves, 1 << height)
        key = (height, leaves, paid, rows.tobytes())
        if key not in self.known:
            self.left -= 1
            if self.left < 0:
                raise SearchTooLarge
            self.known[key] = self._search(rows, height, leaves, paid)
        return self.known[key]

    def _search(self, rows: np.ndarray, height: int, leaves: int, paid: frozenset[int]) -> int:
        totals = self.Y[rows].sum(axis=0)
        size = int(totals.sum())
        best = self.unit * (size - int(totals.max())) + self.leaf
        if leaves < 2:
            return best
        ones = self.X[rows].astype(np.int64).T @ self.Y[rows]
        zeros = totals - ones
        parts = (ones.sum(axis=1) >= self.min_leaf) & (zeros.sum(axis=1) >= self.min_leaf)
        charges = np.where(np.isin(self.columns, list(paid)), 0, self.charge) * size
        if height == 1:
            errors = size - ones.max(axis=1) - zeros.max(axis=1)
            costs = np.where(parts, self.unit * errors + 2 * self.leaf + charges, INFINITE_COST)
            return min(best, int(costs.min(initial=INFINITE_COST)))
        for q in np.flatnonzero(parts & (charges < best)).tolist():
            inner = paid | {int(self.columns[q])} if self.charge[q] else paid
            yes = self.X[rows, q].astype(bool)
            largest = 1 << (height - 1)  # most leaves of a child
            for count in range(max(1, leaves - largest), min(largest, leaves - 1) + 1):
                cost = int(charges[q]) + self._least(rows[yes], height - 1, count, inner)
                if cost < best:
                    best = min(best, cost + self._least(rows[~yes], height - 1, leaves - count, inner))
        return best


# cost, leaves, and errors in the rows of each class with a minimum recall
Vector = tuple[int, ...]


class RestrictedPricedTrees(PricedTrees):
    """The same with minimum recalls and pairs that no path tests: each part has all vectors that no other one beats."""

    def __init__(self, space: ProofSpace, charges: Mapping[int, Fraction], most: int) -> None:
        super().__init__(space, charges, most)
        allowed = np.flatnonzero(space.allowed)
        self.recalls = space.recalls
        self.apart = (
            np.zeros((len(allowed),) * 2, bool) if space.apart is None else space.apart[np.ix_(allowed, allowed)]
        )
        self.caps = (INFINITE_COST, self.most_leaves, *(cap for _, cap in self.recalls))
        self.vectors: dict[tuple[int, frozenset[int], bytes, bytes], list[Vector]] = {}

    def least(self, depth: int) -> Fraction | None:
        found = self._vectors(np.arange(len(self.X)), depth, frozenset(), np.ones(self.X.shape[1], bool))
        return min((Fraction(vector[0], self.unit) for vector in found), default=None)

    def _vectors(self, rows: np.ndarray, height: int, paid: frozenset[int], usable: np.ndarray) -> list[Vector]:
        key = (height, paid, rows.tobytes(), usable.tobytes())
        if key not in self.vectors:
            self._count(1)
            self.vectors[key] = self._find(rows, height, paid, usable)
        return self.vectors[key]

    def _count(self, work: int) -> None:
        self.left -= work
        if self.left < 0:
            raise SearchTooLarge

    def _find(self, rows: np.ndarray, height: int, paid: frozenset[int], usable: np.ndarray) -> list[Vector]:
        totals = self.Y[rows].sum(axis=0)
        size = int(totals.sum())
        found = []
        for label, right in enumerate(totals.tolist()):
            errors = (0 if label == k else int(totals[k]) for k, _ in self.recalls)
            found.append((self.unit * (size - right) + self.leaf, 1, *errors))
        for q in np.flatnonzero(usable).tolist() if height else ():
            yes = self.X[rows, q].astype(bool)
            sides = [rows[yes], rows[~yes]]
            if min(int(self.Y[side].sum()) for side in sides) < self.min_leaf:
                continue
            charge = 0 if int(self.columns[q]) in paid else int(self.charge[q]) * size
            inner = paid | {int(self.columns[q])} if self.charge[q] else paid
            first, second = (self._vectors(side, height - 1, inner, usable & ~self.apart[q]) for side in sides)
            self._count(len(first) * len(second) // 50)
            sums = (tuple(map(add, a, b)) for a in first for b in second)
            found = _undominated(found + [(vector[0] + charge, *vector[1:]) for vector in sums])
        return _undominated([v for v in found if all(x <= cap for x, cap in zip(v, self.caps, strict=True))])


def _undominated(vectors: list[Vector]) -> list[Vector]:
    """Return the vectors that no other one beats in every entry."""
    kept: list[Vector] = []
    for vector in sorted(set(vectors)):
        if not any(all(x <= y for x, y in zip(other, vector, strict=True)) for other in kept):
            kept.append(vector)
    return kept
