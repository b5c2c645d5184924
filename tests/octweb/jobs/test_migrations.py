"""A database of the time when the queue belonged to the runs keeps its rows."""

from __future__ import annotations

import io

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from octweb.datasets import actions
from octweb.jobs.models import WorkerBeat
from octweb.runs.models import TrainingRun
from tests.octweb.datasets.files import GOOD

BEFORE = [("runs", "0004_repeat_a_request")]


def migrate(targets):
    executor = MigrationExecutor(connection)
    executor.migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


@pytest.mark.django_db(transaction=True)
def test_workers_and_runs_of_an_older_database_stay(owner, media):
    dataset = actions.create(owner=owner, file=io.BytesIO(GOOD), source_name="good.csv", target="label")
    run = TrainingRun.objects.create(owner=owner, dataset=dataset, method="cart", parameters={}, status="running")
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    try:
        older = migrate(BEFORE)
        assert "runs_workerbeat" in connection.introspection.table_names()
        older.get_model("runs", "WorkerBeat").objects.create(name="host:1", seen_at=timezone.now())
    finally:
        migrate(newest)
    assert WorkerBeat.objects.get().name == "host:1"
    assert TrainingRun.objects.get() == run
    assert "runs_workerbeat" not in connection.introspection.table_names()
