"""Separate equivalent-point inequalities at fractional points, without extra variables.

Keegan, Forbes, Corry & Abolghasemi, (16), (19), (21) with (17) or (22). For fixed branchings the mediator beta[J] of a set J is at
most the minimum of some sums of branchings, and its selectors are at least the mean scores of their classes. Projected onto
branchings and scores, those inequalities become

    (17')  sum of theta over J ≤ M + (|J| - M) cut(b)        (22')  sum over classes of mean theta ≤ 1 + (classes - 1) cut(b)

with cut(b) the minimal sum at the point. The recursive form is a minimum cut: beta(v) = sp(v) + min(lt(v), beta(left)) +
min(rt(v), beta(right)). Legend as in equivalent.py. All hold for every tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.mip.cuts.equivalent import EquivalentSet, Form
from trainer.families.mip.instance import Instance
from trainer.milo import Row, Variables

TOLERANCE = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class EquivalentCuts:
    """The separator over the sets of one master problem; `form` with its disaggregated rows."""

    instance: Instance
    b: Variables
    theta: Variables
    sets: list[EquivalentSet]
    form: Form = "recursive"
    group_selection: bool = True

    @cached_property
    def split(self) -> BoolArray:
        """Whether each feature is in the split set of each set, bool (sets, F)."""
        membership = np.zeros((len(self.sets), len(self.instance.F)), bool)
        for number, J in enumerate(self.sets):
            membership[number, list(J.split)] = True
        return membership

    @cached_property
    def right(self) -> BoolArray:
        """Whether the rows of each set have 1 in a feature outside its split set, bool (sets, F)."""
        first = np.array([J.rows[0] for J in self.sets], np.int64)
        return self.instance.ones[first] & ~self.split

    @cached_property
    def left(self) -> BoolArray:
        """Whether the rows of each set have 0 in a feature outside its split set, bool (sets, F)."""
        return ~self.right & ~self.split

    @cached_property
    def _members(self) -> tuple[CountArray, FloatArray, CountArray]:
        """Rows of all sets, their coefficients in (17') or (22'), and the start of each set."""
        inst = self.instance
        rows = []
        values = []
        for J in self.sets:
            rows.append(J.rows)
            weight = inst.weight[J.rows].astype(np.float64)
            if self.group_selection:
                class_weights = np.bincount(inst.y[J.rows], weights=weight, minlength=inst.classes)
                weight = weight / class_weights[inst.y[J.rows]]
            values.append(weight)
        starts = np.cumsum([0, *(len(r) for r in rows)])[:-1]
        return np.concatenate(rows), np.concatenate(values), starts

    @cached_property
    def _limits(self) -> tuple[FloatArray, FloatArray]:
        """Right-hand side and factor of the mediator of each set."""
        inst = self.instance
        if self.group_selection:
            classes = np.array([len(np.unique(inst.y[J.rows])) for J in self.sets], np.float64)
            return np.ones(len(self.sets)), classes - 1
        size = np.array([inst.weight[J.rows].sum() for J in self.sets], np.float64)
        loss = np.array([J.loss for J in self.sets], np.float64)
        return size - loss, loss

    def fractional(self, b: FloatArray, theta: FloatArray, *, limit: int) -> list[Row]:
        """Return the `limit` most violated inequalities at a point: b (|B|, F), theta (n,)."""
        if not self.sets:
            return []
        # each of shape (sets, |B|)
        sp, lt, rt = (part.astype(np.float64) @ b.T for part in (self.split, self.left, self.right))
        beta = self._mediators(sp, lt, rt)
        rows, values, starts = self._members
        constant, factor = self._limits
        excess = np.add.reduceat(values * theta[rows], starts) - constant - factor * np.minimum(beta, 1.0)
        selected = np.argsort(-excess, kind="stable")[:limit]
        return [self.row(int(j), sp[j], lt[j], rt[j]) for j in selected if excess[j] > TOLERANCE]

    def _mediators(self, sp: FloatArray, lt: FloatArray, rt: FloatArray) -> FloatArray:
        """Return the largest mediator of each set at the point, before the cap at 1."""
        tree = self.instance.tree
        if self.form == "basic":
            return np.asarray(sp.sum(axis=1))
        if self.form == "chain":
            at = [np.minimum.reduce([sp[:, v - 1], *self._way(v, lt, rt)]) for v in tree.branch_nodes]
            return np.asarray(np.sum(at, axis=0))
        beta: dict[int, FloatArray] = {}
        for v in reversed(tree.branch_nodes):
            beta[v] = sp[:, v - 1].copy()
            if tree.height(v) > 1:
                beta[v] += np.minimum(lt[:, v - 1], beta[2 * v]) + np.minimum(rt[:, v - 1], beta[2 * v + 1])
        return beta[1]

    def _way(self, v: int, lt: FloatArray, rt: FloatArray) -> list[FloatArray]:
        return [(rt if side else lt)[..., u - 1] for u, side in self.instance.tree.turns(v)]

    def row(self, j: int, sp: FloatArray, lt: FloatArray, rt: FloatArray) -> Row:
        """Return (17') or (22') of one set, with the minimal sum of branchings; sp, lt, rt (|B|,)."""
        rows, values, starts = self._members
        last = starts[j + 1] if j + 1 < len(starts) else len(rows)
        entries = slice(starts[j], last)
        constant, factor = self._limits
        mediator = np.concatenate(self._least_sum(j, sp, lt, rt))
        return Row(
            np.concatenate([self.theta.columns[rows[entries]], mediator]),
            np.concatenate([values[entries], np.full(len(mediator), -factor[j])]),
            upper=float(constant[j]),
            name="equivalent-points",
            user=True,
        )

    def _least_sum(self, j: int, sp: FloatArray, lt: FloatArray, rt: FloatArray) -> list[CountArray]:
        """Return the columns of the minimal sum."""
        tree = self.instance.tree
        b = self.b.columns
        parts = {"sp": self.split[j], 0: self.left[j], 1: self.right[j]}
        if self.form == "basic":
            return [b[v - 1, parts["sp"]] for v in tree.branch_nodes]
        columns: list[CountArray] = []
        if self.form == "chain":
            for v in tree.branch_nodes:
                choices = [(float(sp[v - 1]), v, parts["sp"])]
                choices += [(float((rt if s else lt)[u - 1]), u, parts[s]) for u, s in tree.turns(v)]
                _, u, features = min(choices, key=lambda choice: choice[0])
                columns.append(b[u - 1, features])
            return columns
        self._minimum_cut(1, sp, (lt, rt), parts, columns)
        return columns

    def _minimum_cut(
        self,
        v: int,
        sp: FloatArray,
        ways: tuple[FloatArray, FloatArray],
        parts: dict[object, BoolArray],
        columns: list[CountArray],
    ) -> float:
        """Append the columns of the minimum cut below v, and return its value."""
        b = self.b.columns
        value = float(sp[v - 1])
        columns.append(b[v - 1, parts["sp"]])
        if self.instance.tree.height(v) > 1:
            for side in (0, 1):
                below: list[CountArray] = []
                deep = self._minimum_cut(2 * v + side, sp, ways, parts, below)
                arc = float(ways[side][v - 1])
                columns += [b[v - 1, parts[side]]] if arc <= deep else below
                value += min(arc, deep)
        return value
