"""A run ends at its limit or when cancelled, even while the compiler works."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from numba.core import event

from trainer.certificate import Limits, Status
from trainer.check.recount import verdict, verify
from trainer.data.problem import Problem
from trainer.data.reader import load
from trainer.methods.base import Solution
from trainer.methods.monitor import COMPILING, Monitor
from trainer.registry import METHODS, get
from trainer.solver_common.problem_setup import pose
from trainer.table import Labels, numeric_table
from trainer.training import run, supervised_thread
from trainer.tree.nodes import DraftBranch, DraftLeaf
from trainer.tree.splits import Threshold

STUMP = DraftBranch(split=Threshold(feature=0, threshold=0.5), left=DraftLeaf(), right=DraftLeaf())


@pytest.fixture
def done():
    """Set at the end of the test, so that the thread that was left behind ends, too."""
    flag = threading.Event()
    yield flag
    flag.set()
    until = time.monotonic() + 10
    while supervised_thread.compiler_runs() and time.monotonic() < until:
        time.sleep(0.01)
    assert not supervised_thread.compiler_runs()


def problem(method: str) -> Problem:
    labels = Labels(name="y", classes=("a", "b"), codes=np.array([0, 0, 0, 1], np.int32))
    return pose(numeric_table(np.array([[0.0], [0], [1], [1]])), labels, get(method).settings({}))


def compiling(done: threading.Event, draft=None):
    """Return a search that reports the draft, and then waits for a compiler."""

    def solve(problem, settings, monitor):
        if draft is not None:
            monitor.report(incumbent=0.75, bound=0.9, draft=draft)
        with event.trigger_event("numba:compile", {}):
            done.wait(60)
        monitor.report(incumbent=0.8, bound=0.1, phase="late")
        return Solution(draft=DraftLeaf(), bound=0.1, finished=False)

    return solve


@pytest.mark.parametrize("draft", [None, STUMP], ids=["no tree yet", "a tree"])
@pytest.mark.parametrize("reason", [Status.MEMORY_LIMIT, Status.CANCELLED])
def test_run_does_not_wait_for_compilation(done, draft, reason):
    method = replace(get("exact"), solve=compiling(done, draft))
    monitor = Monitor()
    threading.Timer(0.1, monitor.stop, [reason]).start()
    begun = time.monotonic()
    solution = supervised_thread.solve(method, problem("exact"), method.settings({}), monitor)
    assert time.monotonic() - begun < 20  # the compiler still runs for 60 s
    assert supervised_thread.compiler_runs()
    assert not solution.finished
    assert solution.status(method.guarantee, monitor) is reason
    assert (solution.draft, solution.bound) == ((DraftLeaf(), None) if draft is None else (draft, 0.9))
    assert "compiling" in solution.note
    done.set()
    while supervised_thread.compiler_runs():
        time.sleep(0.01)
    assert (monitor.bound, monitor.phase) == (solution.bound, COMPILING)  # reports that come late are ignored


def test_compiling_counts_against_no_time_limit(done):
    """The compiler takes eight times the limit, and the search after it still has its time."""
    left = []

    def solve(problem, settings, monitor):
        with event.trigger_event("numba:compile", {}):
            done.wait(0.8)
        left.append(monitor.stopped())
        while not monitor.stopped():
            time.sleep(0.01)
        return Solution(draft=STUMP, bound=0.9, finished=False)

    method = replace(get("exact"), solve=solve)
    monitor = Monitor(Limits(time=0.1))
    solution = supervised_thread.solve(method, problem("exact"), method.settings({}), monitor)
    assert left == [False]
    assert solution.status(method.guarantee, monitor) is Status.TIME_LIMIT
    assert (solution.draft, solution.note) == (STUMP, "")
    assert monitor.compiled() >= 0.8
    assert monitor.snapshot().compile_seconds == monitor.compiled()


def test_summary_states_compile_time_separately(monkeypatch):
    def solve(problem, settings, monitor):
        with event.trigger_event("numba:compile", {}):
            time.sleep(0.5)
        while not monitor.stopped():
            time.sleep(0.01)
        return Solution(draft=DraftLeaf(), bound=0.9, finished=False)

    method = replace(get("exact"), solve=solve)
    monkeypatch.setattr(run, "get", lambda name: method)
    rows = problem("exact")
    request = run.TrainRequest(table=rows.table, labels=rows.labels, method="exact", parameters={"time_limit": 0.1})
    begun = time.perf_counter()
    summary = run.train(request).summary
    took = time.perf_counter() - begun
    assert summary["compile_seconds"] >= 0.5
    assert summary["seconds"] <= took - summary["compile_seconds"]


def test_search_without_compilation_returns():
    def solve(problem, settings, monitor):
        while not monitor.stopped():
            time.sleep(0.01)
        time.sleep(2 * supervised_thread.COMPILER_GRACE_SECONDS)
        return Solution(draft=STUMP, bound=0.9, finished=False)

    method = replace(get("exact"), solve=solve)
    solution = supervised_thread.solve(method, problem("exact"), method.settings({}), Monitor(Limits(time=0.05)))
    assert (solution.draft, solution.note) == (STUMP, "")


def test_run_waits_if_a_leaf_may_violate_a_constraint(done):
    """With a minimum recall, for example, a single leaf may be infeasible and therefore no answer."""
    method = replace(get("exact"), solve=compiling(done))
    threading.Timer(1.0, done.set).start()
    monitor = Monitor()
    monitor.stop(Status.CANCELLED)
    solution = supervised_thread.solve(method, problem("exact"), method.settings({"recall": "b:0.9"}), monitor)
    assert solution.note == ""


def test_cancelled_size_choice_keeps_tree_without_compiling(done, monkeypatch):
    """The search would wait for the compiler of the size choice, so it does not begin."""

    def best(problem, settings, monitor):
        with event.trigger_event("numba:compile", {}):
            done.wait(60)
        return []

    def search(problem, settings, monitor):
        raise AssertionError("a search began")

    exact = get("exact")
    method = replace(exact, solve=search, sizes=replace(exact.sizes, best=best))
    monkeypatch.setattr(run, "get", lambda name: method)
    values = np.arange(80) % 8.0
    labels = Labels(name="y", classes=("a", "b"), codes=((values // 2) % 2).astype(np.int32))
    request = run.TrainRequest(
        table=numeric_table(values[:, None]), labels=labels, method="exact", parameters={"depth": 3}, test_share=0.2
    )
    monitors = []
    begun = time.monotonic()
    result = run.train(
        request,
        sink=lambda progress, draft: None if draft is None else monitors[0].stop(Status.CANCELLED),
        on_start=monitors.append,
    )
    assert time.monotonic() - begun < 20  # the compiler still runs for 60 s
    assert result.certificate.status is Status.CANCELLED
    assert result.certificate.leaves == 4
    assert result.certificate.correct == result.certificate.n
    assert result.model.sizes["tried"] == []


def test_demands_are_names_of_parameters():
    known = {p.name for method in METHODS for p in method.parameters}
    assert set(supervised_thread.DEMANDS) <= known


def test_routing_kernel_is_compiled_before_the_search(monkeypatch):
    applied = []
    tree = type(problem("exact").tree(DraftLeaf()))
    apply = tree.apply
    monkeypatch.setattr(tree, "apply", lambda self, X: (applied.append(len(X)), apply(self, X))[1])
    supervised_thread.prepare(problem("exact"))
    assert applied == [1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked", [{}, {"max_card": 1}, {"topology": "imbalanced"}, {"topology": "auto"}, {"select": "cart", "max_card": 2}]
)
def test_tree_of_interrupted_compilation_states_its_scope(done, tmp_path, monkeypatch, asked):
    """Without a search, odt has a result only for a given topology. Otherwise it returns a leaf and claims no bound."""
    method = replace(get("odt"), solve=compiling(done, STUMP))
    monkeypatch.setattr(run, "get", lambda name: method)
    data = tmp_path / "rows.csv"
    data.write_text("x,y\n0,a\n0,a\n1,a\n1,b\n1,b\n")
    table, labels, *_ = load(data, target="y")
    request = run.TrainRequest(table=table, labels=labels, method="odt", parameters=asked)
    result = run.train(
        request, on_start=lambda monitor: threading.Timer(0.1, monitor.stop, [Status.MEMORY_LIMIT]).start()
    )
    run.save(result.model, tmp_path / "model.json")
    known = asked.get("topology") != "auto" and "select" not in asked
    assert (result.certificate.bound, result.certificate.leaves) == ((0.9, 2) if known else (None, 1))
    assert ("this topology" in result.certificate.scope) == known
    assert verdict(verify(tmp_path / "model.json", data)) in ("proved", "recounted")
