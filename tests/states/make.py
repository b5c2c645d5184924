"""Make a small data folder of another version of octweb: `python -m tests.states.make CHECKOUT NAME`.

A server of that checkout gets a table, trains a tree, has it approved, answers recorded rows and a file of rows.
The folder is packed as tests/states/NAME.tar.xz, beside the answers that a later version must still give.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import httpx

FOLDER = Path(__file__).resolve().parent
SECRET = "kept states are opened with this key, which protects nothing"
ROWS = [{"petal": size, "colour": colour} for size in (0.5, 1.5, 2.5, None) for colour in ("red", "blue", "green")]
USERS = """
import django; django.setup()
from django.contrib.auth import get_user_model
users = get_user_model().objects
for name, is_staff in (("ann", True), ("ben", False)):
    user = users.create(username=name, is_staff=is_staff, is_superuser=is_staff)
    user.set_unusable_password(); user.save()
"""


def environment_of(folder: Path) -> dict[str, str]:
    """Return the environment of a process that serves `folder`."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OCTWEB_", "DATABASE_URL"))}
    return kept | {
        "OCTWEB_DATA_DIR": str(folder),
        "OCTWEB_SECRET_KEY": SECRET,
        "OCTWEB_RECORD": "full",
        "OCTWEB_WARM": "0",
        "DJANGO_SETTINGS_MODULE": "octweb.settings",
    }


def table() -> str:
    """Return the table as CSV text: 60 rows, some cells of `petal` empty."""
    lines = ["petal,colour,kind"]
    for i in range(60):
        petal = (i * 7 % 30) / 10
        colour = ("red", "blue", "green")[i % 3]
        kind = "rose" if petal > 1.2 and colour != "blue" else "tulip"
        lines.append(f"{'' if i % 11 == 0 else petal},{colour},{kind}")
    return "\n".join(lines) + "\n"


def fill(address: str, tokens: dict[str, str], folder: Path) -> dict[str, object]:
    """Do a user's work on a fresh server, and return the answers that later versions must repeat."""
    from octweb.client import Client  # that of the checkout

    file = folder / "flowers.csv"
    file.write_text(table())
    ben = Client(address, tokens["ben"])
    ann = Client(address, tokens["ann"])
    model = ben.train(str(file), target="kind", method="exact", depth=2).wait().model
    model.ask_for_approval("to sort flowers")
    ann.models.get(model.id).approve("It sorts flowers.", publish=True)
    answers = ben.predict(model.id, ROWS)
    ben.predict_file(model.id, str(file)).wait()
    return {
        "model": model.id,
        "name": model.name,
        "labels": [answer.label for answer in answers],
        "leaves": [answer.leaf for answer in answers],
        "decisions": [answer.decision for answer in answers],
    }


@contextlib.contextmanager
def served(checkout: Path, environment: dict[str, str]):
    """Provide the address of a server of that checkout."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "manage.py", "serve", "--port", str(port)]
    with subprocess.Popen(command, cwd=checkout, env=environment) as server:
        try:
            address = f"http://127.0.0.1:{port}"
            while True:
                with contextlib.suppress(httpx.HTTPError):
                    if httpx.get(f"{address}/readyz", timeout=5).status_code == 200:
                        break
                if server.poll() is not None:
                    raise SystemExit("the server ended")
                time.sleep(0.2)
            yield address
        finally:
            server.send_signal(signal.SIGTERM)


def make(checkout: Path, name: str) -> None:
    """Fill a data folder with the code of `checkout`, and pack it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "data"
        folder.mkdir()
        environment = environment_of(folder)

        def run(*words: str) -> str:
            done = subprocess.run(
                [sys.executable, *words], cwd=checkout, env=environment, check=True, stdout=subprocess.PIPE, text=True
            )
            return done.stdout.strip()

        run("manage.py", "migrate", "--no-input", "--verbosity", "0")
        run("-c", USERS)
        tokens = {user: run("manage.py", "token", user).splitlines()[-1] for user in ("ann", "ben")}
        with served(checkout, environment) as address:
            answers = fill(address, tokens, Path(scratch))
        run("manage.py", "decisions", "collect")
        database = folder / "octweb.sqlite3"
        with contextlib.closing(sqlite3.connect(database)) as connection:
            connection.execute("DELETE FROM django_session")
            _forget_workers(connection)
            connection.commit()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("VACUUM")
        for path in folder.iterdir():
            if path.name not in {"octweb.sqlite3", "files", "spool", "dossier_key.pem"}:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        (folder / "answers.json").write_text(json.dumps(answers))
        for word in (f"{socket.gethostname()}:", scratch, str(checkout)):
            if any(word.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file()):
                raise SystemExit(f"the folder names this machine: {word}")
        with tarfile.open(FOLDER / f"{name}.tar.xz", "w:xz") as packed:
            packed.add(folder, arcname="data", filter=_anonymous)


def _forget_workers(connection: sqlite3.Connection) -> None:
    """Replace the names of workers, which contain the name of this machine."""
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        for column in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
            if column[1] == "worker":
                connection.execute(f"UPDATE \"{table}\" SET worker = 'host:1' WHERE worker != ''")
    connection.execute("DELETE FROM jobs_workerbeat")


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    sys.path.insert(0, str(Path(sys.argv[1]).resolve()))
    make(Path(sys.argv[1]).resolve(), sys.argv[2])
