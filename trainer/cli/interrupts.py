"""Let SIGTERM and SIGINT end a search that keeps its incumbent."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from trainer.certificate import Status
from trainer.methods.monitor import Monitor


class Cancelled(Exception):
    """A signal arrived before the search began."""


class Interrupts:
    """Handler that passes signals on to the monitor of a training, which calls `on_start` when it begins."""

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
        """Set the monitor of a search that begins."""
        self.monitor = monitor
        if self.cancelled:
            monitor.stop(Status.CANCELLED)
