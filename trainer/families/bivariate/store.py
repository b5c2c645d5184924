"""Convert a partition of rows to a line in the columns' units."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.bivariate.kernels.line import widest_slope
from trainer.families.bivariate.kernels.points import Points
from trainer.families.bivariate.pair import PairRule
from trainer.families.bivariate.scale import NodePoints
from trainer.growing.impurity import MEASURES
from trainer.growing.node_split import NodeSplit, SplitData, class_counts
from trainer.kernels.impurity import phi
from trainer.tree.numbers import middle

TILT_SHARE = 0.25  # a line is tilted by this share of the widest tilt that still separates the sides


def widest_split(
    data: SplitData,
    rows: CountArray,
    points: NodePoints,
    pair: tuple[int, int],
    distinct: Points,
    rule: PairRule,
    measure: str,
    *,
    side: int = 0,
) -> NodeSplit | None:
    """Return the widest line for a rule's partition, checked row by row; None if none separates in double precision.

    `distinct` are the pair's distinct points, often far fewer than rows. `side` is the side of rows with an empty cell: 1 left, 2 right,
    0 if there are none.
    """
    i, j = pair
    zi = points.values[i]
    zj = points.values[j]
    present = np.ones(len(rows), bool) if side == 0 else ~(points.empty[i] | points.empty[j])
    if side:
        zi = zi[present]
        zj = zj[present]
    left = rule.left(distinct, zi, zj)
    line = _Line(
        data=data,
        rows=rows,
        columns=(points.features[i], points.features[j]),
        measure=measure,
        present=present,
        first_left=bool(left[0]),
        empty_left=None if side == 0 else side == 1,
    )
    if left.all() or not left.any():
        return line.split_empty()
    return _separating_split(line, distinct, rule, (zi, zj), left)


def _separating_split(
    line: _Line, distinct: Points, rule: PairRule, scaled: tuple[FloatArray, FloatArray], left: BoolArray
) -> NodeSplit | None:
    """Return the widest line between `left` and the other present rows with these scaled coordinates."""
    zi, zj = scaled
    above = rule.left(distinct, distinct.u, distinct.v)
    orders = (0, 1) if rule.order == 0 else (1, 0)
    for guess in (True, False):
        for order in orders:
            for flipped in (False, True):
                u, v = (zi, zj) if order == 0 else (zj, zi)
                du, dv = (distinct.u, distinct.v) if order == 0 else (distinct.v, distinct.u)
                is_rule_line = guess and rule.pivot is None and order == rule.order and not flipped
                if guess and not is_rule_line:
                    continue
                side, apart = (~left, ~above) if flipped else (left, above)
                slope, gap = widest_slope(du, dv, apart, rule.a if is_rule_line else 0.0)
                if is_rule_line and abs(slope) > 1 + 1e-6:
                    # in the other order the coordinates are exchanged, which may admit a wider line
                    steep, wider = widest_slope(dv, du, apart if slope < 0 else ~apart, 1 / slope)
                    other = side if slope < 0 else ~side
                    split = line.split(v, u, 1 - order, steep, other) if wider > gap else None
                    if split is not None:
                        return split
                slopes = [slope, rule.a] if is_rule_line else [slope]
                if line.empty_left is not None:
                    slopes += _tilts(u, v, side)
                for a in slopes if gap > 0 or is_rule_line else []:
                    split = line.split(u, v, order, a, side)
                    if split is not None:
                        return split
    return None


def _tilts(u: FloatArray, v: FloatArray, side: BoolArray) -> list[float]:
    """Return slopes near 0 if v alone separates the sides.

    If some rows have empty cells, the split must use both columns, so its slope must not be 0.
    """
    gap = float(v[side].min() - v[~side].max())
    if not gap > 0:
        return []
    span = float(u.max() - u.min())
    tilt = TILT_SHARE * gap / span if span > 0 else 1.0
    return [tilt, -tilt]


@dataclass(frozen=True, kw_only=True)
class _Line:
    """The rows of a node on two columns, in uploaded units.

    `present`, bool (rows,), marks rows without an empty cell. `empty_left` states whether the rule sends the others
    left; None without any. `first_left` states whether it sends the first present row left.
    """

    data: SplitData
    rows: CountArray
    columns: tuple[int, int]
    measure: str
    present: BoolArray
    first_left: bool
    empty_left: bool | None

    def split(self, u: FloatArray, v: FloatArray, order: int, a: float, side: BoolArray) -> NodeSplit | None:
        """Return the split in uploaded units for a line of slope `a` in scaled units; None if it does not separate the sides."""
        p, q = self.columns if order == 0 else self.columns[::-1]
        first, second = self._values(p, q)
        # a line in the units of huge columns may overflow, and is rejected below
        with np.errstate(over="ignore", invalid="ignore"):
            slope = a * _unit(second, v) / _unit(first, u)
            coefficients = (slope, -1.0)
            # add in the same order as the prediction kernel, so that rounding cannot move a row
            score = coefficients[0] * first + coefficients[1] * second
        if slope == 0.0 or not np.isfinite(score).all() or side.all() or not side.any():
            return None
        low = float(score[side].max())
        high = float(score[~side].min())
        if not low < high:
            return None
        cut = middle(low, high)
        return self._node_split((p, q), coefficients, cut, score <= cut)

    def split_empty(self) -> NodeSplit | None:
        """Return the split between rows with an empty cell and all others; None if there are none or numbers overflow."""
        first, second = self._values(*self.columns)
        with np.errstate(over="ignore", invalid="ignore"):
            score = 1.0 * first + 1.0 * second
            span = float(score.max() - score.min())
            cut = float(score.max()) + (span if span > 0 else 1.0)
        if self.empty_left is None or not math.isfinite(cut) or not (score <= cut).all():
            return None
        return self._node_split(self.columns, (1.0, 1.0), cut, np.ones(len(score), bool))

    def _values(self, p: int, q: int) -> tuple[FloatArray, FloatArray]:
        """Return two columns of the present rows, float64."""
        rows = self.rows[self.present]
        return self.data.X[rows, p], self.data.X[rows, q]

    def _node_split(
        self, features: tuple[int, int], coefficients: tuple[float, float], cut: float, low: BoolArray
    ) -> NodeSplit:
        """Return the split that sends the present rows `low` left."""
        left = np.zeros(len(self.rows), bool)
        left[self.present] = low
        empty_left = self.empty_left
        if empty_left is not None:
            empty_left = empty_left == (bool(low[0]) == self.first_left)
            left[~self.present] = empty_left
        counts = class_counts(self.data, self.rows[left])
        total = class_counts(self.data, self.rows)
        measure = MEASURES[self.measure]
        value = float(phi(measure, counts) + phi(measure, total - counts))
        return NodeSplit(
            features=features,
            coefficients=coefficients,
            threshold=cut,
            left=left,
            value=value,
            bound=value,
            empty_left=empty_left,
        )


def _unit(raw: FloatArray, scaled: FloatArray) -> float:
    """Return the size of a scaled unit in uploaded units; 1 for a constant."""
    span = float(scaled.max() - scaled.min())
    return float((raw.max() - raw.min()) / span) if span > 0 else 1.0
