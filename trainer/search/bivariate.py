"""The best split of a node on at most two features, proved: all pairs under one shared incumbent (Bollwein & Westphal, Algorithm 2).

Pairs are searched in the order of the best of a few sampled lines, so that the incumbent falls early. The result does not depend on
the number of threads or on timing: the first pair in that order that reaches the optimal value wins, and its rule is then found by
a search of that pair alone, which knows the optimal value.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trainer.dtypes import BoolArray, CodeArray, CountArray, FloatArray
from trainer.kernels import bivariate_brief as brief
from trainer.kernels.bivariate_bounds import lower_bound, phi
from trainer.kernels.bivariate_brief import brief_pairs
from trainer.kernels.bivariate_line import sample_pairs, widest_slope
from trainer.kernels.univariate import best_thresholds
from trainer.search.bivariate_pair import (
    BOUNDS,
    MEASURES,
    PairResult,
    Points,
    Rule,
    SearchOptions,
    Workspace,
    merged,
    options_of,
    pair_floor,
    search_pair,
)
from trainer.search.bivariate_scale import NodePoints, node_points, whole_numbers

SAMPLE = 128  # rows on which the sampled lines are tried
SLOPES = np.array([-0.9, -0.5, -0.2, 0.2, 0.5, 0.9])
SMALL_FLOOR = 2_000_000  # rows times pairs up to which a stopped search still merges equal points
TAKES = 16  # parts in which threads take the sampling of lines
LOOK, BRIEF = (
    32,
    0.00025,
)  # pairs between two looks at the clock, and processor seconds of a pair for which a helper stays
TOGETHER = 16  # pairs that are searched in one call as long as they are brief
SMALL = 20_000  # rows times pairs below which threads cost more than they save


@dataclass(frozen=True, kw_only=True)
class NodeSplit:
    """The split of a node: left iff a1 x1 + a2 x2 <= threshold (`features` has one or two entries), and what is proved.

    `value` is Phi(left) + Phi(right) in rows, `bound` a lower bound on that of every rule with the allowed leaf size
    (None where a method proves nothing).
    """

    features: tuple[int, ...]
    coefficients: tuple[float, ...]
    threshold: float
    left: BoolArray
    value: float
    bound: float | None
    boxes: int = 0
    classified: int = 0
    swept: int = 0


@dataclass(frozen=True, kw_only=True)
class SplitData:
    """What all nodes of a tree share: features float64 (n, p) as uploaded and as whole numbers, classes, weights int64."""

    X: FloatArray
    whole: FloatArray
    y: CodeArray
    weight: CountArray
    classes: int

    @staticmethod
    def of(X: FloatArray, y: CodeArray, classes: int, weight: CountArray | None = None) -> SplitData:
        """Prepare the arrays; X float64 (n, p), y codes (n,), integer weights (n,)."""
        X = np.ascontiguousarray(X, np.float64)
        return SplitData(
            X=X,
            whole=whole_numbers(X),
            y=np.ascontiguousarray(y, np.int32),
            weight=np.ones(len(X), np.int64) if weight is None else np.ascontiguousarray(weight, np.int64),
            classes=classes,
        )


def class_counts(data: SplitData, rows: CountArray) -> CountArray:
    """Weight of each class among the rows, int64 (classes,)."""
    counts = np.zeros(data.classes, np.int64)
    np.add.at(counts, data.y[rows], data.weight[rows])
    return counts


def univariate_split(data: SplitData, rows: CountArray, options: SearchOptions) -> NodeSplit | None:
    """The best threshold over all features, the first on ties, or None where no feature allows one."""
    out = np.empty((data.X.shape[1], 3))
    measure = MEASURES[options.measure]
    best_thresholds(data.X, rows, data.y, data.weight, data.classes, measure, options.min_leaf, out)
    if not len(out) or not np.isfinite(out[:, 0].min()):
        return None
    tol = 1e-12 * int(data.weight[rows].sum())
    j = int(np.flatnonzero(out[:, 0] <= out[:, 0].min() + tol)[0])
    value, below, above = (float(x) for x in out[j])
    cut = between(below, above)
    left = data.X[rows, j] <= cut
    return NodeSplit(features=(j,), coefficients=(1.0,), threshold=cut, left=left, value=value, bound=value)


def between(below: float, above: float) -> float:
    """The number in the middle of [below, above), which rounding never makes `above`."""
    cut = below + (above - below) / 2
    return cut if below <= cut < above else below


def best_split(
    data: SplitData,
    rows: CountArray,
    options: SearchOptions,
    *,
    threads: int = 1,
    stopped: Callable[[], bool] = lambda: False,
    seed: int = 0,
    known: NodeSplit | None = None,
) -> NodeSplit | None:
    """The best split of the rows on at most two features, or None where there is none (equal rows, or too few for two leaves).

    A univariate split, or a `known` one that is better, is kept unless a line is strictly better. When `stopped` strikes, the best split found by then is
    returned with the bound that is proved.
    """
    start = univariate_split(data, rows, options)
    total = class_counts(data, rows)
    if known is not None and start is not None and known.value < start.value - 1e-12 * int(total.sum()):
        start = known
    if start is not None and start.value <= 0.0:
        return start
    points = node_points(data.whole, rows)
    if len(points.features) < 2 or 2 * options.min_leaf > total.sum():
        return start
    search = _NodeSearch(
        data=data, rows=rows, options=options, points=points, total=total, stopped=stopped, threads=threads
    )
    search.value = math.inf if start is None else start.value
    pairs = len(points.features) * (len(points.features) - 1) // 2
    if threads > 1 and options.gap == 0 and len(rows) * pairs > SMALL:
        with ThreadPoolExecutor(threads) as pool:
            search.order(seed, pool)
            for worker in [pool.submit(search.work, helper=k > 0) for k in range(threads)]:
                worker.result()
    else:
        search.order(seed)
        search.work()
    return search.finish(start)


@dataclass(kw_only=True)
class _NodeSearch:
    """The pairs of one node in their order, the shared incumbent (value and the position of its pair), and the results."""

    data: SplitData
    rows: CountArray
    options: SearchOptions
    points: NodePoints
    total: CountArray
    stopped: Callable[[], bool]
    threads: int = 1
    value: float = math.inf
    rank: int = -1
    pairs: list[tuple[int, int, Rule]] = field(default_factory=list)
    results: dict[int, PairResult] = field(default_factory=dict)
    next: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.y = self.data.y[self.rows].astype(np.int64)
        self.weight = self.data.weight[self.rows]
        self.tol = 1e-12 * int(self.total.sum())
        self.how = options_of(self.options)
        self.levels = np.array(self.points.levels, np.int64)

    def order(self, seed: int, pool: ThreadPoolExecutor | None = None) -> None:
        """List the pairs by the best of the sampled lines of either order; on equal values the first pair comes first."""
        p, n = len(self.points.features), len(self.rows)
        chosen = np.sort(np.random.default_rng(seed).permutation(n)[:SAMPLE]) if n > SAMPLE else np.arange(n)
        Z = np.ascontiguousarray(self.points.values[:, chosen])
        y, weight = self.y[chosen], self.weight[chosen]
        pairs = np.column_stack(np.triu_indices(p, 1)).astype(np.int64)
        out = np.empty((len(pairs), 4))
        parts = np.array_split(np.arange(len(pairs)), 1 if pool is None else TAKES)

        def sample(part: CountArray) -> None:
            if len(part):
                span = slice(int(part[0]), int(part[-1]) + 1)
                sample_pairs(Z, pairs[span], y, weight, self.data.classes, SLOPES, out[span])

        list(map(sample, parts) if pool is None else pool.map(sample, parts))
        ranked = np.argsort(out[:, 0], kind="stable")
        self.order_of = (pairs[ranked], np.ascontiguousarray(out[ranked, 1:]))
        self.pairs = [
            (i, j, Rule(order=int(order), a=a, b=b))
            for (i, j), (order, a, b) in zip(self.order_of[0].tolist(), self.order_of[1].tolist(), strict=True)
        ]

    def merge(self, rank: int) -> Points:
        """The distinct points of the pair at this position."""
        i, j, _ = self.pairs[rank]
        Z, R, levels = self.points.values, self.points.ranks, self.points.levels
        return merged(Z[i], Z[j], R[i], R[j], (levels[i], levels[j]), self.y, self.weight, self.total)

    def cap(self, rank: int) -> Callable[[float], float]:
        """Values below which the pair at `rank` looks for rules; it may also tie with a later pair."""

        def cap(own: float) -> float:
            with self.lock:
                if own < self.value - self.tol or (own < self.value + self.tol and rank < self.rank):
                    self.value, self.rank = min(own, self.value), rank
                return self.value if self.rank <= rank else self.value + 2 * self.tol

        return cap

    def work(self, *, helper: bool = False) -> None:
        """Search pairs until none is left or the run is stopped; a helper goes when pairs take less time than handing them out."""
        workspace = Workspace()
        looked, taken, long = time.thread_time(), 0, 0
        while not self.stopped():
            if helper and taken >= LOOK:
                now = time.thread_time()
                if now - looked < taken * BRIEF:
                    return
                looked, taken, long = now, 0, 0
            with self.lock:
                rank = self.next
                if rank >= len(self.pairs):
                    return
                # where most pairs take long, each is handed out by itself
                some = min(TOGETHER, max(1, (len(self.pairs) - rank) // (2 * self.threads)))
                until = rank + (some if long <= 1 + taken // 4 else 1)
                self.next = until
            taken += until - rank
            while rank < until and not self.stopped():
                if long <= 1 + taken // 4:
                    rank = self._brief(rank, until, workspace)
                if rank < until:
                    self._long(rank, workspace)
                    rank, long = rank + 1, long + 1

    def _brief(self, rank: int, until: int, workspace: Workspace) -> int:
        """Search pairs in one call; returns the first that takes longer than it may there."""
        workspace.reserve(len(self.rows), self.data.classes)
        ws, points = workspace, self.points
        with self.lock:
            incumbent = np.array([self.value, self.rank], np.float64)
        out = np.empty((until - rank, brief.COLUMNS))
        end = brief_pairs(
            self.how.copy(), self.tol, self.options.gap, self.options.switch, rank, until, self.order_of[0], self.order_of[1],
            points.values, points.ranks, self.levels, self.y, self.weight, self.total, incumbent, ws.boxes, ws.meta, ws.heap,
            ws.free, ws.arena, ws.scratch, ws.state, out,
        )  # fmt: skip
        for r, row in enumerate(out[: end - rank].tolist(), start=rank):
            value, bound, order, a, b, cut, boxes, classified, swept = row
            rule = None
            if order == brief.GIVEN:
                rule = self.pairs[r][2]
            elif order == brief.BY_SWEEP:
                rule = Rule(pivot=(int(a), int(b), int(cut)))
            elif order != brief.NO_RULE:
                rule = Rule(order=int(order), a=a, b=b)
            if rule is not None:
                self.cap(r)(value)
            found = PairResult(
                value=value, rule=rule, bound=bound, finished=True, boxes=int(boxes), classified=int(classified),
                swept=bool(swept),
            )  # fmt: skip
            with self.lock:
                self.results[r] = found
        return int(end)

    def _long(self, rank: int, workspace: Workspace) -> None:
        cap = self.cap(rank)
        result = search_pair(
            self.merge(rank), self.options, workspace, cap=cap, stopped=self.stopped, start=self.pairs[rank][2]
        )
        cap(result.value)
        with self.lock:
            self.results[rank] = result

    def finish(self, start: NodeSplit | None) -> NodeSplit | None:
        """The winner's line in the columns' own units, or the univariate split where no line is better."""
        results = self.results
        value = min((r.value for r in results.values()), default=math.inf)
        value = value if start is None else min(value, start.value)
        complete = len(results) == len(self.pairs) and all(r.finished for r in results.values())
        # a pair that was closed by the cap has no rule below the incumbent; an unfinished one proves what its open boxes do
        bound = min((r.bound for r in results.values()), default=math.inf)
        if len(results) < len(self.pairs):
            bound = min(bound, self._floor())
        counts: dict[str, Any] = {
            "boxes": sum(r.boxes for r in results.values()),
            "classified": sum(r.classified for r in results.values()),
            "swept": sum(r.swept for r in results.values()),
        }
        bound = value if complete and self.options.gap == 0 else min(value, bound)
        if start is not None and value >= start.value - self.tol:
            return replace(start, bound=min(bound, start.value), **counts)
        if math.isinf(value):
            return None
        ranks = [r for r, result in results.items() if result.value <= value + self.tol]
        rank = min(ranks)
        rule = self._rule(rank, value) if complete and self.options.gap == 0 else results[rank].rule
        if rule is None:
            raise AssertionError("a pair with a finite value has a rule")
        points = self.merge(rank)
        i, j, _ = self.pairs[rank]
        left = rule.left(points, self.points.values[i], self.points.values[j])
        split = self._stored(i, j, rule, left)
        if split is None:
            # the rows cannot be told apart in the uploaded numbers' own precision: the next best is what can be stored
            return None if start is None else replace(start, bound=min(bound, start.value), **counts)
        return replace(split, bound=min(bound, split.value), **counts)

    def _floor(self) -> float:
        """What no rule of the pairs that were not begun can beat; equal points are looked for only where that takes a moment."""
        measure, none = MEASURES[self.options.measure], np.zeros(self.data.classes, np.int64)
        waiting = [rank for rank in range(len(self.pairs)) if rank not in self.results]
        if len(waiting) * len(self.rows) <= SMALL_FLOOR:
            return min(pair_floor(self.merge(rank), measure, self.options.bound) for rank in waiting)
        return float(lower_bound(measure, BOUNDS[self.options.bound], none, none, self.total))

    def _rule(self, rank: int, value: float) -> Rule | None:
        """The rule of the winning pair, found without regard to what other threads did."""
        limit = value + 2 * self.tol
        found = search_pair(
            self.merge(rank),
            self.options,
            Workspace(),
            cap=lambda own: limit,
            stopped=lambda: False,
            start=self.pairs[rank][2],
            first_only=True,
        )
        return found.rule if found.rule is not None else self.results[rank].rule

    def _stored(self, i: int, j: int, rule: Rule, left: BoolArray) -> NodeSplit | None:
        """The widest line of the partition in uploaded units, checked row by row; None where no line separates in double precision."""
        f, g = self.points.features[i], self.points.features[j]
        zi, zj = self.points.values[i], self.points.values[j]
        x, z = self.data.X[self.rows, f], self.data.X[self.rows, g]
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
                        split = self._raw(f, g, x, z, v, u, 1 - order, steep, other) if wider > gap else None
                        if split is not None:
                            return split
                    slopes = [slope, rule.a] if own else [slope]
                    for a in slopes if gap > 0 or own else []:
                        split = self._raw(f, g, x, z, u, v, order, a, side)
                        if split is not None:
                            return split
        return None

    def _raw(
        self, f: int, g: int, x: FloatArray, z: FloatArray, u: FloatArray, v: FloatArray, order: int, a: float,
        side: BoolArray,
    ) -> NodeSplit | None:  # fmt: skip
        """The line of slope a in scaled units as a linear split of the uploaded columns, if it separates the two sides."""
        first, second, p, q = (x, z, f, g) if order == 0 else (z, x, g, f)
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
        counts = np.zeros(self.data.classes, np.int64)
        np.add.at(counts, self.y[chosen], self.weight[chosen])
        measure = MEASURES[self.options.measure]
        value = float(phi(measure, counts) + phi(measure, self.total - counts))
        return NodeSplit(
            features=features, coefficients=coefficients, threshold=cut, left=chosen, value=value, bound=value
        )


def _unit(raw: FloatArray, scaled: FloatArray) -> float:
    """How much of the uploaded unit one scaled unit is."""
    return float((raw.max() - raw.min()) / (scaled.max() - scaled.min()))
