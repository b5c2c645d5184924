"""A changed document or table is detected wherever it is used, and affects nothing else."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
from django.urls import reverse

from octweb.batch.work import PredictionSupervisor
from octweb.jobs.models import RunStatus
from octweb.jobs.supervisor import stopping
from octweb.registry.document import model_files
from octweb.registry.models import TreeModel
from octweb.runs import actions as runs
from octweb.runs.training import TrainingSupervisor
from tests.octweb.batch.conftest import job, rows_csv  # noqa: F401
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401
from tests.octweb.small_models import trained

# Only texts of pages and jobs are tested here, so one database suffices.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database, pytest.mark.usefixtures("media")]


def turned(document: str) -> str:
    """Return a valid model file whose leaves predict another class."""
    model = json.loads(document)
    model["classes"] = model["classes"][::-1]
    return json.dumps(model)


@pytest.fixture(params=["cut off", "turned"])
def damaged(request, register, approved, monkeypatch):
    """Provide an approved model with another document, beside a good one of another family."""
    monkeypatch.setattr(model_files, "_cache", model_files.DocumentCache())
    register(title="A good one", document=trained("cart", depth=1))
    text = approved.document[:-40] if request.param == "cut off" else turned(approved.document)
    TreeModel.objects.filter(pk=approved.pk).update(document=text)
    approved.refresh_from_db()
    return approved


@pytest.mark.slow
def test_lists_and_administration_report_damaged_models(damaged, client, owner, staff):
    for user, address in ((owner, reverse("registry:list")), (staff, reverse("admin:registry_treemodel_changelist"))):
        client.force_login(user)
        page = client.get(address)
        assert page.status_code == 200
        assert "Damaged" in page.content.decode()
        assert "A good one" in page.content.decode()
    page = client.get(reverse("admin:registry_treemodel_change", args=[damaged.pk]))
    assert page.status_code == 200
    assert "Restore it from a backup" in page.content.decode()


def test_pages_of_damaged_model_report_the_damage(damaged, client_of, owner):
    api = client_of(owner)
    name = damaged.family.name
    row = {"rows": [{}]}
    response = api.post(f"/api/v1/models/{damaged.pk}/predict/", row, format="json")
    tensor = {"inputs": [{"name": "x", "datatype": "FP64", "shape": [1, 1], "data": [1]}]}
    protocol = api.post(f"/v2/models/{name}/infer", tensor, format="json")
    ready = api.get(f"/v2/models/{name}/ready")
    for answer in (response, protocol, ready):
        assert answer.status_code == 503
        assert "damaged or changed outside octweb" in answer.json()["error"]
    assert ready.json()["ready"] is False
    (entry,) = api.post("/v2/repository/index", {}, format="json").json()
    assert (entry["state"], entry["reason"]) == ("UNAVAILABLE", "its stored document was damaged or changed")


def test_damaged_model_page_reports_damage(damaged, client, owner):
    client.force_login(owner)
    client.raise_request_exception = False
    page = client.get(reverse("registry:detail", args=[damaged.pk]))
    assert page.status_code == 503
    assert "Restore it from a backup" in page.content.decode()


def test_a_file_of_rows_is_not_predicted_by_it(job, monkeypatch):  # noqa: F811
    monkeypatch.setattr(model_files, "_cache", model_files.DocumentCache())
    TreeModel.objects.filter(pk=job.model_id).update(document=turned(job.model.document))
    supervisor = PredictionSupervisor(job_id=str(job.pk), worker="here", stopping=stopping)
    assert supervisor.run() == RunStatus.FAILED
    job.refresh_from_db()
    assert "damaged or changed outside" in job.error


@pytest.mark.slow
def test_a_table_with_other_rows_is_not_trained_on(owner, dataset, settings, tmp_path):  # noqa: F811
    settings.DATA_DIR = tmp_path / "data"
    path = dataset.file.path
    rows = pq.read_table(path)
    other = rows.set_column(
        rows.schema.get_field_index("class"), "class", rows["class"].take(list(reversed(range(len(rows)))))
    )
    pq.write_table(other, path)
    run = runs.enqueue(owner=owner, dataset=dataset, method="cart", parameters={"depth": 2})
    assert TrainingSupervisor(job_id=str(run.pk), worker="here", stopping=stopping).run() == RunStatus.FAILED
    run.refresh_from_db()
    assert "changed outside octweb" in run.error
    assert run.model is None
