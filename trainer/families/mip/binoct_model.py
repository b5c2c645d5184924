"""BinOCT on binary features, a baseline (Verwer & Zhang, 2019).

Complete trees, no leaf penalty, big-M rows by node and feature; no threshold bits, since a binary feature has one threshold.

Legend     b[v,f]=1 v branches on f (every node does);  t terminal node, Tl(v), Tr(v) those left and right of v
           zeta[i,t] row i is in t;  w[t,k]=1 t predicts k;  e[t,k] weight of the misclassified rows of class k in t
           maximise  n - sum e[t,k]
Labels     (N1) one feature per node  (N2) one terminal node per row  (N3) one label per terminal node  (N4) errors
           (N5) if v branches on f, rows with x_f = 1 are not left of v and rows with x_f = 0 not right of it
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainer.dtypes import BoolArray, FloatArray
from trainer.families.mip.assignment import AssignedScores, Assignment
from trainer.families.mip.first_tree import Halted, never_halt
from trainer.families.mip.instance import LEAF, ArrayTree, Instance
from trainer.families.mip.side.base import SideConstraint
from trainer.milo import Expression, IntegerProgram, Point, Variables, total, weighted


class BinOCT(Assignment):
    """The complete model; the instance must have kappa = 0 and at least one feature."""

    def __init__(self, instance: Instance, *, halted: Halted = never_halt, side: Sequence[SideConstraint] = ()) -> None:
        self.instance = instance
        self.keep_labels = any(c.labels for c in side)
        self.model = model = IntegerProgram()
        self.model.halted = halted
        B = instance.tree.branch_nodes
        T = instance.tree.terminal_nodes
        K = instance.K
        n = instance.n
        self._split_variables()
        self.w = model.binary("w", T, K)
        self.zeta = model.continuous("zeta", range(n), T)
        self.e = model.continuous("e", T, K, upper=float(instance.total))
        model.maximize(instance.total - total(self.e.values()))
        for v in B:
            self._split_rows(v)
        for i in range(n):
            model.add(total(self.zeta[i, t] for t in T) == 1, "N2")
        for t in T:
            self._errors(t)
        exact = any(c.exact_scores for c in side)
        self.scores = AssignedScores(instance, model, self.zeta, self.w, exact=exact)
        self.p = model.continuous("p", instance.tree.nodes if side else ())
        if side:  # every tree is complete, so nodes branch and terminal nodes predict
            model.fix(self.p.columns[: len(B)], 0.0)
            model.fix(self.p.columns[len(B) :], 1.0)
        w = {(v, k): self.w[v, k] if v in T else Expression() for v in instance.tree.nodes for k in instance.K}
        self.constrain(side, self.scores, self.b, self.p, w)

    def _split_variables(self) -> None:
        self.b = self.model.binary("b", self.instance.tree.branch_nodes, self.instance.F)
        self._set_priorities(self.b)

    def _set_priorities(self, variables: Variables) -> None:
        """Set branching priorities as in the original: splits by depth, before predictions."""
        for v in self.instance.tree.branch_nodes:
            for column in variables.columns[v - 1]:
                self.model.priority[column] = self.instance.depth + 2 - v.bit_length()

    def _split_rows(self, v: int) -> None:
        self.model.add(total(self.b[v, f] for f in self.instance.F) == 1, "N1")
        for f in self.instance.F:
            self._routing_row(v, f)

    def _errors(self, t: int) -> None:
        inst = self.instance
        model = self.model
        rows = self.zeta.columns[:, t - (1 << inst.depth)]
        model.add(total(self.w[t, k] for k in inst.K) == 1, "N3")
        for k in inst.K:
            in_class = inst.y == k
            size = int(inst.weight[in_class].sum())
            model.add(weighted(rows[in_class], inst.weight[in_class]) - size * self.w[t, k] <= self.e[t, k], "N4")

    def _routing_row(self, v: int, f: int) -> None:
        inst = self.instance
        first = 1 << self.instance.depth
        left = [t - first for t in inst.tree.below(2 * v) if t >= first]
        right = [t - first for t in inst.tree.below(2 * v + 1) if t >= first]
        ones = inst.ones[:, f]
        parts = [
            (self.zeta.columns[ones][:, left], inst.weight[ones]),
            (self.zeta.columns[~ones][:, right], inst.weight[~ones]),
        ]
        columns = np.concatenate([c.ravel() for c, _ in parts])
        values = np.concatenate([np.repeat(w, c.shape[1]) for c, w in parts])
        self.model.add(weighted(columns, values) + inst.total * self.b[v, f] <= inst.total, "N5")

    def complete(self, tree: ArrayTree) -> ArrayTree:
        """Complete a tree: below a leaf, nodes split on feature 0 and terminal nodes predict the leaf's class."""
        feature = tree.feature.copy()
        label = tree.label.copy()
        for v in self.instance.tree.branch_nodes:
            if feature[v] < 0:
                feature[v] = 0
                label[2 * v] = label[2 * v + 1] = label[v]
                feature[2 * v] = feature[2 * v + 1] = LEAF
        return ArrayTree(feature, label)

    def admits(self, tree: ArrayTree) -> bool:
        """Return whether the completed tree satisfies the side constraints."""
        return super().admits(self.complete(tree) if self.side else tree)

    def assignment(self, tree: ArrayTree) -> FloatArray:
        """Return the values of all variables for the completed tree."""
        inst = self.instance
        first = 1 << self.instance.depth
        values = np.zeros(self.model.size)
        tree = self.complete(tree)
        feature = tree.feature
        label = tree.label
        for v in inst.tree.branch_nodes:
            self._write_split(values, v, int(feature[v]))
        at = inst.route(feature)
        values[self.zeta.columns[np.arange(inst.n), at - first]] = 1.0
        for t in inst.tree.terminal_nodes:
            values[self.w.columns[t - first, label[t]]] = 1.0
            for k in inst.K:
                if k != label[t]:
                    values[self.e.columns[t - first, k]] = inst.weight[(at == t) & (inst.y == k)].sum()
        values[self.p.columns[first - 1 :]] = 1.0
        self.scores.fill(values, at - first, label[at] == inst.y)
        self.fill_constraints(values, tree)
        return values

    def _branching_nodes(self, point: Point) -> BoolArray:
        return np.ones(len(self.instance.tree.branch_nodes), bool)
