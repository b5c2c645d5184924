"""Campaigns of bombs, many large files at once, and writers beside a large upload."""

from __future__ import annotations

import concurrent.futures
import json
import os
import random
import threading
import time
from collections import Counter

import psutil

from tests.bombs import bombs as made
from tests.torture.faults import held
from tests.torture.site import SHORT, Broken, Site, multipart

FORM = "multipart/form-data; boundary=octweb-torture"
GROWN_MB = 250.0  # growth of the web server by its own code and buffers while it takes files of some megabytes
READER_MB = 1000.0
HEALTH_SECONDS = 1.0


class Watch:
    """Observation of the web server: the memory of its processes and readers, and the response times of `/healthz`."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.done = threading.Event()
        self.web = psutil.Process(site.web.pid)  # type: ignore[union-attr]
        self.begin = self.own = self.readers = self.slowest = 0.0
        self.unhealthy = 0

    def sample(self) -> None:
        own = readers = 0.0
        processes = self.web.children()  # the children of these are readers, which are copies of them for a moment
        for process in [self.web, *processes]:
            own += _megabytes(process)
            for reader in process.children() if process in processes else ():
                if "octweb.datasets.intake" in _line(reader):
                    readers = max(readers, _megabytes(reader))
        self.begin = self.begin or own
        self.own, self.readers = max(self.own, own), max(self.readers, readers)

    def __enter__(self) -> Watch:
        self.sample()
        self.threads = [threading.Thread(target=self._memory), threading.Thread(target=self._health)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.done.set()
        for thread in self.threads:
            thread.join()

    def _memory(self) -> None:
        while not self.done.wait(0.05):
            self.sample()

    def _health(self) -> None:
        while not self.done.wait(0.1):
            start = time.monotonic()
            self.unhealthy += self.site.call("GET", "/healthz")[0] != 200
            self.slowest = max(self.slowest, time.monotonic() - start)

    def words(self) -> str:
        return (
            f"web server {self.begin:.0f} MB, at most {self.own:.0f}; largest reader {self.readers:.0f} MB; "
            f"slowest /healthz {self.slowest:.2f} s"
        )


def _megabytes(process: psutil.Process) -> float:
    try:
        return process.memory_info().rss / 1e6
    except psutil.Error:
        return 0.0


def _line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def bombs(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Upload files of some kilobytes that unpack to 100 MB.

    They must be refused, or stored by a process with limits, and the web server must stay small.
    """
    megabytes = 5 if seconds < SHORT else 100
    statuses = Counter[int]()
    site.upload("warm", b"a,y\n" + b"1,u\n2,v\n" * 300_000)  # the first reader loads code, so it must not be measured
    with Watch(site) as watch:
        for name, file_name, content in made(megabytes):
            status, answer = site.call(
                "POST",
                "/api/v1/datasets/",
                multipart({"name": name}, content, file_name),
                patience=600,
                Content_Type=FORM,
            )
            statuses[status] += 1
            if status not in (201, 413, 422):
                raise Broken(f"{name}: {status} {str(answer)[:200]}")
    _judge(watch, clock=seconds >= SHORT)
    return f"{sum(statuses.values())} bombs, answers {dict(sorted(statuses.items()))}; {watch.words()}"


def _judge(watch: Watch, *, clock: bool, grown: float = GROWN_MB) -> None:
    if watch.own - watch.begin > grown or watch.readers > READER_MB or watch.unhealthy:
        raise Broken(f"{watch.words()}; {watch.unhealthy} health calls failed")
    if clock and watch.slowest > HEALTH_SECONDS:
        raise Broken(watch.words())


def numbers(megabytes: float, draw: random.Random) -> bytes:
    """Return a table of twenty columns of numbers and a class."""
    lines = [
        ",".join([*(f"{draw.random() * 100:.5f}" for _ in range(20)), draw.choice(("yes", "no"))]) for _ in range(2000)
    ]
    block = ("\n".join(lines) + "\n").encode()
    head = ",".join([*(f"c{j}" for j in range(20)), "class"]).encode() + b"\n"
    return head + block * max(1, int(megabytes * 1e6 / len(block)))


def uploads(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Upload ten large files at once.

    All must be stored, the server must answer all the time, and the memory must be free again afterwards.
    """
    content = numbers(2 if seconds < SHORT else 50, draw)
    with Watch(site) as watch, concurrent.futures.ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda i: site.upload(f"large {i}", content), range(10)))
    statuses = Counter(status for status, _ in answers)
    for status, answer in answers:
        if status == 201:
            site.call("DELETE", f"/api/v1/datasets/{answer['id']}/")
    if set(statuses) != {201}:
        raise Broken(f"answers to ten uploads: {dict(statuses)}")
    _judge(watch, clock=seconds >= SHORT, grown=GROWN_MB + 100)
    time.sleep(1)
    watch.sample()
    return f"ten files of {len(content) / 1e6:.0f} MB: all stored; {watch.words()}"


def storing(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Write beside a large upload, and then while the database is locked for longer than a call waits."""
    short = seconds < SHORT
    name = site.datasets["small"]
    done = Counter[int]()
    content = numbers(2 if short else 150, draw)
    over = threading.Event()

    def write(number: int) -> None:
        while not over.is_set():
            body = json.dumps({"name": f"small {number} {time.time()}"}).encode()
            done[site.call("PATCH", f"/api/v1/datasets/{name}/", body, Content_Type="application/json")[0]] += 1

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, i) for i in range(3)]
        start = time.monotonic()
        status, answer = site.upload("large", content)
        took = time.monotonic() - start
        over.set()
        for writer in writers:
            writer.result()
    if status != 201 or set(done) - {200}:
        raise Broken(f"storing: {status} {str(answer)[:200]}, writers: {dict(done)}")
    return f"{len(content) / 1e6:.0f} MB stored in {took:.0f} s; {done[200]} writes beside it, every one 200{_held(site, short)}"


def _held(site: Site, short: bool) -> str:
    if short:
        return ""
    with held(site, "datasets_dataset"):
        body = json.dumps({"name": "held"}).encode()
        status, answer = site.call(
            "PATCH", f"/api/v1/datasets/{site.datasets['small']}/", body, Content_Type="application/json"
        )
        ready = site.call("GET", "/readyz")
    if status != 503 or "locked" not in str(answer):
        raise Broken(f"a held database: {status} {str(answer)[:200]}")
    if "DATABASE_URL" in os.environ:
        return "; while somebody held the table a write was answered 503 with the reason"
    if ready[0] != 503:
        raise Broken(f"a held database: /readyz {ready}")
    return "; while somebody held the database a write was answered 503 with the reason, and /readyz named it"
