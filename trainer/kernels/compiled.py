"""`kernel`: numba's njit without Python's lock, its compiled code kept by the contents of the sources that it is made of.

numba keeps compiled code by the contents of one file, and does not see that a kernel called from another file has changed. A kernel
may call those of its own folder and the shared ones in this folder (families of methods do not import each other, which a contract
checks). So the folder of compiled code (NUMBA_CACHE_DIR; without it `__pycache__` here, or, where the installation is read-only, the
user's folder of caches) has one folder for each state of a family: code of an
older version is never run, and a change of one family leaves the code of the others in use. Neither dates nor the place of the
installation count, so compiled code can be moved with an image or shared between checkouts.
numba reads its settings where a function is declared, so that functions of other packages stay where they are.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Self

from numba import config, njit, types
from numba.core import event
from numba.core.caching import UserProvidedCacheLocator

from trainer.kernels.linking import KernelCompiler, KernelStore
from trainer.precompiled import ready

_HERE = Path(__file__).parent


def _folder() -> Path:
    """The folder of compiled code: the one that was asked for, else the first that can be written."""
    if config.CACHE_DIR:  # type: ignore[attr-defined]
        return Path(config.CACHE_DIR)  # type: ignore[attr-defined]
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "octweb" / "kernels"
    for folder in (_HERE / "__pycache__", users):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return users


FOLDER = _folder()
_LOCATOR = f"{__name__}.ByContents"
_lock = threading.Lock()


@cache
def state(folder: Path) -> str:
    """A name for the contents of a folder of kernels and of the shared ones."""
    files = [*sorted(_HERE.glob("*.py")), *(sorted(folder.glob("*.py")) if folder != _HERE else ())]
    return sha256(b"".join(f.name.encode() + f.read_bytes() for f in files)).hexdigest()[:16]


@cache
def _kept_in(folder: str) -> str:
    """Where the code of the kernels in a folder is kept."""
    found = Path(folder).resolve()
    return str(FOLDER / f"{found.parent.name}-{state(found)}")


@cache
def _can_be_written(folder: str) -> bool:
    """Whether files can be made there; found out once for each folder, since a process declares hundreds of kernels at its start."""
    try:
        os.makedirs(folder, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


class ByContents(UserProvidedCacheLocator):  # type: ignore[misc]
    """Where numba keeps the code of a function: in a folder named by the family and by the contents of its kernels."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        super().__init__(py_func, py_file)
        self._cache_path = _kept_in(os.path.dirname(py_file))

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Self | None:
        """A locator for the function; None, so that numba says that it cannot keep the code, where the folder cannot be written."""
        self = cls(py_func, py_file)
        return self if _can_be_written(self._cache_path) else None


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorator: compile at the first call, keep the code, run without Python's lock; `options` are numba's.

    Kernels share their machine code (`linking`), so a function of numba that calls a kernel must not be kept in a file.
    Kernels are never handed to other kernels as values, so the entry that numba makes for that, 5 % of the compiling, is left out.
    """
    if function is None:
        return lambda f: kernel(f, **options)
    with _lock:
        before = config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES  # type: ignore[attr-defined]
        config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = str(FOLDER), _LOCATOR  # type: ignore[attr-defined]
        try:
            # numba takes the option, but its types do not name it
            left_out: dict[str, Any] = {"no_cfunc_wrapper": True}
            compiled = _for_values(njit(nogil=True, pipeline_class=KernelCompiler, **left_out, **options)(function))
            # where no folder can be written, each process compiles for itself
            with suppress(RuntimeError):
                ready(compiled, Path(_kept_in(os.path.dirname(function.__code__.co_filename))).name, KernelStore)
            return compiled
        finally:
            config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = before  # type: ignore[attr-defined]


def _for_values(compiled: Any) -> Any:
    """Let kernels that call `compiled` with constants share the code for all values of the type.

    numba compiles a function again for each constant that another one calls it with, and everything that the function calls with it:
    a fifth of the time of compiling. Small functions are inlined, with their constants, either way.
    """
    found = getattr(compiled, "get_call_template", None)  # none with NUMBA_DISABLE_JIT: plain Python
    if found is not None:
        compiled.get_call_template = lambda args, kws: found(
            tuple(map(types.unliteral, args)), {name: types.unliteral(kind) for name, kind in kws.items()}
        )
    return compiled


class _Watch(event.Listener):
    def __init__(self, report: Callable[[bool], None]) -> None:
        self.report = report
        self.depth = 0  # a function that calls others is compiled with them

    def on_start(self, event: event.Event) -> None:
        self.depth += 1
        if self.depth == 1:
            self.report(True)

    def on_end(self, event: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.report(False)


@contextmanager
def watched(told: Callable[[bool], None]) -> Iterator[None]:
    """Say when compiling begins (True) and ends (False); code that was kept is not compiled, and nothing is said."""
    with event.install_listener("numba:compile", _Watch(told)):
        yield
