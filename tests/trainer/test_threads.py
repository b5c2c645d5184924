"""No search deadlocks with two threads and a listener of all reports."""

from __future__ import annotations

import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.watchdog import watchdog
from trainer.certificate import Limits
from trainer.data.problem import Problem
from trainer.families.exact.search import root_splits, search
from trainer.families.exact.search.solve import solve_binary
from trainer.growing import method as growing
from trainer.methods import monitor as monitors
from trainer.methods.monitor import Monitor
from trainer.milo import exchange
from trainer.registry import METHODS
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits
from trainer.table import Labels, numeric_table
from trainer.training.supervised_thread import solve


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Send every report without delay."""
    for module, name in (
        (monitors, "INTERVAL"),
        (exchange, "INTERVAL"),
        (growing, "SHOW_SECONDS"),
        (root_splits, "REPORT_SECONDS"),
        (search, "TREE_SECONDS"),
    ):
        assert hasattr(module, name)
        monkeypatch.setattr(module, name, 0.0)


DEADLOCK = """
import threading
from tests.watchdog import watchdog
lock = threading.Lock()
lock.acquire()
waiting = threading.Thread(target=lock.acquire, daemon=True)
waiting.start()
with watchdog(0.5):
    waiting.join()
"""


def test_watchdog_fails_a_deadlock():
    """This runs in a separate process, because threads of other tests would keep this one busy."""
    ended = subprocess.run([sys.executable, "-c", DEADLOCK], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    assert "StoodStill: No processor time was used for 0.5 s." in ended.stderr


def test_watchdog_leaves_a_busy_process_alone():
    with watchdog(0.5):
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            sum(range(1000))


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_exact_with_two_threads_shows_every_better_tree(depth):
    rng = np.random.default_rng(depth)
    X = rng.integers(0, 2, (250, 18)).astype(np.uint8)
    y = ((X[:, :4].sum(axis=1) + rng.integers(0, 3, 250)) % 2).astype(np.int32)
    shown = []
    heard = []
    given = {"n_classes": 2, "depth": depth, "leaf_cost": Fraction(1)}
    solution = solve_binary(
        BinaryProblem(X, y, **given),
        limits=SearchLimits(threads=2),
        report=lambda *progress: heard.append(progress),
        improved=lambda shape: shown.append(shape),
    )
    assert solution.cost == solution.bound == solve_binary(BinaryProblem(X, y, **given)).cost
    assert shown
    assert all(bound <= solution.cost <= cost for cost, bound, _ in heard)


@pytest.mark.parametrize("method", [m for m in METHODS if m.parameter("threads")], ids=lambda m: m.id)
def test_a_method_with_two_threads_and_a_listener_ends(method):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, (40, 4)).astype(float)
    y = ((X[:, 0] + X[:, 1] + rng.integers(0, 2, 40)) % 2).astype(np.int32)
    wanted = {"depth": 4 if method.id in ("exact", "bivariate", "cart", "oc1") else 2, "threads": 2, "time_limit": 2}
    known = {name: value for name, value in wanted.items() if method.parameter(name)}
    settings = method.settings(known)
    problem = Problem(table=numeric_table(X), labels=Labels(name="y", classes=("a", "b"), codes=y))
    heard = []
    monitor = Monitor(Limits(time=2.0, threads=2), sink=lambda progress, draft: heard.append((progress, draft)))
    solution = solve(method, problem, settings, monitor)
    assert solution.draft is not None
    assert heard
