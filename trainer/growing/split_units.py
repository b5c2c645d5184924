"""Splits on encoded features as splits of the uploaded columns, and back."""

from __future__ import annotations

import numpy as np

from trainer.data.encoding import Encoding, Test
from trainer.data.problem import Problem
from trainer.dtypes import CountArray
from trainer.growing.node_split import NodeSplit, SplitData, class_counts
from trainer.growing.options import MEASURES, SplitOptions
from trainer.kernels.impurity import phi
from trainer.tree.nodes import Draft, DraftBranch
from trainer.tree.splits import Split, Subset, linear


def uploaded(found: NodeSplit, encoding: Encoding) -> tuple[Split, bool]:
    """The split, and whether its sides are exchanged; thresholds for one column, subsets for categories of one column."""
    features = [encoding.features[j] for j in found.features]
    if len(features) == 1:
        feature = features[0]
        if feature.test is Test.LEVEL:
            # an indicator at most 1/2 is any other category
            return Subset(feature=feature.column, codes=(feature.level,)), True
        return feature.cut(found.threshold)
    columns = [f.column for f in features]
    levels = [f.level if f.test is Test.LEVEL else -1 for f in features]
    if len(set(columns)) == 1 and all(level >= 0 for level in levels):
        # all categories that the training rows have score 0, a1 or a2; others score 0 as well
        score = np.zeros(len(encoding.schema[columns[0]].categories))
        for level, a in zip(levels, found.coefficients, strict=True):
            score[level] += a
        left = score <= found.threshold
        if found.threshold >= 0.0:  # "the rest" belongs to the left: list the right side and exchange
            return Subset(feature=columns[0], codes=tuple(int(c) for c in np.flatnonzero(~left))), True
        return Subset(feature=columns[0], codes=tuple(int(c) for c in np.flatnonzero(left))), False
    return linear(columns, found.coefficients, found.threshold, levels, schema=encoding.schema)


def known_splits(problem: Problem, data: SplitData, options: SplitOptions) -> dict[bytes, NodeSplit]:
    """The splits of the problem's warm start on at most two features, by the bytes of the rows (int64) that reach each.

    Splits that leave a side lighter than the smallest leaf are not among them.
    """
    known: dict[bytes, NodeSplit] = {}
    open_nodes: list[tuple[Draft | None, CountArray]] = [(problem.warm_start, np.arange(len(data.X)))]
    for part, rows in open_nodes:
        terms = _terms(part.split, problem.numeric) if isinstance(part, DraftBranch) else None
        if terms is None or not isinstance(part, DraftBranch):
            continue
        features, coefficients, threshold, exchanged = terms
        score = np.zeros(len(rows))
        for j, a in zip(features, coefficients, strict=True):
            score = score + a * data.X[rows, j]
        left = score <= threshold
        low = class_counts(data, rows[left])
        high = class_counts(data, rows[~left])
        if min(low.sum(), high.sum()) < max(1, options.min_leaf):
            continue
        measure = MEASURES[options.measure]
        value = float(phi(measure, low) + phi(measure, high))
        known[rows.tobytes()] = NodeSplit(
            features=features, coefficients=coefficients, threshold=threshold, left=left, value=value, bound=value
        )
        below = (part.right, part.left) if exchanged else (part.left, part.right)
        open_nodes += [(below[0], rows[left]), (below[1], rows[~left])]
    return known


def _terms(split: Split, encoding: Encoding) -> tuple[tuple[int, ...], tuple[float, ...], float, bool] | None:
    """Features, coefficients and threshold of a split, and whether its sides are exchanged; None if it needs over two features."""
    index = {(f.column, f.level if f.test is Test.LEVEL else -1): h for h, f in enumerate(encoding.features)}
    plane = split.plane()
    if plane is None:
        return None
    terms, threshold, exchanged = plane
    wanted = [(column, level) for column, level, _ in terms]
    coefficients = tuple(a for _, _, a in terms)
    if not 1 <= len(wanted) <= 2 or any(term not in index for term in wanted):
        return None
    return tuple(index[term] for term in wanted), coefficients, threshold, exchanged
