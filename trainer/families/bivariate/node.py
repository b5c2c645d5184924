"""Search all pairs of features of one node, with threads.

The threads share the incumbent. Pairs are ordered by the best of a few sampled lines, so that the incumbent improves early. The result
of a complete search depends neither on the number of threads nor on timing: the first pair in that order with the optimal value wins. A
separate search of that pair, which knows the optimal value, then finds its rule.
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
from trainer.families.bivariate.kernels.points import BivariateRows, Points, allocate_points, pair_points
from trainer.families.bivariate.pair import (
    BOUNDS,
    PairRule,
    SearchOptions,
    Workspace,
    kernel_options,
    make_pair_search,
    pair_floor,
    row_from_result,
    rule_from_row,
    search_pair,
)
from trainer.families.bivariate.scale import NodePoints
from trainer.growing.impurity import MEASURES
from trainer.growing.node_split import SplitData

SAMPLE_ROWS = 128  # number of rows in the sample from which lines are drawn
SLOPES = np.array([-0.9, -0.5, -0.2, 0.2, 0.5, 0.9])
MAX_MERGED_CELLS = 2_000_000  # a stopped search merges equal points up to this number of rows × pairs
PAIRS_PER_PART = 64  # pairs per call of the line sampling
PAIRS_PER_CHECK = 32  # pairs between two checks of the clock
HELPER_SECONDS_PER_PAIR = 0.00025  # a helper returns if a pair takes less processor time than this
WAITING = 0
UNFINISHED = 1
FINISHED = 2
MAX_PAIRS_PER_CALL = 16  # limit on the brief pairs that a thread takes at a time


def list_pairs(features: int) -> CountArray:
    """Return all pairs of different features, int64 (pairs, 2), in ascending order; vectorised for millions of pairs."""
    later = np.arange(features - 1, -1, -1)  # for each feature, the number of features after it
    pairs = np.empty((int(later.sum()), 2), np.int64)
    pairs[:, 0] = np.repeat(np.arange(features), later)
    pairs[:, 1] = 1
    ends = np.cumsum(later)
    # the second feature increases by one, and restarts when the first one changes
    pairs[ends[:-2], 1] = 2 - later[:-2]
    np.cumsum(pairs[:, 1], out=pairs[:, 1])
    return pairs


def _pairs_with_rows(pairs: CountArray, empty: BoolArray) -> tuple[CountArray, BoolArray]:
    """Return the pairs that have a row without empty cells, and for each whether it also has a row with one.

    `empty` is bool (features, n).
    """
    if not empty.any():
        return pairs, np.zeros(len(pairs), bool)
    present = (~empty).astype(np.float64)
    both = (present @ present.T)[pairs[:, 0], pairs[:, 1]]
    has_rows = both > 0
    return pairs[has_rows], both[has_rows] < empty.shape[1]


@dataclass(kw_only=True)
class NodeSearch:
    """The search of one node: its pairs, the shared incumbent (value and rank of its pair), and results.

    `pairs` int64 (pairs, 3) are two features and the side of rows with an empty cell, as in `pair_points`. A pair with such rows is
    searched for each side. `result_rows` float64 (pairs, COLUMNS) are the results, `pair_status` the status of each pair.
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
        self._own_pairs, self._some_empty = _pairs_with_rows(list_pairs(p), self.points.empty)
        self.pairs = self._with_sides(np.arange(len(self._own_pairs)))[0]
        self.starts = np.empty((len(self._own_pairs), 4))
        self.result_rows = np.empty((len(self.pairs), brief.COLUMNS))
        self.pair_status = np.zeros(len(self.pairs), np.int8)
        sample = np.arange(n)
        if n > SAMPLE_ROWS:
            sample = np.sort(np.random.default_rng(self.seed).permutation(n)[:SAMPLE_ROWS])
        some = self.points.empty
        self._sample = (
            np.ascontiguousarray(self.points.values[:, sample]),
            np.ascontiguousarray(some[:, sample]) if len(some) else some,
        )
        self._sample_classes = (self.y[sample], self.weight[sample])
        self._parts = len(range(0, len(self._own_pairs), PAIRS_PER_PART))
        self._begun = self._sampled = 0
        self._all_sampled = threading.Event()
        if not self._parts:  # every row has an empty cell in one column of each pair, so there is nothing to sample
            self._all_sampled.set()
        self._ordered = threading.Event()

    def begin(self) -> None:
        """Sort the pairs by their best sampled line; ties keep the order of the pairs."""
        try:
            self._sample_lines()
            self._all_sampled.wait()
            if self.stopped():  # the run ends here, so skip the sort, which takes long for millions of pairs
                self.starts = self.starts[:, 1:]
                return
            ranked = np.argsort(self.starts[:, 0], kind="stable")
            self.pairs, repeated = self._with_sides(ranked)
            self.starts = np.ascontiguousarray(self.starts[repeated, 1:])
        finally:
            self._ordered.set()

    def _with_sides(self, order: CountArray) -> tuple[CountArray, CountArray]:
        """Return pairs with sides in this order, int64 (pairs, 3), and the index of each.

        A pair with empty cells occurs twice, once for each side.
        """
        if not self._some_empty.any():
            return np.column_stack((self._own_pairs[order], np.zeros(len(order), np.int64))), order
        repeated = np.repeat(order, np.where(self._some_empty[order], 2, 1))
        side = self._some_empty[repeated].astype(np.int64)
        side[1:] += side[1:] * (repeated[1:] == repeated[:-1])
        return np.column_stack((self._own_pairs[repeated], side)), repeated

    def help(self) -> None:
        """Help with a node that another thread has started."""
        self._sample_lines()
        self._ordered.wait()
        if self.starts.shape[1] == 3:  # otherwise the thread that started the node has failed
            self.work(helper=True)

    def _sample_lines(self) -> None:
        while True:
            with self.lock:
                k = self._begun
                if k == self._parts:
                    return
                self._begun += 1
            part = slice(k * PAIRS_PER_PART, (k + 1) * PAIRS_PER_PART)
            try:
                if not self.stopped():  # check here, because a thousand columns have half a million pairs
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
        """Return the best sampled line of the pair at this rank."""
        order, a, b = self.starts[rank].tolist()
        return PairRule(order=int(order), a=a, b=b)

    def distinct_points(self, rank: int) -> Points:
        """Return the distinct points of the pair at this rank."""
        points: Points = pair_points(self.pairs[rank], self._node_rows(), allocate_points(len(self.rows), self.total))
        return points

    def _node_rows(self) -> BivariateRows:
        """Return the rows of the node as a record for kernels."""
        points = self.points
        return BivariateRows(points.values, points.ranks, self.levels, self.y, self.weight, self.total, points.empty)

    def cap(self, rank: int) -> Callable[[float], float]:
        """Return a function that updates the incumbent and returns the value that rules of the pair must beat.

        A pair may tie with an incumbent of a later pair.
        """

        def cap(value: float) -> float:
            with self.lock:
                if value < self.value - self.tol or (value < self.value + self.tol and rank < self.rank):
                    self.value = min(value, self.value)
                    self.rank = rank
                return self.value if self.rank <= rank else self.value + 2 * self.tol

        return cap

    def work(self, *, helper: bool = False) -> None:
        """Search pairs until none is left or the run is stopped. A helper returns once pairs are too brief to share."""
        workspace = Workspace()
        checked_at = time.thread_time()
        searched = 0
        searched_before = 0
        long_pairs = 0
        while not self.stopped():
            if helper and searched - searched_before >= PAIRS_PER_CHECK:
                now = time.thread_time()
                if now - checked_at < (searched - searched_before) * HELPER_SECONDS_PER_PAIR:
                    return
                checked_at = now
                searched_before = searched
            rank, until = self._take(together=long_pairs <= 1 + searched // 4)
            if rank == until:
                return
            while rank < until and not self.stopped():
                first_rank = rank
                longer = True
                # if most pairs take long, looking for brief ones does not pay
                if long_pairs <= 1 + searched // 4:
                    rank, longer = self._search_brief_pairs(rank, until, workspace)
                if longer:
                    self._search_long_pair(rank, workspace)
                    rank = rank + 1
                    long_pairs = long_pairs + 1
                searched += rank - first_rank

    def _take(self, *, together: bool) -> tuple[int, int]:
        """Take the next pairs; return the first rank, and the one after the last."""
        with self.lock:
            rank = self.next
            left = len(self.pairs) - self.next
            if self.threads == 1:
                some = left
            else:
                some = (
                    min(left, max(1, min(MAX_PAIRS_PER_CALL, left // (2 * self.threads)))) if together else min(left, 1)
                )
            self.next = rank + some
            return rank, self.next

    def _search_brief_pairs(self, rank: int, until: int, workspace: Workspace) -> tuple[int, bool]:
        """Search pairs in one kernel call; return the next rank, and whether that pair needs a stepwise search."""
        workspace.reserve(len(self.rows), self.data.classes)
        search = make_pair_search(kernel_options(self.options), self.tol, self.options.gap, workspace)
        pairs = Pairs(self.pairs, self.starts)
        rows = self._node_rows()
        with self.lock:
            incumbent = np.array([self.value, self.rank], np.float64)
        end, longer = brief_pairs(
            search, rank, until, pairs, rows, incumbent, workspace.queue(), self.result_rows[rank:until]
        )
        rows_found = self.result_rows[rank:end]
        for r in np.flatnonzero(rows_found[:, brief.RESULT] < math.inf).tolist():
            self.cap(rank + r)(float(rows_found[r, brief.RESULT]))
        self.pair_status[rank:end] = FINISHED
        return int(end), bool(longer)

    def _search_long_pair(self, rank: int, workspace: Workspace) -> None:
        cap = self.cap(rank)
        result = search_pair(
            self.distinct_points(rank),
            self.options,
            workspace,
            cap=cap,
            stopped=self.stopped,
            start=self.start(rank),
            brief=False,
        )
        cap(result.value)
        self.result_rows[rank] = row_from_result(result)
        self.pair_status[rank] = FINISHED if result.finished else UNFINISHED

    def results(self) -> FloatArray:
        """Return the results of the pairs that were searched."""
        return self.result_rows[self.pair_status != WAITING]

    def is_complete(self) -> bool:
        """Return whether every pair was searched completely and without a gap."""
        return bool((self.pair_status == FINISHED).all()) and self.options.gap == 0

    def bound(self) -> float:
        """Return a lower bound on all rules that beat the incumbent."""
        # a pair that ended at the cap has no rule below the incumbent; an unfinished pair has the bound of its open
        # boxes
        bound = float(self.results()[:, brief.PROVED].min(initial=math.inf))
        return bound if (self.pair_status != WAITING).all() else min(bound, self._floor())

    def _floor(self) -> float:
        """Return a lower bound on the pairs that were not searched; equal points count only if merging them is fast."""
        measure = MEASURES[self.options.measure]
        none = np.zeros(self.data.classes, np.int64)
        waiting = np.flatnonzero(self.pair_status == WAITING)
        if len(waiting) * len(self.rows) <= MAX_MERGED_CELLS:
            return min(pair_floor(self.distinct_points(rank), measure, self.options.bound) for rank in waiting.tolist())
        return float(lower_bound(measure, BOUNDS[self.options.bound], none, none, self.total))

    def rule(self, rank: int, value: float) -> PairRule | None:
        """Return the rule of the pair at `rank` with this value.

        If all pairs are searched, it does not depend on the threads.
        """
        rule = None
        if self.is_complete():
            limit = value + 2 * self.tol
            rule = search_pair(
                self.distinct_points(rank),
                self.options,
                Workspace(),
                cap=lambda own: limit,
                stopped=lambda: False,
                start=self.start(rank),
                first_only=True,
            ).rule
        return rule if rule is not None else rule_from_row(self.result_rows[rank])
