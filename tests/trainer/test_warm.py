"""A tiny training warms each method, and later trainings compile nothing more."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.processes import start
from trainer.cli.warm import run
from trainer.evaluate import study
from trainer.methods.capabilities import Role
from trainer.registry import METHODS, method_for, precompiled_ids
from trainer.training.warm_up import warm

OTHERS = ROOT / "tests" / "trainer" / "other_trainings.py"


@pytest.mark.slow
@pytest.mark.parametrize("method", [m.id for m in METHODS if not m.precompile])
def test_a_method_is_soon_warm(method):
    # A daemon thread, because otherwise a training that does not end would block the whole test run.
    done: Future[bool] = Future()
    threading.Thread(target=lambda: _settle(done, method), daemon=True).start()
    # There is no limit, so the training must end by itself. The test below requires the same of methods with kernels.
    assert done.result(timeout=300)


def _settle(done: Future[bool], method: str) -> None:
    try:
        warm(method)
        done.set_result(True)
    except BaseException as error:
        done.set_exception(error)


def others(folder: Path, *arguments: str) -> dict[str, str]:
    """Return what trainings compile in a new process, where other tests have compiled nothing."""
    ended = start(OTHERS, *arguments, folder=folder).wait(600)
    assert ended == 0, (folder / "stderr").read_text()
    return json.loads((folder / "stdout").read_text())


@pytest.mark.slow
def test_other_trainings_compile_nothing_more(tmp_path):
    """Warming must also end by itself."""
    assert others(tmp_path, *precompiled_ids()) == {}


@pytest.mark.slow
def test_unwarmed_kernel_is_detected(tmp_path):
    assert "exact-numeric" in str(others(tmp_path, "oc1", "--only", "exact-numeric"))


def test_second_process_begins_with_the_last_method(monkeypatch):
    """The first one begins with the default method of forms."""
    methods = []
    monkeypatch.setattr("trainer.cli.warm.warm", methods.append)
    run({"methods": [], "backwards": False})
    forwards = methods.copy()
    methods.clear()
    run({"methods": [], "backwards": True})
    assert forwards == list(precompiled_ids())
    assert forwards[0] == method_for(Role.ONE_PROVED).id
    assert methods == forwards[::-1]


def test_studies_compile_no_workbench(monkeypatch):
    asked = []
    monkeypatch.setattr("trainer.evaluate.study.warm", lambda method, **options: asked.append((method, options)))
    study._warmed.__wrapped__("exact")
    assert asked == [("exact", {"workbench": False})]
