"""Use kernels that were compiled in advance and are shipped with the package.

With them, a first training does not wait for the compiler. numba compiles a kernel at its first call and
caches the code for the processor of this machine. A wheel ships code for a processor that nearly all machines
have (`LEVELS`) in `trainer/_ready`, written by `python -m tools.ready` (see docs/install.md). It is used for
kernels that this machine's own cache lacks.

Shipped code is used only if the processor has every feature of the code. The versions of numba and Python,
the sources of the kernels and the kind of machine must be the same, too. Otherwise numba compiles as always.
The rules of arithmetic are the same, so results do not differ.
"""

from __future__ import annotations

import fcntl
import gc
import logging
import platform
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.codegen import get_host_cpu_features

FOLDER = Path(__file__).resolve().parent / "_ready"
# for each machine, LLVM's name of the processor and the features that compiled code may use
LEVELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "x86_64": (
        "x86-64-v3",
        ("64bit", "avx", "avx2", "bmi", "bmi2", "cmov", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt", "mmx", "movbe",
         "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "xsave"),
    ),
    "aarch64": ("generic", ()),
}  # fmt: skip
KEPT: list[Ready] = []  # all kernels of this process, in the order of their declaration

log = logging.getLogger(__name__)


class Ready(FunctionCache):  # type: ignore[misc]
    """A cache of numba that also finds the code of a kernel in FOLDER; it writes to numba's own folder only."""

    def __init__(self, function: Callable[..., Any], name: str, files: type[CompileResultCacheImpl]) -> None:
        """Search for the code of a kernel in the folder `name` within FOLDER, too; `files` reads and writes
        compiled code.

        `name` must change with every source that the kernel is made of, except its own file.
        """
        self._impl_class = files
        super().__init__(function)
        self.name = name
        KEPT.append(self)

    def stored_in(self, folder: Path, name: str | None = None) -> IndexDataCacheFile:
        """Return the files of this kernel in the subfolder `name` of `folder`, by default the one named like the kernel."""
        return IndexDataCacheFile(
            cache_path=str(folder / (self.name if name is None else name)),
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    def _save_overload(self, signature: Any, data: Any) -> None:
        """Save compiled code, one process at a time.

        numba reads the list of stored signatures, extends it and writes the code without a lock. If two processes did so at
        once, the list could name the code of the one for the signature of the other. A folder that cannot be locked, such as
        one of a network disk, gets no code: this process uses its own.
        """
        if not self._enabled:
            return
        folder = Path(self._cache_path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / ".lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                try:
                    super()._save_overload(signature, data)
                finally:
                    # closing alone would leave the lock to a child that was forked meanwhile
                    fcntl.flock(lock, fcntl.LOCK_UN)
        except OSError as error:
            _report_unstored(folder.parent, str(error.strerror))

    def _load_overload(self, signature: Any, target_context: Any) -> Any:
        compiled = super()._load_overload(signature, target_context)
        if compiled is not None or not self._enabled or not (FOLDER.is_dir() and processor_can()):
            return compiled
        signature_key, (triple, *_), code = self._index_key(signature, target_context.codegen())
        level, _ = LEVELS[platform.machine()]
        files = self.stored_in(FOLDER)
        for key in files._load_index():
            if key[0] == signature_key and key[1][:2] == (triple, level) and key[2] == code:
                data = files.load(key)
                return None if data is None else self._impl.rebuild(target_context, data)
        return None


@cache
def _report_unstored(folder: Path, reason: str) -> None:
    """Warn once for each folder and reason."""
    log.warning("compiled code cannot be stored in %s: %s", folder, reason)


@cache
def processor_can() -> bool:
    """Return True if this processor has every feature that shipped code may use."""
    if platform.machine() not in LEVELS:
        return False
    present = get_host_cpu_features().split(",")
    return all(f"+{feature}" in present for feature in LEVELS[platform.machine()][1])


def ready(function: Any, name: str | None = None, files: type[CompileResultCacheImpl] = CompileResultCacheImpl) -> Any:
    """Let a numba function cache its code and use shipped code; return the function.

    Parameters
    ----------
    function : numba dispatcher
        With NUMBA_DISABLE_JIT, a Python function, which stays as it is.
    name : str, optional
        Subfolder of FOLDER, as in `Ready`; by default the name of the function's module.
    files : type
        Reader and writer of compiled code.

    Raises
    ------
    RuntimeError
        If no cache folder can be written.
    """
    if not hasattr(function, "py_func"):  # with NUMBA_DISABLE_JIT, the function is plain Python
        return function
    function._cache = Ready(function.py_func, name or function.py_func.__module__, files)
    function.compile = _without_collector(function.compile)
    return function


def _without_collector(compile_function: Callable[..., Any]) -> Callable[..., Any]:
    """Pause Python's cyclic collector while a kernel compiles, since it would use a sixth of that time and free little."""

    @wraps(compile_function)
    def compile_without_collector(*args: Any, **options: Any) -> Any:
        if not gc.isenabled():  # an outer kernel is compiling, or the program has disabled the collector
            return compile_function(*args, **options)
        gc.disable()
        try:
            return compile_function(*args, **options)
        finally:
            gc.enable()

    return compile_without_collector


def cached_kernel(function: Callable[..., Any]) -> Any:
    """Declare a kernel outside the folders of kernels (a decorator); it is compiled at its first call.

    It uses shipped code, runs without Python's lock, and is cached if numba finds a folder that can be written.
    """
    compiled = njit(nogil=True)(function)
    with suppress(RuntimeError):  # without a writable cache folder, each process compiles for itself
        ready(compiled)
    return compiled


def environment() -> dict[str, str]:
    """Return the variables that make numba compile for the processors of LEVELS; empty on other machines."""
    if platform.machine() not in LEVELS:
        return {}
    level, features = LEVELS[platform.machine()]
    # without any named features, numba would use those of the current processor
    return {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ",".join(f"+{f}" for f in features) or "+neon"}
