"""Configure malloc to reuse freed blocks.

By default, glibc returns blocks of more than a few hundred kilobytes to the system. A call with 1,000 rows then maps
all of its memory again, page by page. On the machine of docs/benchmarks.md, this took a third of its processor time.
"""

from __future__ import annotations

import ctypes
import platform

# parameter numbers of glibc's mallopt, from malloc.h
TRIM_THRESHOLD = -1
MMAP_THRESHOLD = -3
LARGEST_KEPT_BLOCK_BYTES = 4_000_000  # bytes; glibc returns larger blocks to the system as soon as they are freed
KEPT_FREE_BYTES = 8_000_000  # bytes; glibc returns free memory beyond this at the end of an arena


def keep_blocks() -> bool:
    """Configure glibc's malloc to keep freed blocks. Return False if the C library is not glibc or refuses."""
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(MMAP_THRESHOLD, LARGEST_KEPT_BLOCK_BYTES)) and bool(mallopt(TRIM_THRESHOLD, KEPT_FREE_BYTES))
