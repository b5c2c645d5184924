"""Migrated databases keep their rows and their served versions."""

from __future__ import annotations

import io

import pytest
from django.db import connection
from django.utils import timezone

from octweb.datasets import actions
from octweb.jobs.models import WorkerBeat
from octweb.registry.lifecycle import actions as registry
from octweb.registry.lifecycle.model_cache import model_by_name
from octweb.runs.models import TrainingRun
from tests.octweb.datasets.files import GOOD
from tests.octweb.migrating import latest_originals, migrate_with_originals

pytestmark = pytest.mark.slow

BEFORE = [("runs", "0004_repeat_a_request")]


@pytest.mark.django_db(transaction=True)
def test_workers_and_runs_of_an_older_database_stay(owner, media):
    dataset = actions.create(owner=owner, file=io.BytesIO(GOOD), source_name="good.csv", target="label")
    run = TrainingRun.objects.create(owner=owner, dataset=dataset, method="cart", parameters={}, status="running")
    newest = latest_originals()
    try:
        older = migrate_with_originals(BEFORE)
        assert "runs_workerbeat" in connection.introspection.table_names()
        older.get_model("runs", "WorkerBeat").objects.create(name="host:1", seen_at=timezone.now())
    finally:
        migrate_with_originals(newest)
    assert WorkerBeat.objects.get().name == "host:1"
    assert TrainingRun.objects.get() == run
    assert "runs_workerbeat" not in connection.introspection.table_names()


@pytest.mark.django_db(transaction=True)
def test_served_name_survives_deletion_of_drafts(owner, staff, register):
    """One name has no pinned version, one its first, and one its third, which was retired."""
    names = {}
    for pinned in (None, 1, 3):
        models = [register(title=f"Pinned {pinned}") for _ in range(4)]
        for model in models[:3]:
            registry.approve(registry.ask_for_approval(model, by=owner), by=staff)
        registry.retire(models[2], by=staff)
        names[models[0].family.name] = (pinned, models)
    newest = latest_originals()
    try:
        older = migrate_with_originals([("registry", "0004_steps_into_the_chain")])
        for name, (pinned, models) in names.items():
            if pinned is not None:  # the third version was retired, so the highest approved one was served
                older.get_model("registry", "Family").objects.filter(name=name).update(pinned_id=models[pinned - 1].pk)
    finally:
        migrate_with_originals(newest)
    assert len(names) == 3
    for name, (pinned, _) in names.items():
        assert model_by_name(name, None).version == (1 if pinned == 1 else 2)
        reached = [model_by_name(name, version) is not None for version in (1, 2, 3, 4)]
        assert reached == [True, True, False, False]
