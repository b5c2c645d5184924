"""A user's run preempts an experiment after the current fit, and the candidate loses nothing."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from octweb.experiments import actions
from octweb.experiments.models import Candidate
from octweb.experiments.work import CandidateSupervisor
from octweb.jobs.models import RunStatus, WorkerBeat
from octweb.jobs.queue import queue_position
from octweb.jobs.reaper import MAX_ATTEMPTS, reap
from octweb.jobs.waiting import wait_of
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from octweb.runs.training import TrainingSupervisor
from tests.octweb.runs.conftest import hard_dataset  # noqa: F401
from tests.octweb.runs.test_worker import wait_for, worker  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)

FIT = 1.0  # seconds of one fit; another job can come first only after it
EARLIER = timedelta(minutes=1)


@pytest.fixture
def new_candidate(owner, hard_dataset):  # noqa: F811
    def make(seconds: float) -> Candidate:
        """Return a candidate whose every fit takes this many seconds."""
        asked = {"method": "odt", "parameters": {"depth": 3, "time_limit": seconds}}
        started = actions.start(owner=owner, dataset=hard_dataset, candidates=[asked], folds=3, test_share=0.25)
        return started.candidates.get()

    return make


@pytest.fixture
def slow(new_candidate) -> Candidate:
    return new_candidate(FIT)


@pytest.fixture
def quick_run(owner, dataset):
    """Provide a function that queues a run of one second, which has already waited for a minute."""

    def make() -> TrainingRun:
        run = runs.enqueue(owner=owner, dataset=dataset, method="cart", parameters={"depth": 2})
        TrainingRun.objects.filter(pk=run.pk).update(created=timezone.now() - EARLIER)
        return run

    return make


def supervise(kind, job) -> str:
    return kind(job_id=str(job.pk), worker="here", stopping=threading.Event()).run()


@pytest.mark.slow
@pytest.mark.one_database
def test_candidate_is_preempted_after_a_fit_and_resumes(slow, quick_run):
    run = quick_run()
    assert supervise(CandidateSupervisor, slow) == RunStatus.QUEUED
    slow.refresh_from_db()
    first = slow.records
    assert 1 <= len(first) < 3
    assert (slow.attempt, slow.gave_way, slow.deaths) == (1, 1, 0)
    tasks = DBTaskResult.objects.filter(task_path=Candidate.TASK)
    assert max(tasks.values_list("priority", flat=True)) == -19  # before candidates that have not begun, but after runs
    assert supervise(TrainingSupervisor, run) == RunStatus.SUCCEEDED
    assert supervise(CandidateSupervisor, slow) == RunStatus.SUCCEEDED
    slow.refresh_from_db()
    assert slow.records[: len(first)] == first
    assert (len(slow.records), slow.gave_way) == (3, 1)
    assert slow.document


@pytest.mark.slow
def test_one_worker_does_the_run_before_the_candidate_is_done(slow, quick_run, worker):  # noqa: F811
    worker()
    wait_for(lambda: Candidate.objects.get(pk=slow.pk).status == RunStatus.RUNNING)
    run = quick_run()
    wait_for(lambda: TrainingRun.objects.get(pk=run.pk).status == RunStatus.SUCCEEDED)
    assert Candidate.objects.get(pk=slow.pk).status != RunStatus.SUCCEEDED
    wait_for(lambda: Candidate.objects.get(pk=slow.pk).status == RunStatus.SUCCEEDED)
    assert len(Candidate.objects.get(pk=slow.pk).records) == 3


@pytest.mark.slow
@pytest.mark.one_database
def test_stop_request_is_not_taken_for_preemption(slow, quick_run, monkeypatch):
    quick_run()
    real = CandidateSupervisor._tick

    def tick(self, child):
        found = real(self, child)
        if self.preempted:
            Candidate.objects.filter(pk=slow.pk).update(cancel_requested=True)
        return found

    monkeypatch.setattr(CandidateSupervisor, "_tick", tick)
    assert supervise(CandidateSupervisor, slow) == RunStatus.CANCELLED


@pytest.mark.slow
@pytest.mark.one_database
def test_other_candidates_do_not_preempt(new_candidate):
    first = new_candidate(0.2)
    other = new_candidate(0.2)
    Candidate.objects.filter(pk=other.pk).update(created=timezone.now() - EARLIER)
    assert supervise(CandidateSupervisor, first) == RunStatus.SUCCEEDED


@pytest.mark.parametrize(("gave_way", "after"), [(1, RunStatus.QUEUED), (0, RunStatus.FAILED)])
def test_preemption_does_not_count_as_crash(slow, gave_way, after):
    past = timezone.now() - timedelta(minutes=1)
    Candidate.objects.filter(pk=slow.pk).update(
        status=RunStatus.RUNNING, attempt=MAX_ATTEMPTS, gave_way=gave_way, lease_until=past, worker="dead"
    )
    reap()
    slow.refresh_from_db()
    assert slow.status == after


def begun(job, seconds: float) -> None:
    """Set the job as if it had been running for this many seconds."""
    started = timezone.now() - timedelta(seconds=seconds)
    type(job).objects.filter(pk=job.pk).update(status=RunStatus.RUNNING, started=started)


def test_page_of_waiting_run_shows_reason_and_longest_wait(slow, quick_run, client, owner, settings):
    settings.WORKER_GRACE_SECONDS = 10
    run = quick_run()
    assert wait_of(run).workers == 0
    WorkerBeat.objects.create(name="one", seen_at=timezone.now())
    assert wait_of(run).words == "a worker is free and takes it now."
    begun(slow, 500)
    # one fit, however long the candidate has run already
    assert wait_of(run).longest == pytest.approx(120 + 1.1 * FIT + 10)
    client.force_login(owner)
    text = client.get(f"/runs/{run.pk}/").content.decode()
    assert "Number 1 in the queue: it waits for one fit of an experiment. As things stand it starts within 3:00" in text
    WorkerBeat.objects.create(name="two", seen_at=timezone.now())
    assert wait_of(run).longest == 0


def test_the_longest_wait_counts_what_is_before_it(owner, dataset, quick_run, settings):
    settings.WORKER_GRACE_SECONDS = 0
    WorkerBeat.objects.create(name="one", seen_at=timezone.now())
    made = [
        runs.enqueue(owner=owner, dataset=dataset, method="cart", parameters={"depth": 2, "time_limit": limit})
        for limit in (100, 200, 300)
    ]
    begun(made[0], 60)
    assert queue_position(made[2]) == 2
    assert wait_of(made[2]).longest == pytest.approx((180 + 110 - 60) + (180 + 220), abs=2)
    made[0].refresh_from_db()
    assert wait_of(made[0]) is None


def test_candidate_waits_behind_every_run(slow, quick_run):
    run = quick_run()
    TrainingRun.objects.filter(pk=run.pk).update(created=timezone.now())
    assert (queue_position(TrainingRun.objects.get(pk=run.pk)), queue_position(slow)) == (1, 2)
