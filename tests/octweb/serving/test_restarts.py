"""No call fails while web processes are recycled, reloaded or restarted behind a systemd socket."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import ROOT

APPLICATION = """
import os
def application(environ, start):
    environ["wsgi.input"].read()
    body = str(os.getpid()).encode()
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""
CLIENTS = 4
PATIENCE = 25  # seconds: less than `graceful_timeout` of deploy/gunicorn.conf.py


class Load:
    """Clients that call until they are stopped.

    If a connection that was used before was closed, the client sends the call once more.

    A process that ends waits for half a minute for a call on a new connection (`graceful_timeout`). A client that was
    held up for longer, as on a machine that was paused, finds its new connection closed. It tries again, too.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.over = threading.Event()
        self.seen: list[str] = []  # process numbers, in order
        self.failed: list[str] = []  # what went wrong, with the age of the connection
        self.team = [threading.Thread(target=self._client, args=(path,)) for path in ["/", "/m/infer"] * (CLIENTS // 2)]
        for thread in self.team:
            thread.start()

    def _client(self, path: str) -> None:
        line = self._line()
        used = False
        while not self.over.is_set():
            asked = time.monotonic()
            try:
                line.request("POST", path, b"x")
                answer = line.getresponse()
                body = answer.read().decode()
                used = answer.headers["Connection"] != "close"
                (self.seen if answer.status == 200 else self.failed).append(body)
            except (OSError, http.client.HTTPException) as error:
                held_up = time.monotonic() - asked
                if not used and held_up < PATIENCE:
                    self.failed.append(
                        f"{error!r} on a new connection after {held_up:.3f} s and {len(self.seen)} calls"
                    )
                line = self._line()
                used = False
            time.sleep(0.001)
        line.close()

    def _line(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def until(self, done: Callable[[], bool]) -> bool:
        """Wait until `done` returns True, with much patience for a busy machine.

        Return whether this came before a call failed.
        """
        end = time.monotonic() + 300
        while not done() and not self.failed and time.monotonic() < end:
            time.sleep(0.02)
        return done() and not self.failed

    def stop(self) -> None:
        self.over.set()
        for thread in self.team:
            thread.join()


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", 0))
        sock.listen(2048)
        yield sock


@pytest.fixture
def start(tmp_path, listening) -> Iterator[Callable[..., subprocess.Popen]]:
    """Provide a function that starts gunicorn with deploy/gunicorn.conf.py on the socket, as systemd does."""
    (tmp_path / "who.py").write_text(APPLICATION)
    started = []

    def run(**environment: str) -> subprocess.Popen:
        # systemd passes the socket as descriptor 3, and names the process for which it is
        code = (
            f"import os, sys\nos.dup2({listening.fileno()}, 3)\nos.environ['LISTEN_PID'] = str(os.getpid())\n"
            "os.environ['LISTEN_FDS'] = '1'\n"
            "os.execv(sys.executable, [sys.executable, '-m', 'gunicorn', '--config', 'deploy/gunicorn.conf.py',"
            f" '--pythonpath', {str(tmp_path)!r}, '--log-level', 'error', 'who:application'])"
        )
        kept = os.environ | {"PYTHONPATH": str(ROOT), "OCTWEB_WEB_PROCESSES": "1", "OCTWEB_WEB_THREADS": "4"}
        process = subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, env=kept | environment, pass_fds=[listening.fileno()]
        )
        started.append(process)
        return process

    yield run
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        process.wait(300)


@pytest.fixture
def load(listening) -> Iterator[Load]:
    found = Load(listening.getsockname()[1])
    yield found
    found.stop()


def processes(load: Load) -> int:
    return len(set(load.seen))


def test_process_recycling_loses_no_call(start, load):
    start(OCTWEB_WEB_RECYCLE="400")
    assert load.until(lambda: processes(load) >= 3), load.failed


def test_a_reload_fails_no_call(start, load):
    process = start()
    assert load.until(lambda: processes(load) >= 1), load.failed
    for wanted in (2, 3):
        process.send_signal(signal.SIGHUP)
        assert load.until(lambda wanted=wanted: processes(load) >= wanted), load.failed


def test_a_restart_behind_the_socket_fails_no_call(start, load):
    for wanted in (1, 2):
        process = start()
        assert load.until(lambda wanted=wanted: processes(load) >= wanted), load.failed
        process.terminate()
        process.wait(300)
    start()
    assert load.until(lambda: processes(load) >= 3), load.failed
