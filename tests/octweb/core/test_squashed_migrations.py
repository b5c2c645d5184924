"""Squashed and original migrations make the same tables, from a fresh database and from an older one."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.db.migrations.loader import MigrationLoader

from tests.conftest import ROOT


def test_no_migration_depends_on_a_squashed_one():
    """A database that has only some of the replaced migrations does not know the squashed one."""
    migrations = MigrationLoader(None).disk_migrations
    squashed = {key for key, migration in migrations.items() if migration.replaces}
    assert squashed
    wrong = {
        key: dependency
        for key, migration in migrations.items()
        for dependency in migration.dependencies
        if dependency in squashed and key not in squashed
    }
    assert wrong == {}


@pytest.mark.slow
def test_squashed_migrations_make_the_schema_of_originals(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "tests.octweb.migrating", str(tmp_path)],
        cwd=ROOT,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "octweb.settings",
            "DATABASE_URL": f"sqlite:///{tmp_path / 'first.sqlite3'}",
            "OCTWEB_DATA_DIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    schemas = json.loads(run.stdout.splitlines()[-1])
    assert len(schemas["original"]) > 100
    for name in ("squashed", "all apps behind", "two apps behind"):
        assert schemas[name] == schemas["original"], name
