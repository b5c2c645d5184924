"""Runs with real workers and children: completion, cancelling, SIGKILL and lost leases."""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta

import psutil
import pytest
from django.db import InterfaceError
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from octweb.core.problems import Conflict
from octweb.dossier import actions as dossiers
from octweb.jobs.management.commands import worker as worker_command
from octweb.jobs.models import FINISHED, RunStatus
from octweb.jobs.reaper import MAX_ATTEMPTS, reap
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import TreeModel
from octweb.runs import actions
from octweb.runs.child import TrainingProcess
from octweb.runs.models import TrainingRun
from tests.processes import start_worker

pytestmark = [pytest.mark.django_db(transaction=True)]


def wait_for(condition, seconds=600):
    """Return the value of a condition once it is true. Fail after a time that suits slow machines."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("waited in vain")


def status(run):
    return TrainingRun.objects.get(pk=run.pk).status


@pytest.fixture
def enqueue(owner, dataset):
    def make(**changes):
        arguments = {"dataset": dataset, "method": "cart", "parameters": {"depth": 3}} | changes
        return actions.enqueue(owner=owner, **arguments)

    return make


@pytest.fixture
def long_run(owner, hard_dataset):
    return actions.enqueue(owner=owner, dataset=hard_dataset, method="odt", parameters={"depth": 3, "time_limit": 600})


def end_lease(job):
    """End the lease of a worker that was killed."""
    type(job).objects.filter(pk=job.pk).update(lease_until=timezone.now() - timedelta(minutes=1))


def end_other_sessions():
    """End other sessions of the database.

    On PostgreSQL the session of a killed worker may hold locks for a moment, so that the tables cannot be emptied.
    """
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


def jobs_of(process):
    """Return the child processes of a worker's fork server."""
    return [child for server in psutil.Process(process.pid).children() for child in server.children()]


@pytest.fixture
def worker(settings, media, transactional_db, tmp_path_factory):
    """Provide a function that starts real worker processes on the test database.

    They are killed at the end of the test.
    """
    processes = []

    def start():
        folder = tmp_path_factory.mktemp("worker")
        arguments = ("--interval", "0.1", "--reap-every", "0.5")
        processes.append(start_worker(*arguments, folder=folder, files=media))
        return processes[-1]

    yield start
    for process in processes:
        for child in psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []:
            child.kill()
        process.send_signal(signal.SIGKILL)
        process.wait()
    end_other_sessions()


def test_a_run_ends_with_a_model(worker, enqueue):
    run = enqueue(folds=3)
    worker()
    wait_for(lambda: status(run) == RunStatus.SUCCEEDED)
    run.refresh_from_db()
    assert run.model.leaves >= 2
    assert run.summary["n"] == 120
    assert run.records.count() >= 1
    assert run.finished > run.started


@pytest.mark.one_database
def test_a_run_begins_with_the_tree_of_another(worker, enqueue):
    first = enqueue(parameters={"depth": 3})
    worker()
    wait_for(lambda: status(first) == RunStatus.SUCCEEDED)
    first.refresh_from_db()
    second = enqueue(method="exact", parameters={"depth": 3}, warm_start=first.model)
    wait_for(lambda: status(second) == RunStatus.SUCCEEDED)
    second.refresh_from_db()
    assert second.summary["warm_start_objective"] is not None
    assert second.summary["objective"] >= second.summary["warm_start_objective"]


@pytest.mark.one_database
def test_a_bad_run_fails_with_its_reason(worker, enqueue, dataset):
    run = enqueue()
    os.remove(dataset.file.path)
    worker()
    wait_for(lambda: status(run) == RunStatus.FAILED)
    run.refresh_from_db()
    assert run.error
    assert "Traceback" not in run.error


@pytest.mark.one_database
def test_infeasibility_proof_is_stored_as_such(worker, enqueue):
    run = enqueue(method="odt", parameters={"depth": 1, "sensitivity": 0.99, "specificity": 0.99})
    worker()
    wait_for(lambda: status(run) == RunStatus.FAILED)
    run.refresh_from_db()
    assert run.unreachable
    assert 0 <= run.summary["best"] < 0.99
    assert run.error == run.summary["reason"]


def test_a_cancelled_queued_run_never_starts(enqueue):
    run = enqueue()
    actions.cancel(run)
    assert status(run) == RunStatus.CANCELLED
    with pytest.raises(Conflict):
        actions.cancel(run)


def test_slot_of_short_jobs_goes_on_after_an_error(monkeypatch):
    """Nothing starts its thread again, and without it no dossier would be made."""
    errors = iter([InterfaceError("connection already closed"), ValueError("x")])
    slot = worker_command._slot(["beside"], 0.1)

    def run(self):
        if (error := next(errors, None)) is not None:
            raise error
        self.running = False

    monkeypatch.setattr(worker_command.Slot, "run", run)
    monkeypatch.setattr(worker_command.time, "sleep", lambda seconds: None)
    worker_command._run_beside(slot)
    assert next(errors, None) is None
    assert not slot.running


@pytest.mark.slow
@pytest.mark.one_database
def test_dossier_of_an_approval_does_not_wait_for_a_training(worker, enqueue, owner, staff, hard_dataset):
    """One worker makes it within 30 seconds, while a training of ten minutes goes on."""
    first = enqueue()
    worker()
    wait_for(lambda: status(first) == RunStatus.SUCCEEDED)
    model = TrainingRun.objects.select_related("model").get(pk=first.pk).model
    registry.ask_for_approval(model, by=owner)
    longer = enqueue(dataset=hard_dataset, method="odt", parameters={"depth": 3, "time_limit": 600})
    wait_for(lambda: status(longer) == RunStatus.RUNNING)
    registry.approve(model, by=staff, reason="read")
    started = time.monotonic()
    wait_for(lambda: dossiers.approval_dossier(model))
    assert time.monotonic() - started < 30
    assert status(longer) == RunStatus.RUNNING


def test_cancel_keeps_the_incumbent(worker, long_run):
    run = long_run
    worker()
    wait_for(lambda: TrainingRun.objects.get(pk=run.pk).progress.get("incumbent"))
    actions.cancel(TrainingRun.objects.get(pk=run.pk))
    wait_for(lambda: status(run) == RunStatus.CANCELLED)
    run.refresh_from_db()
    assert run.model.status == "cancelled"
    assert run.model.bound >= run.model.objective


@pytest.mark.slow
def test_a_child_killed_by_the_system_is_tried_again_once(worker, long_run):
    run = long_run
    process = worker()
    for attempt in (1, 2):
        wait_for(
            lambda attempt=attempt: (
                TrainingRun.objects.filter(pk=run.pk, attempt=attempt)
                .exclude(progress__incumbent=None)
                .filter(progress__has_key="incumbent")
            )
        )
        for child in jobs_of(process):
            child.send_signal(signal.SIGKILL)
    wait_for(lambda: status(run) in FINISHED)
    run.refresh_from_db()
    assert (run.status, run.error) == (RunStatus.SUCCEEDED, "")
    assert run.model.status == "memory_limit"
    assert "the system killed attempt 1" in run.log


@pytest.mark.slow
def test_sigkill_of_the_worker_gives_the_run_to_the_next(worker, long_run):
    run = long_run
    first = worker()
    wait_for(lambda: TrainingRun.objects.get(pk=run.pk).progress.get("incumbent"))
    children = psutil.Process(first.pid).children(recursive=True)
    assert len(children) == 2  # its fork server, and the job
    first.send_signal(signal.SIGKILL)
    first.wait()
    wait_for(lambda: not any(child.is_running() and child.status() != "zombie" for child in children))
    end_lease(run)
    worker()
    wait_for(lambda: TrainingRun.objects.get(pk=run.pk).attempt == 2)
    wait_for(lambda: TrainingRun.objects.get(pk=run.pk).progress.get("incumbent"))
    actions.cancel(TrainingRun.objects.get(pk=run.pk))
    wait_for(lambda: status(run) == RunStatus.CANCELLED)
    run.refresh_from_db()
    assert (run.attempt, run.model.status) == (2, "cancelled")
    assert TreeModel.objects.count() == 1  # the first child wrote none


def test_sigterm_of_the_worker_gives_the_run_back(worker, long_run):
    run = long_run
    process = worker()
    wait_for(lambda: TrainingRun.objects.get(pk=run.pk).progress.get("incumbent"))
    process.send_signal(signal.SIGTERM)
    process.wait(600)
    assert status(run) == RunStatus.QUEUED
    assert DBTaskResult.objects.ready().count() == 1


@pytest.mark.slow
def test_two_workers_never_do_a_run_twice(worker, enqueue):
    runs = [enqueue(parameters={"depth": 2, "seed": seed}) for seed in range(3)]
    worker()
    worker()
    wait_for(lambda: all(status(run) == RunStatus.SUCCEEDED for run in runs))
    assert TreeModel.objects.count() == 3
    assert set(TrainingRun.objects.values_list("attempt", flat=True)) == {1}


def test_the_reaper_requeues_then_gives_up(enqueue):
    run = enqueue()
    DBTaskResult.objects.all().delete()
    past = timezone.now() - timedelta(minutes=1)
    for attempt in range(1, MAX_ATTEMPTS):
        TrainingRun.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING, attempt=attempt, lease_until=past)
        reap()
        assert status(run) == RunStatus.QUEUED
    TrainingRun.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING, attempt=MAX_ATTEMPTS, lease_until=past)
    reap()
    assert status(run) == RunStatus.FAILED


def test_the_reaper_sends_a_queued_run_whose_task_was_lost(enqueue):
    run = enqueue()
    DBTaskResult.objects.all().delete()
    TrainingRun.objects.filter(pk=run.pk).update(created=timezone.now() - timedelta(minutes=1))
    reap()
    assert DBTaskResult.objects.ready().count() == 1
    reap()
    assert DBTaskResult.objects.ready().count() == 1


def test_a_live_lease_is_left_alone(enqueue):
    run = enqueue()
    future = timezone.now() + timedelta(minutes=1)
    TrainingRun.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING, attempt=1, lease_until=future)
    reap()
    assert status(run) == RunStatus.RUNNING


def test_cleaning_up_leaves_the_next_attempt_alone(enqueue, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    run = enqueue()
    run.attempt = 1
    first = TrainingProcess.prepare(run)
    run.attempt = 2
    second = TrainingProcess.prepare(run)
    run.attempt = 1
    first.clean()
    assert not first.folder.exists()
    assert (second.folder / "schema.json").exists()
    run.attempt = 2
    second.clean()
    assert not second.folder.parent.exists()
