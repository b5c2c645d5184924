"""Compare the prediction throughput and latency of octweb and MLServer.

    python benchmarks/serving_speed.py --mlserver VENV [--rounds 3] [--seconds 5] [--rows 1,1000] [--connections 8]

Each server has one worker pinned to one core; wrk runs on another core and must be installed. VENV is a virtual
environment with `mlserver mlserver-sklearn`, since MLServer pins versions that octweb does not accept. Both serve the
same scikit-learn tree on 30 columns, and both get the same body of the Open Inference Protocol. octweb checks token,
throttle and every cell, and returns label, probabilities and leaf; MLServer checks no token and returns the class. The
servers take turns in each round, so that other work on the machine affects both; ratios are medians over rounds.
Processor time per request is measured as well. On a busy machine it says more than requests per second.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
NAME = "bc"

SETUP = """
import sys, json
sys.path.insert(0, sys.argv[1])
import django
django.setup()
from django.contrib.auth import get_user_model
from octweb.registry.lifecycle import actions
from octweb.serving.actions import create_token
user = get_user_model().objects.create_superuser("bench", password="only for the benchmark")
model = actions.register(owner=user, document=json.load(open(sys.argv[2])), dataset=None, title="bc", name="bc")
actions.approve(actions.ask_for_approval(model, by=user), by=user, reason="to be measured")
print(json.dumps({"token": create_token(owner=user, name="bench")[1], "model": str(model.pk)}))
"""

MLSERVER_MODEL = """
import sys, joblib
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier
data = load_breast_cancer()
joblib.dump(DecisionTreeClassifier(max_depth=5, random_state=0).fit(data.data, data.target), sys.argv[1])
"""

SCRIPT = """
local file = io.open("{body}", "rb")
wrk.method = "POST"
wrk.body = file:read("*all")
wrk.headers["Content-Type"] = "application/json"
{header}
done = function(summary, latency, requests)
  io.write(string.format("RESULT %f %f %f %d %d\\n", summary.requests / (summary.duration / 1e6),
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout,
    summary.requests))
end
"""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A server to measure: its process, the URL, and the header and body of the request."""

    process: psutil.Process
    name: str
    url: str
    body: bytes
    header: str = ""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Results of one run of wrk: requests per second, latency in ms, and processor ms of the server per request."""

    rate: float
    p50: float
    p99: float
    cpu: float


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tree_document(path: Path) -> None:
    """Write the tree that MLServer serves as a model file of octweb."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.tree import DecisionTreeClassifier

    sys.path[:0] = [str(ROOT)]
    from trainer.table import numeric_table
    from trainer.tree.file import ModelFile, write
    from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, grow
    from trainer.tree.splits import Threshold

    data = load_breast_cancer()
    inner = DecisionTreeClassifier(max_depth=5, random_state=0).fit(data.data, data.target).tree_

    def visit(v: int) -> Draft:
        if inner.children_left[v] < 0:
            return DraftLeaf()
        split = Threshold(feature=int(inner.feature[v]), threshold=float(inner.threshold[v]))
        return DraftBranch(split=split, left=visit(inner.children_left[v]), right=visit(inner.children_right[v]))

    names = [str(name) for name in data.feature_names]
    table = numeric_table(data.data, names=names)
    tree = grow(visit(0), data.data, data.target.astype("int32"), schema=table.schema, classes=("0", "1"))
    write(ModelFile.of_tree(tree), path)


def rows(n: int) -> Any:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    return data.data[[i % len(data.data) for i in range(n)]], [str(name) for name in data.feature_names]


def tensor_body(n: int) -> bytes:
    """Return a request body of the Open Inference Protocol: one tensor with all columns."""
    X, _ = rows(n)
    tensor = {"name": "predict", "shape": [n, X.shape[1]], "datatype": "FP64", "data": X.ravel().tolist()}
    return json.dumps({"inputs": [tensor]}).encode()


def rows_body(n: int) -> bytes:
    X, names = rows(n)
    return json.dumps({"rows": [dict(zip(names, row, strict=True)) for row in X.tolist()]}).encode()


@contextlib.contextmanager
def running(
    command: list[str], environment: dict[str, str], ready: str, log: Path, cwd: Path
) -> Iterator[psutil.Process]:
    """Run a server pinned to core 0, yield its process when it is ready, and stop it at the end."""
    with log.open("wb") as stream:
        process = subprocess.Popen(
            ["taskset", "-c", "0", *command],
            env=environment,
            cwd=cwd,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
        try:
            for _ in range(600):
                if process.poll() is not None:
                    raise SystemExit(f"The server exited early. Its log ends with:\n{log.read_text()[-3000:]}")
                with contextlib.suppress(OSError), urllib.request.urlopen(ready, timeout=2) as answer:
                    if answer.status == 200:
                        break
                time.sleep(0.1)
            yield psutil.Process(process.pid)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def processor_seconds(process: psutil.Process) -> float:
    """Return the processor seconds of a server and its child processes."""
    return sum(sum(p.cpu_times()[:2]) for p in [process, *process.children(recursive=True)])


def once(target: Target, header: dict[str, str]) -> None:
    """Make one request with a long timeout, since the first one compiles kernels."""
    request = urllib.request.Request(target.url, target.body, {"Content-Type": "application/json"} | header)
    with urllib.request.urlopen(request, timeout=300) as answer:
        answer.read()


def measure(target: Target, folder: Path, seconds: float, connections: int) -> Measured:
    body = folder / "body"
    script = folder / "wrk.lua"
    body.write_bytes(target.body)
    script.write_text(SCRIPT.replace("{body}", str(body)).replace("{header}", target.header))
    command = ["taskset", "-c", "1", "wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "-s", str(script), target.url]
    before = processor_seconds(target.process)
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    cpu_seconds = processor_seconds(target.process) - before
    match = re.search(r"RESULT (\S+) (\S+) (\S+) (\d+) (\d+)", process.stdout)
    if match is None or int(match[4]):
        raise SystemExit(f"{target.name}: wrk saw errors:\n{process.stdout}")
    cpu = 1000 * cpu_seconds / max(1, int(match[5]))
    return Measured(rate=float(match[1]), p50=float(match[2]), p99=float(match[3]), cpu=cpu)


def own_targets(process: psutil.Process, base: str, setup: dict[str, str], n: int, suffix: str) -> list[Target]:
    header = f'wrk.headers["Authorization"] = "Token {setup["token"]}"'
    return [
        Target(
            process=process,
            name=f"octweb /v2{suffix}",
            url=f"{base}/v2/models/{NAME}/infer",
            body=tensor_body(n),
            header=header,
        ),
        Target(
            process=process,
            name=f"octweb /api/v1{suffix}",
            url=f"{base}/api/v1/models/{setup['model']}/predict/",
            body=rows_body(n),
            header=header,
        ),
    ]


def prepare(folder: Path, setup: str = SETUP) -> tuple[dict[str, str], dict[str, str]]:
    """Set up a fresh installation with the approved models of a setup script.

    Returns its environment variables, and the dictionary that the script prints, with token and model ids.
    """
    environment = os.environ | {
        "OCTWEB_DATA_DIR": str(folder / "data"),
        "OCTWEB_RATE_USER": "100000000/min",  # the throttle counts as usual, but no call reaches its limit
        "OCTWEB_LOG_LEVEL": "WARNING",
        "DJANGO_SETTINGS_MODULE": "octweb.settings",
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(folder / "numba")),
    }
    document = folder / "model.json"
    tree_document(document)
    (folder / "data").mkdir(exist_ok=True)
    subprocess.run([sys.executable, str(ROOT / "manage.py"), "migrate", "-v0"], env=environment, cwd=ROOT, check=True)
    process = subprocess.run(
        [sys.executable, "-c", setup, str(ROOT), str(document)],
        env=environment,
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return environment, json.loads(process.stdout.splitlines()[-1])


@contextlib.contextmanager
def octweb(
    folder: Path, environment: dict[str, str], threads: int, worker: str
) -> Iterator[tuple[psutil.Process, str]]:
    port = free_port()
    command = [
        sys.executable, "-m", "gunicorn", "octweb.wsgi:application", "--bind", f"127.0.0.1:{port}", "--worker-class",
        worker, "--workers", "1", "--threads", str(threads), "--no-control-socket",
    ]  # fmt: skip
    with running(command, environment, f"http://127.0.0.1:{port}/healthz", folder / "octweb.log", ROOT) as process:
        yield process, f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def mlserver(folder: Path, venv: Path) -> Iterator[tuple[psutil.Process, str]]:
    place = folder / "mlserver"
    (place / NAME).mkdir(parents=True)
    port = free_port()
    settings = {"http_port": port, "grpc_port": free_port(), "metrics_port": free_port(), "host": "127.0.0.1"}
    settings |= {"parallel_workers": 0, "debug": False}
    model = {"name": NAME, "implementation": "mlserver_sklearn.SKLearnModel", "parameters": {"uri": "./model.joblib"}}
    (place / "settings.json").write_text(json.dumps(settings))
    (place / NAME / "model-settings.json").write_text(json.dumps(model))
    subprocess.run([str(venv / "bin/python"), "-c", MLSERVER_MODEL, str(place / NAME / "model.joblib")], check=True)
    environment = os.environ | {"PATH": f"{venv / 'bin'}:{os.environ['PATH']}"}
    command = [str(venv / "bin/mlserver"), "start", str(place)]
    with running(
        command, environment, f"http://127.0.0.1:{port}/v2/health/ready", folder / "mlserver.log", place
    ) as process:
        yield process, f"http://127.0.0.1:{port}"


def median(values: list[Measured], field: str) -> float:
    return statistics.median(getattr(v, field) for v in values)


def table(measurements: dict[tuple[str, int], list[Measured]], counts: list[int], peer: str | None) -> None:
    print(
        "| server | rows | requests/s | p50, ms | p99, ms | requests/s ÷ MLServer | processor ms per request | MLServer's ÷ that |\n"
        + "|---" * 8
        + "|"
    )
    for n in counts:
        for (name, m), values in measurements.items():
            if m != n:
                continue
            ratio = ""
            cheaper = ""
            if peer is not None:
                base = measurements[(peer, n)]
                ratio = f"{statistics.median(v.rate / b.rate for v, b in zip(values, base, strict=True)):.2f}"
                cheaper = f"{statistics.median(b.cpu / v.cpu for v, b in zip(values, base, strict=True)):.2f}"
            numbers = f"{median(values, 'rate'):,.0f} | {median(values, 'p50'):.1f} | {median(values, 'p99'):.1f}"
            print(f"| {name} | {n:,} | {numbers} | {ratio} | {median(values, 'cpu'):.2f} | {cheaper} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mlserver", type=Path, metavar="VENV", help="without it only octweb is measured")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rows", default="1,1000")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument(
        "--worker-class",
        nargs="+",
        default=["octweb.core.gunicorn_worker.Worker"],
        metavar="CLASS",
        help="of octweb; with gthread besides, both take turns",
    )
    parser.add_argument("--threads", type=int, default=8, help="threads of octweb's one worker, as `make run` has them")
    options = parser.parse_args()
    if not shutil.which("wrk") or not shutil.which("taskset"):
        print("wrk and taskset are needed for this benchmark; it is left out.")
        return
    counts = [int(n) for n in options.rows.split(",")]
    measurements: dict[tuple[str, int], list[Measured]] = {}
    with tempfile.TemporaryDirectory(prefix="octweb-bench-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        environment, setup = prepare(folder)
        servers = [
            (f", {name.rpartition('.')[2]}", stack.enter_context(octweb(folder, environment, options.threads, name)))
            for name in options.worker_class
        ]
        peer = stack.enter_context(mlserver(folder, options.mlserver)) if options.mlserver else None
        for number in range(options.rounds):
            for n in counts:
                targets = [t for suffix, server in servers for t in own_targets(*server, setup, n, suffix)]
                if peer:
                    url = f"{peer[1]}/v2/models/{NAME}/infer"
                    targets.insert(0, Target(process=peer[0], name="MLServer /v2", url=url, body=tensor_body(n)))
                for target in targets:
                    if not number:
                        once(target, {"Authorization": f"Token {setup['token']}"})
                        measure(target, folder, 1, options.connections)  # warms up server and client
                    measured = measure(target, folder, options.seconds, options.connections)
                    measurements.setdefault((target.name, n), []).append(measured)
                    print(f"round {number + 1}: {target.name}, {n} rows: {measured}", file=sys.stderr, flush=True)
        load = os.getloadavg()[0]
    print(
        f"{options.rounds} rounds of {options.seconds:g} s, {options.connections} connections, load average {load:.1f}"
    )
    table(measurements, counts, "MLServer /v2" if options.mlserver else None)


if __name__ == "__main__":
    main()
