"""Long bodies are read without copies: same bytes, pipelined calls, and bodies that are cut off."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import gunicorn
import pytest

from octweb.core.management.commands.serve import WORKER
from octweb.serving.whole_body import LONG_BODY_BYTES, whole_body
from tests.conftest import ROOT

APPLICATION = """
import hashlib
from octweb.serving.whole_body import whole_body
def application(environ, start):
    content = whole_body(environ["wsgi.input"], int(environ["CONTENT_LENGTH"]))
    rest = environ["wsgi.input"].read()
    body = f"{type(content).__name__} {len(content)} {hashlib.sha256(content).hexdigest()} {len(rest)}\\n".encode()
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


@pytest.fixture(scope="module", params=[WORKER, "gthread"])
def port(request, tmp_path_factory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("whole")
    (folder / "whole.py").write_text(APPLICATION)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "gunicorn",
            "whole:application",
            "--bind",
            f"127.0.0.1:{number}",
            "--worker-class",
            request.param,
            "--threads",
            "2",
            "--no-control-socket",
            "--pythonpath",
            f"{folder},{ROOT}",
        ],
        cwd=ROOT,
        env=os.environ,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 300
    while True:
        try:
            socket.create_connection(("127.0.0.1", number), 1).close()
            break
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.05)
    yield number
    process.terminate()
    process.wait(300)


def request(body: bytes, announced: int | None = None) -> bytes:
    length = len(body) if announced is None else announced
    return f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode() + body


def expected(body: bytes) -> bytes:
    kind = "bytearray" if len(body) >= LONG_BODY_BYTES else "bytes"
    return f"{kind} {len(body)} {hashlib.sha256(body).hexdigest()} 0".encode()


def lines(connection: socket.socket, count: int) -> list[bytes]:
    """Return the bodies of `count` responses."""
    stream = connection.makefile("rb")
    found = []
    while len(found) < count:
        line = stream.readline()
        assert line, found
        if line.startswith((b"bytes ", b"bytearray ")):
            found.append(line.strip())
    return found


@pytest.mark.parametrize("size", [10, LONG_BODY_BYTES - 1, LONG_BODY_BYTES, 817_554, 3_000_001])
def test_the_bytes_arrive_and_the_connection_goes_on(port, size):
    body = os.urandom(size)
    with socket.create_connection(("127.0.0.1", port), 300) as connection:
        for _ in range(2):
            connection.sendall(request(body))
            assert lines(connection, 1) == [expected(body)]


def test_pipelined_calls_are_separated(port):
    bodies = [os.urandom(n) for n in (LONG_BODY_BYTES, 5, 3 * LONG_BODY_BYTES, 1)]
    with socket.create_connection(("127.0.0.1", port), 300) as connection:
        connection.sendall(b"".join(map(request, bodies)))
        assert lines(connection, 4) == list(map(expected, bodies))


def test_a_body_in_small_pieces(port):
    body = os.urandom(3 * LONG_BODY_BYTES)
    sent = request(body)
    with socket.create_connection(("127.0.0.1", port), 300) as connection:
        for start in range(0, len(sent), 7001):
            connection.sendall(sent[start : start + 7001])
            time.sleep(0.005)
        assert lines(connection, 1) == [expected(body)]


def test_truncated_body_returns_received_bytes(port):
    with socket.create_connection(("127.0.0.1", port), 300) as connection:
        connection.sendall(request(b"x" * LONG_BODY_BYTES, announced=2 * LONG_BODY_BYTES))
        connection.shutdown(socket.SHUT_WR)
        assert lines(connection, 1)[0].split()[:2] == [b"bytearray", str(LONG_BODY_BYTES).encode()]
        assert connection.makefile("rb").read() == b""  # and the connection is closed


def test_other_versions_and_servers_are_read_through_wsgi(monkeypatch):
    monkeypatch.setattr(gunicorn, "version_info", (99, 0, 0))
    assert whole_body(io.BytesIO(b"x" * LONG_BODY_BYTES), LONG_BODY_BYTES) == b"x" * LONG_BODY_BYTES
    monkeypatch.undo()
    assert whole_body(io.BytesIO(b"x" * LONG_BODY_BYTES), LONG_BODY_BYTES) == b"x" * LONG_BODY_BYTES
