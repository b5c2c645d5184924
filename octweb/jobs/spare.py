"""A process that has loaded everything and waits for a job, so that a training or an edit starts at once.

To load Django, numba and the trainer takes a process one to two seconds. A worker therefore keeps one spare process (`manage.py spare`),
hands the next job to it, and starts another. A spare does one job and ends, so nothing of a job reaches the next one. Where there is none,
where it has died, or for commands that must be said before NumPy is loaded, the job gets a process of its own, as without a worker.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import threading
from pathlib import Path

from django.conf import settings

log = logging.getLogger(__name__)

LOADED = frozenset({"train", "edit"})  # commands whose modules a spare loads
_kept: list[subprocess.Popen[bytes]] = []
_lock = threading.Lock()
_keeping = False


def keep(environment: dict[str, str]) -> None:
    """From now on this process keeps a spare; `environment` is that of its children."""
    global _keeping
    _keeping = settings.SPARE
    refill(environment)


def refill(environment: dict[str, str]) -> None:
    """Start a spare if this process keeps one and has none."""
    with _lock:
        if not _keeping or (_kept and _kept[0].poll() is None):
            return
        _kept.clear()
        try:
            _kept.append(
                subprocess.Popen(  # noqa: S603
                    [*settings.COMMAND, "spare"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd=settings.BASE_DIR,
                    env=environment,
                    start_new_session=True,
                )
            )
        except OSError as error:
            log.warning("no process can be started ahead: %s", error)


def take(command: list[str], folder: Path) -> subprocess.Popen[bytes] | None:
    """The spare, told to run `command` in `folder` with its output in files there; None where a new process is needed."""
    arguments = command[len(settings.COMMAND) :]
    with _lock:
        if not _kept or arguments[0] not in LOADED or command[: len(settings.COMMAND)] != settings.COMMAND:
            return None
        spare = _kept.pop()
    order = json.dumps({"arguments": arguments, "folder": str(folder)}).encode() + b"\n"
    try:
        if spare.poll() is None and spare.stdin is not None:
            spare.stdin.write(order)
            spare.stdin.close()
            return spare
    except OSError as error:  # it died a moment ago
        log.warning("the process that was started ahead is gone: %s", error)
    end(spare)
    return None


def give_up() -> None:
    """End the spare and keep none."""
    global _keeping
    with _lock:
        _keeping = False
        for spare in _kept:
            end(spare)
        _kept.clear()


def end(spare: subprocess.Popen[bytes]) -> None:
    """End a spare for certain."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(spare.pid, signal.SIGKILL)
    spare.wait()
