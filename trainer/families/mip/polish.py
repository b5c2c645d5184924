"""Find best subtrees of depth two (D2S) and polish trees.

Keegan, Forbes, Corry & Abolghasemi (accelerated BendOCT), Algorithm 1 with its tabular solver; kernels/depth_two.py counts the
tables.

Cuts of nested sets of rows must require the same subtree, so ties are always broken in the same order. It is: fewest leaves, the
smallest root feature, the left child split before the right one, the smallest child features. Labels are the smallest
majority class. Values are compared as exact integers (weight * denominator of kappa - numerator * leaves).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.mip.first_tree import Halted, never_halt
from trainer.families.mip.instance import CUT, LEAF, ArrayTree, Instance, block_node
from trainer.families.mip.kernels import depth_two as kernel

NONE = -1
CELLS_PER_CALL = 20_000_000  # limit on the table cells of a kernel call, which then takes a few hundredths of a second


@dataclass(frozen=True, kw_only=True, eq=False)
class Subtree:
    """A tree of depth ≤ 2: `features` of root, left and right child (NONE: no branching).

    `labels` int32 (7,) over the places 1..7 of the block (index 0..6), -1 if there is no leaf. `wrong` are the misclassified rows
    of the set. `value` is exact, in rows: correct weight minus kappa per leaf.
    """

    features: tuple[int, int, int]
    labels: tuple[int, ...]
    correct: int
    leaves: int
    value: Fraction
    wrong: CountArray


class DepthTwo:
    """The D2S solver with a cache by row set; `calls` and `hits` count its use. `halted` returns True to stop early."""

    def __init__(
        self, instance: Instance, kappa: Fraction | None = None, *, cache: bool = True, halted: Halted = never_halt
    ) -> None:
        self.instance = instance
        self.halted = halted
        self.kappa = instance.kappa if kappa is None else kappa
        self.calls = self.hits = 0
        self._keep = cache
        self._cache: dict[bytes, Subtree] = {}

    def best(self, rows: CountArray) -> Subtree:
        """Return the best tree of depth ≤ 2 for `rows` (sorted indices)."""
        key = rows.tobytes()
        self.calls += 1
        subtree = self._cache.get(key)
        if subtree is not None:
            self.hits += 1
            return subtree
        subtree = self._solve(rows)
        if self._keep:
            self._cache[key] = subtree
        return subtree

    def split_bounds(self, rows: CountArray) -> FloatArray:
        """Return for each root feature the best value, in rows, of a tree of depth ≤ 3 on `rows`, float64 (F,).

        The kernel is called in pieces, so that other threads run in between. After a halt, the remaining features get the weight of
        `rows` minus the price of two leaves. No tree with a split exceeds that, so cuts stay valid.
        """
        inst = self.instance
        size = len(inst.F)
        best = np.zeros((size, 2, 4), np.int64)
        step = max(1, CELLS_PER_CALL // max(1, len(rows) + inst.classes * size * size))
        finished = 0
        while finished < size and not self.halted():
            last = min(finished + step, size)
            kernel.split_values(inst.X, inst.y, inst.weight, rows, inst.classes, finished, last, best)
            finished = last
        p = self.kappa.numerator
        q = self.kappa.denominator
        exact = np.int64 if q * inst.total + 4 * p < 1 << 62 else object
        values = (q * best.astype(exact) - p * np.arange(1, 5).astype(exact)).max(axis=2).sum(axis=1)
        values[finished:] = q * int(inst.weight[rows].sum()) - 2 * p
        return (values / q).astype(np.float64)

    def _solve(self, rows: CountArray) -> Subtree:
        inst = self.instance
        best = np.empty(4, np.int64)
        shape = np.empty((4, 3), np.int32)
        kernel.best_subtrees(inst.X, inst.y, inst.weight, rows, inst.classes, best, shape)
        p = self.kappa.numerator
        q = self.kappa.denominator
        # `index` takes the first maximum, which has the fewest leaves
        values = [q * int(best[t]) - p * (t + 1) for t in range(4)]
        leaves = 1 if shape[1, 0] == NONE else 1 + values.index(max(values))
        f, g, h = (int(x) for x in shape[leaves - 1])
        return self._subtree(rows, (f, g, h), leaves)

    def _subtree(self, rows: CountArray, features: tuple[int, int, int], leaves: int) -> Subtree:
        inst = self.instance
        f, g, h = features
        counts = np.zeros((8, inst.classes), np.int64)
        right = np.empty(len(rows), np.bool_)
        majority = kernel.label_places(inst.X, inst.y, inst.weight, rows, features, counts, right)
        if f == NONE:
            places = [1]
        else:
            left = [2] if g == NONE else [4, 5]
            right_places = [3] if h == NONE else [6, 7]
            places = left + right_places
        labels = tuple(int(majority[v]) if v in places else -1 for v in range(1, 8))
        correct = int(inst.weight[rows[right]].sum())
        return Subtree(
            features=features,
            labels=labels,
            correct=correct,
            leaves=leaves,
            value=correct - self.kappa * leaves,
            wrong=rows[~right],
        )


def replace_block(tree: ArrayTree, v: int, subtree: Subtree) -> ArrayTree:
    """Replace the subtree at v by `subtree`; v needs as many levels below it."""
    feature = tree.feature.copy()
    label = tree.label.copy()
    last = len(feature)
    level = [v]
    while level:
        feature[level] = CUT
        level = [c for u in level for c in (2 * u, 2 * u + 1) if c < last]
    for i, f in enumerate(subtree.features):
        if f != NONE:
            feature[block_node(v, i)] = f
    for i, k in enumerate(subtree.labels):
        if k >= 0:
            u = block_node(v, i)
            feature[u] = LEAF
            label[u] = k
    return ArrayTree(feature, label)


def polish(instance: Instance, tree: ArrayTree, solver: DepthTwo) -> ArrayTree:
    """Replace every maximal subtree of depth ≤ 2 by the best one for its rows (Algorithm 1).

    All leaves get majority labels. After a halt, the remaining subtrees keep their splits.
    """
    if instance.depth < 2:
        return instance.label_leaves(tree.feature)
    heights = _heights(tree)
    at = instance.route(tree.feature)
    result = tree
    for v in range(1, len(heights)):
        if 0 <= heights[v] <= 2 and (v == 1 or heights[v >> 1] > 2):
            if solver.halted():
                break
            rows = np.flatnonzero(_is_below(at, v))
            result = replace_block(result, v, solver.best(rows))
    return instance.label_leaves(result.feature)


def _heights(tree: ArrayTree) -> CountArray:
    """Return the height of the subtree at each node; -1 if the tree has no such node."""
    heights = np.full(len(tree.feature), -1, np.int64)
    for v in range(len(heights) - 1, 0, -1):
        if tree.feature[v] == LEAF:
            heights[v] = 0
        elif tree.feature[v] >= 0:
            heights[v] = 1 + max(heights[2 * v], heights[2 * v + 1])
    return heights


def _is_below(at: CountArray, v: int) -> BoolArray:
    """Return which rows end at v or below it."""
    shift = np.floor(np.log2(at)).astype(np.int64) - (v.bit_length() - 1)
    return (shift >= 0) & (np.right_shift(at, np.maximum(shift, 0)) == v)
