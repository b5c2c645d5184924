"""The allocator reuses blocks of a call, and returns very large ones to the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from tests.conftest import ROOT

PROGRAM = """
import resource, sys
from octweb.core.allocator import LARGEST_KEPT_BLOCK_BYTES, keep_blocks
def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def faults(size, times):
    before = pages()
    for _ in range(times):
        blocks = [bytearray(b"x") * size for _ in range(3)]
        del blocks
    return pages() - before
def resident():
    return int(open("/proc/self/statm").read().split()[1])
told = keep_blocks() if sys.argv[1] == "told" else None
faults(1_000_000, 3)
print(faults(1_000_000, 100))
before = resident()
faults(20 * LARGEST_KEPT_BLOCK_BYTES, 1)
print(resident() - before, told)
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_blocks_of_a_call_are_used_again():
    found = {
        way: subprocess.run(
            [sys.executable, "-c", PROGRAM, way], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
        for way in ("told", "as it is")
    }
    assert int(found["told"][0]) < 2_000 < 20_000 < int(found["as it is"][0])
    assert int(found["told"][1]) < 500  # resident pages
    assert found["told"][2] == "True"


def test_other_c_library_is_left_unconfigured(monkeypatch):
    from octweb.core import allocator

    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not allocator.keep_blocks()
