"""Fork children of jobs from a process that has loaded everything.

Loading Django, numba and the trainer takes one to two seconds. A worker therefore keeps one process that has loaded
them (`manage.py fork_server`). This process forks for each job, and the fork runs the command, so jobs share no state.
The worker writes one line for each job and reads two: the process id, and the exit status. A job gets a new process if
the fork server has died, has not loaded the command, or was started with another environment.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings

log = logging.getLogger(__name__)

LOADED = ("train", "edit", "evaluate", "predict", "verify", "dossier", "convert")  # commands that jobs run
# Django and the libraries read these variables while loading, so a fork can change only others
AT_LOADING = ("OCTWEB_", "DJANGO_", "PYTHON", "NUMBA_", "OPENBLAS_", "OMP_", "ARROW_")
START_TIMEOUT_SECONDS = 60.0  # loading all modules and the first fork must end within this time
# status of a child whose fork server was killed; such a child ends itself, and nobody learns its real status
LOST = -signal.SIGKILL


def program() -> list[str]:
    """Return the command that starts the fork server. Tests replace it to run their own scripts."""
    return [*settings.COMMAND, "fork_server"]


class ChildProcess(Protocol):
    """The part of `subprocess.Popen` that jobs use. `ForkedProcess` implements it, too."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...


class ForkedProcess:
    """A child process that the fork server has forked."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self.server = server
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, or minus the signal number that ended the child. None while it runs."""
        if self.returncode is None:
            self.returncode = self.server.status(self.pid)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to the child unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the child to end, and return its exit status.

        Raises subprocess.TimeoutExpired after `timeout` seconds.
        """
        until = time.monotonic() + (float("inf") if timeout is None else timeout)
        while (status := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            self.server.listen(0.1)
        return status


class ForkServer:
    """Client of a fork server in the worker: start it, send orders, and store the exit status of each child."""

    def __init__(self, environment: dict[str, str]) -> None:
        """Start the server. Raises OSError if no process can be started."""
        self.command = list(settings.COMMAND)
        self.environment = environment
        self.lock = threading.Lock()
        self.ended: dict[int, int] = {}
        self.rest = b""
        self.process = self._begun()

    def _begun(self) -> subprocess.Popen[bytes]:
        """Start the server process, which reads orders on standard input and answers on standard output."""
        return subprocess.Popen(  # noqa: S603
            program(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=settings.BASE_DIR,
            env=self.environment,
            start_new_session=True,
            bufsize=0,
        )

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def takes(self, command: list[str], environment: dict[str, str]) -> bool:
        """Return whether a fork is equivalent to a new process for this command."""
        command_head = command[: len(self.command)]
        name = "".join(command[len(self.command) :][:1])
        return (
            command_head == self.command
            and name in LOADED
            and _at_loading(environment) == _at_loading(self.environment)
        )

    def start(self, command: list[str], folder: Path, environment: dict[str, str]) -> ForkedProcess | None:
        """Fork a child that runs `command` in `folder`, and return it. Its output goes to files there.

        If the server does not answer, end it and return None.
        """
        arguments = command[len(self.command) :]
        order = json.dumps({"arguments": arguments, "folder": str(folder), "environment": environment}).encode() + b"\n"
        until = time.monotonic() + START_TIMEOUT_SECONDS
        with self.lock:
            try:
                assert self.process.stdin is not None
                self.process.stdin.write(order)
                while time.monotonic() < until:
                    started = [r["started"] for r in self._read(until - time.monotonic()) if "started" in r]
                    if started:
                        return ForkedProcess(self, started[0])
                    if not self.alive:
                        break
            except OSError as error:
                log.warning("the fork server is gone: %s", error)
        self.end()
        return None

    def listen(self, seconds: float) -> None:
        """Wait at most `seconds` for lines from the server, and store exit statuses."""
        with self.lock:
            self._read(seconds)

    def status(self, pid: int) -> int | None:
        """Return the exit status of a child, or None while it runs. Return `LOST` if the server has died."""
        with self.lock:
            if pid not in self.ended:
                self._read(0.0)
            if pid not in self.ended and not self.alive:
                self._read(0.0)  # read the last lines of the server
                self.ended.setdefault(pid, LOST)
            return self.ended.get(pid)

    def _read(self, seconds: float) -> list[dict[str, Any]]:
        """Wait at most `seconds` for lines. Return them as records, and store exit statuses."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], max(0.0, seconds))[0]:
            return []
        *lines, self.rest = (self.rest + self.process.stdout.read(1 << 16)).split(b"\n")
        records = [json.loads(line) for line in lines]
        for record in records:
            if "started" in record:
                self.ended.pop(record["started"], None)  # an ended process may have had the same id
            else:
                self.ended[record["ended"]] = record["status"]
        return records

    def end(self) -> None:
        """Kill the server. Its children then end themselves."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


_kept: list[ForkServer] = []
_lock = threading.Lock()
_keeping = False


def keep() -> None:
    """Enable a fork server in this process. The first job or call of `living` starts it."""
    global _keeping
    _keeping = True


def give_up() -> None:
    """End the fork server, and disable it."""
    global _keeping
    with _lock:
        _keeping = False
        for server in _kept:
            server.end()
        _kept.clear()


def living(environment: dict[str, str]) -> ForkServer | None:
    """Return the running fork server of this process; start it if needed.

    Return None if it is disabled or cannot be started. `environment` is the environment of its children.
    """
    with _lock:
        if _keeping and not (_kept and _kept[0].alive):
            _kept.clear()
            try:
                _kept.append(ForkServer(environment))
            except OSError as error:
                log.warning("no fork server can be started: %s", error)
        return _kept[0] if _kept else None


def fork(command: list[str], folder: Path, environment: dict[str, str]) -> ForkedProcess | None:
    """Fork a child that runs `command` in `folder`, and return it.

    Its output goes to the files `stdout` and `stderr` there. Return None if the command needs a new process.
    """
    server = living(environment)
    return server.start(command, folder, environment) if server and server.takes(command, environment) else None


def _at_loading(environment: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in environment.items() if key.startswith(AT_LOADING)}
