"""Prepare the database, then run web server and worker: `manage.py serve`."""

from __future__ import annotations

import hashlib
import os
import secrets
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.staticfiles.finders import get_finders
from django.core.management import CommandParser, call_command
from django.core.management.base import BaseCommand, CommandError

from octweb.core.files import protect_stored
from octweb.core.parts import MOST_STARTS, START_WINDOW, ServicePart, end
from octweb.environment import boolean
from octweb.places import INSTALLED

ADMIN = "admin"
ANOTHER_PORT = "octweb serve --port 8001" if INSTALLED else "make run PORT=8001"
WORKER = "octweb.core.gunicorn_worker.Worker"
JSON_LOGGER = "octweb.core.gunicorn_logger.JsonLogger"
# the kernels of predictions are compiled before those of training
WARM = (
    "import octweb.wsgi; from django.core.management import call_command; call_command('warm', backwards={backwards})"
)


class Command(BaseCommand):
    help = "Prepare the database, an administrator and sample data, then serve under gunicorn with one worker."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=os.environ.get("HOST", "127.0.0.1"))
        parser.add_argument("--port", type=int, default=int(os.environ.get("PORT", "8000")))
        parser.add_argument("--workers", type=int, default=1, help="how many trainings may run at the same time")
        parser.add_argument("--threads", type=int, default=16, help="threads of the web server")
        parser.add_argument("--prepare-only", action="store_true", help="do not serve")

    def handle(self, *args: Any, **options: Any) -> None:
        settings.DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
        protect_stored()
        _free_port(options["host"], options["port"], options["prepare_only"])
        if options["prepare_only"]:
            self._prepare()
            return
        # kernels are compiled in other processes, from the beginning, so that the web server responds at once
        environment = os.environ | {"OCTWEB_WARM": "0"}
        warming = _warming(environment)
        for part in warming:
            part.start(quiet=True)
        try:
            self._prepare()
            self._serve(environment, warming, **{key: options[key] for key in ("host", "port", "workers", "threads")})
        finally:
            end([part.process for part in warming])

    def _prepare(self) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        _collect_static()
        user = self._administrator()
        call_command("load_samples", user.username, verbosity=0)

    def _administrator(self) -> Any:
        """Return the first administrator. Create it if there is none.

        Its random password is printed once and stored in a private file.
        """
        users = get_user_model().objects
        existing = users.filter(is_superuser=True).order_by("pk").first()
        if existing is not None:
            return existing
        password = secrets.token_urlsafe(15)
        path = settings.DATA_DIR / "admin_password"
        _write_private(path, password + "\n")
        user = users.create_superuser(ADMIN, password=password)
        self.stdout.write(f"Administrator: {ADMIN}   password: {password}   (kept in {path})")
        return user

    def _serve(
        self,
        environment: dict[str, str],
        warming: list[ServicePart],
        *,
        host: str,
        port: int,
        workers: int,
        threads: int,
    ) -> None:
        commands = [web_command("octweb.wsgi:application", host=host, port=port, threads=threads)]
        commands += [[*settings.COMMAND, "worker"] for _ in range(workers)]
        stop: list[int] = []
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda n, frame: stop.append(n))
        parts = [
            ServicePart(name="web server" if i == 0 else f"worker {i}", command=command, environment=environment)
            for i, command in enumerate(commands)
        ]
        for part in parts:
            part.start()
        self.stdout.write(f"octweb: http://{host}:{port}/   (Ctrl-C ends it)")
        self.stdout.flush()
        try:
            while not stop:
                for part in warming:
                    # poll() collects the exit status; without it, the ended process stays as a zombie
                    part.process.poll()
                for part in parts:
                    self._look_after(part)
                time.sleep(0.3)
        finally:
            end([part.process for part in parts])

    def _look_after(self, part: ServicePart) -> None:
        """Restart a part that has ended. Raises CommandError if it keeps ending."""
        status = part.process.poll()
        if status is None:
            return
        if not part.may_start(time.monotonic()):
            raise CommandError(
                f"The {part.name} ended {MOST_STARTS} times within {START_WINDOW / 60:g} minutes (status {status}); "
                "octweb was stopped. The lines above state the reason."
            )
        self.stderr.write(f"The {part.name} ended unexpectedly (status {status}); it is restarted.")
        part.start()


def web_command(application: str, *, host: str, port: int, threads: int) -> list[str]:
    """Return the command of the web server."""
    logger = ["--logger-class", JSON_LOGGER] if settings.LOG_FORMAT == "json" else []
    return [
        sys.executable, "-m", "gunicorn", application, "--bind", f"{host}:{port}",
        "--worker-class", WORKER, "--workers", "1", "--threads", str(threads), "--graceful-timeout", "10",
        "--access-logfile", "/dev/null", "--forwarder-headers", "", "--no-control-socket", "--preload", "--worker-connections", "800",
        *logger,
    ]  # fmt: skip


def _warming(environment: dict[str, str]) -> list[ServicePart]:
    """Return the processes that compile kernels, or nothing if OCTWEB_WARM disables them.

    With two processors, a second process begins with the last method. They are not restarted when they end.
    """
    if not boolean("OCTWEB_WARM", True):
        return []
    # the first process also compiles the kernels of predictions
    return [
        ServicePart(
            name="warming",
            command=["nice", "-n", "15", sys.executable, "-c", WARM.format(backwards=backwards)],
            environment=environment | {"OCTWEB_WARM": "0" if backwards else "1"},
        )
        for backwards in (False, True)[: os.cpu_count()]
    ]


def _collect_static() -> None:
    """Collect and compress static files if any have changed. This takes a while."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for path, storage in finder.list([]):
            status = os.stat(storage.path(path))
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    stamp = settings.STATIC_ROOT / ".collected"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    stamp.write_text(digest.hexdigest())


def _free_port(host: str, port: int, skip: bool) -> None:
    if skip:
        return
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(
                f"Port {port} cannot be used ({error.strerror}). Choose another: {ANOTHER_PORT}"
            ) from error


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
