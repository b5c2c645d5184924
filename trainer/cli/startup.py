"""Prepare a process before it imports NumPy and numba.

The import takes seconds on a busy machine. Without a handler, SIGTERM would end the process silently, and the user
would not know whether it had searched. Once loaded, commands that train set handlers of their own
(`trainer.cli.interrupts`).
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
from types import FrameType

TRAINING_COMMANDS = ("train", "complete", "good-trees")
ENDED_WHILE_LOADING = b"Told to end while the program was still loading; nothing was searched.\n"
# these commands multiply many small matrices, where more threads only cost time
ONE_BLAS_THREAD = ("verify", "dossier")


def prepare_process(command: str | None) -> None:
    """Set the environment and signal handlers of a command, and disable garbage collection until it is loaded."""
    gc.disable()
    if command in ONE_BLAS_THREAD:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if command in TRAINING_COMMANDS:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, ENDED_WHILE_LOADING)
    signal.signal(number, signal.SIG_DFL)  # end by the default action, so that the exit status names the signal
    os.kill(os.getpid(), number)
