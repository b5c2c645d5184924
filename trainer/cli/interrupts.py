"""Stop a search on SIGTERM or SIGINT and keep its incumbent."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from trainer.certificate import Status
from trainer.methods.monitor import Monitor


class Cancelled(Exception):
    """A signal arrived before the search began."""


class Interrupts:
    """Signal handler that stops the monitor of the current training.

    Pass `on_start` to the training, which calls it with its monitor.
    """

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
        """Set the monitor of a starting search; stop it at once if a signal has already arrived."""
        self.monitor = monitor
        if self.cancelled:
            monitor.stop(Status.CANCELLED)
