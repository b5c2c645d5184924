"""Solve in a thread, while the caller checks limits and signals.

A search checks its limits, but a compiler does not. Without cached kernels, compiling takes many seconds. A run that
has to end meanwhile abandons the thread and returns the best reported tree, or a leaf.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import numpy as np

from trainer.certificate import Guarantee, Status
from trainer.constraints import leaf_fits
from trainer.data.problem import Problem
from trainer.goal import count_goal
from trainer.kernels.compiled import watched
from trainer.methods.base import Method, Settings, Solution
from trainer.methods.monitor import COMPILING, Monitor
from trainer.training.proof_file import one_class
from trainer.tree.nodes import DraftLeaf

TICK = 0.05
COMPILER_GRACE_SECONDS = 0.4  # a compiler may continue for this long after the end of the run
LEFT = (
    "The {end} while kernels were compiling, before the search had its time. The tree is {tree}. "
    "Run `manage.py warm` once to compile all kernels, so that later runs begin with the search."
)
# settings that replace accuracy as the objective
DEMANDS = ("sensitivity", "specificity", "negative_weight", "frontier", "pareto")
Result = TypeVar("Result")
_threads: list[threading.Thread] = []


def solve(method: Method, problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Return the solution of the method, or raise its error."""
    counts_subtrees = method.guarantee is Guarantee.SUBTREES  # its own leaf states that it is proved
    if np.unique(problem.y).size < 2 and not method.complete and not counts_subtrees:
        # with a single class, a leaf is optimal for every method
        correct = 1.0 - float(problem.leaf_penalty)
        proved = method.guarantee is Guarantee.TREE
        return Solution(
            draft=DraftLeaf(),
            bound=correct if proved else None,
            proof=lambda stop: one_class(problem),
        )
    can_leave = _leaf_is_allowed(method, settings)
    if can_leave and monitor.ignored is not None and monitor.ignored.is_alive():
        # the compiler of an earlier step still runs, and a search would wait for it
        return _left_behind(method, monitor, known=not method.unsearched(problem, settings))
    call = _Call(lambda: method.solve(problem, settings, monitor))
    with watched(monitor.compiling):
        call.start()
        for _ in _supervised_ticks(call.thread, monitor):
            if monitor.stopped() and can_leave and _grace_is_over(monitor):
                monitor.ignored = call.thread
                return _left_behind(method, monitor, known=not method.unsearched(problem, settings))
    return call.result()


def supervise(work: Callable[[], Result], monitor: Monitor, *, otherwise: Result) -> Result:
    """Run `work` in a thread, return its result or raise its error; meanwhile check time and memory.

    `work` must check the monitor. If the run has to end while it compiles, its thread is abandoned, and the result is
    `otherwise`.
    """
    call = _Call(work)
    with watched(monitor.compiling):
        call.start()
        for _ in _supervised_ticks(call.thread, monitor):
            if monitor.stopped() and monitor.reason is not None and _grace_is_over(monitor):
                monitor.ignored = call.thread
                return otherwise
    return call.result()


def _grace_is_over(monitor: Monitor) -> bool:
    """Return whether the compiler has continued for longer than allowed since the run had to end."""
    if monitor.phase != COMPILING:
        return False
    if monitor.stop_noticed is None:
        monitor.stop_noticed = time.perf_counter()
    return time.perf_counter() - monitor.stop_noticed > COMPILER_GRACE_SECONDS


def prepare(problem: Problem) -> None:
    """Load or compile the routing kernel before the time limit starts; signals are handled meanwhile.

    Every run needs this kernel at its end. Otherwise, a search in pure Python would load numba after its limit.
    """
    call = _Call(lambda: problem.tree(DraftLeaf()).apply(problem.matrix[:1]))
    call.start()
    while call.thread.is_alive():
        call.thread.join(TICK)
    call.result()


def compiler_runs() -> bool:
    """Return whether an abandoned thread is still running; the process must not exit normally then, or LLVM crashes."""
    return any(thread.is_alive() for thread in _threads)


class _Call(Generic[Result]):
    """One call in a thread of its own."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._found: list[Result] = []
        self._errors: list[BaseException] = []
        self.thread: threading.Thread

    def start(self) -> None:
        self.thread = _start_thread(self._run)

    def result(self) -> Result:
        """Return the result of the call, or raise its error."""
        if self._errors:
            raise self._errors[0]
        return self._found[0]

    def _run(self) -> None:
        try:
            self._found.append(self._work())
        except BaseException as error:
            self._errors.append(error)


def _supervised_ticks(thread: threading.Thread, monitor: Monitor) -> Iterator[None]:
    """Yield several times a second while the thread runs; check memory, report progress and use the time of compilation."""
    ticks = 0
    while thread.is_alive():
        thread.join(TICK)
        ticks += 1
        monitor.use_compile_time()
        yield
        if ticks % 10 == 0:
            monitor.check_memory()
        if ticks % 20 == 0:
            monitor.emit()


def _start_thread(work: Callable[[], None]) -> threading.Thread:
    _threads[:] = [one for one in _threads if one.is_alive()]
    thread = threading.Thread(target=work, name="solve", daemon=True)
    _threads.append(thread)
    thread.start()
    return thread


def _leaf_is_allowed(method: Method, settings: Settings) -> bool:
    return not method.complete and not demands_more(method, settings) and leaf_fits(settings)


def demands_more(method: Method, settings: Settings) -> bool:
    """Return whether the settings replace accuracy as the objective."""
    return bool(count_goal(settings)) or any(
        (p := method.parameter(name)) is not None and settings[name] != p.default for name in DEMANDS
    )


def _left_behind(method: Method, monitor: Monitor, *, known: bool) -> Solution:
    """Return the incumbent of a run whose compiling thread is abandoned.

    If only the search knows its scope (`known` is false), its tree and bound cannot be used.
    """
    end = "run was stopped" if monitor.reason is Status.CANCELLED else "limit was reached"
    draft = monitor.draft if known else None
    return Solution(
        draft=DraftLeaf() if draft is None else draft,
        bound=monitor.bound if method.guarantee is Guarantee.TREE and known else None,
        finished=False,
        nodes=monitor.nodes,
        note=LEFT.format(end=end, tree="a leaf" if draft is None else "the best found until then"),
    )
