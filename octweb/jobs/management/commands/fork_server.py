"""Load what jobs need, and fork for each order: `manage.py fork_server`.

Only a worker starts this command (`octweb/jobs/fork_server.py`). An order is a line on standard input, `{"arguments":
["train", …], "folder": "…", "environment": {…}}`. The answers are `{"started": PROCESS}` and, later, `{"ended":
PROCESS, "status": STATUS}`. The server has one thread, because a fork keeps only the thread that forks. When the worker
ends, standard input is closed. The server and its running children then end.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

from octweb.core.command_line import run
from octweb.jobs.fork_server import LOADED
from trainer.cli.orphans import give_up_rights
from trainer.data.reader import load
from trainer.tree.route import apply, flatten


class Command(BaseCommand):
    help = "A process of a worker that forks its jobs; nothing for people."
    requires_system_checks: ClassVar[tuple[str, ...]] = ()

    def handle(self, *args: Any, **options: Any) -> None:
        if (order := load_and_serve()) is not None:
            set_up_process(order)
            run(sys.argv)


def load_and_serve() -> dict[str, Any] | None:
    """Load the commands, and serve orders.

    Return the order in each fork. In the server, return None once the worker has ended.
    """
    give_up_rights()
    for command in LOADED:
        load_command_class(get_commands()[command], command)
    _load()
    # forks share the loaded memory until it is written to, so the garbage collector must leave it alone
    gc.freeze()
    return _serve()


def _serve() -> dict[str, Any] | None:
    server = os.getpid()
    orders = sys.stdin.fileno()
    wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake[1], warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    incomplete = b""
    while True:
        ready = select.select([orders, wake[0]], [], [])[0]
        if wake[0] in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake[0], 1 << 12)
        for pid, status in _reap_children():
            _say(ended=pid, status=status)
        if orders in ready:
            if not (piece := os.read(orders, 1 << 16)):
                return None
            *lines, incomplete = (incomplete + piece).split(b"\n")
            for line in lines:
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    for end in wake:
                        os.close(end)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    os.setpgid(0, 0)
                    return json.loads(line) | {"server": server}
                # signals go to the process group, so both processes set it, whichever runs first
                with contextlib.suppress(OSError):
                    os.setpgid(pid, pid)
                _say(started=pid)


def _reap_children() -> list[tuple[int, int]]:
    """Return the children that have ended since the last call, each with its exit status or minus the signal."""
    exits = []
    with contextlib.suppress(ChildProcessError):
        while (pair := os.waitpid(-1, os.WNOHANG))[0]:
            exits.append((pair[0], os.waitstatus_to_exitcode(pair[1])))
    return exits


def _say(**record: int) -> None:
    os.write(sys.stdout.fileno(), json.dumps(record).encode() + b"\n")


def set_up_process(order: dict[str, Any]) -> None:
    """Set up the fork like a new process: working directory, environment, argv and output files of the order."""
    folder = Path(order["folder"])
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(order["environment"] | {"OCTWEB_PARENT_PID": str(order["server"])})
    for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
        with (folder / name).open("wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    sys.argv = [sys.argv[0], *order["arguments"]]


def _load() -> None:
    """Trigger lazy loading: numba's by running a kernel, pyarrow's by reading a table."""
    apply(flatten([(None, -1, -1)], ()), np.ones((1, 1)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_text("a,class\n1,x\n2,y\n", encoding="utf-8")
        load(path, target="class", ignore=[])
