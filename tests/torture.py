"""Torture: kills, floods, a locked database, a full disk and a moved clock against real processes; then the books are checked.

    python -m tests.torture [--runs 100] [--requests 10000] [--seconds 900] [--only kills,malformed]

Everything happens in a folder of its own, which is removed unless something broke. The database is SQLite, or the one that
DATABASE_URL names (it should be empty).
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import random
import resource
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
LEASE = 4
ENDED = {"succeeded", "failed", "cancelled"}


class Broken(Exception):
    """A promise did not hold."""


def small_csv() -> bytes:
    rows = [
        f"{i % 7}.5,{(i * i) % 11},{('red', 'green', 'blue')[i % 3]},{'yes' if i % 7 > 3 else 'no'}" for i in range(120)
    ]
    return ("width,height,colour,class\n" + "\n".join(rows) + "\n").encode()


def hard_csv() -> bytes:
    """Noise in many categories: an exact search on it ends at its time limit."""
    draw = random.Random(1)
    lines = [",".join([*(f"c{j}" for j in range(12)), "class"])]
    lines += [",".join([*(f"v{draw.randrange(12)}" for _ in range(12)), draw.choice("ab")]) for _ in range(500)]
    return ("\n".join(lines) + "\n").encode()


class Site:
    """A web server and workers over a folder of their own; what is killed can be started again."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder, self.count = folder, workers
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.environment = os.environ | {
            "OCTWEB_DATA_DIR": str(folder),
            "OCTWEB_WORKER_LEASE_SECONDS": str(LEASE),
            "OCTWEB_RATE_USER": "1000000/min",
            "OCTWEB_MAX_QUEUED_RUNS": "100000",
            "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(ROOT / "var" / "numba")),
            "DJANGO_SETTINGS_MODULE": "octweb.settings",
        }
        self.log = (folder / "log").open("ab")
        self.web: subprocess.Popen | None = None
        self.workers: list[subprocess.Popen] = []
        self.token = ""
        self.datasets: dict[str, str] = {}

    def prepare(self) -> None:
        """Database, user, token, data sets."""
        self.set_up()
        self.token = self.manage("token", "admin", "--name", "torture").strip().splitlines()[-1]
        self.start_web()
        for name, content in (("small", small_csv()), ("hard", hard_csv())):
            status, answer = self.upload(name, content)
            if status != 201:
                raise Broken(f"a valid data set is refused: {status} {answer}")
            self.datasets[name] = answer["id"]
        for _ in range(self.count):
            self.start_worker()

    def set_up(self) -> None:
        # without sample data and compressed static files, which take a while
        self.manage("migrate", "--no-input")
        self.environment["DJANGO_SUPERUSER_PASSWORD"] = secrets.token_urlsafe()
        self.manage("createsuperuser", "--no-input", "--username=admin", "--email=admin@example.org")

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        done = subprocess.run(command, env=self.environment, cwd=ROOT, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise Broken(f"manage.py {arguments[0]}: {done.stderr[-500:]}")
        return done.stdout

    def _start(self, *command: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, *command],
            env=self.environment,
            cwd=ROOT,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )

    def start_web(self) -> None:
        self.web = self._start(
            "-m", "gunicorn", "octweb.wsgi:application", "--bind", f"127.0.0.1:{self.port}", "--worker-class", "gthread",
            "--threads", "8", "--no-control-socket",
        )  # fmt: skip
        self.wait(lambda: self.call("GET", "/healthz")[0] == 200, 60, "the web server does not start")

    def start_worker(self) -> None:
        self.workers.append(self._start(str(ROOT / "manage.py"), "worker", "--interval", "0.2", "--reap-every", "1"))

    def wait(self, condition: Callable[[], bool], seconds: float, complaint: str) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if condition():
                return
            time.sleep(0.2)
        raise Broken(complaint)

    def call(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
        """Status and answer; 0 where the server is away."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=body, method=method)
        request.add_header("Authorization", f"Token {self.token}")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                content, status = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            content, status = error.read(), error.code
        except (OSError, ValueError):
            return 0, None
        try:
            return status, json.loads(content)
        except ValueError:
            return status, content

    def upload(self, name: str, content: bytes) -> tuple[int, Any]:
        return self.call(
            "POST",
            "/api/v1/datasets/",
            multipart({"name": name}, content),
            Content_Type="multipart/form-data; boundary=b",
        )

    def new_run(self, dataset: str, method: str, key: str = "", **parameters: Any) -> tuple[int, Any]:
        body = json.dumps({"dataset": self.datasets[dataset], "method": method, "parameters": parameters}).encode()
        return self.call("POST", "/api/v1/runs/", body, Content_Type="application/json", Idempotency_Key=key)

    def approved_model(self) -> dict[str, Any]:
        """A model of the small table that clients may call; made where there is none yet."""
        _, run = self.new_run("small", "cart", key="for-predictions", depth=2)
        self.wait(lambda: self.run(run["id"]).get("status") in ENDED, 120, "the run of a small tree does not end")
        model = self.run(run["id"]).get("model")
        if not model:
            raise Broken(f"no model for predictions: {self.run(run['id'])}")
        for action in ("ask", "approve"):
            step = json.dumps({"action": action}).encode()
            self.call("POST", f"/api/v1/models/{model}/review/", step, Content_Type="application/json")
        status, answer = self.call("GET", f"/api/v1/models/{model}/")
        if status != 200 or answer["state"] != "approved":
            raise Broken(f"the model is not approved: {status} {answer}")
        return answer

    def run(self, pk: str) -> dict[str, Any]:
        status, answer = self.call("GET", f"/api/v1/runs/{pk}/")
        return answer if status == 200 else {}

    def count_of(self, what: str) -> int:
        return int(self.call("GET", f"/api/v1/{what}/")[1]["count"])

    def children(self) -> list[psutil.Process]:
        """The training processes of this site."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            line = process.info["cmdline"] or []
            if "train" in line and any(str(self.folder) in part for part in line):
                found.append(process)
        return found

    def stop(self) -> None:
        for process in [*self.workers, *([self.web] if self.web else [])]:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for child in self.children():
            child.kill()
        self.log.close()


def multipart(fields: dict[str, str], content: bytes, file_name: str = "data.csv") -> bytes:
    parts = [f'--b\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items()]
    head = (
        f'--b\r\nContent-Disposition: form-data; name="file"; filename="{file_name}"\r\nContent-Type: text/csv\r\n\r\n'
    )
    return b"".join([*parts, head.encode(), content, b"\r\n--b--\r\n"])


# ---- the campaigns


def kills(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """SIGKILL of worker, child and web server at random moments while runs are asked for."""
    asked: dict[str, str] = {}
    killed: Counter[str] = Counter()
    seen: dict[str, set[int]] = {}
    until = time.monotonic() + seconds
    strike = time.monotonic() + 1
    while time.monotonic() < until:
        if len(asked) < amount:
            key = f"run-{len(asked)}"
            hard = draw.random() < 0.3
            status, answer = (
                site.new_run("hard", "odt", key, depth=3, time_limit=2)
                if hard
                else site.new_run("small", "cart", key, depth=3)
            )
            if status == 201:  # a server killed in the middle leaves the key to ask again with
                asked[key] = answer["id"]
        elif all(site.run(pk).get("status") in ENDED for pk in asked.values()):
            break
        for child in site.children():
            note_child(child, seen)
        if time.monotonic() >= strike and len(asked) - ended(site, asked) > 0:
            killed[strike_one(site, draw)] += 1
            strike = time.monotonic() + draw.uniform(0.5, 4)
        time.sleep(0.05)
    revive(site)
    site.wait(lambda: ended(site, asked) == len(asked), 60 + 3 * LEASE + 4 * len(asked), "some run is stuck")
    if len(asked) < amount:
        raise Broken(f"only {len(asked)} of {amount} runs could be asked for")
    runs = {pk: site.run(pk) for pk in asked.values()}
    outcome = Counter(run["status"] for run in runs.values())
    for pk, run in runs.items():
        if run["status"] == "succeeded" and not run["model"]:
            raise Broken(f"run {pk} succeeded without a model")
        if run["status"] == "failed" and not run["error"]:
            raise Broken(f"run {pk} failed without a reason")
    models = [run["model"] for run in runs.values() if run["model"]]
    if len(set(models)) != len(models) or site.count_of("models") != len(models):
        raise Broken(f"{len(models)} runs have a model, {site.count_of('models')} models are stored")
    if not outcome["succeeded"]:
        raise Broken(f"no run survived: {dict(outcome)}")
    return f"{amount} runs: {dict(outcome)}; killed: {dict(killed)}; attempts up to {max(r['attempt'] for r in runs.values())}"


def ended(site: Site, asked: dict[str, str]) -> int:
    return sum(site.run(pk).get("status") in ENDED for pk in asked.values())


def note_child(child: psutil.Process, seen: dict[str, set[int]]) -> None:
    """Two processes that work on one run with living supervisors at once would be the same work done twice."""
    try:
        output = next(part for part in child.cmdline() if part.startswith("--output="))
        run, attempt = Path(output).parent.parent.name, Path(output).parent.name
        parent = child.ppid()
    except (psutil.Error, StopIteration):
        return
    if parent > 1:
        seen.setdefault(f"{run}/{attempt}", set()).add(child.pid)
        if len(seen[f"{run}/{attempt}"]) > 1:
            raise Broken(f"attempt {attempt} of run {run} has two processes")


def strike_one(site: Site, draw: random.Random) -> str:
    """Kill something, and start again what nothing else starts."""
    victim = draw.choice(["worker", "child", "child", "web"])
    if victim == "child":
        children = site.children()
        if not children:
            return "nobody"
        draw.choice(children).kill()
    elif victim == "worker":
        process = draw.choice(site.workers)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        site.workers.remove(process)
        site.start_worker()
    elif site.web is not None:
        os.killpg(site.web.pid, signal.SIGKILL)
        site.web.wait()
        site.start_web()
    return victim


def revive(site: Site) -> None:
    if site.call("GET", "/healthz")[0] != 200:
        site.start_web()
    while len(site.workers) < site.count:
        site.start_worker()


def mutated(draw: random.Random, valid: bytes) -> bytes:
    """A valid body with a few wounds."""
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
    """A valid call of the own API, and of the Open Inference Protocol."""
    row = {"width": 1.5, "height": 3, "colour": "red"}
    tensors = [
        {"name": n, "datatype": "BYTES" if isinstance(v, str) else "FP64", "shape": [2], "data": [v, v]}
        for n, v in row.items()
    ]
    return [
        (f"/api/v1/models/{model['id']}/predict/", json.dumps({"rows": [row, row]}).encode()),
        (f"/v2/models/{model['name']}/infer", json.dumps({"id": "1", "inputs": tensors}).encode()),
    ]


def malformed(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Requests and uploads that are valid ones with wounds: no server error, and nothing is stored unless it is accepted."""
    model = site.approved_model()
    bodies = [
        ("/api/v1/runs/", json.dumps({"dataset": site.datasets["small"], "method": "nothing", "parameters": {"depth": 2}}).encode(), "application/json"),
        ("/api/v1/datasets/", multipart({"name": "x", "target": "nowhere"}, small_csv()[:400]), "multipart/form-data; boundary=b"),
    ]  # fmt: skip
    for address, body in prediction_bodies(model):
        status, answer = site.call("POST", address, body, Content_Type="application/json")
        if status != 200:
            raise Broken(f"a valid prediction is refused: {status} {answer}")
        bodies.append((address, body, "application/json"))
    before = {what: site.count_of(what) for what in ("runs", "datasets", "models")}
    until, statuses = time.monotonic() + seconds, Counter[int]()
    accepted = Counter[str]()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:

        def send(seed: int) -> None:
            own = random.Random(seed)
            path, body, kind = own.choice(bodies)
            status, answer = site.call("POST", path, mutated(own, body), Content_Type=kind)
            statuses[status] += 1
            if status == 201:
                accepted[path.split("/")[3]] += 1
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


def writers(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Six writers at once: no lock error."""
    name = site.datasets["small"]
    until, done = time.monotonic() + min(seconds, 15), Counter[int]()

    def write(number: int) -> None:
        while time.monotonic() < until:
            body = json.dumps({"name": f"small {number} {time.time()}"}).encode()
            done[site.call("PATCH", f"/api/v1/datasets/{name}/", body, Content_Type="application/json")[0]] += 1

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    if set(done) != {200}:
        raise Broken(f"answers to writers: {dict(done)}")
    return f"{done[200]} writes by 6 writers, every one answered 200"


def database_locked(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Somebody holds the database for some seconds while a run trains; the run ends as if nothing had been."""
    path = site.folder / "octweb.sqlite3"
    if not path.exists():
        return "left out: the database is not SQLite"
    _, run = site.new_run("hard", "odt", depth=3, time_limit=3)
    site.wait(lambda: site.run(run["id"]).get("status") == "running", 60, "the run does not start")
    holder = sqlite3.connect(path, timeout=30, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    time.sleep(6)
    holder.execute("COMMIT")
    holder.close()
    site.wait(lambda: site.run(run["id"]).get("status") in ENDED, 60, "the run is stuck after the lock")
    end = site.run(run["id"])
    if end["status"] != "succeeded":
        raise Broken(f"a locked database cost a run: {end['status']} {end['error']}")
    return f"held for 6 s; the run succeeded at attempt {end['attempt']}"


def clock_moved(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Leases that are over at once, as when the clock jumps ahead: the run has one model in the end."""
    path = site.folder / "octweb.sqlite3"
    if not path.exists():
        return "left out: the database is not SQLite"
    before = site.count_of("models")
    _, run = site.new_run("hard", "odt", depth=3, time_limit=4)
    site.wait(lambda: site.run(run["id"]).get("status") == "running", 60, "the run does not start")
    with sqlite3.connect(path, timeout=30) as database:
        database.execute("UPDATE runs_trainingrun SET lease_until = '2000-01-01 00:00:00'")
    site.wait(lambda: site.run(run["id"]).get("status") in ENDED, 120, "the run is stuck after the clock moved")
    end = site.run(run["id"])
    if end["status"] != "succeeded" or site.count_of("models") != before + 1:
        raise Broken(f"after the clock moved: {end['status']}, {site.count_of('models') - before} models")
    return f"lease over in mid-run; one model, attempt {end['attempt']}"


def disk_full(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """The model cannot be written: a reason in one line, and neither a model nor a part of one is left."""
    folder = Path(tempfile.mkdtemp(dir=site.folder))
    (folder / "data.csv").write_bytes(small_csv())

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))

    command = [sys.executable, str(ROOT / "manage.py"), "train", str(folder / "data.csv"), "--target=class", "--method=cart",
               f"--output={folder / 'model.json'}"]  # fmt: skip
    environment = site.environment | {"NUMBA_DISABLE_JIT": "1"}  # the compiler writes files of its own
    done = subprocess.run(command, env=environment, capture_output=True, text=True, preexec_fn=limit, timeout=120)
    left = sorted(p.name for p in folder.iterdir())
    if done.returncode != 1 or left != ["data.csv"] or "Traceback" in done.stderr:
        raise Broken(f"full disk: status {done.returncode}, left {left}, said {done.stderr[-300:]}")
    return f"status 1, nothing left, said: {done.stderr.strip().splitlines()[-1][:80]}"


def sigterm(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """A worker that is asked to end gives its run back within its grace, and another worker finishes it."""
    _, run = site.new_run("hard", "odt", depth=3, time_limit=6)
    site.wait(lambda: site.run(run["id"]).get("status") == "running", 60, "the run does not start")
    started = time.monotonic()
    gone = list(site.workers)
    for process in gone:
        process.terminate()
    for process in gone:
        process.wait(timeout=40)
    took = time.monotonic() - started
    if site.run(run["id"])["status"] not in {"queued", "succeeded"}:
        raise Broken(f"after SIGTERM the run is {site.run(run['id'])['status']}")
    site.workers.clear()
    revive(site)
    site.wait(
        lambda: site.run(run["id"]).get("status") == "succeeded", 120, "a run that was given back is not finished"
    )
    return f"workers ended after {took:.1f} s, the run was finished by another"


def memory(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Mixed load, half of it predictions: the web server's memory is flat after it has warmed up."""
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
    warm, sent, until = megabytes(), 0, time.monotonic() + min(seconds, max(10.0, amount * 0.6))
    while time.monotonic() < until:
        load(200)
        sent += 200
    grown = megabytes() - warm
    if grown > 20 + 0.002 * sent:
        raise Broken(f"{sent} requests made the web server {grown:.0f} MB larger")
    return f"{sent} requests, {warm:.0f} MB then {grown:+.1f} MB"


CAMPAIGNS: dict[str, Callable[[Site, random.Random, int, float], str]] = {
    "kills": kills, "malformed": malformed, "writers": writers, "locked": database_locked, "clock": clock_moved,
    "disk": disk_full, "sigterm": sigterm, "memory": memory,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=900, help="bound of each campaign")
    parser.add_argument("--only", default=",".join(CAMPAIGNS))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="octweb-torture-"))
    site, broken = Site(folder), 0
    try:
        site.prepare()
        print("| campaign | result |\n|---|---|", flush=True)
        for name in arguments.only.split(","):
            amount = arguments.requests if name == "malformed" else arguments.runs
            try:
                result = CAMPAIGNS[name](site, random.Random(f"{arguments.seed} {name}"), amount, arguments.seconds)
            except Broken as error:
                broken, result = broken + 1, f"**broken**: {error}"
                revive(site)
            print(f"| {name} | {result} |", flush=True)
    finally:
        site.stop()
        if broken:
            print(f"the log is {folder / 'log'}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
