"""What a person at a notebook or a shell sees of `fit`: a bar while it runs, and a tree where they press Ctrl-C.

A script sees nothing of it: no bar is drawn there, and Ctrl-C does what it always does.
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

DELAY = 0.5  # seconds that a training may take without a bar
AT_ONCE = 1.0  # a training that begins so soon after a stopped one is the next of a loop, which the person wants to end
STOPPED = "Training was stopped by Ctrl-C. The best tree so far is kept; its certificate says what is proved about it."

_stopped_at = -AT_ONCE
_bars = True


class StoppedWarning(UserWarning):
    """A training was stopped by Ctrl-C and kept its best tree."""


def progress_bars(shown: bool) -> None:
    """Whether `fit` draws bars in notebooks and shells; it does, where tqdm is installed, until somebody says no."""
    global _bars
    _bars = shown


def interactive() -> bool:
    """Whether a person types the statements: a notebook, IPython, or Python's own prompt."""
    ipython = sys.modules.get("IPython")
    return hasattr(sys, "ps1") or (ipython is not None and ipython.get_ipython() is not None)


@contextmanager
def watched(name: str, limits: Limits) -> Iterator[Monitor]:
    """A monitor for one training by `name`; while the block runs, a person sees its progress and can stop it by Ctrl-C.

    Raises KeyboardInterrupt for a second Ctrl-C, and at the beginning where a training before was stopped just now.
    """
    if not interactive():
        yield Monitor(limits)
        return
    if time.monotonic() - _stopped_at < AT_ONCE:
        raise KeyboardInterrupt
    bar = _Bar(name) if _bars and importlib.util.find_spec("tqdm") else None
    monitor = Monitor(limits, sink=None if bar is None else bar.show)
    try:
        with _keeps_the_tree(monitor):
            yield monitor
    finally:
        if bar is not None:
            bar.close()


@contextmanager
def _keeps_the_tree(monitor: Monitor) -> Iterator[None]:
    """While the block runs, a first Ctrl-C asks the search to end, and a second one raises KeyboardInterrupt."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual is not signal.default_int_handler:
        yield  # somebody else has a use for it
        return

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, usual)
        monitor.stop(Status.CANCELLED)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if monitor.cancelled:
            global _stopped_at
            _stopped_at = time.monotonic()
            warnings.warn(STOPPED, StoppedWarning, stacklevel=4)


class _Bar:
    """One line: method, phase, incumbent, bound and gap. It goes when the training ends."""

    def __init__(self, name: str) -> None:
        # the bar of a notebook is a widget; where there are none, tqdm would warn and write a line of text, too
        module = "tqdm.auto" if importlib.util.find_spec("ipywidgets") else "tqdm"
        self._line: Any = importlib.import_module(module).tqdm(
            desc=name, bar_format="{desc} [{elapsed}]{postfix}", leave=False, delay=DELAY
        )

    def show(self, progress: Progress, draft: object = None) -> None:
        """Take the news of the search."""
        self._line.set_postfix_str(describe_progress(progress))

    def close(self) -> None:
        self._line.close()


def describe_progress(progress: Progress) -> str:
    """What is known about a search: "searching, incumbent 0.953, bound 0.967, gap 1.4 %"."""
    said = [progress.phase]
    if progress.incumbent is not None:
        said.append(f"incumbent {number_text(progress.incumbent, 4)}")
    if progress.bound is not None:
        said.append(f"bound {number_text(progress.bound, 4)}")
    if progress.gap is not None:
        said.append(f"gap {number_text(100 * progress.gap, 2)} %")
    return ", ".join(said)
