"""Migrate with the original migrations, as if octweb had no squashed ones.

As a program, it migrates empty SQLite files in both ways and prints their schemas as JSON (see
test_squashed_migrations).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import StateApps

Target = tuple[str, str]
SQUASHED = ("batch", "datasets", "experiments", "registry", "runs", "workbench")


class OriginalLoader(MigrationLoader):
    """Migration loader without octweb's squashed migrations."""

    def load_disk(self) -> None:
        super().load_disk()
        squashed = [key for key, migration in self.disk_migrations.items() if migration.replaces and key[0] in SQUASHED]
        for key in squashed:
            del self.disk_migrations[key]


def original_executor() -> MigrationExecutor:
    executor = MigrationExecutor(connection)
    executor.loader = OriginalLoader(connection)
    return executor


def migrate_with_originals(targets: Sequence[Target]) -> StateApps:
    """Migrate forwards or backwards with the original migrations. Return the models of that state."""
    original_executor().migrate(targets)
    return original_executor().loader.project_state(targets).apps


def migrate_forwards_with_originals(targets: Sequence[Target]) -> StateApps:
    """Migrate an older database to `targets` and their dependencies. Return the models of that state.

    Unlike `migrate_with_originals`, this never migrates backwards to a target that another target has passed.
    """
    executor = original_executor()
    graph = executor.loader.graph
    names = dict.fromkeys(node for target in targets for node in graph.forwards_plan(target))
    plan = [(graph.nodes[node], False) for node in names if node not in executor.loader.applied_migrations]
    return executor.migrate(list(targets), plan=plan).apps


def latest_originals() -> list[Target]:
    return original_executor().loader.graph.leaf_nodes()


def targets_before_last(apps: Sequence[str], steps: int = 2) -> list[Target]:
    """Return the newest state of every app except `apps`, which stay `steps` before the end of the squashed migrations.

    If `apps` are all squashed apps, return only their targets.
    """
    graph = original_executor().loader.graph
    replaced = {key for migration in MigrationLoader(None).disk_migrations.values() for key in migration.replaces}
    targets = [node for node in graph.leaf_nodes() if node[0] not in apps]
    if len(apps) == len(SQUASHED):
        targets = []
    for app in apps:
        names = sorted(name for label, name in replaced if label == app)
        targets.append((app, names[-1 - steps]))
    return targets


def _use(path: Path) -> None:
    connection.close()
    connection.settings_dict["NAME"] = str(path)


def _schema() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
        return [repr(row) for row in cursor.fetchall()]


def _add_refuted_model(apps: StateApps) -> None:
    """Store a model whose last check refuted it, which migration 0011 of the registry marks as doubtful."""
    from django.utils import timezone

    user = apps.get_model("auth", "User").objects.create(username="anna")
    family = apps.get_model("registry", "Family").objects.create(name="tree", owner=user)
    values = dict.fromkeys(("version", "objective", "train_accuracy", "leaves", "depth"), 1)
    model = apps.get_model("registry", "TreeModel").objects.create(owner=user, family=family, **values)
    check = {"what": "checked", "subject": "model", "subject_id": model.pk, "details": {"verdict": "refuted"}}
    apps.get_model("audit", "Record").objects.create(number=1, at=timezone.now(), digest="0", **check)


def main(folder: Path) -> dict[str, Any]:
    from django.core.management import call_command

    from octweb.registry.models import TreeModel

    schemas = {}
    _use(folder / "original.sqlite3")
    migrate_with_originals(latest_originals())
    schemas["original"] = _schema()
    _use(folder / "squashed.sqlite3")
    call_command("migrate", verbosity=0)
    schemas["squashed"] = _schema()
    for name, apps in {"all apps behind": SQUASHED, "two apps behind": ("experiments", "workbench")}.items():
        _use(folder / f"{name}.sqlite3")
        older = migrate_forwards_with_originals(targets_before_last(apps))
        if "registry" in apps:
            _add_refuted_model(older)
        call_command("migrate", verbosity=0)
        executor = MigrationExecutor(connection)
        assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
        assert list(TreeModel.objects.values_list("doubt", flat=True)) == ["pending"] * ("registry" in apps)
        schemas[name] = _schema()
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
    connection.close()
    return schemas


if __name__ == "__main__":
    import django

    django.setup()
    print(json.dumps(main(Path(sys.argv[1]))))
