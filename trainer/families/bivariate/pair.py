"""Search one unordered pair of features.

Branch and bound in both orders comes first, then the angular sweep. The search runs in steps of a few milliseconds, so that the node can
share incumbents, check the time, and be cancelled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.bivariate.kernels import both
from trainer.families.bivariate.kernels import brief as short
from trainer.families.bivariate.kernels import tables as kernel
from trainer.families.bivariate.kernels.brief import brief_pair, search_budget
from trainer.families.bivariate.kernels.points import ColumnPair, Points, allocate_points
from trainer.families.bivariate.kernels.points import merge as merged_into
from trainer.families.bivariate.kernels.sweep import Turn, sweep
from trainer.growing.impurity import MEASURES, SplitOptions

BOUNDS = {"theorem4": 0, "paper": 1, "assignment": 2}
C2 = 1
C3 = 2
C4 = 4
C5 = 8
WORK_PER_STEP = 4_000_000  # work between two checks of clock and incumbent, in units of about 1 ns


@dataclass(frozen=True, kw_only=True)
class SearchOptions(SplitOptions):
    """Options for searching the split of one pair of columns. The defaults are the fastest; other values are variants of the paper.

    `bound`: 'theorem4', 'paper' (with Theorems 5 and 6) or 'assignment'. `criteria`: bit mask of C2 to C5. `local`:
    largest number of points in a box that the local sweep searches. `switch`: whether the search may change to the
    angular sweep. `gap`: the epsilon of early stopping.
    """

    bound: str = "assignment"
    strategy: int = 2
    best_first: bool = False
    criteria: int = C2 | C3 | C4 | C5
    local: int = 8
    gap: float = 0.0
    switch: bool = True

    def __post_init__(self) -> None:
        if not self.criteria & C5 and self.criteria & (C2 | C4) != C2 | C4:
            raise ValueError("The search ends only with the local sweep (C5) or with criteria 2 and 4.")


@dataclass(kw_only=True)
class Workspace:
    """Working arrays of one thread, which grow on demand."""

    slots: int = 0
    arena: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    scratch: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    boxes: np.ndarray = field(default_factory=lambda: np.empty((0, 5)))
    meta: np.ndarray = field(default_factory=lambda: np.empty((0, 3), np.int64))
    heap: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    free: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    state: np.ndarray = field(default_factory=lambda: np.zeros(3, np.int64))
    counts: np.ndarray = field(default_factory=lambda: np.zeros(4, np.int64))

    def queue(self) -> kernel.Queue:
        """Return the tables as a record for kernels; valid until they grow."""
        return kernel.Queue(self.boxes, self.meta, self.heap, self.free, self.arena, self.scratch, self.state)

    def reserve(self, points: int, classes: int) -> None:
        """Enlarge the tables for `points` points and `classes` classes."""
        if len(self.arena) < 16 * points:
            self.arena = np.empty(16 * points, np.int64)
        if len(self.scratch) < 4 * points:
            self.scratch = np.empty(4 * points, np.int64)
        if self.slots == 0 or self.meta.shape[1] != 3 + 2 * classes:
            self.slots = 512
            self.boxes = np.empty((512, 5))
            self.meta = np.empty((512, 3 + 2 * classes), np.int64)
            self.heap = np.empty(512, np.int64)
            self.free = np.empty(512, np.int64)

    def grow(self) -> None:
        """Double every table and keep its contents."""
        self.arena = np.concatenate((self.arena, np.empty_like(self.arena)))
        old = self.slots
        self.slots = 2 * self.slots
        self.boxes = np.concatenate((self.boxes, np.empty_like(self.boxes)))
        self.meta = np.concatenate((self.meta, np.empty_like(self.meta)))
        self.heap = np.concatenate((self.heap, np.empty_like(self.heap)))
        self.free = np.concatenate((self.free, np.empty_like(self.free)))
        n_free = int(self.state[kernel.FREE])
        self.free[n_free : n_free + old] = np.arange(self.slots - 1, old - 1, -1)
        self.state[kernel.FREE] = n_free + old


def merge_points(columns: ColumnPair, y: CountArray, weight: CountArray, total: CountArray) -> Points:
    """Return the distinct points of two columns of a node."""
    points: Points = merged_into(columns, y, weight, allocate_points(len(y), total))
    return points


@dataclass(frozen=True, kw_only=True)
class PairRule:
    """A rule on a pair: order (0: as given, 1: exchanged), slope a and offset b of a u + b <= v; or a partition by the sweep (`pivot`).

    `pivot` has the three numbers `found` of `trainer.families.bivariate.kernels.sweep`.
    """

    order: int = 0
    a: float = 0.0
    b: float = 0.0
    pivot: tuple[int, int, int] | None = None

    def left(self, points: Points, u: FloatArray, v: FloatArray) -> BoolArray:
        """Return which rows (u, v) go left, bool (n,)."""
        if self.pivot is None:
            x, z = (u, v) if self.order == 0 else (v, u)
            return self.b <= z - self.a * x
        p, j, k = self.pivot
        pu = points.u[p]
        pv = points.v[p]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            turn = (points.v[j] - pv) / (points.u[j] - pu) if points.u[j] != pu else math.inf
            du = u - pu
            dv = v - pv
            slope = np.where(du != 0, dv / du, math.inf)
        ahead = (du > 0) | ((du == 0) & (dv > 0))
        on = (slope == turn) | ((du == 0) & (dv == 0))
        strict = ~on & np.where(ahead, slope > turn, slope < turn)
        along = v if math.isinf(turn) else u
        places = np.unique(along[on])
        left_values = places[:k] if k >= 0 else places[k:]
        return strict | (on & np.isin(along, left_values))


@dataclass(frozen=True, kw_only=True)
class PairResult:
    """Best value below the cap (infinity if none), its rule, a lower bound on all rules below the cap, and counts."""

    value: float
    rule: PairRule | None
    bound: float
    finished: bool
    boxes: int = 0
    classified: int = 0
    swept: bool = False


def rule_from_row(row: FloatArray) -> PairRule | None:
    """Return the rule of a pair's result, float64 (COLUMNS,)."""
    order, a, b, cut = (float(row[k]) for k in (short.ORDER, short.A, short.B, short.CUT))
    if order == short.NO_RULE:
        return None
    return (
        PairRule(pivot=(int(a), int(b), int(cut))) if order == short.BY_SWEEP else PairRule(order=int(order), a=a, b=b)
    )


def row_from_result(result: PairResult) -> FloatArray:
    """Return a pair's result as float64 (COLUMNS,)."""
    row = np.zeros(short.COLUMNS)
    rule = result.rule
    row[short.RESULT] = result.value
    row[short.PROVED] = result.bound
    row[short.ORDER] = short.NO_RULE
    row[short.BOXES_OF] = result.boxes
    row[short.CLASSIFIED_OF] = result.classified
    row[short.SWEPT] = result.swept
    if rule is not None and rule.pivot is not None:
        row[short.ORDER] = short.BY_SWEEP
        row[short.A], row[short.B], row[short.CUT] = rule.pivot
    elif rule is not None:
        row[short.ORDER] = rule.order
        row[short.A] = rule.a
        row[short.B] = rule.b
    return row


def kernel_options(options: SearchOptions, *, first_only: bool = False) -> CountArray:
    """Return the integer options of the kernels."""
    return np.array(
        [
            MEASURES[options.measure],
            BOUNDS[options.bound],
            options.strategy,
            int(options.best_first),
            options.criteria,
            options.local,
            options.min_leaf,
            WORK_PER_STEP,
            int(first_only),
            int(options.switch),
        ],
        np.int64,
    )


def pair_floor(points: Points, measure: int, bound: str) -> float:
    """Return a lower bound on all rules of the pair, without search."""
    return float(both.pair_floor(measure, BOUNDS[bound], points))


def search_pair(
    points: Points,
    options: SearchOptions,
    workspace: Workspace,
    *,
    cap: Callable[[float], float],
    stopped: Callable[[], bool],
    start: PairRule | None = None,
    first_only: bool = False,
    brief: bool = True,
) -> PairResult:
    """Search a pair for rules with a value below `cap(best value)`, which may decrease during the search.

    Parameters
    ----------
    points : Points
        The distinct points of the pair.
    options : SearchOptions
    workspace : Workspace
        Tables of this thread.
    cap : callable
        Receives the best value so far and returns the value that rules must beat.
    stopped : callable
        Returns True to end the search; called between steps.
    start : PairRule, optional
        A rule that is evaluated first.
    first_only : bool
        Whether to end at the first rule below the cap; no bound is proved then.
    brief : bool
        Whether to try one kernel call before the stepwise search.

    Returns
    -------
    PairResult
        Its `bound` is a lower bound on every rule that the cap does not exclude. It equals the best value if the search is finished and
        `options.gap` is 0.
    """
    tol = 1e-12 * int(points.total.sum())
    ws = workspace
    N = len(points.u)
    ws.reserve(N, len(points.total))
    quick_result = (
        _single_call_result(points, options, ws, cap(math.inf), tol, start or PairRule(), first_only) if brief else None
    )
    if quick_result is not None:
        return quick_result
    best_value = math.inf
    best_rule = None
    budget = search_budget(N, len(points.total)) if options.switch else math.inf
    how = kernel_options(options, first_only=first_only)
    first = _start_array(start or PairRule())
    value, floor = both.opening(how, first, points)
    if (start is not None or points.fixed.any()) and value < cap(math.inf) - tol:
        best_value = value
        best_rule = PairRule(order=int(first[0]), a=float(first[1]), b=float(first[2]))
        if first_only:
            return PairResult(value=value, rule=best_rule, bound=0.0, finished=True)
    if floor >= cap(best_value) - tol:
        return PairResult(value=best_value, rule=best_rule, bound=best_value, finished=True)
    reach = 1 + sum(2 * max(-float(w.min()), float(w.max())) for w in (points.u, points.v))
    limits = np.array([math.inf, tol, options.gap, 8 * 2.0**-52 * reach])
    best = np.array([best_value, 0.0, 0.0, math.inf])
    at = np.array([0, 0, -1, 0, 0], np.int64)
    code, spent = _advance(kernel.PairSearch(how, limits, best, ws.counts), floor, at, points, ws, cap, budget, stopped)
    boxes = int(at[both.ALL_BOXES] + ws.counts[kernel.BOXES])
    classified = int(at[both.ALL_CLASSIFIED] + ws.counts[kernel.CLASSIFIED])
    given_up = float(best[kernel.GIVEN_UP])
    if at[both.WINNER] >= 0:
        best_value = float(best[kernel.VALUE])
        best_rule = PairRule(order=int(at[both.WINNER]), a=float(best[kernel.SLOPE]), b=float(best[kernel.OFFSET]))
    if first_only and best_rule is not None:
        return PairResult(value=best_value, rule=best_rule, bound=0.0, finished=True, boxes=boxes)
    if code == kernel.DONE:
        return PairResult(
            value=best_value,
            rule=best_rule,
            bound=min(best_value, given_up),
            finished=True,
            boxes=boxes,
            classified=classified,
        )
    if spent >= budget and not stopped():
        incumbent = PairResult(
            value=best_value, rule=best_rule, bound=floor, finished=False, boxes=boxes, classified=classified
        )
        return _finish_by_sweep(points, options, cap, stopped, incumbent, first_only)
    waiting = ws.heap[: ws.state[kernel.HEAP]]
    # while the first order is searched, its open boxes say nothing about the rules of the second
    open_bound = float(ws.boxes[waiting, 4].min(initial=math.inf)) if at[both.ORDER] == 1 else floor
    return PairResult(
        value=best_value,
        rule=best_rule,
        bound=min(max(open_bound, floor), given_up, best_value),
        finished=False,
        boxes=boxes,
        classified=classified,
    )


def _advance(
    search: kernel.PairSearch,
    floor: float,
    at: CountArray,
    points: Points,
    workspace: Workspace,
    cap: Callable[[float], float],
    budget: float,
    stopped: Callable[[], bool],
) -> tuple[int, float]:
    """Search until all boxes are closed, the budget is spent or the run is stopped; return the code and the work."""
    code = kernel.RUNNING
    spent = 0.0
    while code != kernel.DONE:
        search.limits[kernel.CAP] = cap(float(search.best[kernel.VALUE]))
        search.how[kernel.WORK] = int(min(WORK_PER_STEP, max(1, budget - spent)))
        code = both.advance(search, floor, at, points, workspace.queue())
        if code == kernel.GROW:
            workspace.grow()
        elif code == kernel.RUNNING:
            spent += float(search.how[kernel.WORK])
            if spent >= budget or stopped():
                break
    return code, spent


def _start_array(rule: PairRule) -> FloatArray:
    """Return a start rule as float64 (3,), for kernels."""
    return np.array([rule.order, rule.a, rule.b], np.float64)


def make_pair_search(how: CountArray, tol: float, gap: float, workspace: Workspace) -> kernel.PairSearch:
    """Return the search record for the kernels of brief pairs, which fill in the rest."""
    return kernel.PairSearch(how, np.array([math.inf, tol, gap, 0.0]), np.zeros(4), workspace.counts)


def _single_call_result(
    points: Points,
    options: SearchOptions,
    workspace: Workspace,
    cap: float,
    tol: float,
    start: PairRule,
    first_only: bool,
) -> PairResult | None:
    """Return the result of a pair if one kernel call completes it, else None."""
    row = np.empty(short.COLUMNS)
    search = make_pair_search(kernel_options(options, first_only=first_only), tol, options.gap, workspace)
    if not brief_pair(search, 0, _start_array(start), points, np.array([cap, -1.0]), workspace.queue(), row):
        return None
    return PairResult(
        value=float(row[short.RESULT]),
        rule=rule_from_row(row),
        bound=float(row[short.PROVED]),
        finished=True,
        boxes=int(row[short.BOXES_OF]),
        classified=int(row[short.CLASSIFIED_OF]),
        swept=bool(row[short.SWEPT]),
    )


def _finish_by_sweep(
    points: Points,
    options: SearchOptions,
    cap: Callable[[float], float],
    stopped: Callable[[], bool],
    incumbent: PairResult,
    first_only: bool,
) -> PairResult:
    """Finish the pair by the angular sweep; if it is stopped, the bound of the incumbent stays."""
    best_value = incumbent.value
    best_rule = incumbent.rule
    measure = MEASURES[options.measure]
    tol = 1e-12 * int(points.total.sum())
    rule_numbers = np.full(3, -1, np.int64)
    best = np.array([min(best_value, cap(best_value))])
    turn = Turn(np.zeros(1, np.int64), rule_numbers, best)
    finished = False
    while not finished:
        finished = bool(sweep(measure, options.min_leaf, WORK_PER_STEP, tol, points, turn))
        if rule_numbers[0] >= 0 and best[0] < best_value:
            best_value = float(best[0])
            best_rule = PairRule(pivot=(int(rule_numbers[0]), int(rule_numbers[1]), int(rule_numbers[2])))
            finished = finished or first_only
        if not finished and stopped():
            break
    bound = best_value if finished else min(incumbent.bound, best_value)
    return replace(incumbent, value=best_value, rule=best_rule, bound=bound, finished=finished, swept=True)
