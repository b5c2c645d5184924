"""Number all thresholds as questions; create their splits on access."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from trainer.data.encoding import EncodedFeature, Test
from trainer.data.problem import Problem
from trainer.dtypes import FloatArray
from trainer.editing.questions import LazySplits, Questions
from trainer.families.numeric.search import threshold_after
from trainer.tree.splits import Split, goes_left


class ThresholdQuestions(Questions):
    """Questions of all thresholds, on the rows `origin` that have a weight.

    Feature f has `sizes[f]` questions from `starts[f]` on, one for each of its values except the last. A feature with empty cells above
    all values has one question less: the split on empty cells is the first question of the feature with empty cells below. Yes is the
    left side of the model file: small values, and the rows of a category.
    """

    def __init__(self, problem: Problem, origin: np.ndarray) -> None:
        self.problem = problem
        self.origin = origin
        self.features = problem.numeric.features
        X = problem.numeric.matrix(problem.table)[origin]
        self.levels: list[FloatArray] = [np.unique(X[:, f]) for f in range(X.shape[1])]
        self.sizes = [self._size(f, levels) for f, levels in zip(self.features, self.levels, strict=True)]
        self.starts = np.cumsum([0, *self.sizes])
        self.encoded = int(self.starts[-1])
        self.columns = [
            f.column for k, f in enumerate(self.features) for _ in range(self.starts[k + 1] - self.starts[k])
        ]
        self.flipped = [f.test is not Test.VALUE for f in self.features]  # if flipped, yes is the larger value
        self.held: list[Split] = []
        self._twins: set[int] = set()
        self.split_of = cache(self._split_of)
        self.splits: Sequence[Split] = LazySplits(self.encoded, self.split_of, self.held)
        self._values = cache(self._present_values)
        some = np.diff(self.starts) > 0
        levels = [k for k, f in enumerate(self.features) if f.test is Test.LEVEL and some[k]]
        self.mirrors = self.add_mirrors([int(self.starts[k]) for k in levels])

    @staticmethod
    def _size(feature: EncodedFeature, levels: FloatArray) -> int:
        above = feature.empty is not None and feature.empty > feature.high and levels[-1] == feature.empty
        return max(0, len(levels) - 1 - above)

    def _present_values(self, column: int) -> FloatArray:
        values = self.problem.matrix[:, column]
        return np.unique(values[~np.isnan(values)]).astype(np.float64)

    def locate(self, question: int) -> tuple[int, int]:
        """Return the feature of a question of the encoding, and the largest rank of its lower child."""
        f = int(np.searchsorted(self.starts, question, side="right")) - 1
        return f, question - int(self.starts[f])

    def _split_of(self, question: int) -> Split:
        f, rank = self.locate(question)
        feature = self.features[f]
        if feature.test is not Test.VALUE:
            return feature.split()[0]
        split, _ = feature.cut(threshold_after(self.levels[f], rank))
        short, _ = split.shorten(self._values, self.problem.matrix, np.arange(len(self.problem.matrix)))
        same = np.array_equal(goes_left(short, self.problem.matrix), goes_left(split, self.problem.matrix))
        return short if same else split

    def answers(self, question: int) -> np.ndarray:
        return goes_left(self.splits[question], self.problem.matrix)

    def find(self, split: Split) -> int:
        """Return the number of a question; add a new split as a held question.

        A held threshold separates the rows like one of the encoding, so it is not foreign.
        """
        cut = split.cut
        for f, feature in enumerate(self.features):
            if feature.column != split.used[0] or not self.sizes[f]:
                continue  # a constant feature has no question
            if feature.test is Test.VALUE:
                rank = 0 if cut is None else int(np.searchsorted(self.levels[f], cut[1], side="right")) - 1
                if 0 <= rank < self.sizes[f] and self.split_of(int(self.starts[f]) + rank) == split:
                    return int(self.starts[f]) + rank
            elif feature.split()[0] == split:
                return int(self.starts[f])
        if split not in self.held:
            self.held.append(split)
            self.columns.append(split.used[0])
            if cut is not None:
                self._twins.add(self.encoded + len(self.held) - 1)
        return self.encoded + self.held.index(split)

    def is_foreign(self, question: int) -> bool:
        return super().is_foreign(question) and question not in self._twins

    def of_column(self, column: int) -> list[int]:
        return [
            q
            for f, feature in enumerate(self.features)
            if feature.column == column
            for q in range(int(self.starts[f]), int(self.starts[f + 1]))
        ]
