"""Fork server for test workers: it forks from the worker, so nothing needs to be imported again."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import time
from typing import IO

from octweb.jobs.fork_server import ForkServer
from octweb.jobs.management.commands.fork_server import _serve, set_up_process


class Fork:
    """Forked process with those members of `subprocess.Popen` that the fork server uses."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and (found := os.waitpid(self.pid, os.WNOHANG))[0]:
            self.returncode = os.waitstatus_to_exitcode(found[1])
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        until = time.monotonic() + (float("inf") if timeout is None else timeout)
        while (status := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(0.01)
        return status


class ForkOfWorker(ForkServer):
    """Fork server that is a fork of this process. It must be created before the worker has threads."""

    def _begun(self) -> Fork:
        (orders, stdin), (stdout, answers) = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.dup2(orders, 0)
            os.dup2(answers, 1)
            for end in (orders, stdin, stdout, answers):
                os.close(end)
            self._serve()
        os.close(orders)
        os.close(answers)
        return Fork(pid, os.fdopen(stdin, "wb", 0), os.fdopen(stdout, "rb", 0))

    def _serve(self) -> None:
        """Serve orders in the fork. Each of its own forks returns from `_serve` and runs the program of a job."""
        order = _serve()
        if order is None:
            os._exit(0)
        set_up_process(order)
        sys.argv[0] = self.command[1]
        runpy.run_path(self.command[1], run_name="__main__")
        sys.exit()
