"""SIGTERM and SIGINT of a command that trains: the search is asked to end, and its best tree is kept."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from trainer.certificate import Status
from trainer.methods.monitor import Monitor


class Cancelled(Exception):
    """A signal arrived before the search began."""


class Interrupts:
    """Hands signals on to the monitor of a training; `on_start` is what `train` calls with it."""

    def __init__(self) -> None:
        self.monitor: Monitor | None = None
        self.cancelled = False
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._on_signal)
            signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.cancelled = True
        if self.monitor is None:
            raise Cancelled
        self.monitor.stop(Status.CANCELLED)

    def on_start(self, monitor: Monitor) -> None:
        """The search begins."""
        self.monitor = monitor
        if self.cancelled:
            monitor.stop(Status.CANCELLED)
