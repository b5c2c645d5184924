"""`python -m trainer`, `octweb` and `manage.py` run the same commands, the first without Django."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.core.management import get_commands

from octweb.core.command_line import DJANGO_OPTIONS
from tests.conftest import ROOT
from tests.octweb.small_models import csv_of_small_table, trained
from trainer.cli import COMMANDS
from trainer.cli.dispatch import main, usage

PROGRAMS = (["-m", "trainer"], ["-m", "octweb"], [str(ROOT / "manage.py")])
LOAD_ALL = """
import sys
from trainer.cli import COMMANDS
from trainer.cli.dispatch import load
for name in COMMANDS:
    load(name)
print(sorted({"django", "octweb", "rest_framework"} & set(sys.modules)))
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "model.json").write_text(json.dumps(trained("cart", depth=3)))
    (tmp_path / "data.csv").write_text(csv_of_small_table())
    return tmp_path


def run(program, *arguments, folder):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, *program, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_no_command_imports_django():
    process = subprocess.run([sys.executable, "-c", LOAD_ALL], cwd=ROOT, capture_output=True, text=True)
    assert process.stdout.strip() == "[]", process.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["verify", "model.json", "data.csv", "--json"], 0),
        (["verify", "model.json", "data.csv", "--require=proved"], 1),
        (["verify", "model.json", "gone.csv"], 1),
        (["rules", "data.csv"], 1),
    ],
)
def test_three_programs_give_the_same_answer(files, arguments, status):
    first, *others = [run(program, *arguments, folder=files) for program in PROGRAMS]
    assert first.returncode == status
    assert first.stdout or first.stderr.startswith("CommandError: ")
    for other in others:
        assert (other.returncode, other.stdout, other.stderr) == (first.returncode, first.stdout, first.stderr)


def test_wrong_arguments_end_with_usage_and_status_2(files):
    for program, name in zip(PROGRAMS, ("python -m trainer", "octweb", "manage.py"), strict=True):
        done = run(program, "verify", folder=files)
        assert done.returncode == 2
        assert done.stderr.startswith(f"usage: {name} verify")
        assert done.stderr.endswith("error: the following arguments are required: MODEL.json, DATA\n")


@pytest.mark.slow
def test_options_of_django_still_work(files):
    done = run(PROGRAMS[2], "rules", "gone.json", "--traceback", folder=files)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "--traceback" in DJANGO_OPTIONS


def test_django_lists_every_command_of_the_library():
    assert {name: get_commands()[name] for name in COMMANDS} == dict.fromkeys(COMMANDS, "octweb.core")


def test_usage_lists_every_command(capsys):
    assert main("python -m trainer", []) == 0
    assert capsys.readouterr().out.strip() == usage("python -m trainer")
    assert all(f"    {name} " in usage("octweb") for name in COMMANDS)


def test_unknown_command_is_named(capsys):
    assert main("octweb", ["verfy"]) == 2
    assert "Unknown command: 'verfy'" in capsys.readouterr().err
