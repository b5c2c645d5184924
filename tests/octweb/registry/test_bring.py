"""An imported tree becomes a draft on a data set of the user, and is reviewed and served like any model."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from sklearn.tree import DecisionTreeClassifier

from octweb.datasets import actions as datasets
from octweb.datasets import intake, reader
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions, importing
from octweb.registry.models import TreeModel
from trainer.check.recount import verdict, verify
from trainer.convert import from_sklearn
from trainer.errors import DataError, TrainerError
from trainer.tree.export.pmml import to_pmml

pytestmark = pytest.mark.django_db
URL = "/api/v1/models/"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    found = pd.DataFrame({"width": rng.integers(0, 9, 80), "height": rng.normal(size=80).round(1), "other": range(80)})
    return found.assign(edible=np.where((found["width"] > 3) ^ (found["height"] > 0), "yes", "no"))


@pytest.fixture(scope="module")
def source(frame) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_depth=2, splitter="random", random_state=3).fit(
        frame[["width", "height"]], frame["edible"]
    )


@pytest.fixture(scope="module")
def pmml(source) -> bytes:
    return to_pmml(from_sklearn(source), target="edible").encode()


@pytest.fixture
def dataset(owner, media, frame):
    return datasets.create(
        owner=owner, file=io.BytesIO(frame.to_csv(index=False).encode()), source_name="rows.csv", target="edible"
    )


@pytest.fixture
def read_here(monkeypatch):
    """Read the file in this process. The request and the answer are converted as if they went to another process."""

    def here(request, folder):
        try:
            return json.loads(json.dumps(intake.answer(json.loads(json.dumps(request)), folder)))
        except TrainerError as error:
            raise DataError(str(error)) from None

    monkeypatch.setattr(reader, "_in_child", here)


def upload(content: bytes, name: str = "my tree.pmml") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


@pytest.mark.slow
@pytest.mark.one_database
def test_a_pmml_file_becomes_a_draft_is_reviewed_and_served(
    dataset, pmml, source, frame, client_of, owner, staff, tmp_path
):
    answer = client_of(owner).post(URL, {"file": upload(pmml), "dataset": str(dataset.pk), "title": "Brought"})
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert (body["method"], body["state"], body["status"], body["bound"]) == ("converted", "draft", "heuristic", None)
    assert body["dataset"] == str(dataset.pk)
    X = frame[["width", "height"]]
    right = int((source.predict(X) == frame["edible"]).sum())
    assert body["metrics"]["train"]["correct"] == right
    model = TreeModel.objects.get(pk=body["id"])
    page = Client()
    page.force_login(owner)
    assert page.get(f"/models/{model.pk}/").status_code == 200
    assert page.get(f"/models/{model.pk}/review/").status_code == 200
    (tmp_path / "model.json").write_text(model.document)
    (tmp_path / "rows.csv").write_text(frame.to_csv(index=False))
    assert verdict(verify(tmp_path / "model.json", tmp_path / "rows.csv")) == "recounted"
    actions.ask_for_approval(model, by=owner)
    actions.approve(model, by=staff)
    rows = [{"width": int(w), "height": float(h)} for w, h in zip(X["width"], X["height"], strict=True)]
    said = client_of(owner).post(f"{URL}{model.pk}/predict/", {"rows": rows}, format="json").json()
    assert [p["label"] for p in said["predictions"]] == source.predict(X).tolist()


@pytest.mark.one_database
def test_imported_octweb_file_keeps_tree_and_drops_claims(read_here, dataset, pmml, client_of, owner):
    first = importing.import_tree(owner=owner, file=io.BytesIO(pmml), source_name="a.pmml", dataset=dataset)
    forged = json.loads(first.document)
    forged["method"] = "exact"
    forged["certificate"] |= {
        "method": "exact",
        "guarantee": "tree",
        "status": "optimal",
        "bound": 1.0,
        "gap": 0.0,
        "objective": 1.0,
    }
    answer = client_of(owner).post(
        URL, {"file": upload(json.dumps(forged).encode(), "forged.json"), "dataset": str(dataset.pk)}
    )
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert (body["method"], body["status"], body["bound"], body["objective"]) == (
        "converted",
        "heuristic",
        None,
        first.objective,
    )
    assert body["claims"][0]["kind"] == "heuristic"
    assert body["tree"] == model_file(first).tree.to_json()


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"file": upload(b"hello")}, 422, "neither PMML"),
        ({"file": upload(b"")}, 422, "neither PMML"),
        ({"file": upload(b'<!DOCTYPE a [<!ENTITY b "c">]><PMML version="4.4">&b;</PMML>')}, 422, "document type"),
        ({"dataset": "00000000-0000-0000-0000-000000000000"}, 404, ""),
        ({"dataset": "seven"}, 400, "dataset"),
        ({"classes": "a,b,c"}, 422, "2 classes"),
        ({"form": "pickle"}, 400, "pickle"),
    ],
)  # fmt: skip
def test_bad_calls_are_problems(read_here, dataset, pmml, client_of, owner, change, status, words):
    answer = client_of(owner).post(URL, {"file": upload(pmml), "dataset": str(dataset.pk)} | change)
    assert answer.status_code == status, answer.content
    assert words in answer.content.decode()
    assert not TreeModel.objects.exists()


@pytest.mark.one_database
def test_columns_that_do_not_fit_are_named(dataset, pmml, client_of, owner):
    answer = client_of(owner).post(
        URL, {"file": upload(pmml.replace(b'"width"', b'"girth"')), "dataset": str(dataset.pk)}
    )
    assert answer.status_code == 422
    assert "lacks 1 of the 2 columns that the tree asks about: girth" in answer.json()["detail"]


def test_data_sets_of_others_and_strangers(dataset, pmml, client_of, stranger):
    assert client_of(stranger).post(URL, {"file": upload(pmml), "dataset": str(dataset.pk)}).status_code == 404
    assert client_of().post(URL, {"file": upload(pmml), "dataset": str(dataset.pk)}).status_code == 401
    page = Client()
    page.force_login(stranger)
    answer = page.post("/models/bring/", {"file": upload(pmml), "dataset": str(dataset.pk)})
    assert answer.status_code == 200
    assert not TreeModel.objects.exists()


def test_a_file_that_is_too_large_is_refused_before_it_is_read(dataset, client_of, owner, monkeypatch):
    monkeypatch.setattr(importing, "MAX_FILE_BYTES", 1000)
    assert client_of(owner).post(URL, {"file": upload(b"<" * 1001), "dataset": str(dataset.pk)}).status_code == 413


@pytest.mark.one_database
def test_the_page(read_here, dataset, pmml, owner):
    page = Client()
    assert page.get("/models/bring/").status_code == 302
    page.force_login(owner)
    assert "Bring your own tree" in page.get("/models/").content.decode()
    assert f'value="{dataset.pk}"' in page.get("/models/bring/").content.decode()
    refused = page.post("/models/bring/", {"dataset": str(dataset.pk)})
    assert refused.status_code == 200
    assert "Choose a file first" in refused.content.decode()
    answer = page.post("/models/bring/", {"file": upload(pmml), "dataset": str(dataset.pk)})
    model = TreeModel.objects.get()
    assert answer.status_code == 302
    assert answer["Location"] == f"/models/{model.pk}/"
    assert model.title == "my tree"
    assert "nothing is claimed" in page.get(answer["Location"]).content.decode()
