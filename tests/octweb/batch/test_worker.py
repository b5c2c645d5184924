"""Batch predictions with real workers and child processes: SIGKILL, cancelling, and what remains."""

from __future__ import annotations

import itertools
import os
import signal
from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone

from octweb.batch import actions
from octweb.batch.models import BatchPrediction
from octweb.jobs.models import RunStatus
from octweb.jobs.queue import tidy
from octweb.jobs.reaper import MAX_ATTEMPTS, reap
from octweb.jobs.supervisor import LostLease
from tests.octweb.batch.conftest import rows_csv
from tests.octweb.runs.test_worker import end_lease, jobs_of, wait_for, worker  # noqa: F401
from tests.octweb.small_models import csv_of_small_table

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = 300  # the child that is held processes them in three pieces


@pytest.fixture
def hold(tmp_path, monkeypatch):
    """Provide a file that holds child processes after their first piece of rows while it exists.

    So no test depends on their speed.
    """
    path = tmp_path / "hold"
    path.touch()
    monkeypatch.setenv("OCTWEB_TEST_HOLD", str(path))
    return path


@pytest.fixture
def new_job(media, model, hold):
    header, *lines = csv_of_small_table().splitlines()
    content = "\n".join([header, *itertools.islice(itertools.cycle(lines), ROWS)]) + "\n"

    def make():
        return actions.enqueue(owner=model.owner, model=model, file=rows_csv(content=content), source_name="rows.csv")

    return make


def now(job) -> BatchPrediction:
    return BatchPrediction.objects.get(pk=job.pk)


def held(job) -> bool:
    """Return whether the child of this job waits in the middle of its file."""
    progress = now(job).progress
    return progress.get("phase") == "predicting" and 0 < progress["rows"] < progress["of"] == ROWS


def test_a_killed_worker_loses_nothing(worker, new_job, hold):  # noqa: F811
    job = new_job()
    first = worker()
    wait_for(lambda: held(job))
    first.send_signal(signal.SIGKILL)
    first.wait()
    end_lease(job)
    process = worker()
    wait_for(lambda: now(job).attempt == 2 and held(job))
    hold.unlink()
    wait_for(lambda: now(job).status == RunStatus.SUCCEEDED)
    done = now(job)
    assert done.summary["rows"] == ROWS
    wait_for(lambda: default_storage.listdir(done.folder)[1] == ["result-2.csv"])
    with done.result.open("rb") as stream:
        assert sum(1 for _ in stream) == ROWS + 1
    wait_for(lambda: jobs_of(process) == [])


@pytest.mark.slow
def test_killed_cancelled_and_deleted_jobs_end_as_documented(worker, new_job, hold):  # noqa: F811
    job = new_job()
    process = worker()
    for attempt in (1, 2):
        wait_for(lambda attempt=attempt: now(job).attempt == attempt and held(job))
        for child in jobs_of(process):
            child.send_signal(signal.SIGKILL)
    wait_for(lambda: now(job).status == RunStatus.FAILED)
    assert "killed by the system, probably because memory ran out" in now(job).error
    other = new_job()
    wait_for(lambda: held(other))
    actions.cancel(now(other))
    wait_for(lambda: now(other).status == RunStatus.CANCELLED)
    wait_for(lambda: not default_storage.exists(now(other).source.name))
    assert not now(other).result
    assert default_storage.listdir(now(other).folder)[1] == []
    deleted = new_job()
    wait_for(lambda: held(deleted))
    actions.delete(now(deleted))
    wait_for(lambda: now(deleted).status == RunStatus.CANCELLED)
    hold.unlink()
    actions.bring_back(now(deleted))
    wait_for(lambda: now(deleted).status == RunStatus.SUCCEEDED)
    assert now(deleted).summary["rows"] == ROWS


def test_a_lost_lease_leaves_no_result(job, work, monkeypatch):
    from octweb.batch.work import PredictionSupervisor

    def lost(self, *arguments, **changes):
        raise LostLease

    monkeypatch.setattr(PredictionSupervisor, "end", lost)
    assert work(job) == RunStatus.RUNNING
    assert default_storage.listdir(job.folder)[1] == [os.path.basename(job.source.name)]


def test_the_reaper_looks_after_files_too(job):
    past = timezone.now() - timedelta(minutes=1)
    jobs = BatchPrediction.objects.filter(pk=job.pk)
    jobs.update(status=RunStatus.RUNNING, attempt=1, lease_until=past)
    reap()
    assert now(job).status == RunStatus.QUEUED
    jobs.update(status=RunStatus.RUNNING, attempt=MAX_ATTEMPTS, lease_until=past)
    reap()
    assert now(job).status == RunStatus.FAILED


def test_old_answers_and_files_without_a_row_are_removed(job, work, settings, model):
    assert work(job) == RunStatus.SUCCEEDED
    orphan = "predictions/gone/source.csv"
    young = "predictions/young/source.csv"
    for name in (orphan, young):
        default_storage.save(name, ContentFile(b"x"))
    old = (timezone.now() - timedelta(days=2)).timestamp()
    os.utime(default_storage.path(orphan), (old, old))
    waiting = actions.enqueue(owner=model.owner, model=model, file=rows_csv(), source_name="rows.csv")
    assert tidy(timezone.now()) == 1
    assert now(job).is_ready
    assert not default_storage.exists(orphan)
    BatchPrediction.objects.update(finished=timezone.now() - timedelta(days=settings.KEEP_PREDICTIONS_DAYS + 1))
    assert tidy(timezone.now()) == 1
    assert BatchPrediction.objects.get() == waiting
    assert sorted(default_storage.listdir("predictions")[0]) == sorted([str(waiting.pk), "young"])


def test_deleted_answers_are_kept_no_longer_than_others(job, work, settings):
    assert work(job) == RunStatus.SUCCEEDED
    settings.KEEP_PREDICTIONS_DAYS = 2
    actions.delete(now(job))
    assert tidy(timezone.now() + timedelta(days=1)) == 0
    assert tidy(timezone.now() + timedelta(days=3)) == 1
    settings.KEEP_PREDICTIONS_DAYS = 90
    assert BatchPrediction.back_within() == timedelta(days=30)
