"""Compiled kernels are kept by the state of all kernels, because numba looks at one file only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numba
import pytest

from trainer import kernels


def test_kernels_are_kept_in_a_folder_of_their_state():
    if not numba.config.CACHE_DIR:
        pytest.skip("NUMBA_CACHE_DIR is not set: numba keeps its files beside the sources")
    assert Path(numba.config.CACHE_DIR).name == kernels.STATE


def test_a_change_in_any_kernel_changes_the_state(tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "__init__.py").write_text(Path(kernels.__file__).read_text())
    (folder / "a.py").write_text("")
    show = "import kernels, numba; print(kernels.STATE, numba.config.CACHE_DIR)"

    def state() -> list[str]:
        environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-c", show]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    first = state()
    assert first == state()
    assert first[1] == str(tmp_path / "cache" / first[0])
    (folder / "a.py").write_text("x = 1\n")
    assert state()[0] != first[0]
