"""Define instances and hyperplane trees, with exact values and simple bounds.

Legend     P distinct points, m features scaled to [0, 1], K classes;  counts[p, k] weight of class k at point p
           nodes are numbered 1 (root), 2v (left: a·z <= c), 2v + 1 (right) up to 2^(d+1) - 1;  kappa: cost of a leaf in rows
           charge: cost of a coefficient other than 0 in rows;  min_leaf: least weight at a leaf, unless it is the root
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from trainer.dtypes import BoolArray, CodeArray, CountArray, FloatArray

NONE = 0
BRANCH = 1
LEAF = 2
INADMISSIBLE = Fraction(-(1 << 62))  # value of a subtree that violates a constraint


@dataclass(frozen=True, eq=False)
class DepthTwoErrors:
    """Least errors on `points` int64 of trees of depth two: `errors[t - 1]` with at most t <= 4 leaves.

    `nodes[t - 2]`, if requested: the node of each point in such a tree of two, three or four leaves.
    """

    points: CountArray
    errors: tuple[int, int, int, int]
    nodes: tuple[CountArray, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class ObliqueTree:
    """A tree as arrays by node number: `kind` int8, `label` int32, `a` float64 (nodes, m), `c` float64.

    Labels are indices of the instance's classes.
    """

    kind: np.ndarray
    label: CodeArray
    a: FloatArray
    c: FloatArray

    @property
    def leaves(self) -> int:
        return int((self.kind == LEAF).sum())

    @property
    def branches(self) -> list[int]:
        """Branching nodes, parents first."""
        return [int(v) for v in np.flatnonzero(self.kind == BRANCH)]

    @property
    def coefficients(self) -> int:
        """Number of nonzero coefficients of all branchings."""
        return int(np.count_nonzero(self.a[self.kind == BRANCH]))

    def copy(self) -> ObliqueTree:
        """Return a copy that shares no array."""
        return ObliqueTree(kind=self.kind.copy(), label=self.label.copy(), a=self.a.copy(), c=self.c.copy())


@dataclass(frozen=True, kw_only=True, eq=False)
class ObliqueInstance:
    """The points of a problem: Z float64 (P, m), counts int64 (P, K).

    `classes` int32 (K,) are the codes of the problem; `group` int64 (rows,) is the point of each row.
    """

    Z: FloatArray
    counts: CountArray
    classes: CodeArray
    group: CountArray
    depth: int
    kappa: Fraction = Fraction(0)
    complete: bool = False  # whether every path has `depth` branchings
    max_leaves: int | None = None
    min_leaf: int = 1
    charge: Fraction = Fraction(0)
    packed: tuple[DepthTwoErrors, ...] = ()  # disjoint sets of points with their least errors

    @cached_property
    def total(self) -> int:
        """Weight of all rows."""
        return int(self.counts.sum())

    @property
    def most_leaves(self) -> int:
        """The maximum number of leaves."""
        most = min(1 << self.depth, self.max_leaves or 1 << self.depth)
        return most if self.complete else max(1, min(most, self.total // self.min_leaf))

    @property
    def size(self) -> int:
        """One more than the largest node number."""
        return 2 << self.depth

    @cached_property
    def flat(self) -> FloatArray:
        """The points as columns, with a last row of ones."""
        return np.ascontiguousarray(np.vstack([self.Z.T, np.ones(len(self.Z))]))

    def majority_leaf(self) -> ObliqueTree:
        """Return the single leaf of the majority class."""
        tree = self.empty()
        tree.kind[1] = LEAF
        tree.label[1] = int(self.counts.sum(axis=0).argmax())
        return tree

    def empty(self) -> ObliqueTree:
        """Return a tree without nodes."""
        return ObliqueTree(
            kind=np.zeros(self.size, np.int8),
            label=np.zeros(self.size, np.int32),
            a=np.zeros((self.size, self.Z.shape[1])),
            c=np.zeros(self.size),
        )

    def route(self, tree: ObliqueTree, start: int = 1, points: CountArray | None = None) -> CountArray:
        """Return the leaf of each point, int64. `points` (default: all) start at node `start`."""
        rows = np.arange(len(self.Z)) if points is None else points
        at = np.full(len(rows), start, np.int64)
        for v in tree.branches:
            visiting = np.flatnonzero(at == v)
            if len(visiting):
                right = self.Z[rows[visiting]] @ tree.a[v] > tree.c[v]
                at[visiting] = 2 * v + right
        return at

    def visits(self, at: CountArray, v: int) -> BoolArray:
        """Return which points end at v or below it."""
        shift = np.floor(np.log2(at)).astype(np.int64) - (v.bit_length() - 1)
        return np.asarray((shift >= 0) & (np.right_shift(at, np.maximum(shift, 0)) == v))

    def correct(self, tree: ObliqueTree, at: CountArray | None = None) -> int:
        """Return the weight of the correct rows."""
        at = self.route(tree) if at is None else at
        return int(self.counts[np.arange(len(at)), tree.label[at]].sum())

    def value(self, tree: ObliqueTree) -> Fraction:
        """Return the correct weight minus `kappa` per leaf and `charge` per coefficient."""
        coefficient_price = self.charge * tree.coefficients if self.charge else 0
        return self.correct(tree) - self.kappa * tree.leaves - coefficient_price

    def admits(self, tree: ObliqueTree) -> bool:
        """Return whether every leaf has its minimum weight, or the root is the only leaf."""
        if self.min_leaf <= 1 or tree.kind[1] == LEAF:
            return True
        weight = np.bincount(self.route(tree), weights=self.counts.sum(axis=1), minlength=self.size)
        return bool((weight[tree.kind == LEAF] >= self.min_leaf).all())

    def relabel(self, tree: ObliqueTree) -> ObliqueTree:
        """Label every leaf by its majority; leaves without rows keep their label."""
        sums = np.zeros((self.size, self.counts.shape[1]), np.int64)
        np.add.at(sums, self.route(tree), self.counts)
        label = np.where(sums.any(axis=1) & (tree.kind == LEAF), sums.argmax(axis=1), tree.label)
        return replace(tree, label=label.astype(np.int32))

    def prune(self, tree: ObliqueTree) -> ObliqueTree:
        """Return the relabelled tree, pruned for the best value under `min_leaf` and `max_leaves`.

        Ties are broken by fewer leaves. A complete tree keeps its branchings.
        """
        if self.complete:
            return self.relabel(tree)
        result = self._remove_trivial_splits(self.relabel(tree)).copy()
        sums = np.zeros((self.size, self.counts.shape[1]), np.int64)
        np.add.at(sums, self.route(result), self.counts)
        worth: dict[int, Fraction] = {}
        for v in range(self.size - 1, 0, -1):
            if result.kind[v] == NONE:
                continue
            if result.kind[v] == BRANCH:
                sums[v] = sums[2 * v] + sums[2 * v + 1]
            light = v > 1 and int(sums[v].sum()) < self.min_leaf
            leaf = INADMISSIBLE if light else int(sums[v].max()) - self.kappa
            if result.kind[v] == BRANCH:
                below = worth[2 * v] + worth[2 * v + 1] - self.charge * int(np.count_nonzero(result.a[v]))
                if leaf < below:
                    worth[v] = below
                    continue
                self._cut_subtree(result, v)
                result.label[v] = int(sums[v].argmax())
            worth[v] = INADMISSIBLE if light else int(sums[v][result.label[v]]) - self.kappa
        return self._remove_trivial_splits(self._limit_leaves(result, sums))

    def _limit_leaves(self, tree: ObliqueTree, sums: CountArray) -> ObliqueTree:
        """Prune the tree, in place, to `max_leaves` leaves, the branching with the smallest loss first."""
        while self.max_leaves is not None and tree.leaves > self.max_leaves:
            ends = [v for v in tree.branches if tree.kind[2 * v] == LEAF and tree.kind[2 * v + 1] == LEAF]
            v = min(ends, key=lambda u: int(sums[2 * u].max() + sums[2 * u + 1].max() - sums[u].max()))
            self._cut_subtree(tree, v)
            tree.label[v] = int(sums[v].argmax())
        return tree

    def _cut_subtree(self, tree: ObliqueTree, v: int) -> None:
        """Make v a leaf and remove its descendants."""
        tree.kind[v] = LEAF
        tree.a[v] = 0.0
        tree.c[v] = 0.0
        below = [2 * v, 2 * v + 1]
        while below:
            u = below.pop()
            if u < self.size and tree.kind[u] != NONE:
                tree.kind[u] = NONE
                tree.a[u] = 0.0
                tree.c[u] = 0.0
                below += [2 * u, 2 * u + 1]

    def _remove_trivial_splits(self, tree: ObliqueTree) -> ObliqueTree:
        """Remove branchings that send every point the same way."""
        at = self.route(tree)
        for v in tree.branches:
            sides = [bool(self.visits(at, u).any()) for u in (2 * v, 2 * v + 1)]
            if not all(sides):
                child = 2 * v + (0 if sides[0] else 1)
                return self._remove_trivial_splits(graft(self, tree, v, child))
        return tree

    def complete_to_depth(self, tree: ObliqueTree) -> ObliqueTree:
        """Extend every path to `depth` branchings; added ones send all points left. Predictions stay the same."""
        result = tree.copy()
        for v in range(1, self.size >> 1):
            if result.kind[v] == LEAF:
                result.kind[v] = BRANCH
                result.c[v] = 1.0
                for u in (2 * v, 2 * v + 1):
                    result.kind[u] = LEAF
                    result.label[u] = result.label[v]
        return result

    @cached_property
    def ceiling(self) -> Fraction:
        """Upper bound on the value of all trees.

        Equal points share a leaf, t leaves predict at most t classes, and errors on disjoint sets add up.
        """
        by_class = np.sort(self.counts.sum(axis=0))[::-1]
        most = self.most_leaves
        leaves = range(most, most + 1) if self.complete else range(1, most + 1)
        # every nontrivial branching pays for at least one coefficient
        return max(
            min(self.max_correct(t), int(by_class[:t].sum()))
            - self.kappa * t
            - (0 if self.complete else self.charge * (t - 1))
            for t in leaves
        )

    def max_correct(self, leaves: int) -> int:
        """Return an upper bound on the correct weight: equal points share a leaf, errors on disjoint sets add up."""
        most = int(self.counts.max(axis=1).sum())
        return most - sum(self.extra_errors(packed, leaves) for packed in self.packed)

    def extra_errors(self, packed: DepthTwoErrors, leaves: int) -> int:
        """Return the least errors on a set beyond those of equal points; 0 if the leaves may need more than two levels."""
        if leaves > (4 if self.depth <= 2 else 3):
            return 0
        counts = self.counts[packed.points]
        return packed.errors[leaves - 1] - int(counts.sum() - counts.max(axis=1).sum())


def _copy_node(source: ObliqueTree, of: int, target: ObliqueTree, to: int) -> None:
    target.kind[to] = source.kind[of]
    target.label[to] = source.label[of]
    target.a[to] = source.a[of]
    target.c[to] = source.c[of]


def graft(instance: ObliqueInstance, tree: ObliqueTree, v: int, source: int) -> ObliqueTree:
    """Return the tree with v replaced by its descendant `source`."""
    result = tree.copy()
    instance._cut_subtree(result, v)
    pairs = [(v, source)]
    while pairs:
        to, of = pairs.pop()
        _copy_node(tree, of, result, to)
        if tree.kind[of] == BRANCH:
            pairs += [(2 * to, 2 * of), (2 * to + 1, 2 * of + 1)]
    return result


def mirror(instance: ObliqueInstance, tree: ObliqueTree, v: int) -> ObliqueTree:
    """Return the tree with the two sides of v exchanged; every point still reaches the same leaf."""
    result = tree.copy()
    scores = instance.Z @ tree.a[v]
    left = scores <= tree.c[v]
    if not left.any() or left.all():
        result.a[v] = 0.0
        result.c[v] = -1.0 if left.all() else 1.0
    else:
        low = float(scores[left].max())
        high = float(scores[~left].min())
        result.a[v] = -tree.a[v]
        result.c[v] = -(low + (high - low) / 2)
    pairs = [(2 * v, 2 * v + 1), (2 * v + 1, 2 * v)]
    while pairs:
        to, of = pairs.pop()
        _copy_node(tree, of, result, to)
        if 2 * of + 1 < instance.size:
            pairs += [(2 * to, 2 * of), (2 * to + 1, 2 * of + 1)]
    return result
