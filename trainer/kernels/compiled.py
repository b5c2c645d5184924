"""`kernel`: numba's njit without Python's lock, its compiled code kept by the state of all kernels.

numba keeps compiled code by the date of one file, and does not see that a kernel called from another file has changed. So the folder
of compiled code (NUMBA_CACHE_DIR, or `__pycache__` here) has one folder for each state of all kernels: code of an older version is
never run. numba reads its setting where a function is declared, so that functions of other packages stay where they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core import event

_HERE = Path(__file__).parent
STATE = sha256(b"".join(f.name.encode() + f.read_bytes() for f in sorted(_HERE.glob("*.py")))).hexdigest()[:16]
FOLDER = Path(config.CACHE_DIR or _HERE / "__pycache__") / STATE  # type: ignore[attr-defined]
_lock = threading.Lock()


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorator: compile at the first call, keep the code, run without Python's lock; `options` are numba's."""
    if function is None:
        return lambda f: kernel(f, **options)
    with _lock:
        before, config.CACHE_DIR = config.CACHE_DIR, str(FOLDER)  # type: ignore[attr-defined]
        try:
            return njit(cache=True, nogil=True, **options)(function)
        finally:
            config.CACHE_DIR = before  # type: ignore[attr-defined]


class _Watch(event.Listener):
    def __init__(self, told: Callable[[bool], None]) -> None:
        self.told = told
        self.depth = 0  # a function that calls others is compiled with them

    def on_start(self, event: event.Event) -> None:
        self.depth += 1
        if self.depth == 1:
            self.told(True)

    def on_end(self, event: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.told(False)


@contextmanager
def watched(told: Callable[[bool], None]) -> Iterator[None]:
    """Say when compiling begins (True) and ends (False); code that was kept is not compiled, and nothing is said."""
    with event.install_listener("numba:compile", _Watch(told)):
        yield
