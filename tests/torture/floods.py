"""Campaigns of malformed requests and of a long series of valid calls."""

from __future__ import annotations

import concurrent.futures
import gzip
import io
import json
import random
import time
from collections import Counter
from typing import Any

import psutil
import pyarrow.csv
import pyarrow.parquet as pq

from tests.torture.site import Broken, Site, multipart, small_csv

FLAT_MB = 30.0  # allocators and caches grow for a while; an hour with 317,800 calls took 20 MB


def mutated(draw: random.Random, valid: bytes) -> bytes:
    """Return a valid body that is damaged in one to four places."""
    content = bytearray(valid)
    for _ in range(draw.randint(1, 4)):
        kind = draw.randrange(6)
        place = draw.randrange(len(content) + 1)
        if kind == 0:
            del content[place : place + draw.randint(1, 20)]
        elif kind == 1:
            content[place:place] = bytes(draw.randrange(256) for _ in range(draw.randint(1, 8)))
        elif kind == 2:
            content[place:place] = draw.choice(
                [b'"', b"\n", b",", b"{", b"]", b"\x00", b"\xff\xfe", b"1e999", b"NaN", b"null"]
            )
        elif kind == 3:
            content[place:place] = content[draw.randrange(len(content) + 1) :][: draw.randint(1, 60)]
        elif kind == 4:
            content = content[: max(1, place)]
        elif content:
            content[min(place, len(content) - 1)] ^= 1 << draw.randrange(8)
    return bytes(content)


def prediction_bodies(model: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Return valid calls of both APIs: path and body."""
    row = {"width": 1.5, "height": 3, "colour": "red"}
    tensors = [
        {"name": n, "datatype": "BYTES" if isinstance(v, str) else "FP64", "shape": [2], "data": [v, v]}
        for n, v in row.items()
    ]
    return [
        (f"/api/v1/models/{model['id']}/predict/", json.dumps({"rows": [row, row]}).encode()),
        (f"/v2/models/{model['name']}/infer", json.dumps({"id": "1", "inputs": tensors}).encode()),
    ]


def _parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(pyarrow.csv.read_csv(io.BytesIO(small_csv())), out)
    return out.getvalue()


def malformed(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Send damaged requests and uploads. No server error may occur, and only what is accepted may be stored."""
    model = site.approved_model()
    run = {"dataset": site.datasets["small"], "method": "cart", "parameters": {"depth": 2}}
    form = "multipart/form-data; boundary=octweb-torture"
    bodies = [
        ("/api/v1/runs/", json.dumps(run).encode(), "application/json"),
        ("/api/v1/datasets/", multipart({"name": "x", "target": "class"}, small_csv()[:400]), form),
        ("/api/v1/datasets/", multipart({"name": "x", "target": "class"}, gzip.compress(small_csv(), mtime=0), "x.csv.gz"), form),
        ("/api/v1/datasets/", multipart({"name": "x", "target": "class"}, _parquet(), "x.parquet"), form),
    ]  # fmt: skip
    for path, body, kind in bodies:  # the bodies must be valid before they are damaged
        status, answer = site.call("POST", path, body, Content_Type=kind)
        if status != 201:
            raise Broken(f"a valid body is refused: {path} {status} {answer}")
    for address, body in prediction_bodies(model):
        status, answer = site.call("POST", address, body, Content_Type="application/json")
        if status != 200:
            raise Broken(f"a valid prediction is refused: {status} {answer}")
        bodies.append((address, body, "application/json"))
    before = {what: site.count_of(what) for what in ("runs", "datasets")}
    until = time.monotonic() + seconds
    statuses = Counter[int]()
    accepted = Counter[str]()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:

        def send(seed: int) -> None:
            own = random.Random(seed)
            path, body, kind = own.choice(bodies)
            status, answer = site.call("POST", path, mutated(own, body), Content_Type=kind)
            statuses[status] += 1
            if status == 201:
                accepted[path.split("/")[3]] += 1
                # the damage left the body valid, but the workers need not train this run
                if path.startswith("/api/v1/runs/"):
                    site.call("POST", f"{path}{answer['id']}/cancel/", b"")
            if status >= 500:
                raise Broken(f"{path} answered {status} to seed {seed}: {str(answer)[:300]}")

        sent = 0
        while sent < amount and time.monotonic() < until:
            seeds = [draw.randrange(1 << 60) for _ in range(min(200, amount - sent))]
            list(pool.map(send, seeds))
            sent += len(seeds)
    after = {what: site.count_of(what) for what in before}
    for what, number in before.items():
        if after[what] != number + accepted[what]:
            raise Broken(f"{after[what] - number} {what} were stored, {accepted[what]} accepted")
    return f"{sent} requests, answers {dict(sorted(statuses.items()))}"


def memory(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Send many calls, half of them predictions. The memory of the web server must be flat after it has warmed up."""
    paths = [
        "/api/v1/models/",
        "/api/v1/datasets/",
        "/api/v1/methods/",
        f"/api/v1/datasets/{site.datasets['small']}/rows/",
    ]
    calls = prediction_bodies(site.approved_model())
    web = psutil.Process(site.web.pid)  # type: ignore[union-attr]

    def megabytes() -> float:
        return sum(p.memory_info().rss for p in [web, *web.children(recursive=True)]) / 1e6

    def send(i: int) -> None:
        if i % 2:
            address, body = calls[i // 2 % len(calls)]
            site.call("POST", address, body, Content_Type="application/json")
        else:
            site.call("GET", paths[i // 2 % len(paths)])

    def load(count: int) -> None:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(send, range(count)))

    load(300)
    warm = megabytes()
    sent = 0
    until = time.monotonic() + min(seconds, max(10.0, amount * 0.6))
    while time.monotonic() < until:
        load(200)
        sent += 200
    grown = megabytes() - warm
    if grown > FLAT_MB:
        raise Broken(f"{sent} requests made the web server {grown:.0f} MB larger")
    return f"{sent} requests, {warm:.0f} MB then {grown:+.1f} MB"
