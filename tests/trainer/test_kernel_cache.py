"""Compiled kernels are cached by the state of all kernels, because numba checks one file only."""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import event
from numba.core.caching import IndexDataCacheFile
from numba.core.errors import TypingError

from tests.conftest import ROOT
from tests.processes import start
from trainer.kernels import compiled
from trainer.kernels.compiled import kernel
from trainer.methods.monitor import COMPILING, Monitor
from trainer.precompiled import ready

# Sets the folders of the package and of compiled code. Bytecode is off, because Python would look only at the date of a
# file.
BEGIN = """
import sys
from pathlib import Path

import numba
from numba import njit

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
numba.config.CACHE_DIR = sys.argv[2]
"""
SHOW = """
from kernels.compiled import FOLDER
from family.kernels.caller import outer
from family.kernels import caller

@njit
def other(x):
    return x

kept = Path(outer.stats.cache_path).parent
print(kept, FOLDER, numba.config.CACHE_DIR, outer(1))
"""


def test_make_run_keeps_kernels_for_all_data_folders():
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"OCTWEB_DATA_DIR": "/elsewhere"}
    command = ["make", "--dry-run", "--print-data-base", "run"]
    rules = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout
    recipe = rules[rules.index("\nrun: ") :].partition("\n\n")[0]
    assert "NUMBA_CACHE_DIR" in recipe
    assert "/elsewhere" not in recipe


def test_setting_of_numba_is_restored():
    before = numba.config.CACHE_DIR

    @compiled.kernel
    def twice(x):
        return 2 * x

    assert before == numba.config.CACHE_DIR
    assert twice(3) == 6
    assert Path(twice.stats.cache_path).parent == compiled.FOLDER
    assert not before or Path(before) == compiled.FOLDER
    assert Path(twice.stats.cache_path).name.endswith(compiled.state(Path(__file__).resolve().parent))


@pytest.fixture
def package(tmp_path):
    """Provide shared kernels and kernels of a family, each calling another."""
    sources = {
        "kernels/__init__.py": "",
        "kernels/compiled.py": Path(compiled.__file__).read_text(),
        "kernels/shared.py": "from kernels.compiled import kernel\n\n@kernel\ndef common(x):\n    return x + 1\n",
        "family/__init__.py": "",
        "family/kernels/__init__.py": "",
        "family/kernels/called.py": (
            "from kernels.compiled import kernel\nfrom kernels.shared import common\n\n"
            "@kernel\ndef inner(x):\n    return common(x) + 10\n"
        ),
        "family/kernels/caller.py": (
            "from family.kernels.called import inner\nfrom kernels.compiled import kernel\n\n"
            "@kernel\ndef outer(x):\n    return inner(x)\n"
        ),
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def shown(package: Path, cache: Path | str, show: str = SHOW, **environment: str) -> list[str]:
    """Return the output of a new process without kernels. Without `cache` it chooses a folder itself."""
    script = package / "show.py"
    script.write_text(BEGIN + show)
    ended = start(script, package, cache, folder=package, **environment).wait(600)
    assert ended == 0, (package / "stderr").read_text()
    return (package / "stdout").read_text().split()


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [True, False])
def test_changed_kernel_recompiles_its_callers(package, tmp_path, chosen):
    cache = tmp_path / "cache" if chosen else ""
    first = shown(package, cache)
    assert first[-1] == "12"
    assert first == shown(package, cache)
    folder = tmp_path / "cache" if chosen else package / "kernels" / "__pycache__"
    assert Path(first[0]) == Path(first[1]) == folder
    if not chosen:
        return  # the rest does not depend on the folder
    for name, before, after, answer in (
        ("family/kernels/called.py", "+ 10", "+ 50", "52"),
        ("kernels/shared.py", "+ 1", "+ 3", "54"),
    ):
        changed = package / name
        dates = changed.stat()
        changed.write_text(changed.read_text().replace(before, after))
        os.utime(changed, ns=(dates.st_atime_ns, dates.st_mtime_ns))  # the date of the file must not reveal the change
        assert shown(package, cache)[-1] == answer


@pytest.mark.parametrize("writable", [True, False])
def test_read_only_installation_caches_code_for_user_or_nowhere(package, tmp_path, writable):
    for folder in ("kernels", "family/kernels"):
        (package / folder / "__pycache__").write_text("a file, where nothing can be put into")
    caches = tmp_path / "caches"
    if not writable:
        caches.write_text("another file")
    show = "from family.kernels.caller import outer; print(outer(1))"
    assert shown(package, "", show, XDG_CACHE_HOME=str(caches)) == ["12"]
    assert bool(list(caches.rglob("*.nbc"))) is writable


def test_cache_is_shared_by_equal_sources(package, tmp_path):
    cache = tmp_path / "cache"
    moved = tmp_path / "elsewhere"
    for name in ("kernels", "family"):
        shutil.copytree(package / name, moved / name)
    show = SHOW + "print(sum(outer.stats.cache_hits.values()), sum(outer.stats.cache_misses.values()))"
    assert shown(package, cache, show)[-2:] == ["0", "1"]
    assert shown(moved, cache, show)[-2:] == ["1", "0"]


def test_two_processes_never_store_code_under_the_same_name(tmp_path, monkeypatch):
    @numba.njit
    def plus_one(x):
        return x + 1

    plus_one(1), plus_one(1.5)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    ready(plus_one)
    load_index = IndexDataCacheFile._load_index

    def load_slowly(files):
        names = load_index(files)
        time.sleep(0.1)
        return names

    monkeypatch.setattr(IndexDataCacheFile, "_load_index", load_slowly)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda item: plus_one._cache.save_overload(*item), plus_one.overloads.items()))
    names = list(load_index(plus_one._cache._cache_file).values())
    assert len(names) == len(set(names)) == 2


def _plus_one(monkeypatch, folder: Path):
    """Return a compiled function whose code is stored below `folder`."""

    @numba.njit
    def plus_one(x):
        return x + 1

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))
    ready(plus_one)
    return plus_one


def test_folder_that_cannot_be_locked_gets_no_code(tmp_path, monkeypatch, caplog):
    def refuse(lock, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    plus_one = _plus_one(monkeypatch, tmp_path)
    monkeypatch.setattr(fcntl, "flock", refuse)
    assert (plus_one(1), plus_one(1.5)) == (2, 2.5)
    assert not list(tmp_path.rglob("*.nbc"))
    assert caplog.text.count("No locks available") == 1


def test_child_forked_while_code_is_stored_keeps_no_lock(tmp_path, monkeypatch):
    plus_one = _plus_one(monkeypatch, tmp_path)
    save = IndexDataCacheFile.save
    kept = []

    def save_and_fork(files, key, data):
        (lock,) = tmp_path.rglob(".lock")
        kept.extend(
            os.dup(int(fd))
            for fd in os.listdir("/proc/self/fd")
            if os.path.realpath(f"/proc/self/fd/{fd}") == str(lock)
        )  # as a fork has it
        save(files, key, data)

    monkeypatch.setattr(IndexDataCacheFile, "save", save_and_fork)
    assert plus_one(1) == 2
    assert kept
    (lock,) = tmp_path.rglob(".lock")
    with lock.open() as again:
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for fd in kept:
        os.close(fd)


@kernel
def _side(x, side):
    return x[side]


@kernel
def _both(x):
    return _side(x, 0) + 10 * _side(x, 1)


def test_a_kernel_is_compiled_once_for_all_constants():
    assert _both(np.array([2, 3])) == 32
    assert len(_side.signatures) <= 1  # there is none if the cache holds the code of `_both`
    assert _both.py_func(np.array([2, 3])) == 32
    assert {signature[1] for signature in _side.signatures} == {numba.int64}


def test_compiling_is_reported_once_and_phase_is_restored():
    phases = []
    monitor = Monitor(sink=lambda progress, draft: phases.append(progress.phase))
    monitor.report(phase="search")

    @numba.njit
    def inner(x):
        return x + 1

    @numba.njit
    def outer(x):
        return inner(x) * 2

    with compiled.watched(monitor.compiling):
        assert outer(1) == 4
        assert outer(2) == 6
    assert phases == ["search", COMPILING, "search"]
    with compiled.watched(monitor.compiling):
        assert outer(3) == 8
    assert len(phases) == 3


class _Collector(event.Listener):
    def __init__(self) -> None:
        self.enabled: list[bool] = []

    def on_start(self, event: event.Event) -> None:
        self.enabled.append(gc.isenabled())

    def on_end(self, event: event.Event) -> None:
        self.enabled.append(gc.isenabled())


def test_collector_pauses_while_kernel_compiles():
    @kernel
    def inner(x):
        return x + 1

    @kernel
    def outer(x):
        return inner(x) * 3

    inner._cache.disable()
    outer._cache.disable()
    listener = _Collector()
    with event.install_listener("numba:compile", listener):
        assert outer(1) == 6
    assert listener.enabled == [False] * 4
    assert gc.isenabled()


def test_collector_continues_after_failed_compile():
    @kernel
    def broken(x):
        return x.no_such_member

    with pytest.raises(TypingError):
        broken(1)
    assert gc.isenabled()


def test_paused_collector_stays_paused_after_compile():
    @kernel
    def thrice(x):
        return 3 * x

    gc.disable()
    try:
        assert thrice(2) == 6
        assert not gc.isenabled()
    finally:
        gc.enable()
