"""Campaign with a mixed load: predictions, pages, lists, uploads, and two trainings at once."""

from __future__ import annotations

import concurrent.futures
import gzip
import http.client
import json
import os
import random
import statistics
import threading
import time
from collections import Counter
from typing import Any

import psutil

from tests.bombs import BOMBS
from tests.torture.site import ENDED, PATIENCE, Broken, Site, multipart
from tests.torture.uploads import FORM, numbers

# seconds, at most a fifth of the campaign, until caches and allocators are full; then memory must stay flat
SETTLED = 60.0
FLAT_MB = 60.0  # the calls include uploads of 20 MB; the campaign `memory` permits less
PAUSE = 0.01  # seconds between two predictions of one client
READING = 1.0  # seconds between two pages of one reader
TRAINING = 60.0  # time limit of one training, in seconds
MOST_MB = 20.0  # size of an uploaded file


class Mix:
    """Simultaneous loads, and what they observe. Two users train, one uploads; the others predict, list and read pages."""

    def __init__(self, site: Site, draw: random.Random, seconds: float, users: int) -> None:
        self.site = site
        self.draw = draw
        self.seconds = seconds
        self.predictors = max(2, (users - 3) // 2)
        self.readers = users - 4 - self.predictors
        self.over = threading.Event()
        self.statuses: dict[str, Counter[int]] = {
            name: Counter() for name in ("predict", "list", "page", "upload", "bomb", "run")
        }
        self.took: list[tuple[bool, float]] = []  # whether two trainings were running, and the seconds of a prediction
        self.pages: list[float] = []  # seconds of each page
        self.memory: list[tuple[float, float]] = []  # seconds since the start, and MB
        self.loads: list[float] = []
        self.trainings = 0

    def run(self) -> str:
        """Run all loads for the given time. Raises Broken if a call fails or memory grows."""
        model = self.site.approved_model()
        tasks = [self.trainer, self.trainer, self.lister, self.uploader, self.sampler]
        cookies = self.site.sign_in() if self.readers > 0 else ""
        with concurrent.futures.ThreadPoolExecutor(len(tasks) + self.predictors + self.readers) as pool:
            begun = [pool.submit(task) for task in tasks]
            begun += [pool.submit(self.predictor, model, seed) for seed in range(self.predictors)]
            begun += [pool.submit(self.reader, model, cookies, seed) for seed in range(self.readers)]
            self.over.wait(self.seconds)
            self.over.set()
            for task in begun:
                task.result()
        return self.judged()

    def predictor(self, model: dict[str, Any], seed: int) -> None:
        """Send one or a hundred rows to both APIs, over one persistent connection."""
        draw = random.Random(seed)
        calls = [(address, body(model, address, n)) for n in (1, 1, 1, 100) for address in addresses(model)]
        line = http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=PATIENCE)
        headers = {"Authorization": f"Token {self.site.token}", "Content-Type": "application/json"}
        while not self.over.wait(PAUSE):
            address, content = draw.choice(calls)
            busy = self.trainings >= 2
            start = time.monotonic()
            status = self._ask(line, address, content, headers)
            self.took.append((busy, time.monotonic() - start))
            self.statuses["predict"][status] += 1
        line.close()

    def _ask(self, line: http.client.HTTPConnection, address: str, content: bytes, headers: dict[str, str]) -> int:
        """Return the status of a call.

        If the persistent connection was closed meanwhile, it is opened again once, as clients do.
        """
        for attempt in range(2):
            try:
                line.request("POST", address, content, headers)
                answer = line.getresponse()
                answer.read()
                return answer.status
            except (OSError, http.client.HTTPException):
                line.close()
                if attempt:
                    return 0
        raise AssertionError

    def lister(self) -> None:
        paths = [f"/api/v1/{what}/" for what in ("models", "datasets", "runs", "methods")]
        paths += [f"/api/v1/datasets/{self.site.datasets['small']}/rows/", "/healthz", "/readyz"]
        while not self.over.wait(0.1):
            self.statuses["list"][self.site.call("GET", random.choice(paths))[0]] += 1

    def reader(self, model: dict[str, Any], cookies: str, seed: int) -> None:
        """Open pages in the browser's session, with a pause after each."""
        draw = random.Random(f"reader {seed}")
        small = self.site.datasets["small"]
        pages = ["/", "/datasets/", f"/datasets/{small}/", "/models/", "/models/searches/", "/decisions/", "/api/docs/"]
        pages += [f"/models/{model['id']}/?mode={mode}" for mode in ("tree", "performance", "life", "history")]
        while not self.over.wait(READING * draw.uniform(0.5, 1.5)):
            start = time.monotonic()
            status, _ = self.site.call("GET", draw.choice(pages), Cookie=cookies)
            self.pages.append(time.monotonic() - start)
            self.statuses["page"][status] += 1

    def uploader(self) -> None:
        """Upload a file from time to time, plain or compressed, and delete it again. About every fifth is a bomb."""
        while not self.over.wait(min(5.0, self.seconds / 4)):
            if self.draw.random() < 0.2:
                name = self.draw.choice(list(BOMBS))
                file_name, make = BOMBS[name]
                self.statuses["bomb"][self._upload(name, make(20), file_name)[0]] += 1
                continue
            content = numbers(self.draw.uniform(0.1, MOST_MB), self.draw)
            file_name = "data.csv"
            if self.draw.random() < 0.3:
                content = gzip.compress(content, 1)
                file_name = "data.csv.gz"
            status, answer = self._upload("mixed", content, file_name)
            self.statuses["upload"][status] += 1
            if status == 201:
                self.site.call("DELETE", f"/api/v1/datasets/{answer['id']}/")

    def _upload(self, name: str, content: bytes, file_name: str) -> tuple[int, Any]:
        body = multipart({"name": name}, content, file_name)
        return self.site.call("POST", "/api/v1/datasets/", body, patience=600, Content_Type=FORM)

    def trainer(self) -> None:
        """Train again and again, one run at a time."""
        while not self.over.is_set():
            status, run = self.site.new_run("hard", "odt", depth=3, time_limit=TRAINING)
            self.statuses["run"][status] += 1
            if status != 201:
                return
            while not self.over.wait(1):
                if self.site.run(run["id"]).get("status") in ENDED:
                    break
            else:
                self.site.call("POST", f"/api/v1/runs/{run['id']}/cancel/", b"")

    def sampler(self) -> None:
        web = psutil.Process(self.site.web.pid)  # type: ignore[union-attr]
        start = time.monotonic()
        while not self.over.wait(min(2.0, self.seconds / 10)):
            own = [web, *web.children()]  # the processes that read files are children of these, and do not count
            self.memory.append(
                (time.monotonic() - start, sum(p.memory_info().rss for p in own if p.is_running()) / 1e6)
            )
            self.loads.append(os.getloadavg()[0])
            self.trainings = len({child.ppid() for child in self.site.children() if child.is_running()})

    def judged(self) -> str:
        failed = {name: dict(found) for name, found in self.statuses.items() if any(not s or s >= 500 for s in found)}
        if failed:
            raise Broken(f"calls failed: {failed}; without an answer: {self.site.unanswered[-5:]}")
        settled = [mb for at, mb in self.memory if at > min(SETTLED, self.seconds / 5)] or [self.memory[-1][1]]
        quarters = [settled[i * len(settled) // 4 : (i + 1) * len(settled) // 4] or settled for i in range(4)]
        begin, *_, end = medians = [statistics.median(quarter) for quarter in quarters]
        if end - begin > FLAT_MB:
            raise Broken(f"the web server grew from {begin:.0f} to {end:.0f} MB")
        beside = sorted(1000 * seconds for busy, seconds in self.took if busy)
        speed = "no prediction while two trainings ran"
        if len(beside) >= 100:
            median = beside[len(beside) // 2]
            high = beside[int(0.99 * len(beside))]
            speed = f"{len(beside)} of them while two trainings ran: median {median:.1f} ms, p99 {high:.1f} ms"
        if self.pages:
            speed += f"; pages: median {self._page_ms(0.5):.0f} ms, p99 {self._page_ms(0.99):.0f} ms"
        counts = {name: dict(sorted(found.items())) for name, found in self.statuses.items()}
        return (
            f"{self.seconds / 60:.0f} minutes, {len(self.took)} predictions, {speed}; answers {counts}; web server by quarters of the time "
            f"{', '.join(f'{mb:.0f}' for mb in medians)} MB, at most {max(settled):.0f}; load of the machine {statistics.mean(self.loads):.1f} on {os.cpu_count()} cores"
        )

    def _page_ms(self, share: float) -> float:
        return 1000 * sorted(self.pages)[int(share * (len(self.pages) - 1))]


def addresses(model: dict[str, Any]) -> tuple[str, str]:
    return f"/api/v1/models/{model['id']}/predict/", f"/v2/models/{model['name']}/infer"


def body(model: dict[str, Any], address: str, n: int) -> bytes:
    """Return the body of a valid call with `n` rows of the small table."""
    row = {"width": 1.5, "height": 3, "colour": "red"}
    if address.startswith("/api"):
        return json.dumps({"rows": [row] * n}).encode()
    kinds = {name: "BYTES" if isinstance(value, str) else "FP64" for name, value in row.items()}
    tensors = [{"name": k, "datatype": kinds[k], "shape": [n], "data": [v] * n} for k, v in row.items()]
    return json.dumps({"inputs": tensors}).encode()


def mixed(site: Site, draw: random.Random, amount: int, seconds: float, users: int = 6) -> str:
    """Send predictions, lists and uploads with some bombs, and train twice at a time. More than six users read pages, too.

    No call may fail, and the memory must be flat.
    """
    return Mix(site, draw, seconds, users).run()
