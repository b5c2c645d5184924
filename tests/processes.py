"""Run scripts as forks of a process that has loaded everything, which takes a tenth of the time of a new process."""

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
    """Start the script in `folder`, with its output in the files `stdout` and `stderr` there.

    Variables that are read when Django is loaded would come too late, so they are refused here.
    """
    assert not [name for name in environment if name.startswith(AT_LOADING) and not name.startswith("OCTWEB_TEST_")]
    server = living(environment_of_child())
    assert server is not None
    command = [*server.command, str(script), *map(str, arguments)]
    process = server.start(command, folder, os.environ | environment)
    assert process is not None
    return process


def start_worker(*arguments: str, folder: Path, files: Path) -> ForkedProcess:
    """Start a worker on the database of the running test.

    A fork does not know the name of this database, so it is passed on, like the folder of the files.
    """
    database = {key: value for key, value in connection.settings_dict.items() if key not in ("TEST", "ATOMIC_REQUESTS")}
    environment = {"OCTWEB_TEST_DATABASE": json.dumps(database, default=str), "OCTWEB_TEST_FILES": str(files)}
    return start(WORKER, *arguments, folder=folder, **environment)


def manage(*arguments: object, folder: Path | None = None) -> CompletedProcess[str]:
    """Run `manage.py` with these arguments, and wait for its end. Relative paths are relative to `folder`."""
    with tempfile.TemporaryDirectory() as name:
        folder = folder or Path(name)
        process = start(MANAGE, *arguments, folder=folder)
        code = process.wait(6000)
        out, error = ((folder / stream).read_text(encoding="utf-8") for stream in ("stdout", "stderr"))
        return CompletedProcess([str(MANAGE), *map(str, arguments)], code, out, error)
