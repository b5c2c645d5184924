"""Data folders of earlier versions are upgraded, and answer as they did (tests/states)."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tarfile
import time
from contextlib import closing

import pytest

from octweb.client import Client
from tests.conftest import ROOT
from tests.states.make import FOLDER, ROWS, environment_of, served

STATES = sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz"))


@pytest.fixture
def state(tmp_path):
    """Provide a function that unpacks a state and returns its folder, the environment of its server and its answers."""

    def unpack(name: str):
        with tarfile.open(FOLDER / f"{name}.tar.xz") as packed:
            packed.extractall(tmp_path, filter="data")
        folder = tmp_path / "data"
        return folder, environment_of(folder), json.loads((folder / "answers.json").read_text())

    return unpack


def manage(environment, *words):
    return subprocess.run(
        [sys.executable, "manage.py", *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )


def assert_works_as_before(environment, answers):
    audited = manage(environment, "audit", "--decisions")
    assert audited.returncode == 0, audited.stdout + audited.stderr
    token = manage(environment, "token", "ben").stdout.strip()
    with served(ROOT, environment) as address:
        client = Client(address, token)
        rows = client.predict(answers["model"], ROWS)
        assert [row.label for row in rows] == answers["labels"]
        assert [row.leaf for row in rows] == answers["leaves"]
        assert client.models.get(answers["name"]).is_served
        for decision in answers["decisions"]:
            assert client.decisions.get(decision)["decision"] == decision
        client.models.get(answers["model"]).review()


def test_three_states_are_kept():
    assert len(STATES) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", STATES)
def test_data_of_earlier_version_upgrade_with_same_answers(state, tmp_path, name):
    _folder, environment, answers = state(name)
    upgraded = manage(environment, "upgrade", "--backup", str(tmp_path / "backup"))
    assert upgraded.returncode == 0, upgraded.stderr
    assert "The main pages answer." in upgraded.stdout
    assert_works_as_before(environment, answers)


@pytest.mark.slow
def test_upgrade_of_an_earlier_version_survives_kills(state, tmp_path):
    """`migrate` is killed after 1, 2, 3, … new rows of its own table, until it ends by itself."""
    folder, environment, answers = state(STATES[0])
    kills = 0
    while True:
        with closing(sqlite3.connect(folder / "octweb.sqlite3")) as database:
            before = database.execute("SELECT count(*) FROM django_migrations").fetchone()[0]
            command = [sys.executable, "manage.py", "migrate", "--no-input"]
            with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as process:
                while process.poll() is None:
                    if database.execute("SELECT count(*) FROM django_migrations").fetchone()[0] > before:
                        process.kill()
                        break
                    time.sleep(0.001)
            if process.wait() == 0:
                break
            kills += 1
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert kills > 1
    assert "Migrations to apply: none" in manage(environment, "upgrade", "--no-backup").stdout
    assert_works_as_before(environment, answers)
