"""From a partition of a node's rows to the line that is stored: the widest one, in the columns' own units, checked row by row."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.bivariate.kernels.line import widest_slope
from trainer.families.bivariate.kernels.points import Points
from trainer.families.bivariate.pair import PairRule
from trainer.families.bivariate.scale import NodePoints
from trainer.growing.node_split import NodeSplit, SplitData, class_counts
from trainer.growing.options import MEASURES
from trainer.kernels.impurity import phi
from trainer.tree.numbers import middle


def stored(
    data: SplitData, rows: CountArray, points: NodePoints, pair: tuple[int, int], distinct: Points, rule: PairRule, measure: str
) -> NodeSplit | None:  # fmt: skip
    """The widest line of a rule's partition of a pair of usable features; None if no line separates in double precision.

    `distinct` are the pair's distinct points; there may be far fewer of them than rows.
    """
    i, j = pair
    f = points.features[i]
    g = points.features[j]
    zi = points.values[i]
    zj = points.values[j]
    left, above = rule.left(distinct, zi, zj), rule.left(distinct, distinct.u, distinct.v)
    line = _Line(data=data, rows=rows, columns=(f, g), measure=measure)
    orders = (0, 1) if rule.order == 0 else (1, 0)
    for guess in (True, False):
        for order in orders:
            for flipped in (False, True):
                u, v = (zi, zj) if order == 0 else (zj, zi)
                du, dv = (distinct.u, distinct.v) if order == 0 else (distinct.v, distinct.u)
                own = guess and rule.pivot is None and order == rule.order and not flipped
                if guess and not own:
                    continue
                side, apart = (~left, ~above) if flipped else (left, above)
                slope, gap = widest_slope(du, dv, apart, rule.a if own else 0.0)
                if own and abs(slope) > 1 + 1e-6:
                    # the widest line may be steeper than this order can say
                    steep, wider = widest_slope(dv, du, apart if slope < 0 else ~apart, 1 / slope)
                    other = side if slope < 0 else ~side
                    split = line.split(v, u, 1 - order, steep, other) if wider > gap else None
                    if split is not None:
                        return split
                slopes = [slope, rule.a] if own else [slope]
                for a in slopes if gap > 0 or own else []:
                    split = line.split(u, v, order, a, side)
                    if split is not None:
                        return split
    return None


@dataclass(frozen=True, kw_only=True)
class _Line:
    """The rows of a node on two columns, in uploaded units."""

    data: SplitData
    rows: CountArray
    columns: tuple[int, int]
    measure: str

    def split(self, u: FloatArray, v: FloatArray, order: int, a: float, side: BoolArray) -> NodeSplit | None:
        """The line of slope a in the scaled units of u and v as a split of the uploaded columns, if it separates the two sides."""
        p, q = self.columns if order == 0 else self.columns[::-1]
        first = self.data.X[self.rows, p]
        second = self.data.X[self.rows, q]
        with np.errstate(over="ignore", invalid="ignore"):  # huge columns: no line in their own units
            slope = a * _unit(second, v) / _unit(first, u)
            features = (p, q)
            coefficients = (slope, -1.0)
            # the sum as the prediction kernel takes it
            score = coefficients[0] * first + coefficients[1] * second
        if slope == 0.0 or not np.isfinite(score).all() or side.all() or not side.any():
            return None
        low = float(score[side].max())
        high = float(score[~side].min())
        if not low < high:
            return None
        cut = middle(low, high)
        chosen = score <= cut
        counts = class_counts(self.data, self.rows[chosen])
        total = class_counts(self.data, self.rows)
        measure = MEASURES[self.measure]
        value = float(phi(measure, counts) + phi(measure, total - counts))
        return NodeSplit(
            features=features, coefficients=coefficients, threshold=cut, left=chosen, value=value, bound=value
        )


def _unit(raw: FloatArray, scaled: FloatArray) -> float:
    """How much of the uploaded unit one scaled unit is."""
    span = float(scaled.max() - scaled.min())
    return float((raw.max() - raw.min()) / span) if span > 0 else math.inf
