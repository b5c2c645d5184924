"""Configure malloc to reuse freed blocks.

By default glibc returns each block of more than some hundred kilobytes to the system. A call of 1,000 rows then maps
all of its memory again, page by page. On the machine of docs/benchmarks.md this took a third of its processor time.
"""

from __future__ import annotations

import ctypes
import platform

# These are numbers of parameters of glibc's mallopt, from malloc.h.
TRIM_THRESHOLD = -1
MMAP_THRESHOLD = -3
LARGEST_KEPT = 4_000_000  # bytes; glibc returns a larger block to the system as soon as it is freed
KEPT = 8_000_000  # bytes; glibc returns free memory at the end of an arena beyond this


def keep_blocks() -> bool:
    """Configure glibc's malloc to keep freed blocks. Return False, and change nothing, with other C libraries."""
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(MMAP_THRESHOLD, LARGEST_KEPT)) and bool(mallopt(TRIM_THRESHOLD, KEPT))
