"""A word from a command that is told to end while it still loads its libraries, which takes seconds on a busy machine.

The default of a signal ends it without one, and a person wonders why nothing was printed. Commands that train have their own handlers
once they are loaded (`octweb.runs.interrupts`).
"""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType

TRAIN = ("train", "complete", "good-trees")
WORDS = b"Told to end while the program was still loading; nothing was searched.\n"


def speak_if_ended(command: str | None) -> None:
    """From now on SIGTERM and SIGINT end a command that trains with a word on standard error."""
    if command in TRAIN:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, WORDS)
    signal.signal(number, signal.SIG_DFL)  # the status says which signal it was
    os.kill(os.getpid(), number)
