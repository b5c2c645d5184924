"""Commands report each mistake that the user can correct in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from octweb.core import command_line
from tests.conftest import ROOT
from trainer.check.bundle import bundle
from trainer.cli.command import error_text

READERS = [
    ["rules", "{gone}"],
    ["verify", "{gone}", "{gone}"],
    ["predict", "{gone}", "{gone}"],
    ["explain", "{gone}", "{gone}"],
    ["export", "{gone}", "--to", "html"],
    ["dossier", "{gone}", "{gone}", "--output", "{new}"],
]


@pytest.mark.django_db  # the installation's key signs dossiers
@pytest.mark.parametrize("arguments", READERS, ids=lambda a: a[0])
def test_missing_file_is_named(arguments, tmp_path):
    gone = tmp_path / "gone.json"
    with pytest.raises(CommandError) as caught:
        call_command(*(a.format(gone=gone, new=tmp_path / "new") for a in arguments))
    assert "gone.json" in str(caught.value)
    assert "No such file or directory" in str(caught.value)
    assert "Errno" not in str(caught.value)


def test_django_command_exits_at_once_beside_a_compiler(monkeypatch):
    """A dossier may abandon a training on a bootstrap that still compiles. LLVM crashes at a normal exit then."""
    statuses = []
    monkeypatch.setattr("trainer.training.supervised_thread.compiler_runs", lambda: True)
    monkeypatch.setattr("trainer.cli.dispatch.os._exit", statuses.append)
    command_line.run(["manage.py", "help", "--commands"])
    assert statuses == [0]


@pytest.mark.slow
def test_standalone_checker_names_the_missing_file(tmp_path):
    (tmp_path / "check_octweb.py").write_text(bundle())
    command = [sys.executable, "check_octweb.py", "gone.json", "-", "gone.csv"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert process.returncode == 2
    assert process.stderr == "The file 'gone.json' cannot be opened: No such file or directory.\n"
    assert process.stdout == "Verdict: cannot be judged\n"


@pytest.mark.slow
def test_a_database_without_tables_says_what_to_do(tmp_path):
    environment = os.environ | {
        "OCTWEB_DATA_DIR": str(tmp_path),
        "DATABASE_URL": "",
    }  # an empty variable counts as unset
    command = [sys.executable, str(ROOT / "manage.py"), "audit"]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert process.returncode == 1
    assert process.stderr.startswith("CommandError: The database has no tables yet")
    assert process.stderr.rstrip().endswith("migrate` first.")


WITHOUT_DATABASE = ["methods", "samples", "checker", "check"]
WITH_DATABASE = ["audit", "token admin", "prune_uploads", "load_samples ada", "migrate", "serve --prepare-only"]
EACH = """
import os, shlex, sys
import django
from octweb.core.command_line import run
from octweb.__main__ import prepare, usage
prepare(None)
django.setup()
usage()
for line in sys.stdin.read().splitlines():
    if not os.fork():
        os.dup2(1, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1) if line in sys.argv[1:] else None
        run(["octweb", *shlex.split(line)])
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]), line, flush=True)
"""


def environment_of_newcomer(home: Path) -> dict[str, str]:
    """Return the environment of a user with this home folder who has no settings of octweb."""
    ours = ("OCTWEB_", "NUMBA_CACHE_DIR", "DATABASE_URL", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"HOME": str(home), "PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"}


@pytest.mark.slow
def test_unwritable_home_gives_answer_or_sentence(tmp_path):
    (tmp_path / "file").touch()  # nobody, not even root, can create a folder below a file
    lines = [*WITHOUT_DATABASE, *WITH_DATABASE]
    process = subprocess.run(
        [sys.executable, "-c", EACH, *WITHOUT_DATABASE],
        input="\n".join(lines),
        text=True,
        capture_output=True,
        cwd=tmp_path,
        env=environment_of_newcomer(tmp_path / "file" / "home"),
    )
    assert process.returncode == 0, process.stderr
    assert "Traceback" not in process.stdout + process.stderr
    ends = [line for line in process.stdout.splitlines() if line[0] in "01"]
    assert ends == [f"{0 if line in WITHOUT_DATABASE else 1} {line}" for line in lines]
    assert process.stdout.count("OCTWEB_DATA_DIR") == len(WITH_DATABASE)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--help"], ["methods"], ["samples"], ["train", "--help"]])
def test_commands_without_data_leave_home_empty(arguments, tmp_path):
    command = [sys.executable, "-m", "octweb", *arguments]
    subprocess.run(command, cwd=tmp_path, env=environment_of_newcomer(tmp_path), check=True, stdout=subprocess.DEVNULL)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("message", ["database is locked", "no such column: x"])
def test_other_faults_of_the_database_stay_what_they_are(message, monkeypatch):
    def fails(_arguments):
        raise OperationalError(message)

    monkeypatch.setattr("django.core.management.execute_from_command_line", fails)
    with pytest.raises(OperationalError, match=message):
        command_line.run(["manage.py", "audit"])


def test_error_without_file_keeps_its_message():
    assert error_text(OSError(28, "out.csv could not be written: full")) == "out.csv could not be written: full"
    assert error_text(ValueError("two\n lines")) == "two lines"
