"""The splits of the root, which take nearly all of the time: dealt to threads, or searched by one kernel in slices of time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from trainer.families.exact.instance import ExactInstance
from trainer.families.exact.kernels import depth4 as dp_four
from trainer.families.exact.kernels import solve_subtree as dp_whole
from trainer.families.exact.kernels.depth3 import BEST, CHOICE, DEPTH_TWO_SOLVES, NEXT, PairBudget
from trainer.families.exact.kernels.equal_rows import members_by_answer
from trainer.families.exact.search.frame import SearchFrame
from trainer.families.exact.search.memo import SHALLOWER, MemoEntry

NEWS_SECONDS = 0.02  # the bound of a root takes longer than a brief side of it


class RootSearch(Protocol):
    """What is asked of a search."""

    instance: ExactInstance
    given: dp_whole.SearchContext
    threads: int
    lock: threading.Lock
    flag: np.ndarray
    no_flag: np.ndarray
    no_table: np.ndarray
    starts: np.ndarray
    last_bound_reported_at: float
    nodes: int
    depth_two_solves: int

    @property
    def room(self) -> Callable[[int], int]:
        """Up to which costs splits are searched, by the cost of the best tree."""

    def attempt(
        self, frame: SearchFrame, rows: np.ndarray, path: tuple[int, ...], height: int, p: int,
        best: Callable[[], int], stoppable: bool,
    ) -> int:  # fmt: skip
        """The cost of the best tree with split p if it is below best(), else something that is not."""

    def stopped(self) -> bool:
        """True once the search has to end."""

    def root_news(self, frame: SearchFrame, cost: int, choice: int | None, height: int) -> None:
        """Keep a better tree and tell the listeners."""

    def slice_size(self, m: int, words: int) -> int:
        """Depth-two pairs that take about 50 ms."""

    def table_of(self, path: tuple[int, ...], height: int) -> np.ndarray:
        """The cache of depth-two subtrees below a node."""

    def remember_side(self, members: np.ndarray, literal: int, known: MemoEntry) -> None:
        """Keep what is known of a side of height three below the root."""


def in_slices(
    search: RootSearch, frame: SearchFrame, rows: np.ndarray, best: int, choice: int | None, stoppable: bool
) -> tuple[int, int | None]:
    """The best split of a root of height four whose sides are brief, if it costs less than `best`; its cost and feature."""
    m = len(frame.node.features)
    state = np.zeros(dp_four.STATES, np.int64)
    state[BEST] = best
    state[CHOICE] = -1
    caches = dp_four.Caches(search.table_of((), 4), search.no_table, search.starts)
    # what one slice takes is told of before the next one
    pairs = max(1, search.slice_size(m, len(frame.node.valid)) // 2)
    budget = PairBudget(pairs, search.flag if stoppable else search.no_flag)
    given = search.given
    path = np.zeros(0, np.int64)
    compiled = frame.compiled
    while state[NEXT] < m and not (stoppable and search.stopped()):
        state[dp_four.MOST] = search.room(best)
        before = state.tolist()
        dp_four.four(given, rows, path, compiled, caches, state, budget)
        search.depth_two_solves += int(state[DEPTH_TWO_SOLVES]) - before[DEPTH_TWO_SOLVES]
        search.nodes += int(state[dp_four.THREES]) - before[dp_four.THREES]
        better = int(state[BEST]) < best
        if better:
            best = int(state[BEST])
            choice = int(frame.node.features[state[CHOICE]])
        if better or time.perf_counter() - search.last_bound_reported_at >= NEWS_SECONDS:
            search.root_news(frame, best, choice, 4)
    _keep(search, frame)
    return best, choice


def _keep(search: RootSearch, frame: SearchFrame) -> None:
    """Keep what is known of the sides as subproblems of their own."""
    features = frame.node.features
    names = members_by_answer(search.instance.rows, features)
    for p, feature in enumerate(features.tolist()):
        for s in range(2):
            root = int(frame.roots[s, p])
            exact = bool(frame.exact[s, p])
            choice = None if root == dp_whole.NO_SPLIT else SHALLOWER if root == dp_whole.LESS_DEEP else root
            known = MemoEntry(int(frame.lower[s, p]), exact, choice if exact else None)
            search.remember_side(names[p, s], 2 * feature + s, known)


def in_parallel(
    search: RootSearch, frame: SearchFrame, rows: np.ndarray, height: int, best: int, choice: int | None
) -> tuple[int, int | None]:
    """Splits of the root dealt to threads that share the incumbent; then the first split that reaches the optimum."""
    start = best
    shared = [best]
    queue = iter(range(len(frame.node.features)))
    failures: list[BaseException] = []
    found: dict[int, int] = {}

    def work() -> None:
        try:
            while not search.stopped():
                with search.lock:
                    p = next(queue, None)
                if p is None:
                    return
                value = search.attempt(frame, rows, (), height, p, lambda: shared[0], True)
                with search.lock:
                    if value < shared[0]:
                        shared[0] = value
                        found[value] = p
                search.root_news(frame, value, int(frame.node.features[p]), height)
        except BaseException as error:
            failures.append(error)
            search.flag[0] = 1

    _run_threads(work, search.threads)
    if failures:
        raise failures[0]
    if shared[0] == start:
        return best, choice
    for p in range(len(frame.node.features)):
        if search.stopped():
            break
        if search.attempt(frame, rows, (), height, p, lambda: shared[0] + 1, True) == shared[0]:
            return shared[0], int(frame.node.features[p])
    return shared[0], int(frame.node.features[found[shared[0]]])


def _run_threads(work: Callable[[], Any], threads: int) -> None:
    team = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
