"""OCT on binary features, a baseline (Bertsimas & Dunn, 2017).

Rows are assigned to terminal nodes; errors are counted with big-M rows. This is the binary form (3) of Aghaei, Gomez &
Vayanos.

Legend     b[v,f]=1 v branches on f;  d[v]=1 v branches, else all its rows go right;  t terminal node
           zeta[i,t] row i is in t;  l[t]=1 t may hold rows;  w[t,k]=1 t predicts k;  L[t] weight of the misclassified
           rows in t
           maximise  n - sum L[t] - kappa (1 + sum d[v])
           u[v,k] v is a leaf that predicts k, only with side constraints on predictions
Labels     (O1) one feature per branching  (O2) branchings below branchings only  (O3) errors  (O4) a label for nodes
that may hold rows
           (O5) every row in one terminal node  (O6) left only with x_f = 0  (O7) right only without it
           (O8) a leaf has a label, also without rows  (O9) u[v,k] ≥ leaf at v + label k where its rows end - 1
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainer.dtypes import BoolArray, FloatArray
from trainer.families.mip.assignment import AssignedScores, Assignment
from trainer.families.mip.first_tree import Halted, never_halt
from trainer.families.mip.instance import ArrayTree, Instance
from trainer.families.mip.side.base import SideConstraint
from trainer.milo import Expression, IntegerProgram, Point, Variables, total, weighted


class OCT(Assignment):
    """The complete model; `single_features` writes (O6), (O7) per feature as in the original, with a weaker relaxation."""

    def __init__(
        self,
        instance: Instance,
        *,
        single_features: bool = False,
        halted: Halted = never_halt,
        side: Sequence[SideConstraint] = (),
    ) -> None:
        self.instance = instance
        self.single_features = single_features
        self.keep_labels = any(c.labels for c in side)
        self.model = model = IntegerProgram()
        self.model.halted = halted
        B = instance.tree.branch_nodes
        T = instance.tree.terminal_nodes
        K = instance.K
        self._split_variables()
        self.d = model.binary("d", B, priority=2)
        self.l = model.binary("l", T)
        self.w = model.binary("w", T, K, priority=1)
        self.zeta = self._rows(range(instance.n), T)
        self.L = model.continuous("L", T, upper=float(instance.total))
        leaves = total(self.d.values()) + 1
        model.maximize(instance.total - total(self.L.values()) - float(instance.kappa) * leaves)
        for v in B:
            self._split_rows(v)
            if v > 1:
                model.add(self.d[v] <= self.d[v >> 1], "O2")
        for t in T:
            self._errors(t)
        for i in range(instance.n):
            self._route(i)
        exact = any(c.exact_scores for c in side)
        self.scores = AssignedScores(instance, model, self.zeta, self.w, exact=exact)
        self.u: Variables | None = None
        p = {v: self._leaf(v) for v in instance.tree.nodes}
        if self.keep_labels:
            self._labels(p)
        self.constrain(side, self.scores, self.b, p, self.u or {})

    def _split_variables(self) -> None:
        self.b = self.model.binary("b", self.instance.tree.branch_nodes, self.instance.F, priority=2)

    def _split_rows(self, v: int) -> None:
        self.model.add(total(self.b[v, f] for f in self.instance.F) == self.d[v], "O1")

    def _rows(self, rows: range, terminal: range) -> Variables:
        """Return zeta; it is integral for integral b and d, so continuous variables suffice."""
        return self.model.continuous("zeta", rows, terminal)

    def _leaf(self, v: int) -> Expression:
        """Return an expression that is 1 if v is a leaf (its parent branches and v does not), else 0."""
        above = self.d[v >> 1] if v > 1 else Expression({}, 1.0)
        return above - self.d[v] if v < 1 << self.instance.depth else above.copy()

    def _labels(self, p: dict[int, Expression]) -> None:
        self.u = self.model.continuous("u", self.instance.tree.nodes, self.instance.K)
        for v in self.instance.tree.nodes:
            t = self._terminal_node(v)
            self.model.add(self.l[t] >= p[v], "O8")
            for k in self.instance.K:
                self.model.add(self.u[v, k] >= p[v] + self.w[t, k] - 1, "O9")

    def _errors(self, t: int) -> None:
        inst = self.instance
        model = self.model
        n = self.instance.total
        place = t - (1 << inst.depth)
        rows = self.zeta.columns[:, place]
        all_rows = weighted(rows, inst.weight)
        for k in inst.K:
            in_class = inst.y == k
            wrong = all_rows - weighted(rows[in_class], inst.weight[in_class])
            model.add(self.L[t] >= wrong - n * (1 - self.w[t, k]), "O3")
            if not self.keep_labels:  # this upper limit on the errors makes every leaf predict its majority class
                model.add(self.L[t] <= wrong + n * self.w[t, k], "O3")
        model.add(total(self.w[t, k] for k in inst.K) == self.l[t], "O4")

    def _route(self, i: int) -> None:
        inst = self.instance
        model = self.model
        zeta = self.zeta
        terminal = inst.tree.terminal_nodes
        model.add(total(zeta[i, t] for t in terminal) == 1, "O5")
        for t in terminal:
            model.add(zeta[i, t] <= self.l[t], "O4")
            for v, side in inst.tree.turns(t):
                self._turn(i, t, v, side)

    def _turn(self, i: int, t: int, v: int, side: int) -> None:
        """Add (O6) or (O7): row i is in t only if v sends it to the side of t."""
        if self.single_features:
            self._single(i, t, v, side)
            return
        left = self._left(i, v)
        if side:
            self.model.add(self.zeta[i, t] <= 1 - left, "O7")
        else:
            self.model.add(self.zeta[i, t] <= left, "O6")

    def _left(self, i: int, v: int) -> Expression:
        columns = self.b.columns[v - 1, ~self.instance.ones[i]]
        return weighted(columns, np.ones(len(columns)))

    def _single(self, i: int, t: int, v: int, side: int) -> None:
        for f in self.instance.F:
            if bool(self.instance.ones[i, f]) != bool(side):
                self.model.add(self.zeta[i, t] <= 1 - self.b[v, f], "O7" if side else "O6")
        if not side:
            self.model.add(self.zeta[i, t] <= self.d[v], "O6")

    def assignment(self, tree: ArrayTree) -> FloatArray:
        """Return the values of all variables; the rows of a leaf are at the rightmost terminal node below it."""
        inst = self.instance
        first = 1 << self.instance.depth
        values = np.zeros(self.model.size)
        for v in inst.tree.branch_nodes:
            if tree.feature[v] >= 0:
                values[self.d.columns[v - 1]] = 1.0
                self._write_split(values, v, int(tree.feature[v]))
        at = inst.route(tree.feature)
        wrong = np.bincount(at, weights=inst.weight * (tree.label[at] != inst.y), minlength=2 * first)
        for v in tree.leaves.tolist():
            place = self._terminal_node(v) - first
            values[self.l.columns[place]] = values[self.w.columns[place, tree.label[v]]] = 1.0
            values[self.zeta.columns[at == v, place]] = 1.0
            values[self.L.columns[place]] = wrong[v]
            if self.u is not None:
                values[self.u.columns[v - 1, tree.label[v]]] = 1.0
        ends = np.array([self._terminal_node(v) - first if v else 0 for v in range(2 * first)])
        self.scores.fill(values, ends[at], tree.label[at] == inst.y)
        self.fill_constraints(values, tree)
        return values

    def _branching_nodes(self, point: Point) -> BoolArray:
        return point[self.d] > 0.5
