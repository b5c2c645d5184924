"""What the C library does with blocks that are given back: the next call uses the blocks of the last one again.

By itself it gives each block of more than some hundred kilobytes back to the system, so that a call of 1,000 rows takes all of its memory
again page by page; on the machine of docs/benchmarks.md that was a third of its processor time.
"""

from __future__ import annotations

import ctypes
import platform

# names of glibc's mallopt, malloc.h
TRIM_THRESHOLD = -1
MMAP_THRESHOLD = -3
LARGEST_KEPT = 4_000_000  # bytes; larger blocks go back to the system as soon as they are free
KEPT = 8_000_000  # free bytes at the end of an arena beyond which they go back


def keep_blocks() -> bool:
    """Tell it; False if the C library is another one than glibc and nothing was told."""
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(MMAP_THRESHOLD, LARGEST_KEPT)) and bool(mallopt(TRIM_THRESHOLD, KEPT))
