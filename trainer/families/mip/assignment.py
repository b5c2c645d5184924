"""Assign rows to terminal nodes: shared parts of OCT and BinOCT.

Legend     b[v,f]=1 v branches on f;  zeta[i,t]=1 row i is in terminal node t;  w[t,k]=1 t predicts k
           s[i,t]=1 row i is in t and t predicts its class
           (A1) s[i,t] ≤ zeta[i,t]   (A2) s[i,t] ≤ w[t,y_i]   (A3) s[i,t] ≥ zeta[i,t] + w[t,y_i] - 1, for exact scores

Only rows that a side constraint refers to get scores; without side constraints there are none.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from trainer.dtypes import BoolArray, CodeArray, CountArray, FloatArray
from trainer.families.mip.instance import LEAF, ArrayTree, Instance
from trainer.families.mip.tree_mip import Formulation
from trainer.milo import Expression, IntegerProgram, Point, Variables, total


class Assignment(Formulation):
    """A formulation that assigns each row to a terminal node; in subclasses b may mean columns instead of features."""

    b: Variables
    w: Variables
    keep_labels: bool  # labels come from w instead of the majority, because side constraints refer to w

    @abstractmethod
    def _branching_nodes(self, point: Point) -> BoolArray:
        """Return which nodes branch, (|B|,)."""

    def _terminal_node(self, v: int) -> int:
        """Return the terminal node of the rows of a leaf at v: the rightmost one."""
        while v < 1 << self.instance.depth:
            v = 2 * v + 1
        return v

    def _write_split(self, values: FloatArray, v: int, f: int) -> None:
        """Write the variables so that node v branches on feature f."""
        values[self.b.columns[v - 1, f]] = 1.0

    def _split_scores(self, point: Point) -> FloatArray:
        """Return a score of each feature at each branch node, float64 (|B|, |F|); the largest is the split."""
        return point[self.b]

    def _features(self, point: Point) -> CodeArray:
        """Return `feature` of an ArrayTree: the split of each reachable node."""
        scores = self._split_scores(point)
        branching = self._branching_nodes(point)
        feature = np.full(2 << self.instance.depth, -2, np.int32)
        stack = [1]
        while stack:
            v = stack.pop()
            if v < 1 << self.instance.depth and len(self.instance.F) and branching[v - 1]:
                feature[v] = scores[v - 1].argmax()
                stack += (2 * v, 2 * v + 1)
            else:
                feature[v] = LEAF
        return feature

    def read(self, values: FloatArray) -> ArrayTree:
        """Return the tree of the branchings, with majority labels unless constraints refer to labels."""
        point = Point(values)
        tree = self.instance.label_leaves(self._features(point))
        if not self.keep_labels:
            return tree
        label = tree.label.copy()
        w = point[self.w]
        for v in tree.leaves.tolist():
            label[v] = w[self._terminal_node(v) - (1 << self.instance.depth)].argmax()
        return ArrayTree(tree.feature, label)


class AssignedScores:
    """Scores of rows; each is added to the model at its first use."""

    def __init__(
        self, instance: Instance, model: IntegerProgram, zeta: Variables, w: Variables, *, exact: bool
    ) -> None:
        self.instance = instance
        self.model = model
        self.zeta = zeta
        self.w = w
        self.exact = exact
        self.known: dict[int, Variables] = {}

    def __call__(self, i: int) -> Expression:
        """Return the score of row i: at most 1 if it is correct, at most 0 otherwise. Exact scores attain this limit."""
        terminal = self.instance.tree.terminal_nodes
        if i not in self.known:
            y = int(self.instance.y[i])
            s = self.known[i] = self.model.continuous(f"s{i}", terminal)
            for t in terminal:
                self.model.add(s[t] <= self.zeta[i, t], "A1")
                self.model.add(s[t] <= self.w[t, y], "A2")
                if self.exact:
                    self.model.add(s[t] >= self.zeta[i, t] + self.w[t, y] - 1, "A3")
        return total(self.known[i].values())

    def fill(self, values: FloatArray, at: CountArray, right: CountArray) -> None:
        """Write the values of the variables: `at` is the terminal node of each row, `right` whether it is correct."""
        for i, s in self.known.items():
            values[s.columns] = 0.0
            values[s.columns[int(at[i])]] = float(np.asarray(right)[i])
