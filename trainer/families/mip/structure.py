"""Branch, leaf and label variables shared by FlowOCT, BendOCT and accelerated BendOCT.

Legend     b[v,f]=1 v branches on f;  p[v]=1 v is a leaf;  w[v,k] v predicts k
Labels     (S1) a branching, a leaf, or below a leaf  (S2) the same at terminal nodes  (S3) one label per leaf
Source     Keegan et al. (3b)-(3d); Aghaei, Gomez & Vayanos with leaf variables
"""

from __future__ import annotations

import numpy as np

from trainer.dtypes import CodeArray, FloatArray
from trainer.families.mip.instance import CUT, LEAF, ArrayTree, Instance
from trainer.milo import Expression, IntegerProgram, Variables, total, weighted


class Structure:
    """The variables b, p, w of a tree in a model; `whole_labels` makes w binary."""

    def __init__(self, instance: Instance, model: IntegerProgram, *, whole_labels: bool) -> None:
        V = instance.tree.nodes
        B = instance.tree.branch_nodes
        F = instance.F
        K = instance.K
        depth = instance.depth
        self.instance = instance
        self.model = model
        first = model.size
        self.b = model.binary("b", B, F)
        self.p = model.binary("p", V)
        self.w = model.binary("w", V, K) if whole_labels else model.continuous("w", V, K)
        for v in B:  # branch on the root first, since it decides which rows meet below
            for column in (*self.b.columns[v - 1], self.p.column(v)):
                model.priority[column] = depth + 2 - v.bit_length()
        self.columns = range(first, model.size)
        self._rows(instance, model)

    def _rows(self, instance: Instance, model: IntegerProgram) -> None:
        b = self.b
        p = self.p
        w = self.w
        tree = instance.tree
        for v in tree.branch_nodes:
            above = total(p[u] for u in tree.path(v))
            model.add(total(b[v, f] for f in instance.F) + above == 1, f"S1[{v}]")
        for v in tree.terminal_nodes:
            model.add(total(p[u] for u in tree.path(v)) == 1, f"S2[{v}]")
        for v in tree.nodes:
            model.add(total(w[v, k] for k in instance.K) == p[v], f"S3[{v}]")

    @property
    def leaves(self) -> Expression:
        """Number of leaves."""
        return total(self.p.values())

    def objective(self, theta: Variables) -> Expression:
        """Return the weight of the scores minus kappa per leaf, in rows."""
        inst = self.instance
        return weighted(theta.columns, inst.weight) - float(inst.kappa) * self.leaves

    def features(self, b: FloatArray, p: FloatArray | None = None) -> CodeArray:
        """Return `feature` of an ArrayTree from integral b (|B|, F); `p` is not used."""
        inst = self.instance
        feature = np.full(2 << inst.depth, CUT, np.int32)
        best_features = b.argmax(axis=1) if b.shape[1] else np.zeros(len(b), np.int64)
        branching = b.max(axis=1, initial=0.0) > 0.5
        stack = [1]
        while stack:
            v = stack.pop()
            if v < 1 << inst.depth and branching[v - 1]:
                feature[v] = best_features[v - 1]
                stack += (2 * v, 2 * v + 1)
            else:
                feature[v] = LEAF
        return feature

    def read(self, b: FloatArray, w: FloatArray, *, keep_labels: bool) -> ArrayTree:
        """Return the tree of an integral point, with labels from w or majority labels."""
        tree = self.instance.label_leaves(self.features(b))
        if not keep_labels:
            return tree
        label = tree.label.copy()
        label[tree.leaves] = w[tree.leaves - 1].argmax(axis=1)
        return ArrayTree(tree.feature, label)

    def assign(self, values: FloatArray, tree: ArrayTree) -> None:
        """Write b, p, w of a tree into a vector of all variables."""
        values[self.b.columns.ravel()] = values[self.p.columns] = 0.0
        values[self.w.columns.ravel()] = 0.0
        for v in self.instance.tree.nodes:
            f = int(tree.feature[v])
            if f >= 0:
                values[self.b.columns[v - 1, f]] = 1.0
            elif f == LEAF:
                values[self.p.columns[v - 1]] = 1.0
                values[self.w.columns[v - 1, tree.label[v]]] = 1.0
