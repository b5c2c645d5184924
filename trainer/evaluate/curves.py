"""What a tree's leaves offer as cut-offs if there are two classes: ROC, precision and recall, calibration, Brier score.

Every leaf has a score, the share of the positive class among its training rows. A cut-off predicts positive in all leaves
whose score is at least as high, so that there are as many cut-offs as different scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.dtypes import CountArray, FloatArray


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Cut-offs from the strictest on: `score` (m,), and among the rows counted positives found `tp` and others taken `fp`.

    `positives` and `negatives` are all rows of either kind. The first entry predicts positive nowhere (score inf).
    """

    score: FloatArray
    tp: CountArray
    fp: CountArray
    positives: int
    negatives: int

    @property
    def recall(self) -> FloatArray:
        """Share of the positives found."""
        return self.tp / max(1, self.positives)

    @property
    def fall_out(self) -> FloatArray:
        """Share of the others taken for positive."""
        return self.fp / max(1, self.negatives)

    @property
    def precision(self) -> FloatArray:
        """Share of right ones among the rows predicted positive; 1 if none is."""
        taken = self.tp + self.fp
        return np.where(taken > 0, self.tp / np.maximum(1, taken), 1.0)

    @property
    def area(self) -> float | None:
        """Area under the ROC curve: the share of pairs in the right order, ties counting half; None without pairs."""
        if not self.positives or not self.negatives:
            return None
        steps = np.diff(self.fall_out) * (self.recall[1:] + self.recall[:-1]) / 2
        return float(steps.sum())


def curve(scores: FloatArray, positive: CountArray, negative: CountArray) -> Curve:
    """The curve of leaves with `scores` (leaves,) that `positive` and `negative` (leaves,) rows reach."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1) if len(ordered) else np.zeros(0, np.int64)
    tp, fp = np.cumsum(positive[order])[last], np.cumsum(negative[order])[last]
    return Curve(
        score=np.append(np.inf, ordered[last]),
        tp=np.append(0, tp),
        fp=np.append(0, fp),
        positives=int(positive.sum()),
        negatives=int(negative.sum()),
    )


def brier(scores: FloatArray, positive: CountArray, negative: CountArray) -> float | None:
    """Mean squared distance of the score from 1 for positives and from 0 for others; 0 is perfect. None without rows."""
    n = int(positive.sum() + negative.sum())
    return float((positive * (1 - scores) ** 2 + negative * scores**2).sum() / n) if n else None
