"""The worker under gunicorn itself: calls in order on one connection, none left waiting, and an end in order."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from octweb.core.management.commands.serve import WORKER
from tests.conftest import ROOT

APPLICATION = """
import time
def application(environ, start):
    body = environ["wsgi.input"].read()
    if environ["PATH_INFO"] == "/slow":
        time.sleep(0.2)
    if environ["PATH_INFO"] == "/stuck":
        time.sleep(3)
    if environ["PATH_INFO"] == "/scheme":
        body = environ["wsgi.url_scheme"].encode()
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""
THREADS = 2


@pytest.fixture
def proxies():
    """Addresses whose word on the scheme counts."""
    return "127.0.0.1"


@pytest.fixture
def server(tmp_path, proxies):
    (tmp_path / "echo.py").write_text(APPLICATION)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [
            sys.executable, "-m", "gunicorn", "echo:application", "--bind", f"127.0.0.1:{port}", "--worker-class", WORKER,
            "--workers", "1", "--threads", str(THREADS), "--keep-alive", "30", "--graceful-timeout", "5",
            "--no-control-socket", "--pythonpath", str(tmp_path), "--forwarded-allow-ips", proxies,
        ],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE,
    )  # fmt: skip
    until = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            assert time.monotonic() < until, process.stderr.read()
            time.sleep(0.05)
    yield process, port
    process.kill()
    process.wait()
    process.stderr.close()


def call(connection: http.client.HTTPConnection, body: bytes, path: str = "/", **headers: str) -> bytes:
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    assert answer.status == 200
    return answer.read()


def test_many_calls_on_one_connection_are_answered_each(server):
    connection = http.client.HTTPConnection("127.0.0.1", server[1], timeout=10)
    for i in range(1500):  # more than a thread stays for
        assert call(connection, b"%d" % i) == b"%d" % i
    time.sleep(0.05)  # the thread has left it by now
    assert call(connection, b"later") == b"later"
    connection.close()


def test_calls_that_are_sent_before_the_answers_are_answered_in_order(server):
    with socket.create_connection(("127.0.0.1", server[1]), 10) as connection:
        for i in range(20):
            connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n%02d" % i)
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nend")
        received = b""
        while part := connection.recv(65536):
            received += part
    assert [part.split(b"\r\n\r\n")[-1] for part in received.split(b"HTTP/1.1 200 OK")[1:]] == [
        *(b"%02d" % i for i in range(20)),
        b"end",
    ]


def test_more_clients_than_threads_all_get_their_turn(server):
    counts = [0] * (3 * THREADS)
    until = time.monotonic() + 3

    def client(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server[1], timeout=10)
        while time.monotonic() < until:
            call(connection, b"x")
            counts[number] += 1
        connection.close()

    team = [threading.Thread(target=client, args=(i,)) for i in range(len(counts))]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert min(counts) > 0.1 * max(counts), counts


def test_a_call_that_takes_long_does_not_hold_up_the_others(server):
    others = [http.client.HTTPConnection("127.0.0.1", server[1], timeout=10) for _ in range(3)]
    for other in others:
        call(other, b"x")
    stuck = http.client.HTTPConnection("127.0.0.1", server[1], timeout=10)
    stuck.request("POST", "/stuck", b"late")
    begin = time.monotonic()
    for i in range(30):
        assert call(others[i % 3], b"%d" % i) == b"%d" % i
    fresh = http.client.HTTPConnection("127.0.0.1", server[1], timeout=10)
    assert call(fresh, b"new") == b"new"
    assert time.monotonic() - begin < 2.5
    assert stuck.getresponse().read() == b"late"
    assert call(stuck, b"again") == b"again"


def test_a_connection_that_says_nothing_holds_up_nobody(server):
    silent = [socket.create_connection(("127.0.0.1", server[1]), 10) for _ in range(2 * THREADS)]
    half = socket.create_connection(("127.0.0.1", server[1]), 10)
    half.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Le")
    time.sleep(0.05)
    connection = http.client.HTTPConnection("127.0.0.1", server[1], timeout=10)
    begin = time.monotonic()
    for _ in range(20):
        assert call(connection, b"x") == b"x"
    assert time.monotonic() - begin < 2.5
    half.sendall(b"ngth: 3\r\nConnection: close\r\n\r\nend")
    received = b""
    while part := half.recv(65536):
        received += part
    assert received.endswith(b"end")
    for one in silent:
        one.close()
    assert call(connection, b"y") == b"y"


@pytest.mark.parametrize(("proxies", "scheme"), [("10.9.8.7", b"http"), ("127.0.0.1", b"https")])
def test_only_our_proxies_may_say_that_a_call_came_over_tls(server, scheme):
    connection = http.client.HTTPConnection("127.0.0.1", server[1], timeout=10)
    for _ in range(5):  # on the first call of a connection, and on further ones
        assert call(connection, b"", "/scheme", **{"X-Forwarded-Proto": "https"}) == scheme


def test_sigterm_answers_what_is_under_way_and_ends(server):
    process, port = server
    idle = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    call(idle, b"x")
    answers: list[bytes] = []
    busy = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    thread = threading.Thread(target=lambda: answers.append(call(busy, b"kept", "/slow")))
    thread.start()
    time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    thread.join()
    assert answers == [b"kept"]
    process.wait(timeout=10)
    assert process.returncode == 0
