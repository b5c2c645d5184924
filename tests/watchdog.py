"""Fail a test whose process hangs in a deadlock, but not one on a slow machine."""

from __future__ import annotations

import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

STILL_SECONDS = 5.0
LOOK_SECONDS = 0.25
BUSY_SHARE = 0.02  # share of one processor; threads that only check the clock from time to time use less


class StoodStill(AssertionError):
    """The process has used no processor time for a while."""


@contextmanager
def watchdog(seconds: float = STILL_SECONDS) -> Iterator[None]:
    """Raise StoodStill in the main thread if this process and its children use no processor time for `seconds`.

    A thread that waits for a processor counts as busy, so that no test fails on a loaded machine. Without /proc nothing
    is watched.
    """
    if threading.current_thread() is not threading.main_thread() or not Path("/proc/self/task").exists():
        yield
        return
    ended = threading.Event()
    words = ""

    def watch() -> None:
        nonlocal words
        since = time.monotonic()
        used = _own_time()
        while not ended.wait(LOOK_SECONDS):
            now = time.monotonic()
            if _own_time() - used > BUSY_SHARE * seconds or _anyone_runs():
                since = now
                used = _own_time()
            elif now - since >= seconds:
                words = f"No processor time was used for {seconds:g} s.\n{_stacks()}"
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
                return

    def fail(*_: object) -> None:
        raise StoodStill(words)

    before = signal.signal(signal.SIGALRM, fail)
    thread = threading.Thread(target=watch, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        signal.signal(signal.SIGALRM, before)


def _own_time() -> float:
    """Return the processor seconds of this process without those of the calling thread."""
    return time.process_time() - time.thread_time()


def _anyone_runs() -> bool:
    """Return whether a thread of this process or its children runs, or waits for a processor or disk."""
    own = threading.get_native_id()
    for process in [psutil.Process(), *_children()]:
        for state in Path(f"/proc/{process.pid}/task").glob("*/stat"):
            with suppress(OSError):
                if int(state.parent.name) != own and state.read_text().rpartition(")")[2].split()[0] in "RD":
                    return True
    return False


def _children() -> list[psutil.Process]:
    with suppress(psutil.Error):
        return psutil.Process().children(recursive=True)
    return []


def _stacks() -> str:
    """Return the stack of each thread."""
    frames = sys._current_frames()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"{names.get(ident)}:\n{''.join(traceback.format_stack(frame)[-6:])}" for ident, frame in frames.items()
    )
