"""`count`, `train FOLDER`, `verify` and `recount` on the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from tests.conftest import ROOT
from tests.trainer.counts.tables import KEY, random_rows, write_rows


class Done(NamedTuple):
    """Output and error output of a command."""

    stdout: str
    stderr: str


def octweb(name: str, *arguments: object, code: int = 0) -> Done:
    """Run a command in this process, with the exit status that a user would see."""
    out = StringIO()
    error = StringIO()
    status = 0
    try:
        call_command(name, *map(str, arguments), stdout=out, stderr=error)
    except CommandError as raised:
        error.write(str(raised))
        status = raised.returncode
    except SystemExit as raised:
        status = int(raised.code or 0)
    assert status == code, out.getvalue() + error.getvalue()
    return Done(out.getvalue(), error.getvalue())


def record(done: Done) -> dict:
    """Return the JSON of the last line."""
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def table(tmp_path) -> Path:
    return write_rows(random_rows(np.random.default_rng(2), classes=3), tmp_path / "rows.csv")


def test_from_a_file_to_a_proved_tree_that_its_rows_confirm(tmp_path, table):
    counts = tmp_path / "counts"
    model = tmp_path / "model.json"
    found = record(
        octweb("count", table, "--target", "class", "--folds", 3, "--key", KEY, "--output", counts, "--json")
    )
    assert found["folds"] == 3
    assert not any(name.startswith(KEY) for name in found["questions"])
    trained = record(
        octweb("train", counts, "--method", "exact", "--leaf-penalty", "0.01", "--output", model, "--json")
    )
    assert trained["proved_optimal"]
    assert trained["counts"] == found["sha256"]
    assert trained["unseen_accuracy"]["n"] == found["rows"]
    assert record(octweb("verify", model, counts, "--require", "proved", "--json"))["verdict"] == "proved"
    assert record(octweb("recount", model, table, "--json"))["same"]
    predicted = octweb("predict", model, table)
    assert len(predicted.stdout.splitlines()) == len(table.read_text().splitlines())


def test_recount_of_other_rows_fails_and_names_leaves(tmp_path, table):
    counts = tmp_path / "counts"
    octweb("count", table, "--target", "class", "--ignore", KEY, "--output", counts)
    octweb("train", counts, "--method", "exact", "--output", tmp_path / "model.json")
    other = write_rows(random_rows(np.random.default_rng(9), classes=3), tmp_path / "other.csv")
    done = octweb("recount", tmp_path / "model.json", other, "--json", code=1)
    assert not record(done)["same"]
    assert "leaf" in done.stdout


def test_two_sites_add_up_to_the_tree_of_the_pooled_rows(tmp_path):
    rows = random_rows(np.random.default_rng(3))
    half = len(rows) // 2
    write_rows(rows[:half], tmp_path / "sites" / "one.csv")
    write_rows([rows[0], *rows[half:]], tmp_path / "sites" / "two.csv")
    pooled = tmp_path / "pooled"
    octweb("count", tmp_path / "sites", "--target", "class", "--ignore", KEY, "--output", pooled)
    for name in ("one", "two"):
        octweb("count", tmp_path / "sites" / f"{name}.csv", "--questions", pooled, "--output", tmp_path / name)
    merged = tmp_path / "merged"
    found = record(octweb("count", "--merge", tmp_path / "one", tmp_path / "two", "--output", merged, "--json"))
    assert found["parts"] == 2
    assert found["sha256"] == json.loads((pooled / "counts.json").read_text())["sha256"]
    twice = octweb("count", "--merge", merged, tmp_path / "two", "--output", tmp_path / "no", code=1)
    assert "would count twice: two.csv" in twice.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("count", "--output", "x"), 2, "name a file or a folder"),
        (("count", "{table}", "--output", "x"), 2, "target: name the column to predict"),
        (("count", "nowhere", "--target", "class", "--output", "x"), 1, "There is no file or folder 'nowhere'"),
        (("count", "{table}", "--target", "clas", "--output", "x"), 1, "has no column 'clas'"),
        (("count", "{table}", "--target", "class", "--depth", "4", "--output", "x"), 2, "a depth of 1 to 3"),
        (("train", "{counts}", "--method", "cart"), 2, "'cart' needs rows"),
        (("train", "{counts}", "--method", "exact", "--test-share", "0.2"), 2, "test_share: needs rows"),
        (("train", "{counts}", "--method", "exact", "--target", "other"), 2, "the counts are for the target 'class'"),
        (("train", "{table}", "--method", "exact"), 2, "target: name the column to predict"),
    ],
)
def test_bad_input_is_refused_in_one_line(tmp_path, table, arguments, code, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = {"{table}": table, "{counts}": tmp_path / "counts"}
    if "{counts}" in arguments:
        octweb("count", table, "--target", "class", "--ignore", KEY, "--output", tmp_path / "counts")
    done = octweb(*(places.get(a, a) for a in arguments), code=code)
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_killed_count_resumes(tmp_path):
    rows = random_rows(np.random.default_rng(2), classes=3)
    big = [rows[0], *(rows[1 + i % (len(rows) - 1)] for i in range(60_000))]
    for i in range(4):
        write_rows([*big, rows[1 + i]], tmp_path / "rows" / f"{i}.csv")
    whole = ["count", tmp_path / "rows", "--target", "class", "--ignore", KEY, "--output"]
    octweb(*whole, tmp_path / "whole")
    command = [sys.executable, str(ROOT / "manage.py"), *map(str, whole), str(tmp_path / "again")]
    for attempt in range(10):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.5 + 0.2 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait()
    if not (tmp_path / "again" / "counts.json").exists():
        octweb(*whole, tmp_path / "again")
    assert (tmp_path / "again" / "counts.npz").read_bytes() == (tmp_path / "whole" / "counts.npz").read_bytes()
