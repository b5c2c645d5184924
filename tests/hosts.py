"""Test a web host and worker hosts that share only a database and a bucket.

    bash tests/with_postgres.sh .venv/bin/python -m tests.hosts [--runs 5] [--workers 2]

Every host has a data folder of its own, and a network namespace of its own where that is permitted; the only way between hosts is a link
that can be cut. Runs are asked for at the web host, workers are killed and cut off in the middle, and the books are checked: no run
twice, none stuck, every result served by the web host, which has never seen the workers' folders.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tests.torture.site import ENDED, LEASE, PATIENCE, Broken, Site, hard_csv, multipart, small_csv

BUCKET = "octweb-hosts"
CUTS = 20  # attempts to cut off a host before its run ends
KEYS = {"AWS_ACCESS_KEY_ID": "octweb", "AWS_SECRET_ACCESS_KEY": "not a secret", "AWS_DEFAULT_REGION": "us-east-1"}


class Link:
    """Connection from an address that a host sees to a server. While it is cut, nothing passes."""

    def __init__(self, at: str, to: tuple[str, int]) -> None:
        self.to = to
        self.listener = socket.create_server((at, 0))
        self.port = self.listener.getsockname()[1]
        self.whole = threading.Event()
        self.whole.set()
        self.open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            near, _ = self.listener.accept()
            if not self.whole.is_set():
                near.close()
                continue
            try:
                far = socket.create_connection(self.to)
            except OSError:
                near.close()
                continue
            self.open |= {near, far}
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                if not self.whole.is_set():
                    break
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
            self.open.discard(end)

    def cut(self) -> None:
        self.whole.clear()
        for end in list(self.open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self.whole.set()


class Host:
    """Host with a folder, a network, and links to the database and the bucket."""

    def __init__(self, number: int, folder: Path, database: str, bucket: str, *, namespaces: bool) -> None:
        self.folder = folder
        folder.mkdir()
        self.enter: list[str] = []
        self.namespace = ""
        at = "127.0.0.1"
        if namespaces:
            self.namespace = f"octweb-{os.getpid()}-{number}"
            at = f"10.213.{number}.1"
            for command in (
                f"ip netns add {self.namespace}",
                f"ip link add octw{number} type veth peer name eth0 netns {self.namespace}",
                f"ip addr add {at}/24 dev octw{number}",
                f"ip link set octw{number} up",
                f"ip -n {self.namespace} addr add 10.213.{number}.2/24 dev eth0",
                f"ip -n {self.namespace} link set eth0 up",
                f"ip -n {self.namespace} link set lo up",
            ):
                subprocess.run(command.split(), check=True, capture_output=True)
            self.enter = ["ip", "netns", "exec", self.namespace]
        self.links = []
        addresses = []
        for url in (database, bucket):
            parts = urlsplit(url)
            link = Link(at, (parts.hostname or "", parts.port or 0))
            user = f"{parts.username}@" if parts.username else ""
            self.links.append(link)
            addresses.append(urlunsplit(parts._replace(netloc=f"{user}{at}:{link.port}")))
        self.environment = {
            "OCTWEB_DATA_DIR": str(folder),
            "DATABASE_URL": addresses[0],
            "OCTWEB_FILES": f"s3://{BUCKET}/files",
            "OCTWEB_S3_ENDPOINT": addresses[1],
        } | KEYS

    def cut(self) -> None:
        for link in self.links:
            link.cut()

    def mend(self) -> None:
        for link in self.links:
            link.mend()

    def remove(self) -> None:
        if self.namespace:
            subprocess.run(["ip", "netns", "del", self.namespace], check=False, capture_output=True)


class Hosts(Site):
    """Site of the torture campaigns with a separate host for each worker."""

    def __init__(self, folder: Path, workers: int, database: str, bucket: str, *, namespaces: bool) -> None:
        (folder / "web").mkdir()
        super().__init__(folder / "web", workers)
        self.environment |= {
            "DATABASE_URL": database,
            "OCTWEB_FILES": f"s3://{BUCKET}/files",
            "OCTWEB_S3_ENDPOINT": bucket,
            "OCTWEB_SECRET_KEY": "the same on every host, as the page on deployment says",
        } | KEYS
        self.root = folder
        self.hosts = []
        for number in range(1, workers + 1):
            self.hosts.append(Host(number, folder / f"worker{number}", database, bucket, namespaces=namespaces))

    def start_worker(self) -> None:
        self.start_worker_on(self.hosts[len(self.workers)])

    def start_worker_on(self, host: Host) -> subprocess.Popen:
        command = [*host.enter, sys.executable, "manage.py", "worker", "--interval", "0.2", "--reap-every", "1"]
        process = subprocess.Popen(
            command,
            env=self.environment | host.environment,
            cwd=Path(__file__).resolve().parent.parent,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )
        self.workers.append(process)
        return process

    def run_folders(self) -> list[Path]:
        """Return the folders in which the hosts keep their runs."""
        return [host.folder / "runs" for host in self.hosts]

    def folders_of(self, host: Host) -> set[str]:
        """Return the ids of the runs on which the host works now."""
        return {path.name for path in (host.folder / "runs").glob("*")}

    def stop(self) -> None:
        for host in self.hosts:
            host.mend()
        super().stop()
        for host in self.hosts:
            host.remove()


def may_have_namespaces() -> bool:
    """Return whether this user may create connected network namespaces."""
    name = f"octweb-try-{os.getpid()}"
    if shutil.which("ip") is None:
        return False
    made = subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True).returncode == 0
    wire = f"ip link add octwtry type veth peer name eth0 netns {name}".split()
    wired = made and subprocess.run(wire, check=False, capture_output=True).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
    return wired


def kill_tree(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def taken_back(run: dict[str, Any]) -> bool:
    return bool(run) and (run["status"] == "queued" or run["attempt"] > 1)


def cut_in_mid_run(site: Hosts) -> tuple[list[str], Host]:
    """Cut a host off while it trains. Return the ids of all runs that were started, and the host.

    A run may end just before its host is cut off, for example at its time limit. Such a run shows nothing, so another
    one is started. The last one was taken back, because a host that is cut off can end no run.
    """
    tried: list[str] = []
    for attempt in range(1, CUTS + 1):
        _, run = site.new_run("hard", "odt", f"cut-{attempt}", depth=3, time_limit=4)
        tried.append(run["id"])
        site.wait(lambda pk=run["id"]: bool(site.run(pk).get("progress")), PATIENCE, "no run starts on a worker host")
        host = next((host for host in site.hosts if run["id"] in site.folders_of(host)), None)
        if host is None:
            continue
        host.cut()
        site.wait(
            lambda pk=run["id"]: taken_back(site.run(pk)) or site.run(pk).get("status") in ENDED,
            PATIENCE + 4 * LEASE,
            "the run of a host that is cut off stays there",
        )
        if taken_back(site.run(run["id"])):
            return tried, host
        host.mend()
    raise Broken(f"{CUTS} runs ended before their host was cut off")


def campaign(site: Hosts, amount: int) -> list[str]:
    """Start runs, kill a worker, cut a host off, and check the results. Return the observations."""
    seen = []
    tried, cut = cut_in_mid_run(site)
    seen.append(f"a host was cut off in mid-run: its run was taken back after the lease of {LEASE} s")
    asked = {}
    for i in range(amount):
        status, run = site.new_run("small", "cart", f"run-{i}", depth=3)
        if status != 201:
            raise Broken(f"a run is refused: {status} {run}")
        asked[run["id"]] = run
    victim = site.workers[site.hosts.index(next(host for host in site.hosts if host is not cut))]
    host = site.hosts[site.workers.index(victim)]
    kill_tree(victim)
    site.workers.remove(victim)
    cut.mend()
    site.start_worker_on(host)
    site.hosts = [h for h in site.hosts if h is not host] + [host]  # keeps the same order as `site.workers`
    seen.append("the other host's worker was killed, and the first host came back to the network")
    every = [*tried, *asked]
    site.wait(
        lambda: all(site.run(pk).get("status") in ENDED for pk in every), PATIENCE + 6 * amount, "some run is stuck"
    )
    ends = [site.run(pk) for pk in every]
    outcome = Counter(run["status"] for run in ends)
    if outcome != {"succeeded": len(every)}:
        raise Broken(f"{dict(outcome)}: {[run['error'] for run in ends if run['error']]}")
    models = [run["model"] for run in ends]
    if len(set(models)) != len(every) or site.count_of("models") != len(every):
        raise Broken(f"{len(every)} runs, {len(set(models))} models of them, {site.count_of('models')} stored")
    seen.append(f"{len(every)} runs succeeded, {len(every)} models, attempts up to {max(r['attempt'] for r in ends)}")
    return seen


def served(site: Hosts) -> list[str]:
    """Check that the web host serves all results. Return the observations."""
    if (site.folder / "runs").exists():
        raise Broken("the web host has a folder of runs: something was trained there")
    model = site.call("GET", "/api/v1/models/")[1]["results"][0]
    for path in ("", "download/", "figures/tree/"):
        status, _ = site.call("GET", f"/api/v1/models/{model['id']}/{path}")
        if status != 200:
            raise Broken(f"the web host answers {status} for {path or 'the model'}")
    status, job = site.call(
        "POST",
        "/api/v1/predictions/",
        multipart({"model": model["id"]}, small_csv() if model["method"] == "cart" else hard_csv()),
        Content_Type="multipart/form-data; boundary=octweb-torture",
    )
    if status != 201:
        raise Broken(f"a prediction of a file is refused: {status} {job}")
    where = f"/api/v1/predictions/{job['id']}/"
    site.wait(lambda: site.call("GET", where)[1]["status"] in ENDED, PATIENCE, "a prediction of a file is stuck")
    status, answer = site.call("GET", f"{where}result/")
    lines = answer.decode().strip().splitlines() if isinstance(answer, bytes) else []
    if status != 200 or len(lines) < 100:
        raise Broken(f"the web host answers {status} for a predicted file")
    return [f"model, picture and {len(lines) - 1} predicted rows came from the web host, which has no folder of runs"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    database = os.environ.get("DATABASE_URL", "")
    if not database.startswith("postgres"):
        print("DATABASE_URL must name an empty PostgreSQL: bash tests/with_postgres.sh python -m tests.hosts")
        return 2
    os.environ.update(KEYS)
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    bucket = "http://{}:{}".format(*server.get_host_and_port())
    boto3.client("s3", endpoint_url=bucket).create_bucket(Bucket=BUCKET)
    folder = Path(tempfile.mkdtemp(prefix="octweb-hosts-"))
    namespaces = may_have_namespaces()
    started = time.monotonic()
    site = None
    try:
        site = Hosts(folder, arguments.workers, database, bucket, namespaces=namespaces)
        site.prepare()
        print("network namespaces: " + ("one for each worker host" if namespaces else "not permitted here, links only"))
        for line in [*campaign(site, arguments.runs), *served(site)]:
            print(f"- {line}", flush=True)
    except Broken as error:
        print(f"broken: {error}\n{(folder / 'web' / 'log').read_text()[-4000:]}")
        return 1
    finally:
        if site is not None:
            site.stop()
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"all of it held, {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
