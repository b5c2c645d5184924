"""Campaigns of simultaneous writers, a locked database, a moved clock, a full disk, and a terminated worker."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from tests.torture.kills import revive
from tests.torture.site import ENDED, PATIENCE, ROOT, SHORT, Broken, Site, small_csv

GRACE_SECONDS = 10  # the default of OCTWEB_WORKER_GRACE_SECONDS


def database(site: Site) -> Any:
    """Return a separate database connection in autocommit mode."""
    if address := os.environ.get("DATABASE_URL"):
        return psycopg.connect(address, autocommit=True)
    return sqlite3.connect(site.folder / "octweb.sqlite3", timeout=30, isolation_level=None)


@contextlib.contextmanager
def held(site: Site, table: str) -> Iterator[None]:
    """Lock the whole database (SQLite), or one table of it (PostgreSQL), during a `with` block."""
    with contextlib.closing(database(site)) as holder:
        if "DATABASE_URL" in os.environ:
            holder.execute("BEGIN")
            holder.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        else:
            holder.execute("BEGIN IMMEDIATE")
        yield
        holder.execute("ROLLBACK")


def writers(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Write with six clients at once. No lock error may occur."""
    name = site.datasets["small"]
    until = time.monotonic() + min(seconds, 15)
    done = Counter[int]()

    def write(number: int) -> None:
        while time.monotonic() < until:
            body = json.dumps({"name": f"small {number} {time.time()}"}).encode()
            done[site.call("PATCH", f"/api/v1/datasets/{name}/", body, Content_Type="application/json")[0]] += 1

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    if set(done) != {200}:
        raise Broken(f"answers to writers: {dict(done)}")
    return f"{done[200]} writes by 6 writers, every one answered 200"


def _running(site: Site, time_limit: float) -> dict[str, Any]:
    """Start a run of some seconds, wait until it has begun, and return it."""
    status, run = site.new_run("hard", "odt", depth=3, time_limit=time_limit)
    if status != 201:
        raise Broken(f"a run is refused: {status} {str(run)[:200]}")
    site.wait(lambda: site.run(run["id"]).get("status") in {"running", *ENDED}, PATIENCE, "the run does not start")
    return run


def database_locked(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Lock the database for some seconds while a run trains. The run must succeed all the same."""
    run = _running(site, time_limit=3)
    with held(site, "runs_trainingrun"):
        time.sleep(6)
    site.wait(lambda: site.run(run["id"]).get("status") in ENDED, PATIENCE, "the run is stuck after the lock")
    end = site.run(run["id"])
    if end["status"] != "succeeded":
        raise Broken(f"a locked database cost a run: {end['status']} {end['error']}")
    return f"held for 6 s; the run succeeded at attempt {end['attempt']}"


def clock_moved(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """End the lease of a run at once, as if the clock jumped ahead. The run must have one model in the end."""
    before = site.count_of("models")
    run = _running(site, time_limit=4)
    with contextlib.closing(database(site)) as own:
        own.execute("UPDATE runs_trainingrun SET lease_until = '2000-01-01 00:00:00'")
    site.wait(lambda: site.run(run["id"]).get("status") in ENDED, PATIENCE, "the run is stuck after the clock moved")
    end = site.run(run["id"])
    if end["status"] != "succeeded" or site.count_of("models") != before + 1:
        raise Broken(f"after the clock moved: {end['status']}, {site.count_of('models') - before} models")
    return f"lease over in mid-run; one model, attempt {end['attempt']}"


def disk_full(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Train on a full disk. Training must fail with one line and leave no model, not even a part of one."""
    folder = Path(tempfile.mkdtemp(dir=site.folder))
    (folder / "data.csv").write_bytes(small_csv())

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))

    command = [sys.executable, str(ROOT / "manage.py"), "train", str(folder / "data.csv"), "--target=class", "--method=cart",
               f"--output={folder / 'model.json'}"]  # fmt: skip
    environment = site.environment | {"NUMBA_DISABLE_JIT": "1"}  # the compiler would write files of its own
    process = subprocess.run(
        command, env=environment, capture_output=True, text=True, preexec_fn=limit, timeout=PATIENCE
    )
    left = sorted(p.name for p in folder.iterdir())
    if process.returncode != 1 or left != ["data.csv"] or "Traceback" in process.stderr:
        raise Broken(f"full disk: status {process.returncode}, left {left}, said {process.stderr[-300:]}")
    return f"status 1, nothing left, said: {process.stderr.strip().splitlines()[-1][:80]}"


def sigterm(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Terminate all workers. They must release their run within the grace period, and another worker must finish it."""
    run = _running(site, time_limit=6)
    started = time.monotonic()
    gone = list(site.workers)
    for process in gone:
        process.terminate()
    for process in gone:
        process.wait(timeout=PATIENCE)
    took = time.monotonic() - started
    if seconds >= SHORT and took > GRACE_SECONDS + 5:
        raise Broken(f"the workers took {took:.0f} s to end")
    if site.run(run["id"])["status"] not in {"queued", "succeeded"}:
        raise Broken(f"after SIGTERM the run is {site.run(run['id'])['status']}")
    site.workers.clear()
    revive(site)
    site.wait(
        lambda: site.run(run["id"]).get("status") == "succeeded", PATIENCE, "a run that was given back is not finished"
    )
    return f"workers ended after {took:.1f} s, the run was finished by another"
