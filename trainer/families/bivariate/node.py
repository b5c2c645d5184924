"""The pairs of one node under a shared incumbent: their order, the threads that take them, and what was found.

Pairs are searched in the order of the best of a few sampled lines, so that the incumbent falls early. The result does not depend on
the number of threads or on timing: the first pair in that order that reaches the optimal value wins, and its rule is then found by
a search of that pair alone, which knows the optimal value.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from trainer.dtypes import BoolArray, CountArray, FloatArray
from trainer.families.bivariate.kernels import brief
from trainer.families.bivariate.kernels.bounds import lower_bound
from trainer.families.bivariate.kernels.brief import Pairs, brief_pairs
from trainer.families.bivariate.kernels.line import sample_pairs
from trainer.families.bivariate.kernels.points import BivariateRows, Points, new_room, pair_points
from trainer.families.bivariate.pair import (
    BOUNDS,
    PairRule,
    SearchOptions,
    Workspace,
    brief_search,
    options_of,
    pair_floor,
    row_of,
    rule_of,
    search_pair,
)
from trainer.families.bivariate.scale import NodePoints
from trainer.growing.node_split import SplitData
from trainer.growing.options import MEASURES

SAMPLE = 128  # rows on which the sampled lines are tried
SLOPES = np.array([-0.9, -0.5, -0.2, 0.2, 0.5, 0.9])
SMALL_FLOOR = 2_000_000  # rows times pairs up to which a stopped search still merges equal points
PART = 64  # pairs for which a thread samples lines in one call
LOOK = 32  # pairs between two looks at the clock
BRIEF = 0.00025  # processor seconds of a pair for which a helper stays
WAITING = 0
UNFINISHED = 1
FINISHED = 2
TOGETHER = 16  # pairs that threads take in one call as long as they are brief


def pairs_of(features: int) -> CountArray:
    """All pairs of different features, int64 (pairs, 2), the first one rising; ten million of them in a moment."""
    later = np.arange(features - 1, -1, -1)  # how many features come after each
    pairs = np.empty((int(later.sum()), 2), np.int64)
    pairs[:, 0] = np.repeat(np.arange(features), later)
    pairs[:, 1] = 1
    ends = np.cumsum(later)
    # the second one rises by one, and begins again after the first where that changes
    pairs[ends[:-2], 1] = 2 - later[:-2]
    np.cumsum(pairs[:, 1], out=pairs[:, 1])
    return pairs


def _pairs_with_rows(pairs: CountArray, empty: BoolArray) -> tuple[CountArray, BoolArray]:
    """The pairs that some row has without an empty cell, and of each whether a row has an empty cell; empty bool (features, n)."""
    if not empty.any():
        return pairs, np.zeros(len(pairs), bool)
    present = (~empty).astype(np.float64)
    both = (present @ present.T)[pairs[:, 0], pairs[:, 1]]
    kept = both > 0
    return pairs[kept], both[kept] < empty.shape[1]


@dataclass(kw_only=True)
class NodeSearch:
    """The pairs of one node, the shared incumbent (value and the position of its pair), and the results.

    `pairs` int64 (pairs, 3) are two features and where rows with an empty cell go, as `pair_points` takes them: a pair with such rows is
    searched for either side. `found` float64 (pairs, COLUMNS) holds the results, `done` what became of a pair.
    """

    data: SplitData
    rows: CountArray
    options: SearchOptions
    points: NodePoints
    total: CountArray
    stopped: Callable[[], bool]
    seed: int = 0
    threads: int = 1
    value: float = math.inf
    rank: int = -1
    next: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        p = len(self.points.features)
        n = len(self.rows)
        self.y = self.data.y[self.rows].astype(np.int64)
        self.weight = self.data.weight[self.rows]
        self.tol = 1e-12 * int(self.total.sum())
        self.levels = np.array(self.points.levels, np.int64)
        self._own_pairs, self._some_empty = _pairs_with_rows(pairs_of(p), self.points.empty)
        self.pairs = self._with_sides(np.arange(len(self._own_pairs)))[0]
        self.starts = np.empty((len(self._own_pairs), 4))
        self.found = np.empty((len(self.pairs), brief.COLUMNS))
        self.done = np.zeros(len(self.pairs), np.int8)
        chosen = np.arange(n)
        if n > SAMPLE:
            chosen = np.sort(np.random.default_rng(self.seed).permutation(n)[:SAMPLE])
        some = self.points.empty
        self._sample = (
            np.ascontiguousarray(self.points.values[:, chosen]),
            np.ascontiguousarray(some[:, chosen]) if len(some) else some,
        )
        self._sample_classes = (self.y[chosen], self.weight[chosen])
        self._parts = len(range(0, len(self._own_pairs), PART))
        self._begun = self._sampled = 0
        self._all_sampled = threading.Event()
        if not self._parts:  # every row has an empty cell in one column of each pair
            self._all_sampled.set()
        self._ordered = threading.Event()

    def begin(self) -> None:
        """List the pairs by the best of the sampled lines of either order; on equal values the first pair comes first."""
        try:
            self._sample_lines()
            self._all_sampled.wait()
            if self.stopped():  # no pair is searched any more, and sorting millions takes a while
                self.starts = self.starts[:, 1:]
                return
            ranked = np.argsort(self.starts[:, 0], kind="stable")
            self.pairs, repeated = self._with_sides(ranked)
            self.starts = np.ascontiguousarray(self.starts[repeated, 1:])
        finally:
            self._ordered.set()

    def _with_sides(self, order: CountArray) -> tuple[CountArray, CountArray]:
        """Own pairs in this order, int64 (pairs, 3): one with empty cells for either side of them; and which own pair each is."""
        if not self._some_empty.any():
            return np.column_stack((self._own_pairs[order], np.zeros(len(order), np.int64))), order
        repeated = np.repeat(order, np.where(self._some_empty[order], 2, 1))
        side = self._some_empty[repeated].astype(np.int64)
        side[1:] += side[1:] * (repeated[1:] == repeated[:-1])
        return np.column_stack((self._own_pairs[repeated], side)), repeated

    def help(self) -> None:
        """What a thread does for a node that another one began."""
        self._sample_lines()
        self._ordered.wait()
        if self.starts.shape[1] == 3:  # else the other one failed
            self.work(helper=True)

    def _sample_lines(self) -> None:
        while True:
            with self.lock:
                k = self._begun
                if k == self._parts:
                    return
                self._begun += 1
            part = slice(k * PART, (k + 1) * PART)
            try:
                if not self.stopped():  # a thousand columns have half a million pairs
                    sample_pairs(
                        *self._sample,
                        self._own_pairs[part],
                        *self._sample_classes,
                        self.data.classes,
                        SLOPES,
                        self.starts[part],
                    )
            finally:
                with self.lock:
                    self._sampled += 1
                    if self._sampled == self._parts:
                        self._all_sampled.set()

    def start(self, rank: int) -> PairRule:
        """The best sampled line of the pair at this position."""
        order, a, b = self.starts[rank].tolist()
        return PairRule(order=int(order), a=a, b=b)

    def merge(self, rank: int) -> Points:
        """The distinct points of the pair at this position."""
        points: Points = pair_points(self.pairs[rank], self._node_rows(), new_room(len(self.rows), self.total))
        return points

    def _node_rows(self) -> BivariateRows:
        """The rows of the node as the kernels take them."""
        points = self.points
        return BivariateRows(points.values, points.ranks, self.levels, self.y, self.weight, self.total, points.empty)

    def cap(self, rank: int) -> Callable[[float], float]:
        """Values below which the pair at `rank` looks for rules; it may also tie with a later pair."""

        def cap(own: float) -> float:
            with self.lock:
                if own < self.value - self.tol or (own < self.value + self.tol and rank < self.rank):
                    self.value = min(own, self.value)
                    self.rank = rank
                return self.value if self.rank <= rank else self.value + 2 * self.tol

        return cap

    def work(self, *, helper: bool = False) -> None:
        """Search pairs until none is left or the run is stopped; a helper goes when pairs take less time than handing them out."""
        workspace = Workspace()
        looked = time.thread_time()
        taken = 0
        counted = 0
        long = 0
        while not self.stopped():
            if helper and taken - counted >= LOOK:
                now = time.thread_time()
                if now - looked < (taken - counted) * BRIEF:
                    return
                looked = now
                counted = taken
            rank, until = self._take(together=long <= 1 + taken // 4)
            if rank == until:
                return
            while rank < until and not self.stopped():
                begun = rank
                longer = True
                # where most pairs take long, each is searched by itself at once
                if long <= 1 + taken // 4:
                    rank, longer = self._brief(rank, until, workspace)
                if longer:
                    self._long(rank, workspace)
                    rank = rank + 1
                    long = long + 1
                taken += rank - begun

    def _take(self, *, together: bool) -> tuple[int, int]:
        """The next pairs, from the first to before the second."""
        with self.lock:
            rank = self.next
            left = len(self.pairs) - self.next
            if self.threads == 1:
                some = left
            else:
                some = min(left, max(1, min(TOGETHER, left // (2 * self.threads)))) if together else min(left, 1)
            self.next = rank + some
            return rank, self.next

    def _brief(self, rank: int, until: int, workspace: Workspace) -> tuple[int, bool]:
        """Search pairs in one call; returns the next one, and whether it takes longer than it may there."""
        workspace.reserve(len(self.rows), self.data.classes)
        search = brief_search(options_of(self.options), self.tol, self.options.gap, workspace)
        pairs = Pairs(self.pairs, self.starts)
        rows = self._node_rows()
        with self.lock:
            incumbent = np.array([self.value, self.rank], np.float64)
        end, longer = brief_pairs(
            search, rank, until, pairs, rows, incumbent, workspace.queue(), self.found[rank:until]
        )
        found = self.found[rank:end]
        for r in np.flatnonzero(found[:, brief.RESULT] < math.inf).tolist():
            self.cap(rank + r)(float(found[r, brief.RESULT]))
        self.done[rank:end] = FINISHED
        return int(end), bool(longer)

    def _long(self, rank: int, workspace: Workspace) -> None:
        cap = self.cap(rank)
        result = search_pair(
            self.merge(rank),
            self.options,
            workspace,
            cap=cap,
            stopped=self.stopped,
            start=self.start(rank),
            brief=False,
        )
        cap(result.value)
        self.found[rank] = row_of(result)
        self.done[rank] = FINISHED if result.finished else UNFINISHED

    def results(self) -> FloatArray:
        """The rows of `found` of the pairs that were begun."""
        return self.found[self.done != WAITING]

    def complete(self) -> bool:
        """True if every pair was searched to its end and nothing was given up."""
        return bool((self.done == FINISHED).all()) and self.options.gap == 0

    def bound(self) -> float:
        """What no rule can beat, unless a pair was closed by the incumbent."""
        # a pair that was closed by the cap has no rule below the incumbent; an unfinished one proves what its open boxes do
        bound = float(self.results()[:, brief.PROVED].min(initial=math.inf))
        return bound if (self.done != WAITING).all() else min(bound, self._floor())

    def _floor(self) -> float:
        """What no rule of the pairs that were not begun can beat; equal points are looked for only if that takes a moment."""
        measure = MEASURES[self.options.measure]
        none = np.zeros(self.data.classes, np.int64)
        waiting = np.flatnonzero(self.done == WAITING)
        if len(waiting) * len(self.rows) <= SMALL_FLOOR:
            return min(pair_floor(self.merge(rank), measure, self.options.bound) for rank in waiting.tolist())
        return float(lower_bound(measure, BOUNDS[self.options.bound], none, none, self.total))

    def rule(self, rank: int, value: float) -> PairRule | None:
        """The rule of the pair at `rank` that has this value, if all are searched found without regard to what threads did."""
        found = None
        if self.complete():
            limit = value + 2 * self.tol
            found = search_pair(
                self.merge(rank), self.options, Workspace(), cap=lambda own: limit, stopped=lambda: False,
                start=self.start(rank), first_only=True,
            ).rule  # fmt: skip
        return found if found is not None else rule_of(self.found[rank])
