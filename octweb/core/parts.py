"""Start, restart and end the processes of `manage.py serve`."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

GRACE_SECONDS = 20.0  # seconds that a process gets to terminate
# a process that ends MOST_STARTS times within START_WINDOW seconds is not restarted
MOST_STARTS = 5
START_WINDOW = 600.0
PR_SET_PDEATHSIG = 1


@dataclass(kw_only=True)
class ServicePart:
    """A process of the service, and the times of its restarts."""

    name: str
    command: list[str]
    environment: dict[str, str]
    starts: list[float] = field(default_factory=list)
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self, *, quiet: bool = False) -> None:
        """Start the process in its own session. Ctrl-C then reaches only the parent, which ends all parts in order."""
        out = subprocess.DEVNULL if quiet else None
        self.process = subprocess.Popen(  # noqa: S603
            self.command,
            cwd=settings.BASE_DIR,
            env=self.environment,
            start_new_session=True,
            stdout=out,
            stderr=out,
            preexec_fn=_end_with(os.getpid()),
        )

    def may_start(self, now: float) -> bool:
        """Count a restart, and return whether it is allowed."""
        self.starts = [t for t in self.starts if t > now - START_WINDOW] + [now]
        return len(self.starts) < MOST_STARTS


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Terminate all processes. Kill those that still run after the grace period."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    until = time.monotonic() + GRACE_SECONDS
    for process in processes:
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()


def _end_with(parent: int) -> Callable[[], None]:
    """Return a function for the new process that makes the kernel end it with its parent (Linux only)."""
    libc: Any = ctypes.CDLL(None, use_errno=True)

    def prepare() -> None:
        with contextlib.suppress(AttributeError):
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare
