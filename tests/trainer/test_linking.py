"""Each kernel is compiled once, and its callers link to it in this process and in others."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from numba.core.codegen import CPUCodeLibrary
from numba.core.runtime._nrt_python import memsys_enable_stats
from numba.core.runtime.nrt import rtsys

from tests.conftest import ROOT
from trainer.kernels.compiled import kernel
from trainer.kernels.linking import INLINE_INSTRUCTIONS, HelperLibrary, KernelStore
from trainer.precompiled import KEPT
from trainer.registry import precompiled_ids

PACKAGE = {
    "family/__init__.py": "",
    "family/kernels/__init__.py": "",
    "family/kernels/pair.py": """
from typing import NamedTuple

import numpy as np

from trainer.kernels.compiled import kernel


class Pair(NamedTuple):
    first: int
    second: int


@kernel
def small(x):
    return Pair(x[0], x[1])


@kernel
def large(x, side):
    if side < 0:
        raise ValueError("no such side")
    order = np.argsort(x)
    return small(x[order]).first + np.sort(x)[side]


@kernel
def part(x, side):
    return x[:side]


@kernel
def outer(x, side):
    return large(x, side) + part(x, side)[1]
""",
}
CALL = """
import sys

import numpy as np
from numba.core import event

from family.kernels import pair


class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass


compiled = []
x = np.array([3, 2, 5])
with event.install_listener("numba:compile", Listener()):
    for name in sys.argv[1:]:
        print(getattr(pair, name)(x, 2))
    try:
        pair.outer(x, -1)
    except ValueError as error:
        print(error)
print(*(name for name in compiled if name in vars(pair)))
"""
COUNT = """
import gc, json, sys
from numba.core.dispatcher import Dispatcher
from trainer.precompiled import KEPT
from trainer.training.warm_up import warm

warm(sys.argv[1])
kept = {id(store) for store in KEPT}
print(json.dumps(sum(len(d.overloads) for d in gc.get_objects() if isinstance(d, Dispatcher) and id(d._cache) in kept)))
"""
# Method → versions of kernels, by types of arguments, that a training compiles at most.
MOST_VERSIONS = {
    "exact": 140, "exact-numeric": 30, "bivariate": 62, "oc1": 18, "odt": 60, "bendoct-accelerated": 16, "cut-h": 127,
    "local-search": 26,
}  # fmt: skip


@pytest.fixture
def package(tmp_path):
    for name, text in PACKAGE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def call(package: Path, store: str, *names: str) -> list[str]:
    """Return the lines that a new process prints: results, the error of `large`, and what was compiled."""
    variables = {"NUMBA_CACHE_DIR": str(package / store), "PYTHONPATH": os.pathsep.join([str(package), str(ROOT)])}
    command = [sys.executable, "-c", CALL, *names]
    ended = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True)
    return ended.stdout.splitlines()


@pytest.mark.slow
def test_stored_kernel_links_to_callees_in_new_process(package):
    assert call(package, "store", "outer") == ["9", "no such side", "outer large small part"]
    assert call(package, "store", "outer", "large") == ["9", "7", "no such side", ""]


@pytest.mark.slow
def test_stored_callee_returns_slice_to_python(package):
    """Its entry from Python is compiled by another process than its code."""
    call(package, "store", "outer")
    for _ in range(2):
        assert call(package, "store", "part") == ["[3 2]", "no such side", ""]


@pytest.mark.slow
def test_missing_callee_is_compiled_again_for_stored_caller(package):
    call(package, "store", "outer")
    for file in (package / "store").rglob("pair.large-*"):
        file.unlink()
    assert call(package, "store", "outer") == ["9", "no such side", "large"]


@pytest.mark.slow
def test_callers_of_two_stores_link_to_one_callee(package):
    """Two processes that compile at the same time overwrite each other's files.

    So symbols must not depend on the process.
    """
    call(package, "first", "outer")
    call(package, "second", "large", "outer")
    for file in (package / "second").rglob("pair.large-*"):
        file.replace(package / "first" / file.relative_to(package / "second"))
    assert call(package, "first", "outer") == ["9", "no such side", ""]


@kernel
def _sorted(x):
    order = np.argsort(x)
    return x[order[::-1]]


@kernel
def _largest(x):
    return _sorted(x)[0] + np.argsort(x)[0]


@pytest.mark.slow
def test_kernel_and_its_entry_are_the_only_code_emitted(monkeypatch):
    emitted = []
    finalize = CPUCodeLibrary._finalize_final_module
    monkeypatch.setattr(
        CPUCodeLibrary, "_finalize_final_module", lambda self: (emitted.append(self.name), finalize(self))
    )
    caller = kernel(_largest.py_func, boundscheck=True)
    caller._cache.disable()
    assert caller(np.array([2, 7, 5], np.int16)) == 7
    # nrt is numba's reference counting, which each process compiles once
    assert set(emitted) <= {"_largest", "_largest from Python", "_sorted", "nrt"}


@pytest.mark.slow
def test_function_of_numba_may_call_kernels():
    plain = njit(lambda x: _sorted(x)[0] - np.argsort(x)[-1])
    assert plain(np.array([2.0, 7.0, 5.0])) == 6
    assert njit(lambda x: np.argsort(x)[-1])(np.array([2.0, 7.0, 5.0])) == 1


@pytest.mark.slow
def test_helper_has_code_only_if_another_function_needs_it():
    libraries = [
        library
        for result in _largest_compiled().overloads.values()
        for library in result.library._linking_libraries
        if isinstance(library, HelperLibrary)
    ]
    assert libraries
    assert not any(library._emitted for library in libraries)


def _largest_compiled():
    compiled = kernel(_largest.py_func, boundscheck=True)
    compiled._cache.disable()
    compiled(np.array([2, 7], np.uint16))
    return compiled


def _same(x, y):
    return x


def _view(x, y):
    return x[1:]


def _either(x, y):
    chosen = x
    if x[0] > y[0]:
        chosen = y * 2
    return chosen


def _swapped(x, y):
    a = x
    b = y + 1
    for _ in range(3):
        a, b = b, a
    return a


def _pair(x, y):
    both = (x, y[:2], x + y)
    return both[1], both[2], both[0]


def _row_of(x, y):
    table = np.empty((3, len(x)))
    for i in range(3):
        row = table[i]
        source = x if i else y
        for j in range(len(x)):
            row[j] = source[j] + i
    return table[2]


def _picked(x, y):
    return x[np.argsort(y)]


def _of_rows(x, y):
    total = 0.0
    last = y
    for row in x.reshape((-1, 2)):
        last = row
        total += row[0]
    return last, total


def _assigned(x, y):
    x = x[1:]
    y[:2] = x[:2]
    x = y
    y = np.zeros(2)
    return x, y


@pytest.mark.parametrize(
    "function",
    [_same, _view, _either, _swapped, _pair, _row_of, _picked, _of_rows, _assigned],
    ids=lambda f: f.__name__,
)
def test_kernel_keeps_and_frees_arrays_as_python_does(function):
    """Kernels count no references to arrays of their callers; results must live on, and all else must be freed."""
    memsys_enable_stats()
    compiled = kernel(function)
    compiled._cache.disable()
    rng = np.random.default_rng(0)
    arrays = [(rng.normal(size=4), rng.normal(size=4)) for _ in range(20)]
    expected = [function(x.copy(), y.copy()) for x, y in arrays]
    compiled(*(part.copy() for part in arrays[0]))
    before = rtsys.get_allocation_stats()
    results = []
    for x, y in arrays:
        x, y = x.copy(), y.copy()
        counts = sys.getrefcount(x), sys.getrefcount(y)
        result = compiled(x, y)
        del result
        assert (sys.getrefcount(x), sys.getrefcount(y)) == counts
        results.append(compiled(x.copy(), y.copy()))
    for result, value in zip(results, expected, strict=True):
        for part, wanted in zip(_parts(result), _parts(value), strict=True):
            np.testing.assert_array_equal(part, wanted)
    del results, result, part, x, y
    after = rtsys.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free


def _parts(result):
    return result if isinstance(result, tuple) else (result,)


def test_recursive_kernel_calls_itself():
    @kernel
    def count_down(x):
        if x <= 0:
            return 0
        return 1 + count_down(x - 2)

    @kernel
    def caller(x):
        return count_down(x) + 1

    assert caller(5) == 4
    assert count_down(4) == 2


def test_kernels_within_functions_do_not_share_symbols():
    def add(number):
        @kernel
        def inner(x):
            return x + number

        inner._cache.disable()
        return inner

    assert [add(1)(1), add(2)(1)] == [2, 3]


@pytest.mark.slow
def test_large_kernel_is_not_copied_into_callers():
    @kernel
    def large(x):
        return np.argsort(x)[0] + np.sort(x)[0]

    @kernel
    def small(x):
        return x[0]

    copied = []
    for function in (large, small):
        function._cache.disable()
        function(np.array([2.5, 1.5]))
        (result,) = function.overloads.values()
        blocks = [b for f in result.library._final_module.functions for b in f.blocks]
        instructions = sum(1 for b in blocks for _ in b.instructions)
        copied.append((instructions > INLINE_INSTRUCTIONS, result.library._inline is not None))
    assert copied == [(True, False), (False, True)]


def test_kept_function_of_numba_calls_no_kernel():
    """Another process would not find the kernel's code when it reads that of the function."""
    importlib.import_module("octweb.serving.json_rows")
    importlib.import_module("trainer.tree.route")
    plain = [store for store in KEPT if store._impl_class is not KernelStore]
    assert len(plain) > 5
    for store in plain:
        function = store._py_func
        called = [function.__globals__.get(name) for name in function.__code__.co_names]
        stores = [getattr(one, "_cache", None) for one in called]
        assert not [one for one in stores if getattr(one, "_impl_class", None) is KernelStore], function


@pytest.mark.slow
@pytest.mark.parametrize("method", precompiled_ids())
def test_method_compiles_few_versions_of_its_kernels(method):
    ended = subprocess.run([sys.executable, "-c", COUNT, method], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout.splitlines()[-1]) <= MOST_VERSIONS[method]
