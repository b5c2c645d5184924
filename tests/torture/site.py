"""Web server with workers in a separate folder, and tables for them."""

from __future__ import annotations

import http.cookiejar
import json
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from octweb.core.management.commands.serve import WORKER

ROOT = Path(__file__).resolve().parent.parent.parent
LEASE = 4
SHORT = 60.0  # seconds; a shorter campaign runs as a test, with smaller files and without checks of times
PATIENCE = 300.0  # seconds within which the expected must happen, however slow the machine is
ENDED = {"succeeded", "failed", "cancelled"}
SET_UP = """
from django.core.management import call_command
call_command("migrate", interactive=False, verbosity=0)
call_command("createsuperuser", interactive=False, username="admin", email="admin@example.org", verbosity=0)
call_command("token", "admin", "--name", "torture")
"""


class Broken(Exception):
    """A campaign found an error."""


def small_csv() -> bytes:
    rows = [
        f"{i % 7}.5,{(i * i) % 11},{('red', 'green', 'blue')[i % 3]},{'yes' if i % 7 > 3 else 'no'}" for i in range(120)
    ]
    return ("width,height,colour,class\n" + "\n".join(rows) + "\n").encode()


def hard_csv() -> bytes:
    """Return rows of noise in many categories, on which an exact search ends at its time limit."""
    draw = random.Random(1)
    lines = [",".join([*(f"c{j}" for j in range(12)), "class"])]
    lines += [",".join([*(f"v{draw.randrange(12)}" for _ in range(12)), draw.choice("ab")]) for _ in range(500)]
    return ("\n".join(lines) + "\n").encode()


class Site:
    """Web server and workers in a separate folder. Killed processes can be started again."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        self.count = workers
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.environment = os.environ | {
            "OCTWEB_DATA_DIR": str(folder),
            "OCTWEB_WORKER_LEASE_SECONDS": str(LEASE),
            "OCTWEB_RATE_USER": "1000000/min",
            "OCTWEB_MAX_QUEUED_RUNS": "100000",
            "OCTWEB_WARM": "0",  # processes start often, and few of them predict
            "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(ROOT / "var" / "numba")),
            "DJANGO_SETTINGS_MODULE": "octweb.settings",
        }
        self.log = (folder / "log").open("ab")
        self.web: subprocess.Popen | None = None
        self.workers: list[subprocess.Popen] = []
        self.token = ""
        self.datasets: dict[str, str] = {}
        self.unanswered: list[str] = []  # calls without an answer, with the reason

    def prepare(self) -> None:
        """Set up the database, a user and a token, start all processes, and upload the data sets."""
        self.set_up()
        self.start_web()
        for name, content in (("small", small_csv()), ("hard", hard_csv())):
            status, answer = self.upload(name, content)
            if status != 201:
                raise Broken(f"a valid data set is refused: {status} {answer}")
            self.datasets[name] = answer["id"]
        for _ in range(self.count):
            self.start_worker()

    def set_up(self) -> None:
        # Sample data and compressed static files take a while, so they are left out. One process runs the three
        # commands.
        self.environment["DJANGO_SUPERUSER_PASSWORD"] = secrets.token_urlsafe()
        self.token = self.manage("shell", "--no-imports", "-c", SET_UP).strip().splitlines()[-1]

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        process = subprocess.run(command, env=self.environment, cwd=ROOT, capture_output=True, text=True, timeout=300)
        if process.returncode:
            raise Broken(f"manage.py {arguments[0]}: {process.stderr[-500:]}")
        return process.stdout

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
            "-m",
            "gunicorn",
            "octweb.wsgi:application",
            "--bind",
            f"127.0.0.1:{self.port}",
            "--worker-class",
            WORKER,
            "--threads",
            "16",
            "--no-control-socket",
        )
        self.wait(lambda: self.call("GET", "/healthz")[0] == 200, PATIENCE, "the web server does not start")

    def start_worker(self) -> None:
        self.workers.append(self._start(str(ROOT / "manage.py"), "worker", "--interval", "0.2", "--reap-every", "1"))

    def wait(self, condition: Callable[[], bool], seconds: float, complaint: str) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if condition():
                return
            time.sleep(0.2)
        raise Broken(complaint)

    def call(
        self, method: str, path: str, body: bytes | None = None, *, patience: float = PATIENCE, **headers: str
    ) -> tuple[int, Any]:
        """Return the status and the content of a response.

        The status is 0 if the server does not answer within `patience` seconds.
        """
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=body, method=method)
        request.add_header("Authorization", f"Token {self.token}")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=patience) as answer:
                content = answer.read()
                status = answer.status
        except urllib.error.HTTPError as error:
            content = error.read()
            status = error.code
        except (OSError, ValueError) as error:
            self.unanswered.append(f"{time.strftime('%H:%M:%S')} {method} {path}: {error!r}")
            return 0, None
        try:
            return status, json.loads(content)
        except ValueError:
            return status, content

    def sign_in(self) -> str:
        """Sign in as a browser does, and return the cookies of the session. Pages need the static files."""
        self.manage("collectstatic", "--no-input", "--verbosity=0")
        os.killpg(self.web.pid, signal.SIGTERM)  # type: ignore[union-attr]
        self.web.wait()  # type: ignore[union-attr]
        self.start_web()  # reads the list of static files
        jar = http.cookiejar.CookieJar()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        address = f"http://127.0.0.1:{self.port}/accounts/login/"
        browser.open(address, timeout=PATIENCE).read()
        fields = {"username": "admin", "password": self.environment["DJANGO_SUPERUSER_PASSWORD"]}
        fields["csrfmiddlewaretoken"] = next(cookie.value or "" for cookie in jar if cookie.name == "csrftoken")
        browser.open(address, urllib.parse.urlencode(fields).encode(), timeout=PATIENCE).read()
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)

    def upload(self, name: str, content: bytes) -> tuple[int, Any]:
        return self.call(
            "POST",
            "/api/v1/datasets/",
            multipart({"name": name}, content),
            patience=900,
            Content_Type="multipart/form-data; boundary=octweb-torture",
        )

    def new_run(self, dataset: str, method: str, key: str = "", **parameters: Any) -> tuple[int, Any]:
        body = json.dumps({"dataset": self.datasets[dataset], "method": method, "parameters": parameters}).encode()
        return self.call("POST", "/api/v1/runs/", body, Content_Type="application/json", Idempotency_Key=key)

    def approved_model(self) -> dict[str, Any]:
        """Return a model of the small table that clients may call. It is trained and approved at the first call."""
        _, run = self.new_run("small", "cart", key="for-predictions", depth=2)
        self.wait(lambda: self.run(run["id"]).get("status") in ENDED, PATIENCE, "the run of a small tree does not end")
        model = self.run(run["id"]).get("model")
        if not model:
            raise Broken(f"no model for predictions: {self.run(run['id'])}")
        for action in ("ask", "approve"):
            step = json.dumps({"action": action, "reason": "a model that the campaign calls"}).encode()
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

    def run_folders(self) -> list[Path]:
        """Return the folders in which workers keep their runs."""
        return [self.folder / "runs"]

    def children(self, word: str = "train") -> list[psutil.Process]:
        """Return the processes that train or, with `word`, edit.

        They are recognised by their folders, because a fork shows no command.
        """
        found = []
        for process in psutil.process_iter():
            try:
                folder = Path(process.cwd())
                # excludes the processes that a child has started, such as a compiler
                leads = os.getpgid(process.pid) == process.pid
            except (psutil.Error, OSError):
                continue
            if leads and folder.parent.parent in self.run_folders() and _kind(folder) == word:
                found.append(process)
        return found

    def stop(self) -> None:
        for process in [*self.workers, *([self.web] if self.web else [])]:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for child in [*self.children(), *self.children("edit")]:
            child.kill()
        self.log.close()


def _kind(folder: Path) -> str:
    """Return the kind of process that works in this folder of a job."""
    return "edit" if (folder / "requests.jsonl").exists() else "train" if (folder / "schema.json").exists() else ""


def multipart(fields: dict[str, str], content: bytes, file_name: str = "data.csv") -> bytes:
    parts = [
        f'--octweb-torture\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode()
        for k, v in fields.items()
    ]
    head = f'--octweb-torture\r\nContent-Disposition: form-data; name="file"; filename="{file_name}"\r\nContent-Type: text/csv\r\n\r\n'
    return b"".join([*parts, head.encode(), content, b"\r\n--octweb-torture--\r\n"])
