"""Show the progress of `fit` in notebooks and shells, and handle Ctrl-C.

In a script, no bar is drawn, and Ctrl-C raises KeyboardInterrupt as usual.
"""

from __future__ import annotations

import importlib
import importlib.util
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from trainer.certificate import Limits, Progress, Status
from trainer.methods.monitor import Monitor
from trainer.tree.describe import number_text

BAR_DELAY_SECONDS = 0.5  # shorter trainings show no bar
# a training that starts this soon after a stopped one belongs to a loop, which the user wants to end, too
REPEAT_SECONDS = 1.0
STOPPED_MESSAGE = (
    "Training was stopped by Ctrl-C. The best tree so far is kept; its certificate says what is proved about it."
)

_stopped_at = -REPEAT_SECONDS
_bars = True


class StoppedWarning(UserWarning):
    """A training was stopped by Ctrl-C and kept its best tree."""


def progress_bars(shown: bool) -> None:
    """Turn the progress bars of `fit` in notebooks and shells on or off.

    Parameters
    ----------
    shown : bool
        Whether `fit` draws bars. The default is True; bars need tqdm.
    """
    global _bars
    _bars = shown


def is_interactive() -> bool:
    """Return whether the session is interactive: a notebook, IPython, or Python's prompt."""
    ipython = sys.modules.get("IPython")
    return hasattr(sys, "ps1") or (ipython is not None and ipython.get_ipython() is not None)


@contextmanager
def watch_training(name: str, limits: Limits) -> Iterator[Monitor]:
    """Yield the monitor of a training; show its progress, and let Ctrl-C stop it with its best tree.

    Raises
    ------
    KeyboardInterrupt
        For a second Ctrl-C, and at once if the user stopped the previous training less than `REPEAT_SECONDS` ago.
    """
    if not is_interactive():
        yield Monitor(limits)
        return
    if time.monotonic() - _stopped_at < REPEAT_SECONDS:
        raise KeyboardInterrupt
    bar = _Bar(name) if _bars and importlib.util.find_spec("tqdm") else None
    monitor = Monitor(limits, sink=None if bar is None else bar.show)
    try:
        with _stop_on_interrupt(monitor):
            yield monitor
    finally:
        if bar is not None:
            bar.close()


@contextmanager
def _stop_on_interrupt(monitor: Monitor) -> Iterator[None]:
    """Let the first Ctrl-C in the block end the search; a second one raises KeyboardInterrupt."""
    default_handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or default_handler is not signal.default_int_handler:
        yield  # only the main thread may set signal handlers, and an application's own handler must stay
        return

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, default_handler)
        monitor.stop(Status.CANCELLED)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, default_handler)
        if monitor.cancelled:
            global _stopped_at
            _stopped_at = time.monotonic()
            warnings.warn(STOPPED_MESSAGE, StoppedWarning, stacklevel=4)


class _Bar:
    """One line with method, phase, incumbent, bound and gap; removed when the training ends."""

    def __init__(self, name: str) -> None:
        # in a notebook, tqdm.auto without ipywidgets would warn and write an additional line of text
        module = "tqdm.auto" if importlib.util.find_spec("ipywidgets") else "tqdm"
        self._line: Any = importlib.import_module(module).tqdm(
            desc=name, bar_format="{desc} [{elapsed}]{postfix}", leave=False, delay=BAR_DELAY_SECONDS
        )

    def show(self, progress: Progress, draft: object = None) -> None:
        """Show the progress; a callback of the monitor."""
        self._line.set_postfix_str(describe_progress(progress))

    def close(self) -> None:
        self._line.close()


def describe_progress(progress: Progress) -> str:
    """Describe progress in words, such as "searching, incumbent 0.953, bound 0.967, gap 1.4 %"."""
    parts = [progress.phase]
    if progress.incumbent is not None:
        parts.append(f"incumbent {number_text(progress.incumbent, 4)}")
    if progress.bound is not None:
        parts.append(f"bound {number_text(progress.bound, 4)}")
    if progress.gap is not None:
        parts.append(f"gap {number_text(100 * progress.gap, 2)} %")
    return ", ".join(parts)
