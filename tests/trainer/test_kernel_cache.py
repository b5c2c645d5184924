"""Compiled kernels are kept by the state of all kernels, because numba looks at one file only; other packages' code is not moved."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from trainer.kernels import compiled
from trainer.monitor import COMPILING, Monitor

SHOW = """
import numba
from numba import njit
from pathlib import Path
from kernels.compiled import FOLDER, state
from kernels.caller import outer

@njit
def other(x):
    return x

print(state(Path('{folder}')), FOLDER, numba.config.CACHE_DIR, outer(1))
"""


def test_the_setting_of_numba_is_left_as_it_was():
    before = numba.config.CACHE_DIR

    @compiled.kernel
    def twice(x):
        return 2 * x

    assert before == numba.config.CACHE_DIR
    assert twice(3) == 6
    assert Path(twice.stats.cache_path).parent == compiled.FOLDER
    assert Path(twice.stats.cache_path).name.endswith(compiled.state(Path(__file__).resolve().parent))


@pytest.fixture
def package(tmp_path):
    """A package of kernels of which one calls another."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "compiled.py").write_text(Path(compiled.__file__).read_text())
    (folder / "called.py").write_text(
        "from kernels.compiled import kernel\n\n@kernel\ndef inner(x):\n    return x + 1\n"
    )
    (folder / "caller.py").write_text(
        "from kernels.called import inner\nfrom kernels.compiled import kernel\n\n@kernel\ndef outer(x):\n    return inner(x)\n"
    )
    return folder


@pytest.mark.parametrize("chosen", [True, False])
def test_a_changed_kernel_is_seen_by_those_that_call_it(package, tmp_path, chosen):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")} if chosen else {}
    kept = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}

    def run() -> list[str]:
        # Python itself would go by the date, too
        environment = kept | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"} | cache
        return subprocess.run(
            [sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True
        ).stdout.split()

    first = run()
    assert first[-1] == "2"
    assert first == run()
    assert Path(first[1]) == (tmp_path / "cache" if chosen else package / "__pycache__") / first[0]
    changed = package / "called.py"
    before = changed.stat()
    changed.write_text(changed.read_text().replace("x + 1", "x + 5"))
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))  # not even the date of that file tells
    assert run()[-1] == "6"


def test_compiling_is_told_once_and_the_phase_comes_back():
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
