"""A kernel's code is optimised once, at its entry from Python, and calls between kernels keep their results."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit
from numba.core import event

from tests.conftest import ROOT
from trainer.deferred_code import DeferredLibrary, defer

COUNT = """
import json
from numba.core.codegen import CPUCodeLibrary
from numba.core import event

optimised = []
lowered = []
optimise = CPUCodeLibrary._optimize_final_module


def count(library):
    functions = [f for f in library._final_module.functions if not f.is_declaration]
    optimised.append(sum(len(list(b.instructions)) for f in functions for b in f.blocks))
    optimise(library)


class Listener(event.Listener):
    def on_start(self, event):
        lowered.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass


CPUCodeLibrary._optimize_final_module = count
from trainer.training.warm_up import warm

with event.install_listener("numba:compile", Listener()):
    warm("oc1")
print(json.dumps({"optimised": len(optimised), "instructions": sum(optimised), "lowered": len(lowered)}))
"""


def test_called_kernel_has_no_code_until_python_calls_it():
    inner = defer(njit(lambda x: x + 1))
    outer = defer(njit(lambda x: inner(x) * 2))
    assert outer(3) == 8
    (lowered,) = inner.overloads.values()
    assert isinstance(lowered.library, DeferredLibrary)
    assert not lowered.library._finalized
    assert inner(3) == 4
    assert outer(np.float64(0.5)) == 3.0
    (emitted, _) = inner.overloads.values()
    assert emitted.library._finalized
    assert defer(njit(lambda x: outer(x) - inner(x)))(3) == 4


def test_numba_function_may_call_deferred_ones():
    inner = defer(njit(lambda x: np.argsort(x)[0]))
    outer = defer(njit(lambda x: inner(x) + 0))
    plain = njit(lambda x: outer(x) + inner(x) + np.argsort(x)[-1])
    x = np.array([0.5, 0.25, 0.75])
    assert outer(x) == 1
    assert plain(x) == 4
    assert njit(lambda x: np.argsort(x)[-1])(x) == 2


def test_error_of_called_kernel_reaches_python():
    @defer
    @njit
    def inner(x):
        if x < 0:
            raise ValueError("x is negative")
        return x

    outer = defer(njit(lambda x: inner(x)))
    with pytest.raises(ValueError, match="x is negative"):
        outer(-1)
    with pytest.raises(ValueError, match="x is negative"):
        inner(-1)


def test_failed_typing_leaves_numba_as_it_was():
    broken = defer(njit(lambda x: x.no_such_member))
    with pytest.raises(Exception, match="no_such_member"):
        broken(1)
    outside = njit(lambda x: x + 2)
    assert outside(1) == 3
    assert not any(isinstance(result.library, DeferredLibrary) for result in outside.overloads.values())


def test_emitting_is_reported_as_compiling():
    begun = []

    class Listener(event.Listener):
        def on_start(self, event):
            begun.append(event.data["dispatcher"])

        def on_end(self, event):
            pass

    inner = defer(njit(lambda x: x + 1))
    outer = defer(njit(lambda x: inner(x)))
    outer(1)
    with event.install_listener("numba:compile", Listener()):
        outer(2)
        assert begun == []
        inner(1)
    assert begun == [inner]


def test_cold_training_stays_within_its_compiling_budget(tmp_path):
    """The numbers do not depend on the machine's speed; without deferral 90 modules were optimised."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", COUNT], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    counts = json.loads(ended.stdout.splitlines()[-1])
    assert counts["optimised"] <= 8
    assert counts["instructions"] <= 13_000
    assert counts["lowered"] <= 125
