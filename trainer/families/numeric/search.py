"""Search exactly over all thresholds of numeric features, height by height."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.dtypes import BoolArray, CodeArray, CountArray, FloatArray
from trainer.errors import DataError
from trainer.families.numeric.intervals import NodeResult, NumericSearch, TimeOver, Visits
from trainer.families.numeric.paths import PathRules, PathSearch
from trainer.families.numeric.sized import SizedSearch
from trainer.solver_common.binary_problem import SearchLimits

# (feature, threshold, subtree of x <= threshold, the other subtree); None is a leaf
NumericShape = tuple[int, float, Any, Any] | None
INFINITE = 1 << 60
MOST_KEYS = 1 << 62
MOST_WEIGHT = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class NumericProblem:
    """Rows over numeric features, and limits of the trees over them.

    A tree costs its errors, `leaf_cost` for every leaf, and the prices of `rules`.

    Parameters
    ----------
    X : float64 array of shape (n, F)
        Features without missing values.
    y : int array of shape (n,)
        Class codes below `n_classes`.
    n_classes : int
        Number of classes.
    depth : int
        Largest depth.
    leaf_cost : Fraction
        Price of a leaf, in rows.
    weights : int array of shape (n,), optional
        Weights of the rows.
    rules : PathRules, optional
        Prices of columns, and pairs of columns that no path tests.
    allowed : bool array of shape (F,), optional
        Features that may be tested.
    min_leaf : int
        Least weight of a leaf in a tree of several leaves; must be 1 with `rules`.
    """

    X: FloatArray
    y: CodeArray
    _: KW_ONLY
    n_classes: int
    depth: int
    leaf_cost: Fraction = Fraction(0)
    weights: CountArray | None = None
    rules: PathRules | None = None
    allowed: BoolArray | None = None
    min_leaf: int = 1


@dataclass(frozen=True)
class PreparedSearch:
    """A search that has ended, with the data for a proof of its bound: rows in the order of each column, and integer costs."""

    search: NumericSearch
    order: np.ndarray
    scale: int  # integer cost of 1/Q of a row
    lower: int  # lower bound in integer costs
    starts: np.ndarray  # int64 (searched features,): number of the first threshold of each, counted over all features
    visits: Visits | None = None  # visits that prove the bound; None if the search did not store them


@dataclass(frozen=True, kw_only=True)
class NumericResult:
    """The best tree, its cost in rows, and a lower bound on all trees of the depth."""

    shape: NumericShape
    cost: Fraction
    bound: Fraction
    nodes: int  # number of searched subtrees of depth two or more
    prepared: PreparedSearch = field(repr=False, compare=False)

    @property
    def optimal(self) -> bool:
        return self.bound >= self.cost


def solve_numeric(
    problem: NumericProblem,
    limits: SearchLimits | None = None,
    *,
    tolerance: Fraction = Fraction(0),
    report: Callable[[Fraction, Fraction, NumericShape], None] | None = None,
) -> NumericResult:
    """Find a tree over all thresholds that minimises errors + leaf_cost * leaves, and prove it.

    Parameters
    ----------
    problem : NumericProblem
    limits : SearchLimits, optional
        Its `threads` are not used.
    tolerance : Fraction
        In rows. Trees that are better by at most this are ignored, so the bound may be lower than the cost by as much.
    report : callable, optional
        Called with cost and bound in rows and a better tree.

    Returns
    -------
    NumericResult
        If stopped early, the incumbent and a valid lower bound.

    Raises
    ------
    DataError
        The weights add up to 2^31 or more, or the leaf penalty or a price has too many digits.
    """
    X, y, weight = _rows_with_weight(problem.X, problem.y, problem.weights)
    n_classes = problem.n_classes
    depth = problem.depth
    leaf_cost = problem.leaf_cost
    rules = problem.rules
    Q = leaf_cost.denominator if rules is None else leaf_cost.denominator * rules.denominator(leaf_cost.denominator)
    P = int(leaf_cost * Q)
    scale = (1 << depth) + 1  # `scale` exceeds the number of leaves, so that the extra 1 per leaf only breaks ties
    dearest = Fraction(0) if rules is None else max(rules.prices.values(), default=Fraction(0))
    if scale * ((Q + depth * dearest * Q) * int(weight.sum()) + P * (1 << depth)) >= INFINITE:
        raise DataError(
            "The leaf penalty, or a price of a column, is too large or has too many digits for exact integer costs. "
            "Give a smaller number with at most six digits."
        )
    costs = np.array([scale * Q, scale * P + 1], np.int64)
    limits = (limits or SearchLimits()).start_clock()
    over = limits.stop
    levels, rank, is_complete = _ranks(X, over)
    starts = np.cumsum([0, *(len(values) - 1 for values in levels)])
    allowed = problem.allowed
    features = np.arange(len(levels)) if allowed is None else np.flatnonzero(allowed[: len(levels)])
    levels = [levels[f] for f in features]
    rank = rank[features]
    order = np.argsort(rank, axis=1, kind="stable").astype(np.int32)
    search = NumericSearch(rank, y, weight, n_classes, costs, limits.flag, over)
    if rules is not None and is_complete:
        search = PathSearch(search, replace(rules, columns=rules.columns[features]))
    elif problem.min_leaf > 1:
        search = SizedSearch(search, problem.min_leaf)

    def value(cost: int) -> Fraction:
        return Fraction(cost // scale, Q)

    def shape(tree: Any) -> NumericShape:
        if tree is None:
            return None
        return int(features[tree[0]]), threshold_after(levels[tree[0]], tree[1]), shape(tree[2]), shape(tree[3])

    # if some columns are excluded, the price of a leaf is the only lower bound
    floor = _floor_of(rank, levels, y, weight, n_classes, costs, over) if is_complete else int(costs[1])
    counts = np.bincount(y, weight, minlength=n_classes).astype(np.int64)
    best = NodeResult(int(counts.sum() - counts.max()) * int(costs[0]) + int(costs[1]), None, True)
    slack = int(tolerance * Q) * scale

    def better(cost: int, tree: Any) -> None:
        if report is not None:
            report(value(cost), value(min(floor, cost)), shape(tree))

    finished = False
    if is_complete:
        best, finished = _deepen(search, order, depth, best, slack, better)
    cost = value(best.cost)
    used_slack = slack if depth > 2 else 0  # trees of depth up to two are solved without slack
    lower = best.cost - used_slack if finished else floor
    bound = cost
    if not finished or used_slack:
        bound = min(cost, max(value(max(lower, floor)), Fraction(0)))
    prepared = PreparedSearch(
        search,
        order,
        scale,
        min(best.cost, max(lower, floor)),
        starts[features],
        best.visits if lower >= floor else None,
    )
    return NumericResult(shape=shape(best.tree), cost=cost, bound=bound, nodes=search.count_nodes(), prepared=prepared)


def _rows_with_weight(
    X: FloatArray, y: CodeArray, weights: CountArray | None
) -> tuple[FloatArray, CodeArray, CountArray]:
    """Return the rows with a positive weight, and the weights. Raises DataError for a sum of 0 or above MOST_WEIGHT."""
    weight = np.ones(len(y), np.int64) if weights is None else np.asarray(weights, np.int64)
    used = weight > 0
    X = X[used]
    y = np.ascontiguousarray(y[used], dtype=np.int32)
    weight = np.ascontiguousarray(weight[used])
    if len(y) == 0 or int(weight.sum()) > MOST_WEIGHT:
        raise DataError(
            f"The weights add up to {int(weight.sum()):,}, but this search takes 1 to {MOST_WEIGHT:,}. Scale the weights."
        )
    return X, y, weight


def _deepen(
    search: NumericSearch,
    order: np.ndarray,
    depth: int,
    best: NodeResult,
    slack: int,
    better: Callable[[int, Any], None],
) -> tuple[NodeResult, bool]:
    """Search height after height up to `depth`; return the best tree, and whether the search finished."""
    heights = depth if len(order) else 0

    def keep(cost: int, tree: Any) -> None:
        nonlocal best
        best = NodeResult(cost, tree, True)  # store it as the incumbent, in case the search is stopped
        better(cost, tree)

    try:
        for height in range(1, min(heights, 2) + 1):
            result = search.solve(order, height, best.cost)
            if result.exact:
                best = result
                better(best.cost, best.tree)
        search.on_better = keep
        for height in range(3, heights + 1):
            search.visits = []
            search.visited = 0
            best = search.search(order, height, best, slack if height == depth else 0, is_reported=True)
    except TimeOver:
        return replace(best, visits=None), False  # the stored visits belong to a smaller height
    return best if search.visited <= search.most_visits else replace(best, visits=None), True


def _ranks(X: FloatArray, over: Callable[[], bool]) -> tuple[list[FloatArray], np.ndarray, bool]:
    """Return the sorted values of each column, the ranks int32 (F, n) of the rows, and whether there was time for all columns."""
    levels: list[FloatArray] = []
    rank = np.zeros((X.shape[1], len(X)), np.int32)
    for f in range(X.shape[1]):
        if over():
            return levels, rank[:f], False
        values, inverse = np.unique(X[:, f], return_inverse=True)
        levels.append(values)
        rank[f] = inverse.reshape(-1)
    return levels, rank, True


def _floor_of(
    rank: np.ndarray,
    levels: list[FloatArray],
    y: CodeArray,
    weight: CountArray,
    classes: int,
    costs: np.ndarray,
    over: Callable[[], bool],
) -> int:
    """Return a lower bound from rows that are equal in all features: every tree misclassifies all but one class of them.

    If stopped, return the price of a leaf.
    """
    group = _equal(rank, levels, over)
    if group is None:
        return int(costs[1])
    counts = np.zeros((int(group.max()) + 1, classes), np.int64)
    np.add.at(counts, (group, y), weight)
    return int((counts.sum(axis=1) - counts.max(axis=1)).sum()) * int(costs[0]) + int(costs[1])


def _equal(rank: np.ndarray, levels: list[FloatArray], over: Callable[[], bool]) -> np.ndarray | None:
    """Return a group number for each row, equal for rows that are equal in all features, int64 (n,); None if stopped.

    Ranks of several columns are the digits of one key; keys are renumbered before they overflow. Sorting integers takes a tenth of the
    time of sorting rows.
    """
    group = np.zeros(rank.shape[1], np.int64)
    size = 1
    for column, values in zip(rank, levels, strict=True):
        if size > MOST_KEYS // len(values):
            distinct, group = np.unique(group, return_inverse=True)
            if (size := len(distinct)) == len(group):
                break  # all rows are different, so more features change nothing
        if over():
            return None
        group = group * len(values) + column
        size *= len(values)
    return np.unique(group, return_inverse=True)[1].reshape(-1)


def threshold_after(levels: FloatArray, rank: int) -> float:
    """Return a threshold between the values of `rank` and of the next rank."""
    middle = float(levels[rank] / 2 + levels[rank + 1] / 2)
    return middle if levels[rank] <= middle < levels[rank + 1] else float(levels[rank])
