"""At SIGTERM a training ends by itself and writes its incumbent, for most families of methods."""

from __future__ import annotations

import json
import signal
import time

import numpy as np
import psutil
import pytest

from tests.processes import MANAGE, start

WAIT = 600.0  # seconds in which a search has begun and found a tree, also on a machine that is busy
AFTER = 10.0  # seconds of the processor from the signal to the end; 2 on a usual machine
METHODS = ("bivariate", "exact", "exact-numeric", "bendoct", "cut-h")


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """Provide a table whose classes depend on no column, so that no search ends soon."""
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("noise") / "t.csv"
    rows = [",".join([*(f"{v:.3f}" for v in rng.normal(size=50)), "ab"[rng.integers(2)]]) for _ in range(600)]
    path.write_text(",".join([*(f"x{j}" for j in range(50)), "y"]) + "\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_sigterm_ends_a_search_with_its_best_tree(noise, tmp_path, method):
    model = tmp_path / "model.json"
    progress = tmp_path / "progress.jsonl"
    asked = ["train", noise, "--target=y", f"--method={method}", "--depth=4", "--time-limit=3600", "--json"]
    child = start(MANAGE, *asked, f"--output={model}", f"--progress={progress}", folder=tmp_path)
    try:
        until = time.monotonic() + WAIT
        while not _has_a_tree(progress) and child.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        assert child.poll() is None, (tmp_path / "stderr").read_text()
        inside = psutil.Process(child.pid)
        before = last = _processor(inside)
        child.send_signal(signal.SIGTERM)
        while child.poll() is None and last - before < AFTER:
            last = _processor(inside) or last
            time.sleep(0.02)
        assert child.poll() is not None, f"{last - before:.1f} s of the processor after the signal"
    finally:
        child.send_signal(signal.SIGKILL)
    assert child.poll() == 0, (tmp_path / "stderr").read_text()
    assert json.loads((tmp_path / "stdout").read_text().splitlines()[-1])["status"] == "cancelled"
    assert len(json.loads(model.read_text())["nodes"]) >= 1


def _has_a_tree(progress) -> bool:
    """Return whether the progress has a complete line with a tree. Greedy methods report no objective."""
    text = progress.read_text() if progress.exists() else ""
    lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    return any(line.get("incumbent") is not None or line.get("leaves") is not None for line in lines)


def _processor(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
