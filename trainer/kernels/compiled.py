"""Declare numba kernels whose code is cached by their sources' contents.

numba's own cache looks at one file, so it misses a changed kernel in another file. A kernel calls only kernels of its own folder and
of this one; an import contract checks that. So each family has a cache folder named by a hash of the files in both. Code of an older
version never runs, and a change in one family leaves the code of the others valid. Neither dates nor the place of the installation
count, so the cache can be shipped in an image or shared between checkouts.

The cache lies in NUMBA_CACHE_DIR, else in `__pycache__` here, or in the user's cache folder if the installation is read-only. numba
reads its settings at each declaration. They are changed only meanwhile, so functions of other packages stay where they are.
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

from trainer.kernels.linking import KernelCompiler, KernelStore, enter_on_demand
from trainer.precompiled import ready

_HERE = Path(__file__).parent


def _folder() -> Path:
    """Return the cache folder: NUMBA_CACHE_DIR if it is set, else the first folder that can be written."""
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR)
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
    """Return a hash of the kernels in a folder and of the shared ones."""
    files = [*sorted(_HERE.glob("*.py")), *(sorted(folder.glob("*.py")) if folder != _HERE else ())]
    return sha256(b"".join(f.name.encode() + f.read_bytes() for f in files)).hexdigest()[:16]


@cache
def _kept_in(folder: str) -> str:
    """Return the cache folder of the kernels in a folder."""
    found = Path(folder).resolve()
    return str(FOLDER / f"{found.parent.name}-{state(found)}")


@cache
def _can_be_written(folder: str) -> bool:
    """Return whether files can be created in a folder; cached, since a process declares hundreds of kernels."""
    try:
        os.makedirs(folder, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


class ByContents(UserProvidedCacheLocator):
    """Locator of numba's cache files in a folder named by the family and a hash of its kernels."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        super().__init__(py_func, py_file)
        self._cache_path = _kept_in(os.path.dirname(py_file))

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Self | None:
        """Return a locator; None if the folder cannot be written, so that numba reports that it cannot cache the function."""
        self = cls(py_func, py_file)
        return self if _can_be_written(self._cache_path) else None


def kernel(function: Callable[..., Any] | None = None, *, distinct_arrays: bool = False, **options: Any) -> Any:
    """Declare a kernel (a decorator): compile it at its first call, cache its code, and run it without Python's lock.

    Kernels share machine code (`trainer.kernels.linking`), so a numba function that calls a kernel must not have `cache=True`. No kernel
    is passed to another one as a value. So the C entry point for that is left out, which saves 5 % of the compile time.

    Parameters
    ----------
    function : callable, optional
        The function, if the decorator has no options.
    distinct_arrays : bool
        Promise that no two array arguments share memory. Then loops need no check for it, which counts in short loops.
    **options
        Further options of `numba.njit`.

    Returns
    -------
    numba dispatcher
        A decorator if there is no `function`.
    """
    if function is None:
        return lambda f: kernel(f, distinct_arrays=distinct_arrays, **options)
    if distinct_arrays:
        vars(function)["distinct_arrays"] = True  # where `KernelCompiler` finds it
    with _lock:
        before = config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES
        config.CACHE_DIR = str(FOLDER)
        config.CACHE_LOCATOR_CLASSES = _LOCATOR
        try:
            # numba takes the option, but its types do not name it
            left_out: dict[str, Any] = {"no_cfunc_wrapper": True}
            compiled = _for_values(njit(nogil=True, pipeline_class=KernelCompiler, **left_out, **options)(function))
            # where no folder can be written, each process compiles for itself
            with suppress(RuntimeError):
                ready(compiled, Path(_kept_in(os.path.dirname(function.__code__.co_filename))).name, KernelStore)
            return compiled
        finally:
            config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = before


def _for_values(compiled: Any) -> Any:
    """Let kernels that call `compiled` with constants share its code for all values of a type.

    numba would compile a function, and all that it calls, again for each constant argument: a fifth of the compile time. Small functions
    are inlined with their constants either way.
    """
    found = getattr(compiled, "get_call_template", None)  # none with NUMBA_DISABLE_JIT: plain Python
    if found is not None:
        enter_on_demand(compiled)
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
    """Call `told` when compiling begins (True) and ends (False); loading cached code calls nothing."""
    with event.install_listener("numba:compile", _Watch(told)):
        yield
