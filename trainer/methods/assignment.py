"""What OCT and BinOCT share: rows assigned to terminal nodes, a question for each branching node, trees read from the two.

Legend     b[v,f]=1 v branches on f;  w[t,k]=1 terminal node t predicts k
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from trainer.cuts.instance import LEAF, ArrayTree
from trainer.dtypes import BoolArray, CodeArray, FloatArray
from trainer.methods.tree_mip import Formulation
from trainer.milo import Point, Variables


class Assignment(Formulation):
    """A formulation in which a row has a terminal node; subclasses may let b speak of columns instead of features."""

    b: Variables
    w: Variables
    keep_labels: bool  # labels are those of w, for side constraints speak of them, and not the majority's

    @abstractmethod
    def _branching(self, point: Point) -> BoolArray:
        """Which nodes branch, (|B|,)."""

    def _terminal(self, v: int) -> int:
        """Where the rows of a leaf at v end: all to the right."""
        while v < 1 << self.instance.depth:
            v = 2 * v + 1
        return v

    def _write(self, values: FloatArray, v: int, f: int) -> None:
        """Node v asks feature f."""
        values[self.b.columns[v - 1, f]] = 1.0

    def _asked(self, point: Point) -> FloatArray:
        """For each branch node and feature, the larger the surer that it is asked, float64 (|B|, |F|)."""
        return point[self.b]

    def _features(self, point: Point) -> CodeArray:
        """`feature` of an ArrayTree: what each node that is reached asks."""
        asked, branching = self._asked(point), self._branching(point)
        feature = np.full(2 << self.instance.depth, -2, np.int32)
        stack = [1]
        while stack:
            v = stack.pop()
            if v < 1 << self.instance.depth and len(self.instance.F) and branching[v - 1]:
                feature[v] = asked[v - 1].argmax()
                stack += (2 * v, 2 * v + 1)
            else:
                feature[v] = LEAF
        return feature

    def read(self, values: FloatArray) -> ArrayTree:
        """The tree of the branchings, labels by majority unless constraints speak of them."""
        point = Point(values)
        tree = self.instance.relabelled(self._features(point))
        if not self.keep_labels:
            return tree
        label, w = tree.label.copy(), point[self.w]
        for v in tree.leaves.tolist():
            label[v] = w[self._terminal(v) - (1 << self.instance.depth)].argmax()
        return ArrayTree(tree.feature, label)
