"""Every method can be warmed by a tiny training that ends by itself, and other trainings then compile nothing more."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import Future

import pytest

from tests.conftest import ROOT
from trainer.methods import METHODS
from trainer.warm import COMPILED, MORE, warm


@pytest.mark.parametrize("method", [m.id for m in METHODS])
def test_a_method_is_soon_warm(method):
    # a daemon thread, since a training that did not end would otherwise hold the whole run of tests
    done: Future[bool] = Future()
    threading.Thread(target=lambda: _settle(done, method), daemon=True).start()
    # there is no limit, so it must end by itself, even where kernels are still to be compiled
    assert done.result(timeout=300)


def _settle(done: Future[bool], method: str) -> None:
    try:
        warm(method)
        done.set_result(True)
    except BaseException as error:
        done.set_exception(error)


@pytest.mark.slow
def test_other_trainings_compile_nothing_more():
    # in a process of its own, for what other tests have compiled would hide what warming left out
    command = [sys.executable, "-m", "tests.trainer.other_trainings", *COMPILED]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {}


@pytest.mark.slow
def test_what_is_not_warmed_is_seen():
    command = [sys.executable, "-m", "tests.trainer.other_trainings", "oc1", "--only", "exact-numeric"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert "exact-numeric" in ran.stdout, ran.stderr


def test_what_is_compiled_are_methods():
    known = {method.id for method in METHODS}
    assert set(COMPILED) <= known
    assert set(MORE) <= set(COMPILED)
