"""Define instances of binary rows, index trees, and trees as arrays.

Symbols    i row, f feature, k class, d depth; nodes in breadth-first order: 1 root, children 2v (x_f = 0) and 2v+1 (x_f = 1),
           B branch nodes 1..2^d-1, T terminal nodes 2^d..2^(d+1)-1, P(v) the path from 1 to v, A(v) = P(v) without v
           kappa = leaf penalty in rows; the value of a tree is (weight of correct rows) - kappa * leaves
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from trainer.dtypes import BIT, COUNT, BitArray, BoolArray, CodeArray, CountArray
from trainer.solver_common.binary_problem import BinaryProblem

LEAF = -1
CUT = -2  # marks a node below a leaf


@dataclass(frozen=True, kw_only=True)
class Topology:
    """The complete index tree of depth `depth`."""

    depth: int

    @property
    def branch_nodes(self) -> range:
        """B, the branch nodes."""
        return range(1, 1 << self.depth)

    @property
    def terminal_nodes(self) -> range:
        """T, the terminal nodes."""
        return range(1 << self.depth, 2 << self.depth)

    @property
    def nodes(self) -> range:
        """V, all nodes."""
        return range(1, 2 << self.depth)

    def ancestors(self, v: int) -> list[int]:
        """Return A(v), from the root down."""
        return [v >> s for s in range(v.bit_length() - 1, 0, -1)]

    def path(self, v: int) -> list[int]:
        """Return P(v), from the root down."""
        return [*self.ancestors(v), v]

    def turns(self, v: int) -> list[tuple[int, int]]:
        """Return the pairs (u, side) on the path to v, from the root down: side 0 left, 1 right."""
        return [(v >> (s + 1), (v >> s) & 1) for s in range(v.bit_length() - 2, -1, -1)]

    def height(self, v: int) -> int:
        """Return the number of levels below v."""
        return self.depth + 1 - v.bit_length()

    def below(self, v: int) -> list[int]:
        """Return v and all its descendants."""
        return [u for s in range(self.height(v) + 1) for u in range(v << s, (v + 1) << s)]


@dataclass(frozen=True, eq=False)
class ArrayTree:
    """A tree over a topology: v branches if `feature[v]` ≥ 0; LEAF predicts `label[v]`; CUT is below a leaf; index 0 is unused."""

    feature: CodeArray
    label: CodeArray

    @property
    def leaves(self) -> CountArray:
        """Leaf nodes in breadth-first order."""
        return np.flatnonzero(self.feature == LEAF)


def block_node(v: int, i: int) -> int:
    """Return the number of node i of the subtree at v, counted breadth first from 0."""
    level = (i + 1).bit_length() - 1
    return (v << level) + i + 1 - (1 << level)


def route_rows(X: BitArray, feature: CodeArray, depth: int) -> CountArray:
    """Return the leaf node of each row of X, uint8 (n, F), int64 (n,)."""
    at = np.ones(len(X), COUNT)
    rows = np.arange(len(X))
    for _ in range(depth if X.shape[1] else 0):
        f = feature[at]
        moving = f >= 0
        at = np.where(moving, 2 * at + X[rows, np.where(moving, f, 0)], at)
    return at


@dataclass(frozen=True, kw_only=True, eq=False)
class Instance:
    """Distinct rows (features, label and group) with their weights.

    X uint8 (n, F), y int32 (n,) in 0..classes-1, weight int64 (n,), `group` int32 (n,) (0 if no constraint compares groups).
    `kappa` is in rows. `features` and `labels` map back to the caller's features and classes.
    """

    X: BitArray
    y: CodeArray
    weight: CountArray
    depth: int
    kappa: Fraction
    classes: int
    features: CountArray
    labels: CountArray
    group: CodeArray

    @property
    def n(self) -> int:
        """Number of distinct rows."""
        return len(self.y)

    @property
    def F(self) -> range:
        """Indices of the features."""
        return range(self.X.shape[1])

    @property
    def K(self) -> range:
        """Indices of the classes."""
        return range(self.classes)

    @cached_property
    def total(self) -> int:
        """Weight of all rows."""
        return int(self.weight.sum())

    @cached_property
    def tree(self) -> Topology:
        """The index tree."""
        return Topology(depth=self.depth)

    def binary_problem(self) -> BinaryProblem:
        """Return the instance as a problem of the exact search."""
        return BinaryProblem(
            self.X,
            self.y,
            n_classes=self.classes,
            depth=self.depth,
            leaf_cost=self.kappa,
            weights=self.weight,
        )

    @cached_property
    def ones(self) -> BoolArray:
        """X as booleans."""
        return self.X.astype(bool)

    def route(self, feature: CodeArray) -> CountArray:
        """Return the leaf node of each row, int64 (n,)."""
        return route_rows(self.X, feature, self.depth)

    def counts(self, at: CountArray) -> CountArray:
        """Return the weight of each class at each node, int64 (2^(d+1), classes); `at` is the node of each row."""
        size = 2 << self.depth
        flat = np.bincount(at * self.classes + self.y, weights=self.weight, minlength=size * self.classes)
        return flat.astype(COUNT).reshape(size, self.classes)

    def correct(self, tree: ArrayTree) -> int:
        """Return the weight of the correct rows."""
        return int(self.weight[tree.label[self.route(tree.feature)] == self.y].sum())

    def scaled_value(self, correct: int, leaves: int) -> int:
        """Return the value of a tree times the denominator of kappa, an exact integer."""
        return self.kappa.denominator * correct - self.kappa.numerator * leaves

    def value(self, tree: ArrayTree) -> Fraction:
        """Return the value of a tree in rows."""
        return Fraction(self.scaled_value(self.correct(tree), len(tree.leaves)), self.kappa.denominator)

    def label_leaves(self, feature: CodeArray) -> ArrayTree:
        """Return the tree with these branchings and majority labels (smallest class on ties).

        A leaf without rows takes the majority of its nearest ancestor with rows.
        """
        counts = self.counts(self.route(feature))
        for v in range(len(counts) - 1, 1, -1):
            counts[v >> 1] += counts[v]
        label = np.where(feature == LEAF, counts.argmax(axis=1), 0)
        for v in np.flatnonzero((feature == LEAF) & (counts.sum(axis=1) == 0)).tolist():
            u = v
            while u > 1 and counts[u].sum() == 0:
                u >>= 1
            label[v] = counts[u].argmax()
        return ArrayTree(feature, label.astype(np.int32))

    def majority_leaf(self) -> ArrayTree:
        """Return the single leaf with the majority class."""
        feature = np.full(2 << self.depth, CUT, np.int32)
        feature[1] = LEAF
        return self.label_leaves(feature)


def build(
    X: BitArray,
    y: CodeArray,
    *,
    depth: int,
    kappa: Fraction,
    weight: CountArray | None = None,
    group: CodeArray | None = None,
) -> Instance:
    """Build the instance of binary rows X (n, F) with class codes y (n,).

    Rows of weight 0 and constant features are dropped, and equal rows are merged. `kappa` is the leaf penalty in rows. Classes are
    those that occur, in increasing order.
    """
    weight = np.ones(len(y), COUNT) if weight is None else weight.astype(COUNT)
    group = np.zeros(len(y), np.int32) if group is None else group.astype(np.int32)
    positive = np.flatnonzero(weight > 0)
    X = X[positive]
    y = y[positive]
    weight = weight[positive]
    group = group[positive]
    features = np.flatnonzero(X.min(axis=0, initial=1) < X.max(axis=0, initial=0)) if len(y) else np.zeros(0, np.int64)
    labels, codes = np.unique(y, return_inverse=True)
    first, member = _group_rows(X[:, features], codes.astype(np.int32), group)
    merged = np.bincount(member, weights=weight, minlength=len(first)).astype(COUNT)
    return Instance(
        X=np.ascontiguousarray(X[first][:, features].astype(BIT)),
        y=codes[first].astype(np.int32),
        weight=merged,
        depth=depth,
        kappa=kappa,
        classes=len(labels),
        features=features.astype(COUNT),
        labels=labels.astype(COUNT),
        group=group[first],
    )


def _group_rows(X: BitArray, codes: CodeArray, group: CodeArray) -> tuple[CountArray, CountArray]:
    """Return the index of one row of each distinct kind, ordered by bits, class and group; and the kind of each row.

    Rows are compared as byte strings. On 200,000 rows that takes a tenth of the time of `np.unique` by columns.
    """
    # big-endian, so that the order of bytes is the order of numbers
    numbers = np.column_stack([codes, group]).astype(">u4")
    keys = np.ascontiguousarray(np.hstack([np.packbits(X, axis=1), numbers.view(np.uint8).reshape(len(X), 8)]))
    _, first, member = np.unique(keys.view(f"S{keys.shape[1]}").ravel(), return_index=True, return_inverse=True)
    return first, member.ravel()
