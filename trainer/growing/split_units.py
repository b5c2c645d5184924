"""Splits on encoded features as splits of the uploaded columns, and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trainer.data.encoding import Encoding, Test
from trainer.data.problem import Problem
from trainer.dtypes import BoolArray, CountArray
from trainer.growing.node_split import NodeSplit, SplitData, class_counts
from trainer.growing.options import MEASURES, SplitOptions
from trainer.kernels.impurity import phi
from trainer.table import EmptySide
from trainer.tree.nodes import Draft, DraftBranch
from trainer.tree.numbers import middle
from trainer.tree.splits import Split, Subset, goes_left, linear


def split_data(problem: Problem, encoding: Encoding, sums: Encoding) -> SplitData:
    """Return what all nodes of a tree share: the features of `encoding`, and those that sums weigh, if these are others."""
    data = _features(problem, encoding)
    if problem.source is not None:
        data = replace(data, rows_per_weight=problem.source.n / problem.n)
    return data if sums is encoding else replace(data, filled=_features(problem, sums))


def _features(problem: Problem, encoding: Encoding) -> SplitData:
    """Return the features of an encoding as the nodes of a tree read them."""
    X = encoding.matrix(problem.table)
    data = SplitData.of(X, problem.y, problem.n_classes, problem.row_weights)
    if all(f.test is not Test.VALUE or f.empty is None for f in encoding.features):
        return data
    complete = np.zeros(len(X), bool)
    empty = [problem.table.columns[f.column].missing if f.test is Test.VALUE else complete for f in encoding.features]
    return replace(data, empty=np.ascontiguousarray(empty))


def uploaded(found: NodeSplit, encoding: Encoding, sums: Encoding | None = None) -> tuple[Split, bool]:
    """The split, and whether its sides are exchanged; thresholds for one column, subsets for categories of one column.

    `encoding` are the features of splits on one feature, `sums` those of sums, if these are others.
    """
    sums = encoding if sums is None else sums
    if len(found.features) == 1:
        feature = encoding.features[found.features[0]]
        if feature.test is Test.LEVEL:
            # an indicator at most 1/2 is any other category
            return Subset(feature=feature.column, codes=(feature.level,)), True
        return feature.cut(found.threshold)
    terms = [sums.features[j].term for j in found.features]
    columns = [column for column, _ in terms]
    levels = [level for _, level in terms]
    if len(set(columns)) == 1 and all(level >= 0 for level in levels):
        # all categories that the training rows have score 0, a1 or a2; others score 0 as well
        score = np.zeros(len(encoding.schema[columns[0]].categories))
        for level, a in zip(levels, found.coefficients, strict=True):
            score[level] += a
        left = score <= found.threshold
        if found.threshold >= 0.0:  # "the rest" belongs to the left: list the right side and exchange
            return Subset(feature=columns[0], codes=tuple(int(c) for c in np.flatnonzero(~left))), True
        return Subset(feature=columns[0], codes=tuple(int(c) for c in np.flatnonzero(left))), False
    fills = sums.fills(found.features) if found.fills_empty else ()
    split, exchanged = linear(columns, found.coefficients, found.threshold, levels, schema=encoding.schema, fills=fills)
    if found.empty_left is None:
        return split, exchanged
    return split.with_empty(EmptySide.LEFT if found.empty_left != exchanged else EmptySide.RIGHT), exchanged


def known_splits(problem: Problem, data: SplitData, options: SplitOptions, sums: Encoding) -> dict[bytes, NodeSplit]:
    """The splits of the problem's warm start on at most two features, by the bytes of the rows (int64) that reach each.

    Splits that leave a side lighter than the smallest leaf are not among them. `sums` are the features of sums.
    """
    known: dict[bytes, NodeSplit] = {}
    open_nodes: list[tuple[Draft | None, CountArray]] = [(problem.warm_start, np.arange(len(data.X)))]
    for part, rows in open_nodes:
        if not isinstance(part, DraftBranch):
            continue
        side = goes_left(part.split, problem.matrix[rows])
        split = _one_feature(part.split, side, problem.numeric, data, rows) or _two_features(
            part.split, side, sums, data, rows
        )
        if split is None:
            continue
        low = class_counts(data, rows[split.left])
        high = class_counts(data, rows[~split.left])
        if min(low.sum(), high.sum()) < max(1, options.min_leaf):
            continue
        measure = MEASURES[options.measure]
        value = float(phi(measure, low) + phi(measure, high))
        known[rows.tobytes()] = replace(split, value=value, bound=value)
        below = (part.left, part.right) if np.array_equal(split.left, side) else (part.right, part.left)
        open_nodes += [(below[0], rows[split.left]), (below[1], rows[~split.left])]
    return known


def _one_feature(
    split: Split, side: BoolArray, encoding: Encoding, data: SplitData, rows: CountArray
) -> NodeSplit | None:
    """The split as a threshold on one feature that divides the rows as `side`, bool (rows,), does; not yet valued."""
    if len(split.used) > 1 or side.all() or not side.any():
        return None
    for h, feature in enumerate(encoding.features):
        if feature.column != split.used[0]:
            continue
        values = data.X[rows, h]
        for left in (side, ~side):
            low = float(values[left].max())
            high = float(values[~left].min())
            if low < high:
                cut = _own_threshold(split, low, high)
                return NodeSplit(features=(h,), coefficients=(1.0,), threshold=cut, left=left, value=0.0, bound=0.0)
    return None


def _own_threshold(split: Split, low: float, high: float) -> float:
    """The threshold of a split that lies between two values, or their middle."""
    if split.cut is not None and low <= split.cut[1] < high:
        return split.cut[1]
    return middle(low, high)


def _two_features(split: Split, side: BoolArray, sums: Encoding, data: SplitData, rows: CountArray) -> NodeSplit | None:
    """The split as a sum of two features that divides the rows as `side`, bool (rows,), does; not yet valued."""
    plane = split.plane()
    index = {feature.term: h for h, feature in enumerate(sums.features)}
    if plane is None or len(plane[0]) != 2 or any((column, level) not in index for column, level, _ in plane[0]):
        return None
    terms, threshold, exchanged = plane
    features = tuple(index[column, level] for column, level, _ in terms)
    coefficients = tuple(a for _, _, a in terms)
    score = np.zeros(len(rows))
    for h, a in zip(features, coefficients, strict=True):
        score = score + a * data.sums.X[rows, h]
    left = score <= threshold
    empty_left = None
    if len(data.sums.empty):
        hollow = data.sums.empty[list(features)][:, rows].any(axis=0)
        own = side[hollow] != exchanged
        if own.any() and not own.all():  # a sum with fill values divides the rows with empty cells
            return None
        if len(own):
            empty_left = bool(own[0])
            left[hollow] = empty_left
    return NodeSplit(
        features=features, coefficients=coefficients, threshold=threshold, left=left, value=0.0, bound=0.0,
        empty_left=empty_left,
    )  # fmt: skip
