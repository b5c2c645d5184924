"""Add hyperplanes as variables, and the minimum leaf size, to a model.

Labels (P1)-(P6), (N1), (N2) refer to docs/methods/oct-h.md.

Variables  a[v,h], c[v]: left iff a·x <= c;  m[v,h] >= |a[v,h]|;  u[v,h]=1: a[v,h] may be other than 0 (only if it costs)
Source     Bertsimas & Dunn (2017), the distance on the right side; Boutilier, Michini & Zhou (2023), the form without cuts
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainer.dtypes import CountArray, FloatArray
from trainer.families.oblique.instance import ObliqueInstance, ObliqueTree
from trainer.milo import IntegerProgram, Row, Variables, total

DISTANCE = 0.005  # correctly classified rows keep this distance, Σ|a| <= 1 (public code of Alston, Validi & Hicks)
_SCOPE_START = (
    "questions that weigh all columns at once, the rows on the right keeping a distance of 0.005 from their hyperplane "
)
SCOPE = _SCOPE_START + "(columns scaled to [0, 1], coefficients of total size 1)"
ROBUST_SCOPE = (
    _SCOPE_START
    + "(each column divided by its range or, where that is less, by four times the inter-quartile range of its values, "
    "coefficients of total size 1)"
)
CONSTANTS = ("data", "paper")


class Planes:
    """Variables and rows of the planes at the nodes B; b[v] = 1 if v has a plane."""

    def __init__(
        self, instance: ObliqueInstance, model: IntegerProgram, b: Variables, *, least: float, constants: str = "data"
    ) -> None:
        self.instance = instance
        self.model = model
        self.least = least
        self.b = b
        self.B = range(1, instance.size >> 1)
        self.H = range(instance.Z.shape[1])
        self.a = model.continuous("a", self.B, self.H, lower=-1.0, upper=1.0)
        self.size = model.continuous("m", self.B, self.H)
        self.far = largest_offset(instance)
        self.c = model.continuous("c", self.B, lower=-self.far, upper=self.far)
        self.used = model.binary("u", self.B, self.H) if instance.charge else None
        self.reach = largest_distances(instance, constants)
        for v in self.B:
            model.add(total(self.size[v, h] for h in self.H) <= b[v], "(P1)")
            model.add(self.c[v] <= self.far * b[v], "(P2)")
            model.add(self.c[v] >= -self.far * b[v], "(P2)")
            for h in self.H:
                model.add(self.a[v, h] <= self.size[v, h], "(P1)")
                model.add(self.a[v, h] >= -1.0 * self.size[v, h], "(P1)")
            if self.used is not None:
                self._price(v, self.used)

    def _price(self, v: int, used: Variables) -> None:
        for h in self.H:
            self.model.add(self.size[v, h] <= used[v, h], "(P5)")
            self.model.add(used[v, h] <= self.b[v], "(P5)")
        self.model.add(total(used[v, h] for h in self.H) >= self.b[v], "(P5)")

    def tie(self, g: int, v: int, side: int, columns: CountArray) -> None:
        """Add (P6), left: a·x - c <= M (1 - Σ); right: c - a·x + μ <= (M + μ) (1 - Σ).

        Σ is the sum of `columns`, 1 if g takes this side.
        """
        sign, slack = (1.0, self.reach[g]) if side == 0 else (-1.0, self.reach[g] + self.least)
        self.model.add(
            Row(
                np.concatenate([self.a.columns[v - 1], [self.c.column(v)], columns]),
                np.concatenate([sign * self.instance.Z[g], [-sign], np.full(len(columns), slack)]),
                upper=slack - (self.least if side else 0.0),
                name="(P6)",
            )
        )

    def assign(self, values: FloatArray, tree: ObliqueTree, v: int, at: CountArray) -> bool:
        """Write the plane of v into `values`; return False if it is too near to a point on its right.

        `at` is the leaf of each point.
        """
        Z = self.instance.Z
        visiting = self.instance.visits(at, v)
        right = visiting & self.instance.visits(at, 2 * v + 1)
        if not right.any():
            return True
        size = float(np.abs(tree.a[v]).sum())
        if not size:
            return False
        a = tree.a[v] / size
        scores = Z @ a
        left = visiting & ~right
        c = float(scores[left].max()) if left.any() else -self.far
        if float(scores[right].min()) < c + self.least or abs(c) > self.far:
            return False
        values[self.a.columns[v - 1]] = a
        values[self.size.columns[v - 1]] = np.abs(a)
        values[self.b.column(v)] = 1.0
        values[self.c.column(v)] = c
        if self.used is not None:
            values[self.used.columns[v - 1]] = a != 0.0
        return True

    def read(self, values: FloatArray, v: int, left: CountArray, right: CountArray) -> tuple[FloatArray, float]:
        """Return the plane of v, with its threshold halfway between both sides; all points go left if none goes right."""
        if not len(right):
            return np.zeros(len(self.H)), 1.0
        a = values[self.a.columns[v - 1]].copy()
        if self.used is not None:
            a[values[self.used.columns[v - 1]] < 0.5] = 0.0
        scores = self.instance.Z @ a
        high = float(scores[right].min())
        low = float(scores[left].max()) if len(left) else high - 1.0
        return a, low + (high - low) / 2


def largest_offset(instance: ObliqueInstance) -> float:
    """Return an upper bound on |a·x| with Σ|a| <= 1: 1 if columns are scaled to [0, 1]."""
    return max(1.0, float(instance.Z.max(initial=0.0)))


def largest_distances(instance: ObliqueInstance, constants: str) -> FloatArray:
    """Return the big-M constants of |a·x - c|, float64 (P,): the paper's 2, or the largest l∞ distance to another point.

    Some best plane has c between the smallest and the largest a·x of the points. So |a·x - c| is at most a difference
    a·(x - x'), where Σ|a| <= 1.
    """
    Z = instance.Z
    if constants == "paper" or not Z.size:
        return np.full(len(Z), 2.0 * largest_offset(instance))
    return np.asarray(np.maximum(Z - Z.min(axis=0), Z.max(axis=0) - Z).max(axis=1))


def add_min_leaf_rows(
    instance: ObliqueInstance, model: IntegerProgram, terminal: Sequence[int], routes: CountArray
) -> Variables | None:
    """Add (N1), (N2): a terminal node is empty or has its minimum weight; `routes` int64 (P, T) are the columns of z[g,t]."""
    if instance.min_leaf <= 1:
        return None
    full = model.binary("l", terminal)
    weight = instance.counts.sum(axis=1).astype(float)
    for i, t in enumerate(terminal):
        for g in range(len(routes)):
            model.add(Row(np.array([routes[g, i], full.column(t)]), np.array([1.0, -1.0]), upper=0.0, name="(N1)"))
        least = float(min(instance.min_leaf, instance.total))
        model.add(
            Row(np.append(routes[:, i], full.column(t)), np.append(weight, -least), lower=0.0, name="(N2)"),
        )
    return full
