"""From a partition of a node's rows to the line that is stored: the widest one, in the columns' own units, checked row by row."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.kernels.bivariate_line import widest_slope
from trainer.kernels.impurity import phi
from trainer.search.bivariate_pair import MEASURES, Rule
from trainer.search.bivariate_scale import NodePoints
from trainer.search.node_split import NodeSplit, SplitData, between, class_counts


def stored(
    data: SplitData, rows: CountArray, points: NodePoints, pair: tuple[int, int], rule: Rule, left: BoolArray, measure: str
) -> NodeSplit | None:  # fmt: skip
    """The widest line of the partition `left` of a pair of usable features; None where no line separates in double precision."""
    i, j = pair
    f, g = points.features[i], points.features[j]
    zi, zj = points.values[i], points.values[j]
    line = _Line(data=data, rows=rows, columns=(f, g), measure=measure)
    orders = (0, 1) if rule.order == 0 else (1, 0)
    for guess in (True, False):
        for order in orders:
            for flipped in (False, True):
                u, v = (zi, zj) if order == 0 else (zj, zi)
                own = guess and rule.pivot is None and order == rule.order and not flipped
                if guess and not own:
                    continue
                side = ~left if flipped else left
                slope, gap = widest_slope(u, v, side, rule.a if own else 0.0)
                if own and abs(slope) > 1 + 1e-6:
                    # the widest line may be steeper than this order can say
                    other = side if slope < 0 else ~side
                    steep, wider = widest_slope(v, u, other, 1 / slope)
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
        first, second = self.data.X[self.rows, p], self.data.X[self.rows, q]
        slope = a * _unit(second, v) / _unit(first, u)
        if slope == 0.0:
            return None
        features, coefficients = (p, q), (slope, -1.0)
        # the sum as the prediction kernel takes it
        score = coefficients[0] * first + coefficients[1] * second
        low, high = float(score[side].max()), float(score[~side].min())
        if not low < high:
            return None
        cut = between(low, high)
        chosen = score <= cut
        counts, total = class_counts(self.data, self.rows[chosen]), class_counts(self.data, self.rows)
        measure = MEASURES[self.measure]
        value = float(phi(measure, counts) + phi(measure, total - counts))
        return NodeSplit(
            features=features, coefficients=coefficients, threshold=cut, left=chosen, value=value, bound=value
        )


def _unit(raw: FloatArray, scaled: FloatArray) -> float:
    """How much of the uploaded unit one scaled unit is."""
    return float((raw.max() - raw.min()) / (scaled.max() - scaled.min()))
