"""The supervisor kills a child that does not stop, and survives a short outage of the database."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import OperationalError, connection
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from octweb.checking.actions import proof_of
from octweb.jobs import queue, reaper
from octweb.jobs import supervisor as supervisors
from octweb.jobs.child import PROGRESS
from octweb.jobs.models import RunStatus
from octweb.jobs.supervisor import USER_STOP_GRACE_FACTOR
from octweb.registry.lifecycle import actions as registry
from octweb.runs import actions
from octweb.runs.child import START, TrainingProcess
from octweb.runs.models import ProgressRecord, TrainingRun
from octweb.runs.training import TrainingSupervisor
from tests.octweb.small_models import trained

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def supervised(owner, media, hard_dataset):
    """Provide a run that takes long, and its supervisor in this process."""
    run = actions.enqueue(owner=owner, dataset=hard_dataset, method="odt", parameters={"depth": 3, "time_limit": 600})
    return run, TrainingSupervisor(job_id=str(run.pk), worker="here", stopping=threading.Event())


@pytest.mark.slow
@pytest.mark.one_database
def test_a_child_beyond_its_memory_is_killed_with_a_reason(supervised, monkeypatch):
    run, supervisor = supervised
    monkeypatch.setattr(supervisor, "limits", lambda job: (600.0, 5.0))
    assert supervisor.run() == RunStatus.FAILED
    run.refresh_from_db()
    assert "more than its limit" in run.error
    assert run.model is None


@pytest.mark.one_database
def test_training_killed_for_memory_keeps_last_reported_tree(supervised, monkeypatch):
    run, supervisor = supervised
    real = supervisor._reason_to_stop

    def too_much_once_there_is_a_tree(child, cancel, late, memory):
        known = TrainingRun.objects.get(pk=run.pk).progress.get("incumbent") is not None
        return real(child, cancel, late, 1.0 if known else memory)

    monkeypatch.setattr(supervisor, "_reason_to_stop", too_much_once_there_is_a_tree)
    assert supervisor.run() == RunStatus.SUCCEEDED
    run.refresh_from_db()
    records = list(run.records.order_by("line").values_list("record", flat=True))
    trees = [r for r in records if "tree" in r]
    bounds = [r["bound"] for r in records if r.get("bound") is not None]
    assert run.model.status == run.summary["status"] == "memory_limit"
    assert run.summary["correct"] == trees[-1]["correct"]
    assert run.model.bound == max(min(bounds), run.model.objective)
    claim = json.loads(run.model.document)["certificate"]
    assert "killed" in claim["note"]
    assert claim["unproved"]
    assert proof_of(run.model) is None


@pytest.mark.one_database
def test_unsaved_tree_is_reported_as_lost(supervised, monkeypatch):
    run, supervisor = supervised
    TrainingRun.objects.filter(pk=run.pk).update(summary={"note": "killed once before"})  # it is not tried again
    line = json.dumps({"t": 3.0, "phase": "search", "incumbent": 0.9, "leaves": 700})
    with_command(supervisor, monkeypatch, "sh", "-c", f"echo '{line}' > {PROGRESS}; kill -9 $$")
    assert supervisor.run() == RunStatus.FAILED
    run.refresh_from_db()
    assert run.error.endswith("of 700 leaves, could not be recovered: only smaller trees were saved. Train again.")


@pytest.mark.one_database
def test_missing_stored_file_is_reported_in_words(supervised):
    run, supervisor = supervised
    Path(run.dataset.file.path).unlink()
    assert supervisor.run() == RunStatus.FAILED
    run.refresh_from_db()
    assert run.error == "The stored file of the data set is gone. Upload it again."


@pytest.mark.one_database
def test_late_child_is_terminated_and_keeps_its_tree(supervised, monkeypatch, settings):
    run, supervisor = supervised
    settings.WORKER_GRACE_SECONDS = 600
    monkeypatch.setattr(supervisor, "limits", lambda job: (0.0, 1e9))
    real = supervisor._reason_to_stop

    def once_there_is_a_tree(child, cancel, late, memory):
        known = TrainingRun.objects.get(pk=run.pk).progress.get("incumbent") is not None
        return real(child, cancel, late and known, memory)

    monkeypatch.setattr(supervisor, "_reason_to_stop", once_there_is_a_tree)
    assert supervisor.run() in {RunStatus.CANCELLED, RunStatus.SUCCEEDED}
    run.refresh_from_db()
    assert run.model.leaves >= 1


@pytest.mark.slow
@pytest.mark.one_database
def test_first_report_is_passed_on_immediately(supervised, monkeypatch):
    run, supervisor = supervised
    monkeypatch.setattr(supervisors, "TICK_SECONDS", 600.0)
    seen = []
    real = supervisor.prepare

    def reports_and_goes_on(job):
        child = real(job)
        line = json.dumps({"t": 0.1, "phase": "search"})
        child.command = lambda: ["sh", "-c", f"echo '{line}' > '{child.folder / PROGRESS}'; sleep 5"]
        monkeypatch.setattr(supervisor, "keep", lambda records: seen.append((len(records), child.poll())))
        return child

    monkeypatch.setattr(supervisor, "prepare", reports_and_goes_on)
    assert supervisor.run() == RunStatus.FAILED  # it leaves no tree
    assert (1, None) in seen  # while the child ran, long before the next tick
    run.refresh_from_db()
    assert run.progress["phase"] == "search"


def make_deaf(supervisor, monkeypatch):
    """Replace the supervisor's child by one that ignores requests to end."""
    real = supervisor.prepare

    def deaf(job):
        child = real(job)
        child.command = lambda: ["sh", "-c", "trap '' TERM; sleep 6000"]
        return child

    monkeypatch.setattr(supervisor, "prepare", deaf)


@pytest.mark.one_database
def test_stopped_run_gets_grace_period_and_states_lost_tree(supervised, monkeypatch, settings):
    run, supervisor = supervised
    settings.WORKER_GRACE_SECONDS = 0.1
    assert [supervisor._grace(left) for left in (1000, 0.2, -5)] == pytest.approx(
        [USER_STOP_GRACE_FACTOR * 0.1, 0.3, 0.1]
    )
    make_deaf(supervisor, monkeypatch)
    TrainingRun.objects.filter(pk=run.pk).update(cancel_requested=True)
    assert supervisor.run() == RunStatus.CANCELLED
    run.refresh_from_db()
    assert "did not end within 1 s, so octweb killed it" in run.error
    supervisor.stopping.set()  # the worker itself ends, which does not wait
    assert supervisor._grace(1000) == 0.1


@pytest.mark.one_database
def test_child_that_ignores_sigterm_is_killed_after_grace_period(supervised, monkeypatch, settings):
    run, supervisor = supervised
    settings.WORKER_GRACE_SECONDS = 0.5
    monkeypatch.setattr(supervisor, "limits", lambda job: (0.0, 1e9))
    make_deaf(supervisor, monkeypatch)
    begin = time.monotonic()
    assert supervisor.run() == RunStatus.FAILED
    assert time.monotonic() - begin < 600
    run.refresh_from_db()
    assert "did not end by its time limit" in run.error


def test_short_database_outage_loses_no_run(owner, media, dataset, monkeypatch):
    run = actions.enqueue(owner=owner, dataset=dataset, method="cart", parameters={"depth": 2})
    supervisor = TrainingSupervisor(job_id=str(run.pk), worker="here", stopping=threading.Event())
    real = supervisor._mine
    calls = []

    def away():
        calls.append(None)
        if 2 < len(calls) < 9:
            raise OperationalError("the server closed the connection unexpectedly")
        return real()

    monkeypatch.setattr(supervisor, "_mine", away)
    assert supervisor.run() == RunStatus.SUCCEEDED
    assert len(calls) >= 9
    run.refresh_from_db()
    assert run.model is not None


@pytest.mark.parametrize("by", ["its worker", "the reaper"])
def test_requeued_run_always_has_its_task(supervised, monkeypatch, by):
    """Otherwise the reaper could queue the run a second time."""
    run, supervisor = supervised
    DBTaskResult.objects.all().delete()
    past = timezone.now() - timedelta(minutes=1)
    TrainingRun.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING, worker="here", lease_until=past, created=past
    )
    real = queue.send
    seen = []

    def look():
        seen.append(TrainingRun.objects.get(pk=run.pk).status)
        connection.close()

    def watched(job):
        for moment in (lambda: None, lambda: real(job)):
            moment()
            other = threading.Thread(target=look)
            other.start()
            other.join()

    monkeypatch.setattr(supervisors if by == "its worker" else reaper, "send", watched)
    supervisor._release() if by == "its worker" else reaper.reap()
    assert seen == [RunStatus.RUNNING, RunStatus.RUNNING]
    run.refresh_from_db()
    assert run.status == RunStatus.QUEUED
    assert DBTaskResult.objects.ready().count() == 1


def test_next_attempt_starts_from_best_tree_of_previous_one(owner, media, dataset):
    run = actions.enqueue(owner=owner, dataset=dataset, method="exact", parameters={"depth": 3})
    document = trained("cart", depth=2)
    for line, (share, depth) in enumerate([(0.6, 1), (0.9, 2)]):
        nodes = trained("cart", depth=depth)["nodes"]
        record = {"tree": nodes, "incumbent": share, "columns": document["columns"], "classes": document["classes"]}
        ProgressRecord.objects.create(run=run, attempt=1, line=line, record=record)
    for attempt, wanted in ((1, None), (2, document["nodes"])):
        run.attempt = attempt
        child = TrainingProcess.prepare(run)
        assert any(argument.startswith("--warm-start=") for argument in child.command()) is (wanted is not None)
        if wanted is not None:
            assert json.loads((child.folder / START).read_text())["nodes"] == wanted
        child.clean()


@pytest.mark.one_database
def test_unreadable_tree_is_skipped(owner, media, dataset):
    run = actions.enqueue(owner=owner, dataset=dataset, method="exact", parameters={"depth": 3})
    ProgressRecord.objects.create(run=run, attempt=1, line=0, record={"tree": [{"odd": 1}], "incumbent": 0.9})
    run.attempt = 2
    child = TrainingProcess.prepare(run)
    assert not (child.folder / START).exists()
    child.clean()


def with_command(supervisor, monkeypatch, *command):
    real = supervisor.prepare

    def prepare(job):
        child = real(job)
        child.command = lambda: list(command)
        return child

    monkeypatch.setattr(supervisor, "prepare", prepare)


def test_child_killed_by_system_is_retried_once_with_note(owner, media, dataset, monkeypatch):
    run = actions.enqueue(owner=owner, dataset=dataset, method="cart", parameters={"depth": 2})
    ends = []
    for command in (("sh", "-c", "kill -9 $$"), None):
        supervisor = TrainingSupervisor(job_id=str(run.pk), worker="here", stopping=threading.Event())
        if command:
            with_command(supervisor, monkeypatch, *command)
        ends.append(supervisor.run())
    assert ends == [RunStatus.QUEUED, RunStatus.SUCCEEDED]
    run.refresh_from_db()
    assert run.attempt == 2
    assert "the system killed attempt 1, probably because memory ran out" in run.summary["note"]
    assert run.log.startswith(run.summary["note"])


def test_a_child_killed_twice_has_failed(owner, media, dataset, monkeypatch):
    run = actions.enqueue(owner=owner, dataset=dataset, method="cart", parameters={"depth": 2})
    for _ in range(2):
        supervisor = TrainingSupervisor(job_id=str(run.pk), worker="here", stopping=threading.Event())
        with_command(supervisor, monkeypatch, "sh", "-c", "echo the last line of its work >&2; kill -9 $$")
        end = supervisor.run()
    run.refresh_from_db()
    assert (end, run.attempt) == (RunStatus.FAILED, 2)
    assert run.error == (
        "The training process was killed by the system, probably because memory ran out. "
        "Ask for less memory or a smaller depth."
    )


def test_error_of_a_child_names_no_folder_of_the_server(supervised, monkeypatch, settings):
    """The last line of the child becomes the job's error, and its whole output the log."""
    run, supervisor = supervised
    words = f"{settings.BASE_DIR}/trainer/tree.py failed\nOSError: disk full: '{settings.DATA_DIR}/files/rows.csv'"
    with_command(supervisor, monkeypatch, sys.executable, "-c", f"import sys; sys.exit({words!r})")
    assert supervisor.run() == RunStatus.FAILED
    run.refresh_from_db()
    assert run.error == "OSError: disk full: 'files/rows.csv'"
    assert run.log.splitlines()[0] == "trainer/tree.py failed"


def test_killed_workers_leave_no_running_task_and_no_folder(owner, media, dataset, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    runs = [actions.enqueue(owner=owner, dataset=dataset, method="cart", parameters={"depth": 2}) for _ in range(3)]
    ended, running, queued = runs
    long_ago = timezone.now() - timedelta(minutes=5)
    TrainingRun.objects.filter(pk=ended.pk).update(status=RunStatus.FAILED)
    future = timezone.now() + timedelta(minutes=5)
    TrainingRun.objects.filter(pk=running.pk).update(status=RunStatus.RUNNING, attempt=1, lease_until=future)
    DBTaskResult.objects.update(status="RUNNING", started_at=long_ago)
    names = [str(run.pk) for run in runs] + ["00000000-0000-0000-0000-000000000000", "of nobody"]
    for name in names:
        folder = tmp_path / "runs" / name
        (folder / "1").mkdir(parents=True)
        os.utime(folder, (long_ago.timestamp(), long_ago.timestamp()))
    reaper.reap()
    tasks = {t.args_kwargs["args"][0]: t.status for t in DBTaskResult.objects.exclude(status="READY")}
    assert tasks == {str(ended.pk): "FAILED", str(running.pk): "RUNNING", str(queued.pk): "FAILED"}
    assert reaper.sweep() == 3
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {str(running.pk), str(queued.pk)}


@pytest.mark.django_db
def test_cleanup_survives_a_disappearing_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(reaper.Process, "scratch", classmethod(lambda cls: tmp_path))
    (tmp_path / "gone").mkdir()

    def end_job():
        (tmp_path / "gone").rmdir()
        return []

    monkeypatch.setattr(reaper, "job_models", end_job)
    assert reaper.sweep() == 0


def finished(run):
    """Return the run after a training in this process."""
    assert TrainingSupervisor(job_id=str(run.pk), worker="here", stopping=threading.Event()).run() == "succeeded"
    return TrainingRun.objects.select_related("model__family").get(pk=run.pk)


@pytest.mark.slow
def test_renamed_model_gets_tree_of_same_run_as_next_version(owner, staff, dataset):
    first = finished(actions.enqueue(owner=owner, dataset=dataset, method="cart", parameters={"depth": 1}))
    registry.approve(registry.ask_for_approval(first.model, by=owner), by=staff)
    renamed = registry.publish(first.model, by=owner, name="Ward 5")
    first.refresh_from_db()
    again = finished(actions.run_again(first, owner=owner))
    assert (again.model.family, again.model.version) == (renamed.family, 2)
    again.model.delete()  # purged; the run still knows the family of the model
    again = TrainingRun.objects.get(pk=again.pk)
    assert actions.run_again(again, owner=owner).family == renamed.family
    assert actions.run_again(first, owner=staff).family is None  # names belong to their owner
