"""Convert splits on encoded features to uploaded columns, and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trainer.data.encoding import Encoding, Test
from trainer.data.problem import Problem
from trainer.dtypes import BoolArray, CountArray
from trainer.growing.impurity import MEASURES, SplitOptions
from trainer.growing.node_split import NodeSplit, SplitData, class_counts
from trainer.kernels.impurity import phi
from trainer.table import EmptySide
from trainer.tree.nodes import Draft, DraftBranch
from trainer.tree.numbers import middle
from trainer.tree.splits import Split, Subset, goes_left, linear


def split_data(problem: Problem, encoding: Encoding, sums: Encoding) -> SplitData:
    """Return the shared arrays of a tree: the features of `encoding`, and those of `sums` if they differ."""
    data = _features(problem, encoding)
    if problem.source is not None:
        data = replace(data, rows_per_weight=problem.source.n / problem.n)
    return data if sums is encoding else replace(data, filled=_features(problem, sums))


def _features(problem: Problem, encoding: Encoding) -> SplitData:
    """Return the features of an encoding as `SplitData`."""
    X = encoding.matrix(problem.table)
    data = SplitData.of(X, problem.y, problem.n_classes, problem.row_weights)
    if all(f.test is not Test.VALUE or f.empty is None for f in encoding.features):
        return data
    complete = np.zeros(len(X), bool)
    empty = [problem.table.columns[f.column].missing if f.test is Test.VALUE else complete for f in encoding.features]
    return replace(data, empty=np.ascontiguousarray(empty))


def split_of_columns(node_split: NodeSplit, encoding: Encoding, sums: Encoding | None = None) -> tuple[Split, bool]:
    """Return the split of uploaded columns, and whether its children are exchanged.

    Splits on one column become thresholds or subsets of categories. `encoding`: features of splits on one feature; `sums`: those of
    sums, if they differ.
    """
    sums = encoding if sums is None else sums
    if len(node_split.features) == 1:
        feature = encoding.features[node_split.features[0]]
        if feature.test is Test.LEVEL:
            # an indicator of at most 1/2 means any other category, so exchange the sides
            return Subset(feature=feature.column, codes=(feature.level,)), True
        return feature.cut(node_split.threshold)
    terms = [sums.features[j].term for j in node_split.features]
    columns = [column for column, _ in terms]
    levels = [level for _, level in terms]
    if len(set(columns)) == 1 and all(level >= 0 for level in levels):
        # a category scores 0, a1 or a2; categories that training did not have score 0
        score = np.zeros(len(encoding.schema[columns[0]].categories))
        for level, a in zip(levels, node_split.coefficients, strict=True):
            score[level] += a
        left = score <= node_split.threshold
        if node_split.threshold >= 0.0:  # all other categories go left, so list the right side and exchange
            return Subset(feature=columns[0], codes=tuple(int(c) for c in np.flatnonzero(~left))), True
        return Subset(feature=columns[0], codes=tuple(int(c) for c in np.flatnonzero(left))), False
    fills = sums.fills(node_split.features) if node_split.fills_empty else ()
    uploaded_split, exchanged = linear(
        columns, node_split.coefficients, node_split.threshold, levels, schema=encoding.schema, fills=fills
    )
    if node_split.empty_left is None:
        return uploaded_split, exchanged
    return uploaded_split.with_empty(
        EmptySide.LEFT if node_split.empty_left != exchanged else EmptySide.RIGHT
    ), exchanged


def warm_start_splits(
    problem: Problem, data: SplitData, options: SplitOptions, sums: Encoding
) -> dict[bytes, NodeSplit]:
    """Return the warm start's splits on at most two features, by the bytes of their rows (int64).

    Splits with a child below the minimum leaf size are left out. `sums`: the features of sums.
    """
    splits: dict[bytes, NodeSplit] = {}
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
        splits[rows.tobytes()] = replace(split, value=value, bound=value)
        below = (part.left, part.right) if np.array_equal(split.left, side) else (part.right, part.left)
        open_nodes += [(below[0], rows[split.left]), (below[1], rows[~split.left])]
    return splits


def _one_feature(
    split: Split, side: BoolArray, encoding: Encoding, data: SplitData, rows: CountArray
) -> NodeSplit | None:
    """Return a threshold on one feature that separates the rows like `side`, bool (rows,), without its value; or None."""
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
                cut = _threshold_between(split, low, high)
                return NodeSplit(features=(h,), coefficients=(1.0,), threshold=cut, left=left, value=0.0, bound=0.0)
    return None


def _threshold_between(split: Split, low: float, high: float) -> float:
    """Return the threshold of the split if it lies between two values, else their middle."""
    if split.cut is not None and low <= split.cut[1] < high:
        return split.cut[1]
    return middle(low, high)


def _two_features(split: Split, side: BoolArray, sums: Encoding, data: SplitData, rows: CountArray) -> NodeSplit | None:
    """Return a sum of two features that separates the rows like `side`, bool (rows,), without its value; or None."""
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
        sides_of_empty = side[hollow] != exchanged
        # a split on one feature sends all empty cells to one side, so only a sum with fill values separates them
        if sides_of_empty.any() and not sides_of_empty.all():
            return None
        if len(sides_of_empty):
            empty_left = bool(sides_of_empty[0])
            left[hollow] = empty_left
    return NodeSplit(
        features=features,
        coefficients=coefficients,
        threshold=threshold,
        left=left,
        value=0.0,
        bound=0.0,
        empty_left=empty_left,
    )
