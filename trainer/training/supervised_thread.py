"""One solve in a thread of its own, while the calling thread keeps time, watches memory and stays free for signals.

A search looks at its limits, but a compiler does not. Where nothing is kept of the kernels' compiled code, compiling takes many seconds.
A run that has to end meanwhile leaves the thread with the compiler behind and takes the best tree that was reported, or a leaf.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

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
COMPILER_GRACE_SECONDS = 0.4  # seconds that a compiler may go on after the end of the run
LEFT = (
    "The {end} while kernels were still compiled, before the search had its time. The tree is {tree}. "
    "`manage.py warm` compiles all kernels once, so that later runs begin with the search."
)
# settings under which something else than accuracy is maximised
DEMANDS = ("sensitivity", "specificity", "negative_weight", "frontier", "pareto")
_threads: list[threading.Thread] = []


def solve(method: Method, problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """The solution of the method; raises what the method raises."""
    if np.unique(problem.y).size < 2 and not method.complete:
        # one class: a single leaf is right everywhere, whatever the method
        correct = 1.0 - float(problem.leaf_penalty)
        proved = method.guarantee is Guarantee.TREE
        return Solution(
            draft=DraftLeaf(),
            bound=correct if proved else None,
            proof=lambda stop: one_class(problem),
        )
    found: list[Solution] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            found.append(method.solve(problem, settings, monitor))
        except BaseException as error:
            errors.append(error)

    with watched(monitor.compiling):
        thread = _started(work)
        can_leave = _leaf_is_allowed(method, settings)
        ticks = 0
        stopped = float("inf")
        while thread.is_alive():
            thread.join(TICK)
            ticks += 1
            if monitor.stopped():
                stopped = min(stopped, time.perf_counter())
                if can_leave and monitor.phase == COMPILING and time.perf_counter() - stopped > COMPILER_GRACE_SECONDS:
                    return _left_behind(method, thread, monitor, known=not method.unsearched(problem, settings))
            if ticks % 10 == 0:
                monitor.check_memory()
            if ticks % 20 == 0:
                monitor.emit()
    if errors:
        raise errors[0]
    return found[0]


def prepare(problem: Problem) -> None:
    """Load or compile what routes rows, before the time of a search begins; signals are handled meanwhile.

    Every run needs it at its end, where a search of pure Python would otherwise load all of numba after its limit.
    """
    errors: list[BaseException] = []

    def work() -> None:
        try:
            problem.tree(DraftLeaf()).apply(problem.matrix[:1])
        except BaseException as error:
            errors.append(error)

    thread = _started(work)
    while thread.is_alive():
        thread.join(TICK)
    if errors:
        raise errors[0]


def compiler_runs() -> bool:
    """Whether a thread still works that its run no longer waits for. A process must not end by itself then: LLVM would crash."""
    return any(thread.is_alive() for thread in _threads)


def _started(work: Callable[[], None]) -> threading.Thread:
    _threads[:] = [one for one in _threads if one.is_alive()]
    thread = threading.Thread(target=work, name="solve", daemon=True)
    _threads.append(thread)
    thread.start()
    return thread


def _leaf_is_allowed(method: Method, settings: Settings) -> bool:
    return not method.complete and not demands_more(method, settings) and leaf_fits(settings)


def demands_more(method: Method, settings: Settings) -> bool:
    """Whether something else than accuracy is maximised."""
    return bool(count_goal(settings)) or any(
        (p := method.parameter(name)) is not None and settings[name] != p.default for name in DEMANDS
    )


def _left_behind(method: Method, thread: threading.Thread, monitor: Monitor, *, known: bool) -> Solution:
    """What is known, from a thread that compiles and is no longer listened to.

    Where only the search could say which trees it looks at (`known` is false), nothing can be claimed of its tree and bound.
    """
    monitor.ignored = thread
    end = "run was stopped" if monitor.reason is Status.CANCELLED else "limit was reached"
    draft = monitor.draft if known else None
    return Solution(
        draft=DraftLeaf() if draft is None else draft,
        bound=monitor.bound if method.guarantee is Guarantee.TREE and known else None,
        finished=False,
        nodes=monitor.nodes,
        note=LEFT.format(end=end, tree="a leaf" if draft is None else "the best found until then"),
    )
