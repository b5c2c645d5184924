"""The scripts of docs/deploy.md restore a backup completely, in another place."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

FILL = """
import io, json, django; django.setup()
from django.contrib.auth import get_user_model
from django.core.management import call_command
from octweb.datasets import actions
from tests.octweb.runs.conftest import CSV
call_command("migrate", interactive=False, verbosity=0)
user = get_user_model().objects.create_user("olga", password="a long password")
actions.create(owner=user, file=io.BytesIO(CSV.encode()), source_name="small.csv", target="class")
"""
LOOK = """
import json, django; django.setup()  # twice in the first process, which changes nothing
from django.conf import settings
from django.contrib.auth import get_user_model
from octweb.datasets import actions
from octweb.datasets.models import Dataset
user, dataset = get_user_model().objects.get(), Dataset.objects.get()
table, labels = actions.load(dataset)  # checks the digest of the file
print(json.dumps({"password": user.check_password("a long password"), "rows": len(table), "key": str(settings.SECRET_KEY),
    "file": dataset.file.path}))
"""


def call(environment, *command: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)


@pytest.fixture
def place(tmp_path):
    """Provide the environment of an installation with this data folder.

    DATABASE_URL is set only if the test names one.
    """

    def at(name: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OCTWEB_", "DATABASE_URL"))}
        return kept | {
            "OCTWEB_DATA_DIR": str(tmp_path / name),
            "DJANGO_SETTINGS_MODULE": "octweb.settings",
            "PYTHON": sys.executable,
        }

    return at


def test_what_was_backed_up_is_there_after_restoring(place, tmp_path):
    before = place("before")
    after = place("after")
    copy = str(tmp_path / "copy")
    filled = call(before, sys.executable, "-c", FILL + LOOK)
    assert filled.returncode == 0, filled.stderr
    done = call(before, "deploy/backup.sh", copy)
    assert done.returncode == 0, done.stderr
    assert oct(os.stat(copy).st_mode & 0o777) == "0o700"
    # a relative folder is meant from where one stands, and the program of the installation is used all the same
    near = [str(ROOT / "deploy" / "backup.sh"), "near"]
    done = subprocess.run(near, cwd=tmp_path, env=before, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "near" / "octweb.sqlite3").exists()
    done = call(after, "deploy/restore.sh", copy)
    assert done.returncode == 0, done.stderr
    seen = [json.loads(one.stdout.splitlines()[-1]) for one in (filled, call(after, sys.executable, "-c", LOOK))]
    assert seen[1]["file"].startswith(str(tmp_path / "after"))
    assert [s | {"file": ""} for s in seen] == [{"password": True, "rows": 120, "key": seen[0]["key"], "file": ""}] * 2
    # what exists is not overwritten, and a damaged copy is refused
    assert call(after, "deploy/restore.sh", copy).returncode != 0
    with open(os.path.join(copy, "octweb.sqlite3"), "r+b") as stream:
        stream.seek(100)
        stream.write(b"damage")
    assert call(place("other"), "deploy/restore.sh", copy).returncode != 0
