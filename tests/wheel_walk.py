"""Walk from a wheel to a proved tree and a served page, outside the project.

    python -m tests.wheel_walk [--fresh] [--warm | --bare] [--python python3.13]

The wheel goes into a bare environment that sees the packages of this one and not the project; with --fresh all that octweb needs is
installed, at the tested versions. The wheel brings compiled kernels; with --bare it brings none, and they are compiled at their first
call; with --warm it brings none, and those that NUMBA_CACHE_DIR keeps are used.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.lock import without_hashes

ROOT = Path(__file__).resolve().parent.parent
# seconds within which each step must end, even if a busy machine compiles kernels; times are not judged otherwise
PATIENCE = 3000.0
OURS = re.compile(r"OCTWEB|DJANGO|NUMBA|PYTHON|DATABASE_URL|VIRTUAL_ENV|^(HOST|PORT|SCRIPT_NAME)$")
TUTORIAL = ROOT / "docs" / "tutorial.md"
WHERE = "import octweb, trainer, json; print(json.dumps([octweb.__file__, trainer.__file__]))"


class Broken(Exception):
    """A step failed."""


class Walk:
    """Steps of a new user in a separate folder. `seconds` receives the time of each step."""

    def __init__(
        self,
        folder: Path,
        *,
        python: str = sys.executable,
        fresh: bool = False,
        warm: bool = False,
        ready: bool = False,
    ) -> None:
        """With `ready`, the wheel contains the kernels of `exact`. With `warm`, those of NUMBA_CACHE_DIR are used."""
        self.folder = folder.resolve()
        self.python = python
        self.fresh = fresh
        self.ready = ready
        self.bin = self.folder / "venv" / "bin"
        self.work = self.folder / "work"
        self.work.mkdir(parents=True)
        self.seconds: dict[str, float] = {}  # wall seconds, which include other work on the machine
        self.processor: dict[
            str, float
        ] = {}  # seconds of the processes that a step started, and of the server that runs meanwhile
        self.process: subprocess.Popen[bytes] | None = None
        # A new user has no setting of octweb and an empty home folder.
        self.environment = {k: v for k, v in os.environ.items() if not OURS.search(k)}
        self.environment |= {"HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder / "share")}
        if ready:
            self.environment["OCTWEB_WARM"] = (
                "0"  # the wheel contains only the kernels of `exact`, and no other is called
            )
        if warm and "NUMBA_CACHE_DIR" in os.environ:
            self.environment["NUMBA_CACHE_DIR"] = os.environ["NUMBA_CACHE_DIR"]

    def all_steps(self) -> None:
        """Run all steps. Raises Broken at the first one that fails."""
        if self.ready:
            self.step("compile the kernels of exact", self.compile)
        self.step("build the wheel", self.build)
        self.step("make an environment", self.make_environment)
        self.step("install", self.install)
        self.only_the_wheel_is_seen()
        self.octweb("samples", "--write", ".")
        self.step("octweb train, a proved tree", self.train)
        self.step("octweb verify", self.verify)
        self.step("octweb predict", self.predict)
        self.step("the commands of the tutorial", self.tutorial_commands)
        with self.served() as (port, log):
            self.step("octweb serve, until it answers", lambda: self.answers(port, log))
            self.step("pages and static files", lambda: self.pages(port))
            self.step("a run by the worker, over REST", lambda: self.run_over_rest(port))

    def step(self, name: str, action: Callable[[], Any]) -> None:
        """Run a step, then record and print its time."""
        start = time.perf_counter()
        spent = processor_seconds(self.process)
        action()
        self.seconds[name] = time.perf_counter() - start
        self.processor[name] = max(0.0, processor_seconds(self.process) - spent)
        print(f"{self.seconds[name]:8.1f} s  {self.processor[name]:8.1f} s of processors  {name}", flush=True)

    def run(self, *command: str | Path, cwd: Path | None = None, **more: str) -> str:
        """Return the output of a command. Raises Broken with the end of its output if it fails."""
        process = subprocess.run(
            [str(part) for part in command],
            cwd=cwd or self.work,
            env=self.environment | more,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        if process.returncode:
            raise Broken(
                f"{' '.join(map(str, command))}: status {process.returncode}\n{(process.stdout + process.stderr)[-3000:]}"
            )
        return process.stdout

    def octweb(self, *arguments: str) -> str:
        return self.run(self.bin / "octweb", *arguments)

    def compile(self) -> None:
        kept = {name: value for name, value in os.environ.items() if name == "NUMBA_CACHE_DIR"}
        self.run(sys.executable, "-m", "tools.ready", "--into", self.folder / "ready", "exact", cwd=ROOT, **kept)

    def build(self) -> None:
        kernels = {"OCTWEB_READY_KERNELS": str(self.folder / "ready")}
        out = self.folder / "dist"
        self.run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out, cwd=ROOT, **kernels)
        (self.wheel,) = (self.folder / "dist").glob("octweb-*.whl")

    def make_environment(self) -> None:
        self.run(self.python, "-m", "venv", "--without-pip", self.folder / "venv")
        if not self.fresh:
            place = self.run(self.bin / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
            present = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
            (Path(place.strip()) / "present.pth").write_text("\n".join(sorted(present)) + "\n", encoding="utf-8")

    def install(self) -> None:
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--python",
            self.bin / "python",
            "install",
            "--quiet",
        ]
        if self.fresh:
            same = self.python == sys.executable  # the pins are for this interpreter
            pins = self.folder / "pins.txt"  # without hashes, since the wheel was built here and has none
            pins.write_text("\n".join(without_hashes((ROOT / "requirements.txt").read_text())), encoding="utf-8")
            self.run(*pip, *(["-c", pins] if same else []), self.wheel)
        else:
            self.run(*pip, "--no-deps", "--no-index", self.wheel)

    def only_the_wheel_is_seen(self) -> None:
        """Check that no package is imported from the project's folder, and that the wheel contains the type markers."""
        for file in json.loads(self.run(self.bin / "python", "-c", WHERE)):
            package = Path(file).parent
            if not package.is_relative_to(self.folder / "venv"):
                raise Broken(f"{package.name} is imported from {package}, not from the wheel")
            if not (package / "py.typed").exists():
                raise Broken(f"{package.name} has no py.typed")

    def train(self) -> None:
        said = self.octweb("train", "iris.csv", "--target", "species", "--method", "exact", "--output", "model.json")
        if not re.search(r"^optimal: \d+ of 150 rows correct.* gap 0 %", said, re.MULTILINE):
            raise Broken(f"no proved tree: {said}")

    def verify(self) -> None:
        self.octweb("verify", "model.json", "iris.csv", "--require", "proved")

    def predict(self) -> None:
        self.run(self.bin / "python", "-m", "octweb", "predict", "model.json", "iris.csv", "--output", "answers.csv")
        with (self.work / "answers.csv").open(encoding="utf-8", newline="") as stream:
            rows = len(list(csv.reader(stream))) - 1
        if rows != 150:
            raise Broken(f"{rows} predictions for 150 rows")

    def tutorial_commands(self) -> None:
        for table in (ROOT / "docs" / "tutorial").glob("*.csv"):
            shutil.copy(table, self.work)
        for code in blocks_of(TUTORIAL, ""):
            for line in code.splitlines():
                program, *words = shlex.split(line)
                if program == "octweb" and words[0] not in ("serve", "token"):
                    self.octweb(*words)

    @contextmanager
    def served(self) -> Iterator[tuple[int, Path]]:
        """Run `octweb serve --data site` on a free port. Yield the port and the path of its log.

        Afterwards, stop the server and check that it ends.
        """
        port = free_port()
        log = self.folder / "serve.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [str(self.bin / "octweb"), "serve", "--data", "site", "--port", str(port)],
                cwd=self.work,
                env=self.environment,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        self.process = process
        try:
            yield port, log
            self.step("stop", self.stop)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        if status := self.process.wait(PATIENCE):
            raise Broken(f"octweb serve ended with status {status}")

    def answers(self, port: int, log: Path) -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise Broken(f"octweb serve ended: {log.read_text(encoding='utf-8')[-3000:]}")
            try:
                if call(port, "/healthz")[0] == 200:
                    return
            except OSError:
                time.sleep(0.1)
        raise Broken("octweb serve does not answer")

    def pages(self, port: int) -> None:
        """Check the sign-in page, whose template and static files are in the wheel."""
        status, page = call(port, "/accounts/login/")
        files = re.findall(rb'(?:href|src)="(/static/[^"]+)"', page)
        if status != 200 or not files:
            raise Broken(f"the page to sign in: status {status}, {len(files)} static files")
        for file in {found.decode() for found in files}:
            if call(port, file)[0] != 200:
                raise Broken(f"{file} is not there")

    def run_over_rest(self, port: int) -> None:
        """Let the worker train a tree for the first sample.

        This shows that the child processes of the worker start, too.
        """
        token = self.octweb("token", "admin", "--data=site").strip().splitlines()[-1]
        datasets = json.loads(call(port, "/api/v1/datasets/", token)[1])["results"]
        chosen = next(one for one in datasets if "iris" in one["name"].lower())
        status, body = call(port, "/api/v1/runs/", token, {"dataset": chosen["id"], "method": "exact"})
        if status != 201:
            raise Broken(f"a run is refused: {status} {body!r}")
        run = json.loads(body)
        until = time.monotonic() + PATIENCE
        while run["status"] not in ("succeeded", "failed", "cancelled") and time.monotonic() < until:
            time.sleep(0.3)
            run = json.loads(call(port, f"/api/v1/runs/{run['id']}/", token)[1])
        if run["status"] != "succeeded":
            raise Broken(f"the run is {run['status']}: {run['error']}")


def blocks_of(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of a page in a language."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [code for name, code in fences if name == language]


def call(port: int, path: str, token: str = "", body: dict[str, Any] | None = None) -> tuple[int, bytes]:
    """Return the status and the content of a response. Raises OSError if no server listens."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=json.dumps(body).encode() if body else None)
    if token:
        request.add_header("Authorization", f"Token {token}")
    if body:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def processor_seconds(running: subprocess.Popen[bytes] | None = None) -> float:
    """Return the processor seconds of all ended child processes, and of `running` with its children."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = ended.ru_utime + ended.ru_stime
    if running is not None and running.returncode is None:
        first = psutil.Process(running.pid)
        for process in [first, *first.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                spent += sum(process.cpu_times()[:4])  # includes children that have ended
    return spent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fresh", action="store_true", help="install all that octweb needs (needs a package index)")
    kernels = parser.add_mutually_exclusive_group()
    kernels.add_argument("--warm", action="store_true", help="use the compiled kernels in NUMBA_CACHE_DIR")
    kernels.add_argument("--bare", action="store_true", help="compile the kernels at their first call")
    parser.add_argument("--python", default=sys.executable, help="another interpreter; implies --fresh")
    chosen = parser.parse_args()
    fresh = chosen.fresh or chosen.python != sys.executable
    with tempfile.TemporaryDirectory(prefix="octweb-walk-", ignore_cleanup_errors=True) as name:
        walk = Walk(
            Path(name), python=chosen.python, fresh=fresh, warm=chosen.warm, ready=not (chosen.warm or chosen.bare)
        )
        try:
            walk.all_steps()
        except Broken as error:
            print(f"broken: {error}", file=sys.stderr)
            return 1
        clock = sum(walk.seconds.values())
        processor = sum(walk.processor.values())
        print(f"{clock:8.1f} s  {processor:8.1f} s of processors  altogether")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
