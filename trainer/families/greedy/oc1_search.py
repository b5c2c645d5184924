"""Search the oblique split of OC1 for one node.

Murthy, Kasif & Salzberg (1994): starts, cycles and random jumps. The best threshold is the first start. Only a strictly better
hyperplane replaces it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.greedy.kernels.oc1 import HyperplaneRows, climb
from trainer.growing.impurity import MEASURES, SplitOptions, impurity
from trainer.growing.node_split import NodeSplit, SplitData, class_counts, univariate_split
from trainer.tree.numbers import middle

# limit on cycles without an improvement; the stagnation probability is used up after ten acceptances
MAX_IDLE_CYCLES = 30
MAX_EXPONENT = 400  # columns with a larger exponent of two are rescaled, so that squares stay finite
CYCLES = {"sequential": 0, "best": 1, "random": 2}


@dataclass(frozen=True, kw_only=True)
class OC1Options:
    """Impurity, minimum leaf size, random starts, random jumps at a local optimum, and the kind of cycle."""

    measure: str = "gini"
    min_leaf: int = 1
    restarts: int = 20
    jumps: int = 5
    cycle: str = "sequential"


def oc1_split(
    data: SplitData, rows: CountArray, options: OC1Options, *, seed: int, flag: CountArray
) -> NodeSplit | None:
    """Return the best hyperplane or threshold for the rows; None if no threshold is possible.

    If flag[0] is not 0, the search ends early with the best split so far.
    """
    axis_options = SplitOptions(measure=options.measure, min_leaf=options.min_leaf)
    axis = univariate_split(data, rows, axis_options)
    if axis is None:
        return None
    axis = replace(axis, bound=None)
    if flag[0] != 0:  # after a stop, copying a large table would take too long
        return axis
    X = data.sums.X[rows]
    usable = np.flatnonzero(X.min(axis=0) < X.max(axis=0))
    if axis.value <= 0 or len(usable) < 2 or len(rows) < 2 * X.shape[1]:
        return axis
    power = _column_powers(X[:, usable])
    near = np.ldexp(X[:, usable], -power)
    centre = near.mean(axis=0)
    scale = near.std(axis=0)
    scale[scale == 0] = 1.0
    flat = np.ascontiguousarray(np.vstack([((near - centre) / scale).T, np.ones(len(rows))]))
    search = _Search(data=data, rows=rows, options=options, flat=flat, flag=flag, seed=seed)
    best = axis.value
    coefficients = None
    # start the first climb at the best threshold among the features that hyperplanes use
    first = axis if data.filled is None else univariate_split(data.filled, rows, axis_options)
    for start in range(options.restarts + 1):
        if flag[0] != 0:
            break
        a = search.random.uniform(-1, 1, len(flat))
        if start == 0 and first is not None:
            h = int(np.flatnonzero(usable == first.features[0])[0])
            a[:] = 0
            a[h] = 1.0
            a[-1] = -(np.ldexp(first.threshold, -power[h]) - centre[h]) / scale[h]
        value = search.climb(a)
        if value < best - search.tol:
            best = value
            coefficients = a.copy()
    if coefficients is None:
        return axis
    with np.errstate(over="ignore"):  # a coefficient overflows if the range of its column is almost zero
        slopes = np.ldexp(coefficients[:-1] / scale, -power)
    if not np.isfinite(slopes).all():
        return axis
    oblique = _make_split(data, rows, usable, slopes, flat.T @ coefficients > 0, options)
    return oblique if oblique is not None and oblique.value < axis.value - search.tol else axis


@dataclass(kw_only=True)
class _Search:
    """Arrays of a node for the climbs from all starts."""

    data: SplitData
    rows: CountArray
    options: OC1Options
    flat: FloatArray
    flag: CountArray
    seed: int

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.y = self.data.y[self.rows].astype(np.int64)
        self.weight = self.data.weight[self.rows]
        self.total = class_counts(self.data, self.rows)
        self.tol = 1e-9 * float(self.total.sum())

    def climb(self, a: FloatArray) -> float:
        """Improve `a` in place until neither cycles nor jumps help; return its impurity in rows."""
        options = self.options
        rows = HyperplaneRows(self.flat, self.y, self.weight, self.total, MEASURES[options.measure], options.min_leaf)
        return float(climb(rows, a, CYCLES[options.cycle], options.jumps, MAX_IDLE_CYCLES, self.random, self.flag))


def _column_powers(X: FloatArray) -> CountArray:
    """Return the exponent of two to divide each column (n, p) by, int64 (p,), so that squares stay finite; usually 0."""
    exponents = np.frexp(np.abs(X).max(axis=0))[1].astype(np.int64)
    return np.where(np.abs(exponents) > MAX_EXPONENT, exponents, 0)


def _make_split(
    data: SplitData, rows: CountArray, usable: CountArray, slopes: FloatArray, positive: BoolArray, options: OC1Options
) -> NodeSplit | None:
    """Return the hyperplane in uploaded units; None if it does not separate both sides after rounding."""
    used_columns = np.flatnonzero(slopes)
    if len(used_columns) < 2 or not positive.any() or positive.all():
        return None
    score = np.zeros(len(rows))
    for h in used_columns:  # add in the same order as the prediction kernel, so that rounding cannot move a row
        score = score + slopes[h] * data.sums.X[rows, usable[h]]
    low = float(score[~positive].max())
    high = float(score[positive].min())
    if not low < high:
        return None
    cut = middle(low, high)
    left = score <= cut
    measure = MEASURES[options.measure]
    counts = class_counts(data, rows[left])
    value = impurity(measure, counts) + impurity(measure, class_counts(data, rows) - counts)
    return NodeSplit(
        features=tuple(int(usable[h]) for h in used_columns),
        coefficients=tuple(float(slopes[h]) for h in used_columns),
        threshold=cut,
        left=left,
        value=value,
        bound=None,
        fills_empty=True,
    )
