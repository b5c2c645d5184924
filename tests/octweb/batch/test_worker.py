"""Real workers and children: SIGKILL of either, cancel, and what is left behind."""

from __future__ import annotations

import os
import signal
from datetime import timedelta

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
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
from tests.octweb.runs.test_worker import wait_for, worker  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = 1_500_000


@pytest.fixture(scope="module")
def long_file(tmp_path_factory):
    """A file that takes some seconds."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("long") / "rows.parquet"
    columns = {
        "width": rng.normal(size=ROWS),
        "height": rng.normal(size=ROWS),
        "flag": rng.integers(0, 2, ROWS),
        "colour": pa.array(["red", "green", "blue"]).take(pa.array(rng.integers(0, 3, ROWS))),
    }
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def long_job(media, model, long_file):
    file = ContentFile(long_file.read_bytes(), name="rows.parquet")
    return actions.enqueue(owner=model.owner, model=model, file=file, source_name="rows.parquet")


def now(job) -> BatchPrediction:
    return BatchPrediction.objects.get(pk=job.pk)


def started(job) -> bool:
    return now(job).progress.get("phase") == "predicting"


def test_a_killed_worker_loses_nothing(worker, long_job):  # noqa: F811
    first = worker()
    wait_for(lambda: started(long_job))
    first.send_signal(signal.SIGKILL)
    first.wait()
    process = worker()
    wait_for(lambda: now(long_job).attempt == 2)
    wait_for(lambda: now(long_job).status == RunStatus.SUCCEEDED, 120)
    done = now(long_job)
    assert done.summary["rows"] == ROWS
    wait_for(lambda: default_storage.listdir(done.folder)[1] == ["result-2.csv"], 10)
    with done.result.open("rb") as stream:
        assert sum(1 for _ in stream) == ROWS + 1
    assert psutil.Process(process.pid).children() == []


@pytest.mark.slow
def test_a_killed_child_fails_the_job_and_cancel_leaves_no_result(worker, long_job, model, long_file):  # noqa: F811
    process = worker()
    wait_for(lambda: started(long_job))
    for attempt in (1, 2):
        wait_for(lambda attempt=attempt: now(long_job).attempt == attempt and started(long_job))
        for child in psutil.Process(process.pid).children():
            child.send_signal(signal.SIGKILL)
    wait_for(lambda: now(long_job).status == RunStatus.FAILED)
    assert "killed by the system, probably because memory ran out" in now(long_job).error
    file = ContentFile(long_file.read_bytes(), name="rows.parquet")
    other = actions.enqueue(owner=model.owner, model=model, file=file, source_name="rows.parquet")
    wait_for(lambda: started(other))
    assert 0 < now(other).progress["rows"] < now(other).progress["of"] == ROWS
    actions.cancel(now(other))
    wait_for(lambda: now(other).status == RunStatus.CANCELLED, 40)
    wait_for(lambda: not default_storage.exists(now(other).source.name), 10)
    assert not now(other).result
    assert default_storage.listdir(now(other).folder)[1] == []


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
    orphan, young = "predictions/gone/source.csv", "predictions/young/source.csv"
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
