"""Compare predictions of a model with full records and of the same model without.

    python benchmarks/records.py [--repeats 5] [--seconds 3] [--rows 1,1000] [--connections 4] [--collector]

One server with one process on a free port serves the same tree twice from a temporary data folder: one model counts its
answers, the other records each of them (`full`). The two take turns in each repeat, and the order alternates, so that
other work on the machine affects both. The client is this process; with two or more cores it runs on another core than
the server. A ratio is the median over the repeats. p99 is that of all calls of a side. Processor time per request is
measured as well; on a busy machine it says more than requests per second. Without `--collector` the frames
wait in the spool; with it, a worker stores them on the client's core meanwhile, which measures two busy cores.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
from serving_speed import ROOT, free_port, prepare, processor_seconds, rows_body, tensor_body

MIN_RATE = 0.90  # bar: requests per second with records ÷ without
MAX_P99 = 1.15  # bar: p99 with records ÷ without, for calls of one row
WARM_UP_SECONDS = 1.0
LENGTH = re.compile(rb"\r\nContent-Length: (\d+)", re.IGNORECASE)

SETUP = """
import sys, json
sys.path.insert(0, sys.argv[1])
import django
django.setup()
from django.contrib.auth import get_user_model
from octweb.registry.lifecycle import actions
from octweb.serving.actions import create_token
user = get_user_model().objects.create_superuser("bench", password="only for the benchmark")
document = json.load(open(sys.argv[2]))
told = {"token": create_token(owner=user, name="bench")[1]}
for mode in ("counts", "full"):
    model = actions.register(owner=user, document=document, dataset=None, title=mode, name="bench-" + mode)
    actions.approve(actions.ask_for_approval(model, by=user), by=user, reason="to be measured", recording=mode)
    told[mode] = str(model.pk)
print(json.dumps(told))
"""


class Call(NamedTuple):
    """A kind of call: its API, its rows, and its request by mode of recording."""

    api: str
    rows: int
    requests: dict[str, bytes]


class Measured(NamedTuple):
    """Requests per second, the seconds of each request, and the server's processor seconds per request."""

    rate: float
    latencies: np.ndarray
    cpu: float


class Client:
    """Closed loop of calls on kept connections: each connection sends its next request when it has its answer."""

    def __init__(self, port: int, process: psutil.Process, connections: int) -> None:
        self._process = process
        self._selector = selectors.DefaultSelector()
        self._sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
        for sock in self._sockets:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(sock, selectors.EVENT_READ)
        self._buffer = memoryview(bytearray(1 << 20))

    def measure(self, request: bytes, seconds: float) -> Measured:
        """Send requests for some seconds. Wait for all answers."""
        cpu = processor_seconds(self._process)
        started = time.perf_counter()
        end = started + seconds
        sent = {}
        latencies = []
        for sock in self._sockets:
            sent[sock] = time.perf_counter()
            sock.sendall(request)
        while sent:
            for key, _ in self._selector.select():
                sock: Any = key.fileobj
                self._read(sock)
                now = time.perf_counter()
                latencies.append(now - sent.pop(sock))
                if now < end:
                    sent[sock] = now
                    sock.sendall(request)
        rate = len(latencies) / (time.perf_counter() - started)
        cpu = (processor_seconds(self._process) - cpu) / len(latencies)
        return Measured(rate, np.array(latencies), cpu)

    def close(self) -> None:
        for sock in self._sockets:
            sock.close()

    def _read(self, sock: socket.socket) -> None:
        """Read an answer, and raise SystemExit unless its status is 200."""
        size = sock.recv_into(self._buffer)
        head, _, rest = bytes(self._buffer[:4096][:size]).partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if length is None or not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"The server answered: {(head + rest)[:1000].decode(errors='replace')}")
        left = len(head) + 4 + int(length[1]) - size
        while left > 0:
            size = sock.recv_into(self._buffer)
            if not size:
                raise SystemExit("The server closed the connection within an answer.")
            left -= size


@contextlib.contextmanager
def running(command: list[str], environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process until the end of the block."""
    with (
        log.open("wb") as stream,
        subprocess.Popen(
            [sys.executable, *command], env=environment, cwd=ROOT, stdout=stream, stderr=stream
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()


@contextlib.contextmanager
def server(folder: Path, environment: dict[str, str]) -> Iterator[tuple[int, psutil.Process]]:
    """Run a server with one process, and yield its port and its process once it answers."""
    port = free_port()
    command = [
        "-m", "gunicorn", "octweb.wsgi:application", "--bind", f"127.0.0.1:{port}", "--worker-class",
        "octweb.core.gunicorn_worker.Worker", "--workers", "1", "--threads", "8", "--no-control-socket",
    ]  # fmt: skip
    log = folder / "server.log"
    with running(command, environment, log) as process:
        while True:
            if process.poll() is not None:
                raise SystemExit(f"The server ended early. Its log ends with:\n{log.read_text()[-3000:]}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield port, psutil.Process(process.pid)


def kinds_of_calls(told: dict[str, str], rows: list[int]) -> list[Call]:
    """Return the calls to measure: both APIs for each number of rows."""
    calls = []
    for n in rows:
        bodies = {"/api/v1": rows_body(n), "/v2": tensor_body(n)}
        for api, body in bodies.items():
            paths = {
                mode: f"/api/v1/models/{told[mode]}/predict/" if api == "/api/v1" else f"/v2/models/bench-{mode}/infer"
                for mode in ("counts", "full")
            }
            requests = {mode: request_of(path, told["token"], body) for mode, path in paths.items()}
            calls.append(Call(api, n, requests))
    return calls


def request_of(path: str, token: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Token {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def compare(client: Client, call: Call, repeats: int, seconds: float) -> bool:
    """Measure both modes in turns, print a line of the table, and return whether the bars hold."""
    measured: dict[str, list[Measured]] = {"counts": [], "full": []}
    for request in call.requests.values():
        client.measure(request, WARM_UP_SECONDS)
    for repeat in range(repeats):
        for mode in ("counts", "full") if repeat % 2 else ("full", "counts"):
            measured[mode].append(client.measure(call.requests[mode], seconds))
    rates = {mode: statistics.median(m.rate for m in values) for mode, values in measured.items()}
    p99 = {
        mode: 1000 * float(np.percentile(np.concatenate([m.latencies for m in values]), 99))
        for mode, values in measured.items()
    }
    ratios = [full.rate / counts.rate for counts, full in zip(measured["counts"], measured["full"], strict=True)]
    ratio = statistics.median(ratios)
    p99_ratio = p99["full"] / p99["counts"]
    costs = zip(measured["counts"], measured["full"], strict=True)
    cpu_ratio = statistics.median(counts.cpu / full.cpu for counts, full in costs)
    holds = ratio >= MIN_RATE and (call.rows > 1 or p99_ratio <= MAX_P99)
    print(
        f"| {call.api} | {call.rows:,} | {rates['counts']:,.0f} | {rates['full']:,.0f} | {ratio:.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f}) | {cpu_ratio:.2f} | {p99['counts']:.2f} | {p99['full']:.2f} | {p99_ratio:.2f} "
        f"| {'holds' if holds else 'does not hold'} |",
        flush=True,
    )
    return holds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rows", default="1,1000")
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--collector", action="store_true", help="store the records meanwhile, on the client's core")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    holds = True
    with tempfile.TemporaryDirectory(prefix="octweb-bench-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        environment, told = prepare(folder, SETUP)
        environment["OCTWEB_RECORD_SPOOL_MB"] = "1000000"  # the disk is the limit
        os.sched_setaffinity(0, cores[:1])  # the server inherits it
        port, process = stack.enter_context(server(folder, environment))
        os.sched_setaffinity(0, cores[-1:])
        if options.collector:
            stack.enter_context(running(["manage.py", "worker"], environment, folder / "worker.log"))
        client = Client(port, process, options.connections)
        stack.callback(client.close)
        print(
            "| API | rows | requests/s, counts | requests/s, full | full ÷ counts | processor time, counts ÷ full "
            "| p99, ms, counts | full | ratio | bars |"
        )
        print("|---" * 10 + "|")
        for call in kinds_of_calls(told, [int(n) for n in options.rows.split(",")]):
            holds &= compare(client, call, options.repeats, options.seconds)
    print(
        f"{options.repeats} repeats of {options.seconds:g} s, {options.connections} connections, load {os.getloadavg()[0]:.1f}"
    )
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
