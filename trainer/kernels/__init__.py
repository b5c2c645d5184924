"""Compiled kernels.

numba keeps compiled code by the date of one file, and does not see that a kernel called from another file has changed. So the
folder of NUMBA_CACHE_DIR has one folder for each state of all kernels: code of an older version is never run.
"""

from hashlib import sha256
from pathlib import Path

from numba import config

_sources = sorted(Path(__file__).parent.glob("*.py"))
STATE = sha256(b"".join(file.name.encode() + file.read_bytes() for file in _sources)).hexdigest()[:16]
if config.CACHE_DIR:  # type: ignore[attr-defined]
    config.CACHE_DIR = str(Path(config.CACHE_DIR) / STATE)  # type: ignore[attr-defined]
