"""Run scripts as forks of a process that has loaded everything, which takes a tenth of a start."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from subprocess import CompletedProcess

from django.db import connection

from octweb.jobs.child import environment_of_child
from octweb.jobs.fork_server import AT_LOADING, ForkedProcess, living
from tests.conftest import ROOT

MANAGE = ROOT / "manage.py"
WORKER = ROOT / "tests" / "worker_on_test_database.py"


def start(script: Path, *arguments: object, folder: Path, **environment: str) -> ForkedProcess:
    """The script in `folder`, which gets its output as `stdout` and `stderr`.

    Variables that are read when Django is loaded come too late and are refused here.
    """
    assert not [name for name in environment if name.startswith(AT_LOADING) and not name.startswith("OCTWEB_TEST_")]
    server = living(environment_of_child())
    assert server is not None
    command = [*server.command, str(script), *map(str, arguments)]
    process = server.start(command, folder, os.environ | environment)
    assert process is not None
    return process


def start_worker(*arguments: str, folder: Path, files: Path) -> ForkedProcess:
    """Return a worker on the database of the running test, whose address no fork knows by itself, as no child does."""
    database = {key: value for key, value in connection.settings_dict.items() if key not in ("TEST", "ATOMIC_REQUESTS")}
    environment = {"OCTWEB_TEST_DATABASE": json.dumps(database, default=str), "OCTWEB_TEST_FILES": str(files)}
    return start(WORKER, *arguments, folder=folder, **environment)


def manage(*arguments: object, folder: Path | None = None) -> CompletedProcess[str]:
    """`manage.py` with these arguments until its end; relative paths are of `folder`."""
    with tempfile.TemporaryDirectory() as name:
        folder = folder or Path(name)
        process = start(MANAGE, *arguments, folder=folder)
        code = process.wait(6000)
        out, error = ((folder / stream).read_text(encoding="utf-8") for stream in ("stdout", "stderr"))
        return CompletedProcess([str(MANAGE), *map(str, arguments)], code, out, error)
