"""Compute ROC and precision-recall curves and Brier scores of two-class trees.

The score of a leaf is the share of the positive class among its training rows. A cut-off predicts positive in all leaves with at
least that score, so each distinct score is one cut-off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trainer.data.share_interval import MAX_GROUPS, RESAMPLES, Z95
from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.evaluate.intervals import Interval


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Cut-offs from the strictest on: `score`, true positives `tp` and false positives `fp`, each of shape (m,).

    `positives` and `negatives` count all rows of each kind. The first entry predicts positive nowhere (score inf).
    """

    score: FloatArray
    tp: CountArray
    fp: CountArray
    positives: int
    negatives: int

    @property
    def recall(self) -> FloatArray:
        """Share of the positives that each cut-off predicts positive."""
        return self.tp / max(1, self.positives)

    @property
    def fall_out(self) -> FloatArray:
        """Share of the negatives that each cut-off predicts positive."""
        return self.fp / max(1, self.negatives)

    @property
    def precision(self) -> FloatArray:
        """Share of positives among the rows predicted positive; 1 if there are none."""
        predicted_positive = self.tp + self.fp
        return np.where(predicted_positive > 0, self.tp / np.maximum(1, predicted_positive), 1.0)

    @property
    def area(self) -> float | None:
        """Area under the ROC curve, or None if one kind has no rows.

        It is the share of pairs of a positive and a negative in the right order; ties count half.
        """
        if not self.positives or not self.negatives:
            return None
        steps = np.diff(self.fall_out) * (self.recall[1:] + self.recall[:-1]) / 2
        return float(steps.sum())

    @property
    def area_interval(self) -> Interval | None:
        """95 % interval of the area, clipped to [0, 1] (DeLong, DeLong & Clarke-Pearson, 1988).

        None with fewer than two rows of either kind. Also None if the variance is 0, for example with all pairs in the same order:
        it says nothing about new rows.
        """
        area = self.area
        if area is None or self.positives < 2 or self.negatives < 2:
            return None
        # rows with each score, from the highest score down
        p = np.diff(self.tp)
        q = np.diff(self.fp)
        # for each score, the share of negatives that score below a positive, and of positives that score above a
        # negative
        above = 1 - (self.fp[:-1] + q / 2) / self.negatives
        below = (self.tp[:-1] + p / 2) / self.positives
        variance = (p * (above - area) ** 2).sum() / (self.positives - 1) / self.positives
        variance += (q * (below - area) ** 2).sum() / (self.negatives - 1) / self.negatives
        half = Z95 * math.sqrt(float(variance))
        return (max(0.0, area - half), min(1.0, area + half)) if half > 0 else None


def curve(scores: FloatArray, positive: CountArray, negative: CountArray) -> Curve:
    """Return the curve of leaves from their `scores` and numbers of `positive` and `negative` rows, each (leaves,)."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1) if len(ordered) else np.zeros(0, np.int64)
    tp = np.cumsum(positive[order])[last]
    fp = np.cumsum(negative[order])[last]
    return Curve(
        score=np.append(np.inf, ordered[last]),
        tp=np.append(0, tp),
        fp=np.append(0, fp),
        positives=int(positive.sum()),
        negatives=int(negative.sum()),
    )


def drawn_area_interval(
    scores: FloatArray, positive: BoolArray, weights: CountArray | None, groups: np.ndarray | None
) -> Interval | None:
    """Return the 95 % interval of the area under the ROC curve over rows with weights or groups.

    Parameters
    ----------
    scores : float64 array of shape (rows,)
        The score of each row.
    positive : bool array of shape (rows,)
        Which rows are positives.
    weights : int64 array of shape (rows,), optional
        How much each row counts.
    groups : int64 array of shape (rows,), optional
        The group of each row; None: each row is on its own.

    Returns
    -------
    tuple of two floats, or None
        None for fewer than two groups, and where all pairs are in the same order.

    Notes
    -----
    Percentiles of the area over `RESAMPLES` draws of whole groups; above `MAX_GROUPS` groups, of random batches of them.
    """
    units = np.arange(len(scores)) if groups is None else np.unique(groups, return_inverse=True)[1]
    count = int(units.max(initial=-1)) + 1
    rng = np.random.default_rng(0)
    if count > MAX_GROUPS:
        units = (rng.permutation(count) % MAX_GROUPS)[units]
        count = MAX_GROUPS
    if count < 2:
        return None
    row_weights = np.ones(len(scores)) if weights is None else weights.astype(np.float64)
    levels, place = np.unique(-scores, return_inverse=True)  # negate the scores, so that the highest comes first
    sums = np.zeros((2, count, len(levels)))
    np.add.at(sums, (positive.astype(np.int64), units, place), row_weights)
    draws = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES).astype(np.float64)
    others = draws @ sums[0]
    positives = draws @ sums[1]
    pairs = others.sum(axis=1) * positives.sum(axis=1)
    above = others.sum(axis=1, keepdims=True) - np.cumsum(others, axis=1) + others / 2
    areas = (positives * above).sum(axis=1)[pairs > 0] / pairs[pairs > 0]
    if not len(areas) or np.ptp(areas) == 0:
        return None
    low, high = np.quantile(areas, (0.025, 0.975))
    return float(low), float(high)


def brier(scores: FloatArray, positive: CountArray, negative: CountArray) -> float | None:
    """Return the mean squared distance of the score from 1 for positives and 0 for negatives; None without rows."""
    n = int(positive.sum() + negative.sum())
    return float((positive * (1 - scores) ** 2 + negative * scores**2).sum() / n) if n else None
