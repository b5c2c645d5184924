"""Splits on encoded features as splits of the uploaded columns."""

from __future__ import annotations

import numpy as np

from trainer.data.encoding import Encoding, Test
from trainer.search.bivariate import NodeSplit
from trainer.tree.splits import Split, Subset, Threshold, linear


def uploaded(found: NodeSplit, encoding: Encoding) -> tuple[Split, bool]:
    """The split, and whether its sides are exchanged; thresholds for one column, subsets for categories of one column."""
    features = [encoding.features[j] for j in found.features]
    if len(features) == 1:
        feature = features[0]
        if feature.test is Test.LEVEL:
            # an indicator at most 1/2 is any other category
            return Subset(feature=feature.column, codes=(feature.level,)), True
        return Threshold(feature=feature.column, threshold=found.threshold), False
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
