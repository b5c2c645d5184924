"""Define splits of greedy methods, their data, and the best threshold."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trainer.dtypes import BoolArray, CodeArray, CountArray, FloatArray
from trainer.growing.coordinates import codes_of, is_exact, whole_numbers
from trainer.growing.impurity import MEASURES, SplitOptions
from trainer.kernels.univariate import CutColumns, best_thresholds
from trainer.tree.numbers import middle


@dataclass(frozen=True, kw_only=True)
class NodeSplit:
    """The split of a node: left iff a1 x1 + a2 x2 <= threshold (`features` has one or two entries), and its proof.

    A split on one feature refers to the features of the data, a sum to those of `data.sums`. `empty_left`: whether rows
    with an empty
    cell of a sum go left; None if no cell is empty, or if the sum `fills_empty` cells. `value` is Phi(left) +
    Phi(right) in rows, `bound`
    a lower bound on it over all splits with the allowed leaf size (None if the method proves nothing).
    """

    features: tuple[int, ...]
    coefficients: tuple[float, ...]
    threshold: float
    left: BoolArray
    value: float
    bound: float | None
    empty_left: bool | None = None
    fills_empty: bool = False
    boxes: int = 0
    classified: int = 0
    swept: int = 0


@dataclass(frozen=True, kw_only=True)
class SplitData:
    """The arrays that all nodes of a tree share.

    X : float64 (n, p), features as uploaded.
    whole : float64 (n, p), features scaled to integers where possible.
    codes, levels : int32 (p, n) ascending codes of the values, and int64 (p,) exclusive upper bounds.
    y, weight, classes : int32 (n,) class codes, int64 (n,) weights, number of classes.
    empty : bool (p, n), True where X fills an empty cell; without rows if no cell is empty.
    filled : the features of sums, if they differ from these.
    rows_per_weight : rows of a unit of weight, 1 unless the rows are weighted copies.
    """

    X: FloatArray
    whole: FloatArray
    codes: CodeArray
    levels: CountArray
    y: CodeArray
    weight: CountArray
    classes: int
    empty: BoolArray = field(default_factory=lambda: np.zeros((0, 0), bool))
    filled: SplitData | None = None
    rows_per_weight: float = 1.0

    @property
    def sums(self) -> SplitData:
        """The features of splits on sums of several columns."""
        return self if self.filled is None else self.filled

    @property
    def exact(self) -> bool:
        """Whether products of two differences of values are exact, so that lines arbitrarily near to each other differ."""
        return is_exact(self.whole)

    @staticmethod
    def of(X: FloatArray, y: CodeArray, classes: int, weight: CountArray | None = None) -> SplitData:
        """Prepare the arrays; X float64 (n, p), y codes (n,), integer weights (n,)."""
        X = np.ascontiguousarray(X, np.float64)
        whole = whole_numbers(X)
        codes, levels = codes_of(whole)
        return SplitData(
            X=X,
            whole=whole,
            codes=codes,
            levels=levels,
            y=np.ascontiguousarray(y, np.int32),
            weight=np.ones(len(X), np.int64) if weight is None else np.ascontiguousarray(weight, np.int64),
            classes=classes,
        )


def class_counts(data: SplitData, rows: CountArray) -> CountArray:
    """Return the weight of each class among the rows, int64 (classes,)."""
    counts = np.zeros(data.classes, np.int64)
    np.add.at(counts, data.y[rows], data.weight[rows])
    return counts


def univariate_split(data: SplitData, rows: CountArray, options: SplitOptions) -> NodeSplit | None:
    """Return the best threshold over all features (ties: first feature), or None if no feature allows one."""
    out = np.empty((data.X.shape[1], 3))
    measure = MEASURES[options.measure]
    columns = CutColumns(data.X, data.codes, data.levels)
    best_thresholds(columns, rows, data.y, data.weight, data.classes, measure, options.min_leaf, out)
    if not len(out) or not np.isfinite(out[:, 0].min()):
        return None
    tol = 1e-12 * int(data.weight[rows].sum())
    j = int(np.flatnonzero(out[:, 0] <= out[:, 0].min() + tol)[0])
    value, below, above = (float(x) for x in out[j])
    cut = middle(below, above)
    left = data.X[rows, j] <= cut
    return NodeSplit(features=(j,), coefficients=(1.0,), threshold=cut, left=left, value=value, bound=value)
