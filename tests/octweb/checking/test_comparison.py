"""Comparison of an imported tree with the best one: page, API, job and audit record."""

from __future__ import annotations

import io
import threading
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from django.utils import timezone
from sklearn.tree import DecisionTreeClassifier

from octweb.audit.models import Record
from octweb.checking import comparing
from octweb.checking.comparing_work import ComparisonSupervisor
from octweb.checking.models import Comparison
from octweb.datasets import actions as datasets
from octweb.datasets import intake
from octweb.datasets.stored import path_of
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import TreeModel
from trainer.convert import from_sklearn
from trainer.tree.export.pmml import to_pmml

pytestmark = pytest.mark.django_db(transaction=True)
FOUND = {
    "verdict": "open", "words": "Open: no better tree was found.", "n": 120, "mistakes": 7, "best_mistakes": 7, "least_mistakes": 2,
    "leaves": 4, "depth": 2, "columns": ["width", "height"], "rules": "", "seconds": 1.5, "stopped": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Return rows whose class is a conjunction, except in six rows.

    A greedy tree of three leaves is the best one, and a tree of random thresholds is not.
    """
    rng = np.random.default_rng(11)
    found = pd.DataFrame({"width": rng.integers(0, 9, 120), "height": rng.normal(size=120).round(1)})
    yes = (found["width"] > 3) & (found["height"] > 0)
    yes[::20] = ~yes[::20]
    return found.assign(edible=np.where(yes, "yes", "no"))


@pytest.fixture
def dataset(owner, media, frame):
    rows = io.BytesIO(frame.to_csv(index=False).encode())
    return datasets.create(owner=owner, file=rows, source_name="rows.csv", target="edible")


@pytest.fixture
def brought(owner, dataset, frame, tmp_path):
    """Provide a function that imports a tree of scikit-learn with three leaves, as the upload does."""

    def make(splitter="random"):
        tree = DecisionTreeClassifier(max_leaf_nodes=3, max_depth=2, splitter=splitter, random_state=0)
        fitted = tree.fit(frame[["width", "height"]], frame["edible"])
        (tmp_path / "tree.pmml").write_text(to_pmml(from_sklearn(fitted), target="edible"))
        said = {"target": "edible", "name": "old", "form": "pmml", "classes": []}
        document = intake.bring(path_of(dataset.file), tmp_path / "tree.pmml", dataset.reading, said)["document"]
        return registry.register(owner=owner, document=document, dataset=dataset, title="Old tree")

    return make


def work(job) -> Comparison:
    """Return the job after a worker has run it."""
    ComparisonSupervisor(job_id=str(job.pk), worker="test", stopping=threading.Event()).run()
    return Comparison.objects.get(pk=job.pk)


@pytest.mark.one_database
def test_page_shows_the_better_tree(brought, client, owner, stranger):
    model = brought()
    address = f"/models/{model.pk}/comparison/"
    client.force_login(owner)
    assert f'hx-get="{address}"' in client.get(f"/models/{model.pk}/?mode=proof").content.decode()
    assert "has not been compared yet" in client.get(address).content.decode()
    answer = client.post(f"{address}start/", {"seconds": "50"}, headers={"HX-Request": "true"}).content.decode()
    assert "in the queue" in answer
    assert comparing.start(owner=owner, model=model).pk == comparing.latest(model).pk
    job = work(comparing.latest(model))
    assert (job.status, job.seconds, job.error) == ("succeeded", 50, "")
    found = job.found
    assert found["verdict"] == "not optimal"
    assert (found["n"], found["best_mistakes"], found["least_mistakes"]) == (120, 6, 6)
    assert found["mistakes"] == 120 - model_file(model).certificate["correct"] > 6
    text = client.get(address).content.decode()
    for words in (
        f"Not optimal: a better tree with as many leaves exists: {found['mistakes'] - 6} fewer mistakes.",
        f"<dd>{found['mistakes']} of 120 rows</dd>",
        "<dd>6 (proved)</dd>",
        "width, height",
        "The better tree",
        "Compare again",
    ):
        assert words in text
    record = Record.objects.get(what="compared")
    assert (record.subject_id, record.by, record.details["verdict"]) == (model.pk, "olga", "not optimal")
    assert (record.details["mistakes"], record.details["least_mistakes"]) == (found["mistakes"], 6)
    client.force_login(stranger)
    assert client.get(address).status_code == 404
    assert {client.post(f"{address}{verb}/").status_code for verb in ("start", "stop")} == {404}


def test_rest_says_that_none_exists(brought, client_of, owner, staff, stranger):
    model = brought("best")
    address = f"/api/v1/models/{model.pk}/comparison/"
    api = client_of(owner)
    assert api.get(address).status_code == 404
    response = api.post(address, {"seconds": 40}, format="json")
    assert (response.status_code, response.json()["status"], response.json()["found"]) == (202, "queued", None)
    assert work(comparing.latest(model)).status == "succeeded"
    body = api.get(address).json()
    assert (body["status"], body["seconds"], body["model"]) == ("succeeded", 40, str(model.pk))
    found = body["found"]
    assert (found["verdict"], found["mistakes"], found["least_mistakes"], found["rules"]) == (
        "no better tree",
        6,
        6,
        "",
    )
    assert found["words"].startswith("No better tree with at most 3 leaves and depth 2 exists")
    assert client_of(staff).get(address).status_code == 200
    registry.ask_for_approval(model, by=owner)
    # others may now read and call the model, but this must still tell them nothing about its rows
    registry.approve(model, by=staff)
    for other in (client_of(stranger), client_of(owner, scope="predict")):
        answers = {other.get(address).status_code, other.post(address, {}, format="json").status_code}
        answers.add(other.post(f"{address}cancel/").status_code)
        assert answers <= {403, 404}
    assert client_of().get(address).status_code == 401
    assert Comparison.objects.count() == 1


def test_waiting_search_is_stopped(brought, client_of, client, owner):
    model = brought()
    address = f"/api/v1/models/{model.pk}/comparison/"
    api = client_of(owner)
    assert api.post(f"{address}cancel/").status_code == 404
    api.post(address, {}, format="json")
    assert api.post(f"{address}cancel/").json()["status"] == "cancelled"
    assert api.post(f"{address}cancel/").status_code == 409
    client.force_login(owner)
    assert "It was stopped before it had begun" in client.get(f"/models/{model.pk}/comparison/").content.decode()
    answer = client.post(f"/models/{model.pk}/comparison/stop/", headers={"HX-Request": "true"})
    assert "has already ended" in answer.content.decode()
    assert "has already ended" in client.post(f"/models/{model.pk}/comparison/stop/", follow=True).content.decode()


class Ended:
    """Child process that has written its record."""

    def log(self) -> str:
        return ""


def test_stopped_search_keeps_its_tree(brought, client, owner):
    model = brought()
    job = comparing.start(owner=owner, model=model)
    supervisor = ComparisonSupervisor(job_id=str(job.pk), worker="test", stopping=threading.Event())
    assert supervisor._claim()
    # the worker stopped the search by ending, so another worker must search again
    assert not supervisor.complete({"compare": FOUND})
    assert supervisor.complete({"compare": FOUND | {"stopped": False}})
    supervisor.store(job, Ended(), {"compare": FOUND})
    job.refresh_from_db()
    assert (job.status, job.found) == ("cancelled", FOUND)
    client.force_login(owner)
    text = client.get(f"/models/{model.pk}/comparison/").content.decode()
    assert "Open: no better tree was found." in text
    assert "The search was stopped before its end." in text
    assert "was not made" not in text


@pytest.mark.one_database
def test_missing_or_changed_rows_are_reported(brought, dataset, client, client_of, owner):
    model = brought()
    waiting = comparing.start(owner=owner, model=model)
    changed = path_of(dataset.file)
    changed.write_bytes(changed.read_bytes() + b" ")
    assert "changed outside octweb" in work(waiting).error
    again = comparing.start(owner=owner, model=model)
    datasets.delete(dataset)
    model.refresh_from_db()
    assert work(again).error == comparing.NO_ROWS
    answer = client_of(owner).post(f"/api/v1/models/{model.pk}/comparison/", {}, format="json")
    assert (answer.status_code, comparing.NO_ROWS in answer.json()["detail"]) == (400, True)
    client.force_login(owner)
    text = client.get(f"/models/{model.pk}/comparison/").content.decode()
    assert comparing.NO_ROWS in text
    assert "Compare again" not in text


@pytest.mark.one_database
@pytest.mark.parametrize("seconds", ["0", "many", "999999999"])
def test_times_out_of_range_are_refused(brought, client, owner, seconds):
    model = brought()
    client.force_login(owner)
    answer = client.post(f"/models/{model.pk}/comparison/start/", {"seconds": seconds}, headers={"HX-Request": "true"})
    assert 'role="alert"' in answer.content.decode()
    assert "seconds" in answer.content.decode()
    assert not Comparison.objects.exists()


@pytest.mark.one_database
def test_a_tree_that_was_trained_here_is_not_compared(brought, client, client_of, owner):
    model = brought()
    TreeModel.objects.filter(pk=model.pk).update(method="cart")
    answer = client_of(owner).post(f"/api/v1/models/{model.pk}/comparison/", {}, format="json")
    assert (answer.status_code, "trained here" in answer.json()["detail"]) == (400, True)
    client.force_login(owner)
    assert "/comparison/" not in client.get(f"/models/{model.pk}/?mode=proof").content.decode()


def test_old_comparisons_are_removed(brought, owner):
    job = comparing.start(owner=owner, model=brought())
    now = timezone.now()
    assert comparing.tidy(now + timedelta(days=40)) == 0  # the comparison has not ended
    Comparison.objects.filter(pk=job.pk).update(status="succeeded", finished=now)
    assert comparing.tidy(now + timedelta(days=29)) == 0
    assert comparing.tidy(now + timedelta(days=40)) == 1
