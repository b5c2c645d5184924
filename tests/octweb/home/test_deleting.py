"""Workbenches and batch predictions are deleted and restored with their steps and files."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.files.storage import default_storage
from django.urls import reverse
from django.utils import timezone

from octweb.audit.models import Record
from octweb.batch import actions as batch
from octweb.batch.models import BatchPrediction
from octweb.core.deleting import purge
from octweb.datasets import actions as datasets
from octweb.jobs.models import RunStatus
from octweb.jobs.queue import tidy
from octweb.jobs.reaper import reap
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import TreeModel
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from octweb.workbench import actions as workbenches
from octweb.workbench.models import StepState, Workbench
from tests.octweb.batch.conftest import job, work  # noqa: F401
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from tests.octweb.workbench.conftest import serve  # noqa: F401

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database, pytest.mark.usefixtures("media")]


@pytest.fixture
def browser(client, owner):
    client.force_login(owner)
    return client


@pytest.fixture
def bench(owner, dataset):  # noqa: F811
    return workbenches.open_for(owner=owner, dataset=dataset, name="My tree", parameters={"depth": 2})


def page(client, name: str, *arguments) -> str:
    return " ".join(client.get(reverse(name, args=arguments)).content.decode().split())


def delete(client, kind: str, thing):
    return client.post(reverse("delete", args=[kind, thing.pk]))


def bring_back(client, kind: str, thing):
    return client.post(reverse("undelete", args=[kind, thing.pk]))


def now(thing):
    return type(thing).objects.get(pk=thing.pk)


def test_deleted_prediction_is_hidden_and_restored_with_answers(browser, client_of, owner, job, work):  # noqa: F811
    assert work(job) == "succeeded"
    address = reverse("batch:detail", args=[job.pk])
    api = client_of(owner)
    assert "Its answers go with it." in page(browser, "delete", "prediction", job.pk)
    assert BatchPrediction.objects.kept().exists(), "asking deletes nothing"
    assert delete(browser, "prediction", job).url == reverse("decisions")
    listed = page(browser, "decisions")
    assert reverse("undelete", args=["prediction", job.pk]) in listed
    assert address not in listed
    assert browser.get(address).status_code == browser.get(f"{address}result/").status_code == 404
    assert api.get("/api/v1/predictions/").json()["count"] == 0
    assert api.get(f"/api/v1/predictions/{job.pk}/").status_code == 404
    assert "predicted file" in page(browser, "deleted")
    assert bring_back(browser, "prediction", job).url == address
    assert browser.get(f"{address}result/").getvalue().startswith(b"row,label")
    what = Record.objects.filter(subject="prediction", subject_id=job.pk).values_list("what", flat=True)
    assert list(what) == ["deleted", "brought back"]


def test_answers_are_kept_while_restoring_is_possible(browser, job, work, settings):  # noqa: F811
    settings.KEEP_PREDICTIONS_DAYS = 7
    work(job)
    delete(browser, "prediction", job)
    tidy(timezone.now() + timedelta(days=6))
    assert default_storage.exists(now(job).result.name)
    bring_back(browser, "prediction", job)
    tidy(timezone.now() + timedelta(days=6))
    assert BatchPrediction.objects.kept().exists(), "the days are counted from the moment at which it came back"
    delete(browser, "prediction", now(job))
    tidy(timezone.now() + timedelta(days=8))
    assert not BatchPrediction.objects.exists()
    assert not default_storage.exists(job.folder)


def test_deletion_stops_a_prediction_and_restoring_restarts_it(browser, job, work):  # noqa: F811
    assert "Deleting stops it" in page(browser, "delete", "prediction", job.pk)
    delete(browser, "prediction", job)
    assert now(job).status == RunStatus.CANCELLED
    assert work(job) == "not claimed" or now(job).status == RunStatus.CANCELLED
    bring_back(browser, "prediction", job)
    assert now(job).status == RunStatus.QUEUED
    assert work(job) == "succeeded"


def test_prediction_restored_while_stopping_restarts_afterwards(job, monkeypatch, work):  # noqa: F811
    """The worker learns of the deletion only after it was undone."""
    from octweb.batch.work import PredictionSupervisor

    def undone(self, child):
        batch.delete(now(job))
        assert now(job).status == RunStatus.RUNNING
        batch.bring_back(now(job))
        assert (now(job).status, now(job).cancel_requested) == (RunStatus.RUNNING, True)
        monkeypatch.undo()
        return self._tick(child)

    monkeypatch.setattr(PredictionSupervisor, "_tick", undone)
    work(job)
    assert now(job).status == RunStatus.QUEUED
    assert work(job) == "succeeded"


def test_prediction_restored_with_dead_worker_restarts(job):  # noqa: F811
    jobs = BatchPrediction.objects.filter(pk=job.pk)
    jobs.update(status=RunStatus.RUNNING, attempt=1, lease_until=timezone.now() - timedelta(minutes=1))
    batch.delete(now(job))
    batch.bring_back(now(job))
    reap()
    assert now(job).status == RunStatus.CANCELLED
    tidy(timezone.now())
    assert now(job).status == RunStatus.QUEUED


def test_previously_cancelled_file_stays_cancelled(browser, job):  # noqa: F811
    batch.cancel(job)
    delete(browser, "prediction", job)
    bring_back(browser, "prediction", job)
    assert now(job).status == RunStatus.CANCELLED


def test_restored_workbench_has_its_steps_and_continues(browser, client_of, owner, bench, serve):  # noqa: F811
    address = reverse("workbench:detail", args=[bench.pk])
    api = client_of(owner)
    assert "Its one step, wishes and prices go with it" in page(browser, "delete", "workbench", bench.pk)
    assert delete(browser, "workbench", bench).url == reverse("drafts")
    assert now(bench).status == RunStatus.CANCELLED
    assert address not in page(browser, "drafts")
    assert browser.get(address).status_code == 404
    assert api.get("/api/v1/workbenches/").json()["count"] == 0
    assert api.post(f"/api/v1/workbenches/{bench.pk}/edits/", {"add": ["leaf y"]}, format="json").status_code == 404
    workbenches.wake_if_needed(now(bench))
    assert now(bench).status == RunStatus.CANCELLED, "what is deleted does not wake"
    assert bring_back(browser, "workbench", bench).url == address
    assert now(bench).status == RunStatus.QUEUED
    serve(bench)
    assert bench.steps.get().state == StepState.DONE
    assert "My tree" in page(browser, "drafts")


def test_a_warm_workbench_is_stopped(bench):
    Workbench.objects.filter(pk=bench.pk).update(status=RunStatus.RUNNING)
    workbenches.delete(now(bench))
    assert now(bench).cancel_requested


def test_api_deletion_hides_both_and_is_recorded(client_of, owner, stranger, bench, job):  # noqa: F811
    for address, thing in (("workbenches", bench), ("predictions", job)):
        assert client_of(stranger).delete(f"/api/v1/{address}/{thing.pk}/").status_code == 404
        assert client_of(owner).delete(f"/api/v1/{address}/{thing.pk}/").status_code == 204
        assert client_of(owner).get(f"/api/v1/{address}/{thing.pk}/").status_code == 404
        assert now(thing).deleted_at
        assert Record.objects.filter(subject_id=thing.pk, what="deleted", by=owner.username).count() == 1


def test_others_find_nothing_to_delete_or_to_bring_back(client, stranger, browser, bench, job):  # noqa: F811
    for kind, thing in (("workbench", bench), ("prediction", job)):
        client.force_login(stranger)
        assert client.get(reverse("delete", args=[kind, thing.pk])).status_code == 404
        assert delete(client, kind, thing).status_code == 404
        client.force_login(thing.owner)
        delete(client, kind, thing)
        assert str(thing.pk) in page(client, "deleted")
        client.force_login(stranger)
        assert str(thing.pk) not in page(client, "deleted")
        assert bring_back(client, kind, thing).status_code == 404
        assert now(thing).deleted_at


def test_workbench_and_data_set_are_restored_in_order(browser, bench):
    data = bench.dataset
    asked = page(browser, "delete", "dataset", data.pk)
    assert "1 workbench cannot exist without it" in asked
    assert "See its workbenches" in asked
    assert delete(browser, "dataset", data).url == reverse("datasets:detail", args=[data.pk])
    delete(browser, "workbench", bench)
    delete(browser, "dataset", data)
    assert bring_back(browser, "workbench", bench).url == reverse("deleted")
    bring_back(browser, "dataset", data)
    bring_back(browser, "workbench", bench)
    assert page(browser, "workbench:detail", bench.pk)
    delete(browser, "workbench", bench)
    datasets.delete(now(data))
    for _ in range(2):  # two passes, because dependents must be purged before the objects that they need
        tidy(timezone.now() + timedelta(days=31))
    assert not Workbench.objects.exists()
    assert not type(data).objects.exists()


def test_answers_stay_when_their_model_is_deleted_and_removed(browser, model, job, work):  # noqa: F811
    work(job)
    asked = page(browser, "delete", "model", model.pk)
    assert "One file predicted with it: its answers stay" in asked
    registry.delete(model)
    assert "(deleted)" in page(browser, "decisions")
    assert reverse("registry:detail", args=[model.pk]) not in page(browser, "batch:detail", job.pk)
    later = timezone.now() + timedelta(days=31)
    assert purge(TreeModel, later) == 0
    assert browser.get(reverse("batch:result", args=[job.pk])).status_code == 200
    BatchPrediction.objects.all().delete()
    assert purge(TreeModel, later) == 1


def test_a_workbench_stays_without_the_model_that_it_began_with(browser, owner, model, bench):
    Workbench.objects.filter(pk=bench.pk).update(base=model)
    assert "One workbench that began with it stays" in page(browser, "delete", "model", model.pk)
    registry.delete(model)
    assert "(deleted)" in page(browser, "drafts")
    assert reverse("registry:detail", args=[model.pk]) not in page(browser, "workbench:detail", bench.pk)


def test_a_file_for_a_deleted_model_is_refused(job, work):  # noqa: F811
    registry.delete(job.model)
    assert work(job) == "failed"
    assert "no longer have access" in job.error


def test_deleted_objects_count_for_demo_limits(owner, bench, job):  # noqa: F811
    from octweb.demo.visits import count_objects

    before = count_objects(owner)
    workbenches.delete(bench)
    batch.delete(job)
    assert count_objects(owner) == before


def test_the_page_of_a_data_set_lists_what_would_hold_it(browser, owner, bench):
    listed = page(browser, "datasets:detail", bench.dataset_id)
    assert reverse("workbench:detail", args=[bench.pk]) in listed
    assert "No experiments yet" in listed
    workbenches.delete(bench)
    assert "Workbenches</h2>" not in page(browser, "datasets:detail", bench.dataset_id)


def test_a_run_does_not_lead_to_a_deleted_model(browser, owner, dataset, model):  # noqa: F811
    run = runs.cancel(runs.enqueue(owner=owner, dataset=dataset, method="cart"))
    TrainingRun.objects.filter(pk=run.pk).update(model=model, status=RunStatus.SUCCEEDED)
    address = reverse("registry:detail", args=[model.pk])
    assert address in page(browser, "runs:detail", run.pk)
    registry.delete(model)
    shown = page(browser, "runs:detail", run.pk)
    assert address not in shown
    assert "Its model was deleted." in shown


def test_search_finds_both_until_they_are_deleted(browser, bench, job):  # noqa: F811
    def found(text: str) -> list[tuple[str, str]]:
        hits = browser.get("/search/", {"q": text, "format": "json"}).json()["hits"]
        return [(hit["kind"], hit["name"]) for hit in hits]

    assert ("workbench", "My tree") in found("my tree")
    assert ("workbench", "My tree") in found("exact search")
    assert ("predicted file", "rows.csv") in found("rows")
    workbenches.delete(bench)
    batch.delete(job)
    assert found("my tree") == found("rows") == []
