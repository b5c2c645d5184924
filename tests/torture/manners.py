"""Campaigns of badly behaved HTTP clients, memory bombs as bodies, a full disk, and a killed gunicorn master."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.octweb.serving.json_bombs_cases import BOMBS
from tests.torture.mixed import addresses, body
from tests.torture.site import PATIENCE, SHORT, Broken, Site, small_csv
from tests.torture.uploads import FORM, Watch

IDLE = 1050  # connections that send nothing
GROWN_MB = 700.0  # memory by which bodies of 32 MB may enlarge the web server
PORT_SECONDS = 15.0
DISK_MB = 90  # size of a small disk; the server regards it as full if less than 50 MB are free


def http_manners(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Send unread, chunked, compressed and truncated bodies, and open connections that send nothing.

    Each call must get its response, and so must the next one.
    """
    model = site.approved_model()
    unread = _unread(site, draw, 15)
    packed = _packed(site, model)
    cut = _cut_off(site, model)
    options = _options(site, model)
    clock = seconds >= SHORT
    idle = _idle(site, IDLE if clock else 100, clock=clock)
    return f"{unread} calls behind unread bodies answered, {packed}, {cut} bodies cut off: 400, {options} × OPTIONS, {idle}"


def _line(site: Site) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", site.port, timeout=PATIENCE)


def _ask(
    line: http.client.HTTPConnection, method: str, path: str, content: Any = None, **headers: str
) -> tuple[int, http.client.HTTPMessage, bytes]:
    line.request(method, path, content, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = line.getresponse()
    return answer.status, answer.headers, answer.read()


def _unread(site: Site, draw: random.Random, times: int) -> int:
    """Send calls that are refused before their bodies are read.

    The next call on the connection must be answered.
    """
    line = _line(site)
    paths = ("/api/v1/runs/", "/api/v1/datasets/", "/v2/models/none/infer", "/invocations", "/api/v1/nowhere/")
    for i in range(times):
        status, headers, _ = _ask(
            line,
            "POST",
            paths[i % len(paths)],
            bytes(draw.randrange(300_000, 2_000_000)),
            Content_Type="application/json",
        )
        if not 400 <= status < 500 or headers["Connection"] == "close":
            raise Broken(f"an unread body: {status} {headers['Connection']}")
        if (status := _ask(line, "GET", "/healthz")[0]) != 200:
            raise Broken(f"the call behind an unread body: {status}")
    line.close()
    return times


def _packed(site: Site, model: dict[str, Any]) -> str:
    """Send chunked and compressed calls. They must get the same predictions as plain ones."""
    address = addresses(model)[0]
    content = body(model, address, 50)
    line = _line(site)
    own = {"Authorization": f"Token {site.token}", "Content_Type": "application/json"}
    plain = _ask(line, "POST", address, content, **own)[2]
    ways = {
        "gzip": gzip.compress(content), "deflate": zlib.compress(content),
        "zstd": bytes(pa.Codec("zstd").compress(content)),
    }  # fmt: skip
    for coding, sent in ways.items():
        for one in (sent, iter([sent[:10], sent[10:]])):  # the second form is sent in chunks
            status, _, found = _ask(line, "POST", address, one, Content_Encoding=coding, **own)
            if (status, found) != (200, plain):
                raise Broken(f"{coding}: {status} {found[:200]!r}")
    if (found := _ask(line, "POST", address, iter([content]), **own))[0] != 200:
        raise Broken(f"chunked: {found[0]}")
    bomb = gzip.compress(bytes(100_000_000))
    line = _line(site)  # the server closed the other connection while the bomb was created
    if (status := _ask(line, "POST", address, bomb, Content_Encoding="gzip", **own)[0]) != 413:
        raise Broken(f"a packed body of 100 MB: {status}")
    return "chunked, gzip, deflate and zstd the same answer"


def _cut_off(site: Site, model: dict[str, Any]) -> int:
    count = 0
    for address in [*addresses(model), "/api/v1/datasets/"]:
        for sent in (0, 10, 60_000):
            kind = "application/json" if "models" in address else FORM
            with socket.create_connection(("127.0.0.1", site.port), PATIENCE) as line:
                head = f"POST {address} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Token {site.token}\r\nContent-Type: {kind}\r\n"
                line.sendall(f"{head}Content-Length: 100000\r\n\r\n".encode() + b"x" * sent)
                line.shutdown(socket.SHUT_WR)
                found = b"".join(iter(lambda: line.recv(10_000), b""))
            if not found.startswith(b"HTTP/1.1 400"):
                raise Broken(f"{address} cut off after {sent}: {found[:100]!r}")
            count += 1
    return count


def _options(site: Site, model: dict[str, Any]) -> int:
    paths = [
        "/",
        "/api/v1/runs/",
        "/api/v1/models/",
        "/v2",
        "/v2/health/ready",
        "/invocations",
        "/ping",
        *addresses(model),
    ]
    for path in paths:
        status, answer = site.call("OPTIONS", path)
        if not 200 <= status < 300:
            raise Broken(f"OPTIONS {path}: {status} {str(answer)[:100]}")
    return len(paths)


def _idle(site: Site, count: int, *, clock: bool) -> str:
    """Open more connections that send nothing than one process accepts. Other calls must be answered."""
    held: list[socket.socket] = []
    try:
        for _ in range(count):
            with contextlib.suppress(OSError):
                held.append(socket.create_connection(("127.0.0.1", site.port), PATIENCE))
        slowest = 0.0
        for _ in range(20):
            start = time.monotonic()
            if site.call("GET", "/healthz")[0] != 200:
                raise Broken(f"beside {len(held)} idle connections /healthz has no answer")
            slowest = max(slowest, time.monotonic() - start)
    finally:
        for one in held:
            one.close()
    if clock and slowest > 5:
        raise Broken(f"beside {len(held)} idle connections /healthz took {slowest:.1f} s")
    return f"beside {len(held)} idle connections /healthz took at most {slowest:.2f} s"


def bodies(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Send JSON bodies that are designed to take much memory.

    They must be refused with a reason, and meanwhile the server must stay small and answer.
    """
    size = 1_100_000 if seconds < SHORT else 31_000_000
    model = site.approved_model()
    sent = 0
    with Watch(site) as watch:
        for name, make in BOMBS.items():
            content = make(size)
            for address in (*addresses(model), "/invocations"):
                status, answer = site.call("POST", address, content, Content_Type="application/json")
                if status not in (200, 400, 413, 422):
                    raise Broken(f"{name} to {address}: {status} {str(answer)[:200]}")
                sent += 1
    if watch.own - watch.begin > GROWN_MB or watch.unhealthy:
        raise Broken(f"{watch.words()}; {watch.unhealthy} health calls failed")
    return f"{sent} bodies of {size / 1e6:.0f} MB refused; {watch.words()}"


def master(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Kill only the gunicorn master while calls are in progress.

    The port must become free, and a new server must get it.
    """
    assert site.web is not None
    over = threading.Event()
    took = []

    def calls() -> None:
        while not over.is_set():
            # While the server is away, calls without a pause would take the processor from the server that starts.
            if not site.call("GET", "/api/v1/models/")[0]:
                over.wait(0.1)

    callers = [threading.Thread(target=calls) for _ in range(4)]
    for caller in callers:
        caller.start()
    times = 3 if seconds >= SHORT else 1
    for _ in range(times):
        time.sleep(draw.uniform(0.2, 1.0))
        os.kill(site.web.pid, signal.SIGKILL)
        site.web.wait()
        start = time.monotonic()
        site.wait(
            lambda: _is_free(site.port),
            PORT_SECONDS if seconds >= SHORT else PATIENCE,
            "the port is held after SIGKILL of the master",
        )
        took.append(time.monotonic() - start)
        site.start_web()
    over.set()
    for caller in callers:
        caller.join()
    return f"{times} masters killed, the port was free after at most {max(took):.1f} s"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # makes bind fail while another socket listens
        with contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return True
    return False


@contextlib.contextmanager
def _small_disk() -> Iterator[Path | None]:
    """Provide a folder on a separate disk of DISK_MB, or None if this user may not mount one."""
    folder = Path(tempfile.mkdtemp(prefix="octweb-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder)]
    mounted = shutil.which("mount") and subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def disk_of_the_server_full(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Fill the data disk.

    Calls must get 503 with the reason, /readyz must name the disk, and both must end once space is free.
    """
    with _small_disk() as folder:
        if folder is None:
            return "left out: no right to mount a small disk"
        other = Site(folder, workers=0)
        try:
            return _filled(site, other, folder)
        finally:
            other.stop()


def _filled(site: Site, other: Site, folder: Path) -> str:
    if "DATABASE_URL" in os.environ:
        other.token = site.token  # both sites have the same database, but only this one has a full disk for files
    else:
        other.set_up()
    other.start_web()
    if (before := other.upload("before", small_csv()))[0] != 201 or other.call("GET", "/readyz")[0] != 200:
        raise Broken(f"an empty disk: {before}")
    count = other.count_of("datasets")
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as stream:
        while stream.write(b"x" * 100_000) == 100_000:
            pass
    status, answer = other.upload("full", small_csv() * 200)
    ready = other.call("GET", "/readyz")
    if status != 503 or "disk" not in str(answer) or ready[0] != 503 or ready[1]["disk"] != "full":
        raise Broken(f"a full disk: {status} {str(answer)[:200]}, /readyz {ready}")
    reading = other.call(
        "GET", "/api/v1/datasets/"
    )  # SQLite needs free space even for reading, for the index of its write-ahead log
    if reading[0] not in (200, 503) or (reading[0] == 503 and "disk" not in str(reading[1])):
        raise Broken(f"reading beside a full disk: {reading[0]} {str(reading[1])[:200]}")
    filler.unlink()
    if (after := other.upload("after", small_csv()))[0] != 201 or other.count_of("datasets") != count + 1:
        raise Broken(f"after there was room again: {after}, {other.count_of('datasets')} data sets")
    return f"503 with the reason, /readyz {json.dumps(ready[1])}, reading {reading[0]}; stored again when there was room, and nothing else"
