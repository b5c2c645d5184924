"""Search the splits of the root, by threads or in slices."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from trainer.families.exact.instance import ExactInstance
from trainer.families.exact.kernels import depth4 as dp_depth4
from trainer.families.exact.kernels import solve_subtree as dp_subtree
from trainer.families.exact.kernels.depth3 import BEST, CHOICE, DEPTH_TWO_SOLVES, NEXT, PairBudget
from trainer.families.exact.kernels.equal_rows import members_by_answer
from trainer.families.exact.search.frame import SearchFrame
from trainer.families.exact.search.memo import SHALLOWER, MemoEntry

# least time between two reports of the root's bound, whose computation takes longer than a small child
REPORT_SECONDS = 0.02


class RootSearch(Protocol):
    """Interface of `ExactSearch` that the search of the root uses."""

    instance: ExactInstance
    context: dp_subtree.SearchContext
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
    def pruning_threshold(self) -> Callable[[int], int]:
        """Map the incumbent cost to the cost from which splits are pruned."""

    def attempt(
        self,
        frame: SearchFrame,
        rows: np.ndarray,
        path: tuple[int, ...],
        height: int,
        p: int,
        best: Callable[[], int],
        stoppable: bool,
    ) -> int:
        """Return the optimal cost with root split p if it is below best(), otherwise some cost >= best()."""

    def stopped(self) -> bool:
        """Return True once the search has to end."""

    def report_root(self, frame: SearchFrame, cost: int, choice: int | None, height: int) -> None:
        """Update the incumbent and report it."""

    def slice_size(self, m: int, words: int) -> int:
        """Return the number of depth-two pairs that take about 50 ms."""

    def pair_table(self, path: tuple[int, ...], height: int) -> np.ndarray:
        """Return the cache of depth-two subtrees below a node."""

    def memoise_side(self, members: np.ndarray, literal: int, entry: MemoEntry) -> None:
        """Memoise a child of height three below the root."""


def in_slices(
    search: RootSearch, frame: SearchFrame, rows: np.ndarray, best: int, choice: int | None, stoppable: bool
) -> tuple[int, int | None]:
    """Search the splits of a root of height four in time slices; return cost and feature of the best one below `best`."""
    m = len(frame.node.features)
    state = np.zeros(dp_depth4.STATES, np.int64)
    state[BEST] = best
    state[CHOICE] = -1
    caches = dp_depth4.Caches(search.pair_table((), 4), search.no_table, search.starts)
    # end each slice after this many pairs, so that progress is reported in between
    pairs = max(1, search.slice_size(m, len(frame.node.valid)) // 2)
    budget = PairBudget(pairs, search.flag if stoppable else search.no_flag)
    context = search.context
    path = np.zeros(0, np.int64)
    kernel_frame = frame.kernel_frame
    while state[NEXT] < m and not (stoppable and search.stopped()):
        state[dp_depth4.MOST] = search.pruning_threshold(best)
        before = state.tolist()
        dp_depth4.solve_depth4(context, rows, path, kernel_frame, caches, state, budget)
        search.depth_two_solves += int(state[DEPTH_TWO_SOLVES]) - before[DEPTH_TWO_SOLVES]
        search.nodes += int(state[dp_depth4.DEPTH_THREE_SOLVES]) - before[dp_depth4.DEPTH_THREE_SOLVES]
        better = int(state[BEST]) < best
        if better:
            best = int(state[BEST])
            choice = int(frame.node.features[state[CHOICE]])
        if better or time.perf_counter() - search.last_bound_reported_at >= REPORT_SECONDS:
            search.report_root(frame, best, choice, 4)
    _memoise_sides(search, frame)
    return best, choice


def _memoise_sides(search: RootSearch, frame: SearchFrame) -> None:
    """Memoise the children of all splits as subproblems."""
    features = frame.node.features
    row_sets = members_by_answer(search.instance.rows, features)
    for p, feature in enumerate(features.tolist()):
        for s in range(2):
            exact = bool(frame.exact[s, p])
            choice = choice_of_root(int(frame.roots[s, p])) if exact else None
            entry = MemoEntry(int(frame.lower[s, p]), exact, choice)
            search.memoise_side(row_sets[p, s], 2 * feature + s, entry)


def choice_of_root(root: int) -> int | None:
    """Translate the ROOT of a kernel's answer into the choice of a memo entry."""
    if root == dp_subtree.NO_SPLIT:
        return None
    return SHALLOWER if root == dp_subtree.LESS_DEEP else root


def in_parallel(
    search: RootSearch, frame: SearchFrame, rows: np.ndarray, height: int, best: int, choice: int | None
) -> tuple[int, int | None]:
    """Search the splits in threads that share the incumbent, then take the first split that reaches the optimum."""
    start = best
    shared = [best]
    queue = iter(range(len(frame.node.features)))
    failures: list[BaseException] = []
    splits: dict[int, int] = {}

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
                        splits[value] = p
                search.report_root(frame, value, int(frame.node.features[p]), height)
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
    return shared[0], int(frame.node.features[splits[shared[0]]])


def _run_threads(work: Callable[[], Any], threads: int) -> None:
    team = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
