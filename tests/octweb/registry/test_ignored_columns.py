"""Prediction accepts whole rows of the uploaded file, including columns that the upload ignored."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command

from octweb.batch.models import BatchPrediction
from octweb.datasets import actions as datasets
from octweb.datasets import stored
from octweb.datasets.choice import ColumnChoice
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import TreeModel
from tests.octweb.batch.conftest import work  # noqa: F401
from trainer.training.run import TrainRequest, train

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]
TEXT = "number,size,colour,class\n" + "".join(
    f"{1000 + i},{i % 7},{'rg'[i % 2]},{'pq'[i % 7 > 3]}\n" for i in range(60)
)
ROWS = [{**row, "size": int(row["size"])} for row in csv.DictReader(io.StringIO(TEXT))][:5]
RIGHT = [row["class"] for row in ROWS]


@pytest.fixture
def model(owner, media):
    choice = ColumnChoice(target="class", ignore=["number"])
    file = io.BytesIO(TEXT.encode())
    dataset = datasets.create(owner=owner, file=file, source_name="a.csv", name="Numbered", choice=choice)
    table, labels = stored.load(dataset)
    document = train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 2})).model.to_json()
    return registry.register(owner=owner, document=document, dataset=dataset, title="By size")


def test_api_accepts_extra_columns_and_names_them(model, client_of, owner):
    address = f"/api/v1/models/{model.pk}/"
    for body in ({"rows": ROWS}, {"columns": {name: [row[name] for row in ROWS] for name in ROWS[0]}}):
        answer = client_of(owner).post(f"{address}predict/", body, format="json")
        assert answer.status_code == 200, answer.json()
        found = answer.json()
        labels = found["columns"]["label"] if "columns" in body else [p["label"] for p in found["predictions"]]
        assert labels == RIGHT
        assert answer.json()["notes"] == ["Columns that took no part in the training are ignored: class, number."]
    explained = client_of(owner).post(f"{address}explain/", {"rows": ROWS[:1]}, format="json")
    assert explained.json()["explanations"][0]["label"] == RIGHT[0]


def test_other_columns_are_refused_as_before(model, client_of, owner):
    for strange in ("numbre", "weight"):
        rows = [ROWS[0], ROWS[1] | {strange: 1}]
        answer = client_of(owner).post(f"/api/v1/models/{model.pk}/predict/", {"rows": rows}, format="json")
        assert answer.status_code == 422
        assert f"rows[1]: column '{strange}' is not known" in answer.json()["detail"]


def test_calls_work_after_deletion_of_the_data_set(model, client_of, owner):
    TreeModel.objects.filter(pk=model.pk).update(dataset=None)
    answer = client_of(owner).post(f"/api/v1/models/{model.pk}/predict/", {"rows": ROWS}, format="json")
    assert answer.status_code == 200


def test_the_scoring_server_takes_whole_rows(model, client_of, owner, staff):
    registry.approve(registry.ask_for_approval(model, by=owner), by=staff)
    body = {"dataframe_records": ROWS}
    answer = client_of(owner).post(f"/invocations?model={model.family.name}", body, format="json")
    assert answer.json()["predictions"] == RIGHT


def test_the_page_takes_the_file_of_the_training(model, client, owner, work):  # noqa: F811
    client.force_login(owner)
    file = SimpleUploadedFile("a.csv", TEXT.encode())
    client.post("/predictions/new/", {"model": str(model.pk), "file": file, "format": "csv"})
    job = BatchPrediction.objects.get()
    assert work(job) == "succeeded"
    assert (job.summary["predicted"], job.summary["correct"]) == (60, 60)


def test_the_command_line_takes_the_file_of_the_training(model, tmp_path):
    (tmp_path / "model.json").write_text(model.document)
    (tmp_path / "a.csv").write_text(TEXT)
    out = tmp_path / "out.csv"
    call_command("predict", str(tmp_path / "model.json"), str(tmp_path / "a.csv"), output=str(out))
    with out.open() as stream:
        assert [row["label"] for row in csv.DictReader(stream)][:5] == RIGHT
    assert json.loads(model.document)["columns"][0]["name"] == "size"
