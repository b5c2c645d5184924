"""Best subtrees of depth two for a set of rows (D2S), cached, and polishing: put them in at the bottom of a tree.

Keegan, Forbes, Corry & Abolghasemi (accelerated BendOCT), Algorithm 1 and the tabular solver behind it. For a root feature f and
a child feature g, per class k: N[k,f,g] weight of the rows with x_f = x_g = 1; the other three quarters follow by subtraction.

Ties are broken the same way everywhere, because cuts that come from nested sets of rows must ask for the same subtree: fewest
leaves, then the smallest root feature, then the left child split before the right one, then the smallest child features; labels
are the smallest majority class. Values are exact integers (weight * denominator of kappa - numerator * leaves).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trainer.cuts.instance import CUT, LEAF, ArrayTree, Instance
from trainer.dtypes import BoolArray, CountArray, FloatArray

NONE = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Subtree:
    """A tree of depth ≤ 2: `features` of root, left and right child (NONE where there is no branching).

    `labels` int32 (7,) over the places 1..7 of the block (index 0..6), -1 where no leaf; `wrong` marks the rows of the set that
    it misclassifies; `value` is exact, in rows: correct weight less kappa a leaf.
    """

    features: tuple[int, int, int]
    labels: tuple[int, ...]
    correct: int
    leaves: int
    value: Fraction
    wrong: CountArray


class DepthTwo:
    """D2S with a cache by set of rows; `calls` and `hits` count its use."""

    def __init__(self, instance: Instance, kappa: Fraction | None = None, *, cache: bool = True) -> None:
        self.instance = instance
        self.kappa = instance.kappa if kappa is None else kappa
        self.calls = self.hits = 0
        self._keep = cache
        self._cache: dict[bytes, Subtree] = {}

    def best(self, rows: CountArray) -> Subtree:
        """The best tree of depth ≤ 2 for `rows` (sorted indices)."""
        key = rows.tobytes()
        self.calls += 1
        found = self._cache.get(key)
        if found is not None:
            self.hits += 1
            return found
        found = self._solve(rows)
        if self._keep:
            self._cache[key] = found
        return found

    def _solve(self, rows: CountArray) -> Subtree:
        inst = self.instance
        class_weight = np.bincount(inst.y[rows], weights=inst.weight[rows], minlength=inst.classes).astype(np.float64)
        shapes = [(float(class_weight.max()), 1, (NONE, NONE, NONE))]
        if len(inst.F) and np.count_nonzero(class_weight) > 1:
            shapes += self._shapes(rows, class_weight)
        p, q = self.kappa.numerator, self.kappa.denominator
        # the first of the best: shapes come by number of leaves
        _, leaves, features = max(shapes, key=lambda s: q * round(s[0]) - p * s[1])
        return self._subtree(rows, features, leaves)

    def _shapes(self, rows: CountArray, class_weight: FloatArray) -> list[tuple[float, int, tuple[int, int, int]]]:
        """For two, three and four leaves the best correct weight and the first features that reach it."""
        left, right, zero, one = self._tables(rows, class_weight)
        best_left, g_left = left.max(axis=1), left.argmax(axis=1)
        best_right, g_right = right.max(axis=1), right.argmax(axis=1)
        two = zero + one
        three = np.maximum(best_left + one, zero + best_right)
        four = best_left + best_right
        f2, f3, f4 = int(two.argmax()), int(three.argmax()), int(four.argmax())
        if best_left[f3] + one[f3] >= zero[f3] + best_right[f3]:
            split3 = (f3, int(g_left[f3]), NONE)
        else:
            split3 = (f3, NONE, int(g_right[f3]))
        return [
            (two[f2], 2, (f2, NONE, NONE)),
            (three[f3], 3, split3),
            (four[f4], 4, (f4, int(g_left[f4]), int(g_right[f4]))),
        ]

    def _tables(
        self, rows: CountArray, class_weight: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Correct weight below the left and right child for every (f, g), and of the two sides as leaves for every f."""
        inst = self.instance
        size = len(inst.F)
        quarter = np.zeros((4, size, size))  # best class of: 00, 01, 10, 11 over (f, g)
        side = np.zeros((2, size))
        X, w, y = inst.X[rows], inst.weight[rows], inst.y[rows]
        for k in np.flatnonzero(class_weight):
            mine = X[y == k].astype(np.float64)  # exact: counts stay far below 2^53
            both = (mine * w[y == k, None]).T @ mine
            single = both.diagonal().copy()
            c11, c10, c01 = both, single[:, None] - both, single[None, :] - both
            c00 = class_weight[k] - single[:, None] - c01
            for place, table in enumerate((c00, c01, c10, c11)):
                np.maximum(quarter[place], table, out=quarter[place])
            np.maximum(side[0], class_weight[k] - single, out=side[0])
            np.maximum(side[1], single, out=side[1])
        return quarter[0] + quarter[1], quarter[2] + quarter[3], side[0], side[1]

    def _subtree(self, rows: CountArray, features: tuple[int, int, int], leaves: int) -> Subtree:
        inst = self.instance
        f, g, h = features
        at = np.ones(len(rows), np.int64)
        X = inst.X[rows]
        if f != NONE:
            at = 2 + X[:, f].astype(np.int64)
            for child, feature in ((2, g), (3, h)):
                if feature != NONE:
                    at = np.where(at == child, 2 * child + X[:, feature], at)
        counts = np.bincount(at * inst.classes + inst.y[rows], weights=inst.weight[rows], minlength=8 * inst.classes)
        majority = counts.reshape(8, inst.classes).argmax(axis=1)
        places = [1] if f == NONE else [*((2,) if g == NONE else (4, 5)), *((3,) if h == NONE else (6, 7))]
        labels = tuple(int(majority[v]) if v in places else -1 for v in range(1, 8))
        right = majority[at] == inst.y[rows]
        correct = int(inst.weight[rows[right]].sum())
        return Subtree(
            features=features,
            labels=labels,
            correct=correct,
            leaves=leaves,
            value=correct - self.kappa * leaves,
            wrong=rows[~right],
        )


def place(tree: ArrayTree, v: int, subtree: Subtree) -> ArrayTree:
    """The tree with the block of three levels at v replaced by `subtree`; v has at least two levels below it or needs none."""
    feature, label = tree.feature.copy(), tree.label.copy()
    last = len(feature)
    level = [v]
    while level:
        feature[level] = CUT
        level = [c for u in level for c in (2 * u, 2 * u + 1) if c < last]
    for i, f in enumerate(subtree.features):
        if f != NONE:
            feature[v if i == 0 else 2 * v + i - 1] = f
    for i, k in enumerate(subtree.labels):
        if k >= 0:
            u = v if i == 0 else (2 * v + i - 1 if i < 3 else 4 * v + i - 3)
            feature[u], label[u] = LEAF, k
    return ArrayTree(feature, label)


def polish(instance: Instance, tree: ArrayTree, solver: DepthTwo) -> ArrayTree:
    """Replace every maximal subtree of depth ≤ 2 by the best one for its rows, labels elsewhere by majority (Algorithm 1)."""
    if instance.depth < 2:
        return instance.relabelled(tree.feature)
    heights = _heights(tree)
    at = instance.route(tree.feature)
    result = tree
    for v in range(1, len(heights)):
        if 0 <= heights[v] <= 2 and (v == 1 or heights[v >> 1] > 2):
            rows = np.flatnonzero(_below(at, v))
            result = place(result, v, solver.best(rows))
    return instance.relabelled(result.feature)


def _heights(tree: ArrayTree) -> CountArray:
    """Levels of the tree itself below each of its nodes; -1 where the tree has no node."""
    heights = np.full(len(tree.feature), -1, np.int64)
    for v in range(len(heights) - 1, 0, -1):
        if tree.feature[v] == LEAF:
            heights[v] = 0
        elif tree.feature[v] >= 0:
            heights[v] = 1 + max(heights[2 * v], heights[2 * v + 1])
    return heights


def _below(at: CountArray, v: int) -> BoolArray:
    """Which rows end at v or below it."""
    shift = np.floor(np.log2(at)).astype(np.int64) - (v.bit_length() - 1)
    return (shift >= 0) & (np.right_shift(at, np.maximum(shift, 0)) == v)
