"""gunicorn's worker keeps calls in order, leaves none waiting, and shuts down cleanly."""

from __future__ import annotations

import ast
import contextlib
import http.client
import importlib
import itertools
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from types import SimpleNamespace

import gunicorn
import pytest
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import TConn, ThreadWorker

from octweb.core import client_sockets, gunicorn_worker
from octweb.core.management.commands.serve import WORKER
from tests.conftest import ROOT
from tests.counted import calls_of

APPLICATION = """
import pathlib, threading, time
both, here = threading.Barrier(2, timeout=100), pathlib.Path(__file__).parent
def application(environ, start):
    body = environ["wsgi.input"].read()
    if environ["PATH_INFO"].startswith("/meet"):
        both.wait()
    if environ["PATH_INFO"].startswith("/stuck"):
        (here / "begun").touch()
        while not (here / "go").exists():
            time.sleep(0.01)
    if environ["PATH_INFO"].startswith("/exit"):
        raise SystemExit(3)
    if environ["PATH_INFO"] == "/scheme":
        body = environ["wsgi.url_scheme"].encode()
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""
THREADS = 2
PATIENCE = 100  # seconds; far more than any machine needs, and less than the server keeps a connection open
PATHS = ("/", "/m/infer")  # an ordinary call and a prediction


@pytest.fixture
def proxies():
    """Provide IP addresses that may state the scheme of a call."""
    return "127.0.0.1"


@pytest.fixture
def client_seconds():
    """Provide the seconds for which a client may keep a thread waiting."""
    return 600


@pytest.fixture
def server(tmp_path, proxies, client_seconds):
    (tmp_path / "echo.py").write_text(APPLICATION)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "gunicorn",
            "echo:application",
            "--bind",
            f"127.0.0.1:{port}",
            "--worker-class",
            WORKER,
            "--workers",
            "1",
            "--threads",
            str(THREADS),
            "--keep-alive",
            "600",
            "--graceful-timeout",
            "60",
            "--no-control-socket",
            "--pythonpath",
            str(tmp_path),
            "--forwarded-allow-ips",
            proxies,
            "--worker-connections",
            "100",
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OCTWEB_CLIENT_SECONDS": str(client_seconds)},
        stderr=subprocess.PIPE,
    )
    until = time.monotonic() + PATIENCE
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


def test_worker_uses_no_private_member_of_gunicorn():
    source = (ROOT / "octweb" / "core" / "gunicorn_worker.py").read_text()
    tree = ast.parse(source)
    assert sum(isinstance(node, ast.stmt) for node in ast.walk(tree)) <= 139
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    own |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names}
    assert {name for name in used - own if name.startswith("_")} == set()
    # No private name of ours may hide one of gunicorn's.
    assert {name for name in own if name.startswith("_") and hasattr(ThreadWorker, name)} == {"__init__"} & own


def test_unknown_gunicorn_version_uses_gthread(monkeypatch):
    assert gunicorn_worker.Worker is gunicorn_worker.TurnWorker  # with the pinned version, the worker is ours
    monkeypatch.setattr(gunicorn, "version_info", (99, 0, 0))
    try:
        assert importlib.reload(gunicorn_worker).Worker is ThreadWorker
    finally:
        monkeypatch.undo()
        importlib.reload(gunicorn_worker)


@pytest.mark.parametrize("said", [b"", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"])
def test_connections_above_the_limit_cause_no_outage(server, said):
    """The connections that were idle longest are closed, whether kept alive or silent from the start."""
    quiet = []
    for _ in range(150):
        one = socket.create_connection(("127.0.0.1", server[1]), PATIENCE)
        one.sendall(said)
        if said:
            assert one.recv(1000)
        quiet.append(one)
    for _ in range(5):
        fresh = http.client.HTTPConnection("127.0.0.1", server[1], timeout=PATIENCE)
        assert call(fresh, b"new") == b"new"
        fresh.close()
    for one in quiet:
        one.close()


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_many_calls_on_one_connection_are_answered_each(server, path):
    connection = http.client.HTTPConnection("127.0.0.1", server[1], timeout=PATIENCE)
    for i in range(500):
        assert call(connection, b"%d" % i, path) == b"%d" % i
    time.sleep(0.1)  # by now the thread has returned the connection to the main thread
    assert call(connection, b"later", path) == b"later"
    connection.close()


@pytest.mark.parametrize("path", [p.encode() for p in PATHS])
def test_pipelined_calls_are_answered_in_order(server, path):
    with socket.create_connection(("127.0.0.1", server[1]), PATIENCE) as connection:
        for i in range(20):
            connection.sendall(b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n%02d" % i)
        connection.sendall(
            b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nend"
        )
        received = b""
        while part := connection.recv(65536):
            received += part
    assert [part.split(b"\r\n\r\n")[-1] for part in received.split(b"HTTP/1.1 200 OK")[1:]] == [
        *(b"%02d" % i for i in range(20)),
        b"end",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_more_clients_than_threads_all_get_their_turn(server, path):
    counts = [0] * (3 * THREADS)
    together = threading.Barrier(len(counts))

    def client(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server[1], timeout=PATIENCE)
        call(connection, b"x", path)
        together.wait(PATIENCE)
        while sum(counts) < 600:
            call(connection, b"x", path)
            counts[number] += 1
        connection.close()

    team = [threading.Thread(target=client, args=(i,)) for i in range(len(counts))]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert min(counts) > 0.1 * max(counts), counts


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_pipelining_client_does_not_block_others(server, path):
    address = ("127.0.0.1", server[1])
    greedy = socket.create_connection(address, PATIENCE)
    over = threading.Event()
    answered = threading.Event()

    def send() -> None:
        many = b"POST " + path.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"
        with contextlib.suppress(OSError):
            while not over.is_set():
                greedy.sendall(many * 50)

    def receive() -> None:
        with contextlib.suppress(OSError):
            while greedy.recv(1 << 20):
                answered.set()

    team = [threading.Thread(target=send), threading.Thread(target=receive)]
    for thread in team:
        thread.start()
    assert answered.wait(PATIENCE)
    other = http.client.HTTPConnection(*address, timeout=PATIENCE)
    for _ in range(20):
        assert call(other, b"x", path) == b"x"
    assert all(thread.is_alive() for thread in team)  # the greedy clients are still calling
    over.set()
    greedy.close()
    for thread in team:
        thread.join()


def test_waiting_calls_do_not_block_each_other(server):
    connections = [http.client.HTTPConnection("127.0.0.1", server[1], timeout=PATIENCE) for _ in range(THREADS)]
    for _ in range(5):
        for connection in connections:
            connection.request("POST", "/meet", b"x")
        for connection in connections:  # each call ends only after the other has begun
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"x")


def test_call_that_kills_its_thread_affects_no_other(server):
    for path in ("/exit", "/exit/infer"):
        for _ in range(3 * THREADS):
            bad = http.client.HTTPConnection("127.0.0.1", server[1], timeout=PATIENCE)
            bad.request("POST", path, b"x")
            with contextlib.suppress(OSError, http.client.HTTPException):
                bad.getresponse()
            bad.close()
    assert call(http.client.HTTPConnection("127.0.0.1", server[1], timeout=PATIENCE), b"on") == b"on"


def test_unclosed_connections_block_no_other_client(server):
    lingering = []
    begin = time.monotonic()
    for _ in range(60):
        one = socket.create_connection(("127.0.0.1", server[1]), PATIENCE)
        one.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx")
        lingering.append(one)
    for one in lingering:
        assert one.recv(1000)
    assert call(http.client.HTTPConnection("127.0.0.1", server[1], timeout=PATIENCE), b"x") == b"x"
    assert time.monotonic() - begin < 30  # two threads that wait two seconds for each connection would take a minute
    for one in lingering:
        one.close()


@pytest.mark.parametrize("ending", PATHS)
def test_slow_call_does_not_block_others(server, ending, tmp_path):
    others = [http.client.HTTPConnection("127.0.0.1", server[1], timeout=PATIENCE) for _ in range(3)]
    for other in others:
        call(other, b"x")
    stuck = http.client.HTTPConnection("127.0.0.1", server[1], timeout=PATIENCE)
    stuck.request("POST", "/stuck" + ending, b"late")
    for i in range(30):
        assert call(others[i % 3], b"%d" % i, ending) == b"%d" % i
    fresh = http.client.HTTPConnection("127.0.0.1", server[1], timeout=PATIENCE)
    assert call(fresh, b"new") == b"new"
    assert not select.select([stuck.sock], [], [], 0)[0]  # the slow call is still under way
    (tmp_path / "go").touch()
    assert stuck.getresponse().read() == b"late"
    assert call(stuck, b"again") == b"again"


def test_silent_connection_blocks_no_other_client(server):
    silent = [socket.create_connection(("127.0.0.1", server[1]), PATIENCE) for _ in range(2 * THREADS)]
    half = socket.create_connection(("127.0.0.1", server[1]), PATIENCE)
    half.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Le")
    connection = http.client.HTTPConnection("127.0.0.1", server[1], timeout=PATIENCE)
    for _ in range(20):
        assert call(connection, b"x") == b"x"
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
    connection = http.client.HTTPConnection("127.0.0.1", server[1], timeout=PATIENCE)
    for _ in range(5):  # this must hold for the first call of a connection and for later ones
        assert call(connection, b"", "/scheme", **{"X-Forwarded-Proto": "https"}) == scheme


@pytest.mark.slow
def test_sigterm_finishes_open_calls_and_exits(server, tmp_path):
    process, port = server
    idle = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    call(idle, b"x")
    answers: list[bytes] = []
    busy = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    thread = threading.Thread(target=lambda: answers.append(call(busy, b"kept", "/stuck")))
    thread.start()
    wait_for_file(tmp_path / "begun")
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)  # the signal arrives before the answer, unless the machine is very slow
    (tmp_path / "go").touch()
    thread.join()
    assert answers == [b"kept"]
    process.wait(timeout=PATIENCE)
    assert process.returncode == 0


def wait_for_file(path):
    until = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.slow
def test_after_sigkill_of_the_master_nothing_holds_the_port(server, tmp_path):
    """The master dies during a call, with a kept connection and a silent one."""
    process, port = server
    kept = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    call(kept, b"1", "/m/infer")
    silent = socket.create_connection(("127.0.0.1", port))
    waiting = threading.Thread(target=_stuck, args=(port,), daemon=True)
    waiting.start()
    wait_for_file(tmp_path / "begun")
    process.kill()
    process.wait()
    (tmp_path / "go").touch()
    until = time.monotonic() + PATIENCE
    while True:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # makes bind fail while another socket listens
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                break
        assert time.monotonic() < until, "the port is held"
        time.sleep(0.1)
    for connection in (kept, silent):
        connection.close()
    waiting.join(PATIENCE)


def _stuck(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.suppress(OSError, http.client.HTTPException):
        call(connection, b"1", "/stuck")
    connection.close()


def test_connection_taken_by_other_process_closes_none_here():
    """Only the process that accepts a connection may close an idle one for it."""

    class Listener:
        def accept(self):
            raise BlockingIOError

    quiet = SimpleNamespace(timeout=75.0)
    worker = SimpleNamespace(
        keepalived_conns=deque([quiet]), pending_conns=deque(), nr_conns=1, worker_connections=800, poller=None
    )
    gunicorn_worker.TurnWorker.accept(worker, Listener())
    assert (quiet.timeout, worker.nr_conns) == (75.0, 1)


HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n"
HALVES = {"head": HEAD, "body": HEAD + b"\r\n" + b"x" * 20, "chunk": HEAD.replace(b"Content-Length: 9000000", b"Transfer-Encoding: chunked") + b"\r\n9"}  # fmt: skip


def is_closed(connection: socket.socket) -> bool:
    with contextlib.suppress(ConnectionError):
        while connection.recv(65536):
            pass
    return True


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_half_sent_calls_leave_threads_for_others(server, half):
    """With a long deadline the server cuts slow clients off as soon as calls wait for a thread."""
    slow = [socket.create_connection(("127.0.0.1", server[1]), PATIENCE) for _ in range(24)]
    for one in slow:
        one.sendall(half)
    other = http.client.HTTPConnection("127.0.0.1", server[1], timeout=PATIENCE)
    assert call(other, b"x") == b"x"
    other.close()
    assert all(is_closed(one) for one in slow[:THREADS])
    for one in slow:
        one.close()


@pytest.mark.slow
@pytest.mark.parametrize("client_seconds", [2])
@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_dripping_client_is_closed_at_its_deadline(server, half):
    """Each byte restarts a timeout of Python, and a thread stays free, so only the deadline can close it."""
    dripping = socket.create_connection(("127.0.0.1", server[1]), PATIENCE)
    dripping.sendall(half)
    until = time.monotonic() + PATIENCE
    with contextlib.suppress(ConnectionError):
        while not select.select([dripping], [], [], 0.1)[0]:
            dripping.sendall(b"0")
            assert time.monotonic() < until, "it was never closed"
    assert is_closed(dripping)
    dripping.close()


def test_clients_that_read_no_answers_leave_threads(server):
    """The responses do not fit into the buffers of the system, so their threads wait while they send."""
    body = b"x" * 30_000_000
    lazy = [socket.create_connection(("127.0.0.1", server[1]), PATIENCE) for _ in range(THREADS)]
    for one in lazy:
        one.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    other = http.client.HTTPConnection("127.0.0.1", server[1], timeout=PATIENCE)
    assert call(other, b"x") == b"x"
    received = 0
    with contextlib.suppress(ConnectionError):
        while part := lazy[0].recv(1 << 20):
            received += len(part)
    assert received < len(body)
    for one in lazy:
        one.close()


def test_steady_bytes_extend_the_deadline(monkeypatch):
    ours, theirs = socket.socketpair()
    sock = client_sockets.ClientSocket(ours)
    clock = itertools.count(0, 10)
    monkeypatch.setattr(client_sockets, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    for _ in range(100):
        theirs.sendall(b"x" * 20_000)
        assert len(sock.recv(20_000)) == 20_000
    assert sock.late == 0
    theirs.sendall(b"x")
    sock.recv(1)
    assert sock.late == pytest.approx(10, abs=0.01)
    theirs.close()
    sock.close()


FIELDS = b"Content-Type: application/json\r\nAuthorization: Token abc\r\n"
CALL = b"POST /m/infer HTTP/1.1\r\nHost: localhost:8000\r\n" + FIELDS + b"Content-Length: 5\r\n\r\nhello"
# Python functions of gunicorn and our worker in one prediction; with gunicorn's `handle_request` it is 160
MAX_CALLS = 60
ANSWER_HEADERS = [("Content-Type", "application/json"), ("X-Frame-Options", "DENY"), ("Content-Length", "5")]


class CountedSocket(socket.socket):
    """Socket that counts what it sends."""

    sent = 0

    def sendall(self, data, *flags):
        self.sent += 1
        return super().sendall(data, *flags)


@pytest.fixture
def answer_here():
    """Provide a function that answers calls in this thread with the worker's `handle`.

    It returns the bytes and the number of writes of each response.
    """
    caller, served = socket.socketpair()
    ours = CountedSocket(fileno=served.detach())
    config = Config()
    worker = gunicorn_worker.TurnWorker(1, os.getppid(), [], SimpleNamespace(cfg=config), 30, config, Logger(config))
    conn = TConn(worker.cfg, ours, ("127.0.0.1", 40_000), ("127.0.0.1", 8000))
    conn.data_ready = True

    def answer(application, content=CALL):
        worker.wsgi = application
        before = ours.sent
        caller.sendall(content)
        kept = worker.handle(conn)
        return caller.recv(100_000), ours.sent - before, kept

    yield answer
    worker.tmp.close()
    caller.close()
    ours.close()


def echo(environ, start_response):
    body = environ["wsgi.input"].read(5)
    start_response("200 OK", ANSWER_HEADERS)
    return [body]


def test_answer_of_prediction_is_one_write(answer_here):
    content, writes, kept = answer_here(echo)
    head, _, body = content.partition(b"\r\n\r\n")
    names = [line.partition(b":")[0] for line in head.split(b"\r\n")]
    own = [b"HTTP/1.1 200 OK", b"Server", b"Date", b"Connection"]
    assert names == [*own, b"Content-Type", b"X-Frame-Options", b"Content-Length"]
    assert b"Connection: keep-alive\r\n" in head
    assert (body, writes, kept) == (b"hello", 1, True)


def test_streamed_answer_is_complete(answer_here):
    def application(environ, start_response):
        start_response("200 OK", ANSWER_HEADERS)
        return [b"he", b"llo, and too much"]

    assert answer_here(application)[0].endswith(b"\r\n\r\nhello")


def test_answer_to_last_call_closes_connection(answer_here):
    last = CALL.replace(b"Host:", b"Connection: close\r\nHost:")
    content, _, kept = answer_here(echo, last)
    assert b"\r\nConnection: close\r\n" in content
    assert not kept


@pytest.mark.parametrize("header", [("X-A", "1\r\nX-B: 2"), ("X A", "1")])
def test_damaged_header_of_answer_is_an_error(answer_here, header):
    def application(environ, start_response):
        start_response("200 OK", [*ANSWER_HEADERS, header])
        return [b"hello"]

    for _ in range(2):  # the second time, too, nothing may be cached
        content, _, kept = answer_here(application)
        assert content.startswith(b"HTTP/1.1 500 ")
        assert not kept


def test_prediction_takes_few_function_calls(answer_here):
    """The number of calls is a budget that does not depend on the machine."""
    for _ in range(3):
        answer_here(echo)
    assert calls_of(lambda: answer_here(echo)) <= MAX_CALLS


def test_known_head_gets_its_own_body_and_environment(answer_here):
    seen = []

    def application(environ, start_response):
        seen.append((environ.get("left"), environ["PATH_INFO"], environ["HTTP_AUTHORIZATION"], environ["HTTP_HOST"]))
        environ["left"] = "by an earlier call"
        return echo(environ, start_response)

    for body in (b"hello", b"world", b"again", b"fifth"):
        assert answer_here(application, CALL.replace(b"hello", body))[0].endswith(b"\r\n\r\n" + body)
    assert set(seen) == {(None, "/m/infer", "Token abc", "localhost:8000")}
    other = CALL.replace(b"Token abc", b"Token xyz")
    for _ in range(3):
        answer_here(application, other)
    assert {call[2] for call in seen[4:]} == {"Token xyz"}


def test_heads_that_must_be_parsed_each_time_stay_unknown(answer_here):
    expecting = CALL.replace(b"Host:", b"Expect: 100-continue\r\nHost:")
    for _ in range(4):
        assert answer_here(echo, expecting)[0].startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
    chunked = CALL.replace(
        b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    )
    for _ in range(4):
        assert answer_here(echo, chunked)[0].endswith(b"\r\n\r\nhello")


def test_unread_body_of_known_head_is_dropped(answer_here):
    def application(environ, start_response):
        start_response("200 OK", ANSWER_HEADERS)
        return [b"whole"]

    for _ in range(4):
        content, _, kept = answer_here(application)
        assert (content[-5:], kept) == (b"whole", True)


def test_damaged_head_after_known_one_is_refused(answer_here):
    for _ in range(3):
        answer_here(echo)
    content, _, kept = answer_here(echo, CALL.replace(b"Host: localhost:8000", b"Host : localhost:8000"))
    assert content.startswith(b"HTTP/1.1 400 ")
    assert not kept


def test_known_head_waits_for_a_body_in_pieces(server):
    head, body = CALL.split(b"\r\n\r\n")
    with socket.create_connection(("127.0.0.1", server[1]), PATIENCE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for cut in (len(CALL), len(CALL), len(head) + 4, len(head) + 6, len(head) - 3, 5):
            connection.sendall(CALL[:cut])
            if cut < len(CALL):
                time.sleep(0.01)  # the server probably reads this piece alone
                connection.sendall(CALL[cut:])
            received = b""
            while not received.endswith(b"\r\n\r\n" + body):
                received += connection.recv(65536)
            assert received.count(b"HTTP/1.1 200 OK") == 1
