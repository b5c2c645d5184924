"""Run the child process of a job, and read its files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil
from django.conf import settings

from octweb.jobs import fork_server
from octweb.jobs.models import Job

LOG_BYTES = 20_000
PROGRESS = "progress.jsonl"
# these environment variables contain passwords, keys or tokens
SECRET = re.compile(
    r"^(DATABASE_URL|AWS_|PG[A-Z]+$|OCTWEB_S3_)|SECRET|PASSW|TOKEN|CREDENTIAL|PRIVATE|_KEY$", re.IGNORECASE
)
# settings of sign-on, which are refused without their secret
SIGN_ON = ("OCTWEB_REMOTE_USER_", "OCTWEB_OIDC_")


def environment_of_child() -> dict[str, str]:
    """Return the environment of a child, without secrets. A child never opens the database or the file store."""
    kept = {key: value for key, value in os.environ.items() if not SECRET.search(key) and not key.startswith(SIGN_ON)}
    environment = kept | {
        "OCTWEB_PARENT_PID": str(os.getpid()),
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(settings.DATA_DIR / "numba")),
        "PYTHONUNBUFFERED": "1",
        # most matrix products are small, so more threads would only cost time
        "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
    }
    environment["OCTWEB_SECRET_KEY"] = "unused by the child"  # noqa: S105
    return environment


@dataclass(kw_only=True)
class Process(ABC):
    """An attempt at a job: its folder, and its process in its own process group.

    Each kind of job has a subclass.
    """

    job: Any
    folder: Path
    process: fork_server.ChildProcess | None = None
    offset: int = 0

    @staticmethod
    def scratch() -> Path:
        """Return the folder of all job folders on this host."""
        return settings.DATA_DIR / "runs"

    @classmethod
    def prepare(cls, job: Job) -> Self:
        """Create the folder of this attempt with its input files. Return the process, not started.

        Folders of other attempts are not touched.
        """
        folder = cls.scratch() / str(job.pk) / str(job.attempt)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        child = cls(job=job, folder=folder)
        try:
            child.write_inputs()
        except BaseException:
            child.clean()
            raise
        return child

    @abstractmethod
    def write_inputs(self) -> None:
        """Write the input files of the process into its folder."""

    @property
    @abstractmethod
    def result(self) -> Path:
        """Path of the result file, which exists once the process has finished its work."""

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command line of the child."""

    def environment(self) -> dict[str, str]:
        """Return the environment of the child."""
        return environment_of_child()

    def start(self) -> None:
        """Fork the process from the worker's fork server, or start a new one. Its output goes to files."""
        command = self.command()
        environment = self.environment()
        self.process = fork_server.fork(command, self.folder, environment) or self._new(command, environment)

    def _new(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / "stdout").open("wb") as out, (self.folder / "stderr").open("wb") as err:
            return subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=self.folder,
                env=environment,
                start_new_session=True,
            )

    def poll(self) -> int | None:
        """Return the exit status, or None before the start and while the process runs."""
        return self.process.poll() if self.process else None

    def pause(self, seconds: float) -> None:
        """Wait at most `seconds` for the process to end."""
        assert self.process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def signal(self, number: int) -> None:
        """Send a signal to the process group if the process is still running."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """Send SIGKILL to the process group and wait for the process."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def megabytes(self) -> float:
        """Return the resident memory of the process and its descendants in MB, or 0 if it has ended."""
        if self.process is None:
            return 0.0
        try:
            main = psutil.Process(self.process.pid)
            return sum(p.memory_info().rss for p in [main, *main.children(recursive=True)]) / 1e6
        except psutil.Error:
            return 0.0

    def has_reported(self) -> bool:
        """Return whether the child has written progress after `offset`."""
        try:
            return (self.folder / PROGRESS).stat().st_size > self.offset
        except OSError:
            return False

    def read_progress(self) -> tuple[list[dict[str, Any]], int]:
        """Return the progress records after `offset`, and the offset behind them.

        An incomplete last line is left for the next call. The caller sets `offset` once the records are stored, so none
        is lost while the database is unavailable.
        """
        try:
            with (self.folder / PROGRESS).open("rb") as stream:
                stream.seek(self.offset)
                content = stream.read()
        except FileNotFoundError:
            return [], self.offset
        complete = content.rfind(b"\n") + 1
        records = []
        for line in content[:complete].splitlines():
            with contextlib.suppress(ValueError):
                records.append(json.loads(line))
        return records, self.offset + complete

    def log(self) -> str:
        """Return the last `LOG_BYTES` of the child's standard error, or ""."""
        try:
            content = (self.folder / "stderr").read_bytes()
        except FileNotFoundError:
            return ""
        return content[-LOG_BYTES:].decode(errors="replace")

    def summary(self) -> dict[str, Any]:
        """Return the JSON object on the last line of standard output, or {}."""
        try:
            lines = (self.folder / "stdout").read_text(encoding="utf-8").strip().splitlines()
            return json.loads(lines[-1]) if lines else {}
        except (OSError, ValueError):
            return {}

    def clean(self) -> None:
        """Remove the files of this attempt and of earlier ones, once the results are in the database.

        Another worker may already run the next attempt, so its folder is kept.
        """
        for attempt in range(1, self.job.attempt + 1):
            shutil.rmtree(self.folder.parent / str(attempt), ignore_errors=True)
        with contextlib.suppress(OSError):
            self.folder.parent.rmdir()
