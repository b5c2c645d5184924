"""Runs over REST: create, read, cancel, and every refusal."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from rest_framework.test import APIClient

from octweb.jobs.models import RunStatus
from octweb.registry.lifecycle import actions as registry
from octweb.runs.models import ProgressRecord, TrainingRun
from tests.octweb.small_models import trained
from trainer.registry import METHODS

pytestmark = pytest.mark.django_db


def client_of(user):
    client = APIClient()
    client.force_authenticate(user)
    return client


@pytest.fixture
def api(owner):
    return client_of(owner)


@pytest.fixture
def run(api, dataset):
    answer = api.post("/api/v1/runs/", {"dataset": str(dataset.pk), "method": "cart"}, format="json")
    assert answer.status_code == 201, answer.json()
    return answer.json()


def test_a_new_run_is_queued_with_the_declared_defaults(run):
    assert run["status"] == "queued"
    assert run["queue_position"] == 1
    assert run["parameters"]["depth"] == 4
    assert run["parameters"]["memory_limit"] > 0


@pytest.mark.parametrize("depth", [None, "none"])
def test_run_without_limit_of_depth_is_queued(api, dataset, depth):
    body = {"dataset": str(dataset.pk), "method": "exact", "parameters": {"depth": depth, "leaf_penalty": 0.1}}
    answer = api.post("/api/v1/runs/", body, format="json")
    assert answer.status_code == 201, answer.json()
    assert answer.json()["parameters"]["depth"] is None


def test_methods_are_the_declarations(api):
    answer = api.get("/api/v1/methods/").json()
    assert [m["id"] for m in answer] == [m.id for m in METHODS]
    assert all(p["help"] for m in answer for p in m["parameters"])


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"method": "magic"}, 422, "magic"),
        ({"parameters": {"depth": "many"}}, 422, "depth"),
        ({"parameters": {"depth": -1}}, 422, "depth"),
        ({"parameters": {"nonsense": 1}}, 422, "nonsense"),
        ({"method": "bendoct", "parameters": {"recall": "maybe: 0.5"}}, 422, "'maybe' is not a class. Classes: "),
        ({"method": "exact", "parameters": {"forbidden": "taste"}}, 422, "'taste' is not a column. Columns: "),
        ({"parameters": {"depth": None}}, 422, "depth"),
        ({"method": "exact", "parameters": {"depth": None}}, 422, "leaf_penalty: it must be a number above 0"),
        (
            {"method": "exact", "parameters": {"depth": "none", "leaf_penalty": 0.1, "max_leaves": 4}},
            422,
            "depth: it needs a number of questions with max_leaves",
        ),
        ({"parameters": {"depth": [1]}}, 400, "depth"),
        ({"parameters": 7}, 400, "parameters"),
        ({"parameters": {"time_limit": 100_000}}, 422, "server allows"),
        ({"folds": 1}, 422, "folds"),
        ({"folds": 99}, 400, "folds"),
        ({"test_share": 2}, 400, "test_share"),
        ({"dataset": "no-id"}, 400, "dataset"),
        ({"dataset": "00000000-0000-0000-0000-000000000000"}, 404, "data set"),
    ],
)
def test_a_bad_run_is_refused_in_words(api, dataset, change, status, words):
    body = {"dataset": str(dataset.pk), "method": "cart"} | change
    answer = api.post("/api/v1/runs/", body, format="json")
    assert answer.status_code == status, answer.json()
    assert words in answer.json()["detail"]
    assert answer.json()["error"] == answer.json()["detail"]
    assert TrainingRun.objects.count() == 0


def test_the_queue_of_a_user_has_a_limit(api, dataset, settings):
    settings.MAX_QUEUED_RUNS = 2
    codes = [
        api.post("/api/v1/runs/", {"dataset": str(dataset.pk), "method": "cart"}, format="json").status_code
        for _ in range(3)
    ]
    assert codes == [201, 201, 409]


def test_cancel_then_again_is_a_conflict(api, run):
    first = api.post(f"/api/v1/runs/{run['id']}/cancel/")
    assert (first.status_code, first.json()["status"]) == (200, "cancelled")
    assert api.post(f"/api/v1/runs/{run['id']}/cancel/").status_code == 409


def test_progress_comes_in_pieces(api, run):
    TrainingRun.objects.filter(pk=run["id"]).update(status=RunStatus.RUNNING, attempt=1)
    for line in range(5):
        ProgressRecord.objects.create(run_id=run["id"], attempt=1, line=line, record={"t": line, "phase": "search"})
    first = api.get(f"/api/v1/runs/{run['id']}/progress/").json()
    assert (len(first["records"]), first["next"]) == (5, 5)
    assert api.get(f"/api/v1/runs/{run['id']}/progress/?since=3").json()["records"][0]["t"] == 3
    for bad in ("-1", "x", "1e3", "٣", "9" * 30):
        assert api.get(f"/api/v1/runs/{run['id']}/progress/", {"since": bad}).status_code == 400


@pytest.mark.parametrize(("method", "name"), [("exact", "bound"), ("cart", "questions found")])
def test_the_picture_of_the_page_is_in_the_api(api, run, owner, method, name):
    record = {"t": 2.0, "phase": "search", "leaves": 3, "correct": 5}
    record |= {"incumbent": 0.5, "bound": 1.0} if method == "exact" else {}
    TrainingRun.objects.filter(pk=run["id"]).update(status=RunStatus.RUNNING, attempt=1, method=method)
    ProgressRecord.objects.create(run_id=run["id"], attempt=1, line=0, record=record)
    figure = api.get(f"/api/v1/runs/{run['id']}/figures/progress/").json()
    assert name in {trace["name"] for trace in figure["data"]}
    page = Client()
    page.force_login(owner)
    assert page.get(f"/runs/{run['id']}/chart/").json() == figure


def test_filters(api, run):
    assert api.get("/api/v1/runs/?status=queued").json()["count"] == 1
    assert api.get("/api/v1/runs/?status=failed").json()["count"] == 0
    assert api.get("/api/v1/runs/?status=odd").status_code == 400
    assert api.get("/api/v1/runs/?dataset=odd").status_code == 400


def test_an_unfinished_run_cannot_be_deleted(api, run):
    assert api.delete(f"/api/v1/runs/{run['id']}/").status_code == 409
    api.post(f"/api/v1/runs/{run['id']}/cancel/")
    assert api.delete(f"/api/v1/runs/{run['id']}/").status_code == 204


def test_others_get_404(stranger, staff, run):
    urls = [
        f"/api/v1/runs/{run['id']}/",
        f"/api/v1/runs/{run['id']}/progress/",
        f"/api/v1/runs/{run['id']}/figures/progress/",
    ]
    assert {client_of(stranger).get(url).status_code for url in urls} == {404}
    assert client_of(stranger).post(f"/api/v1/runs/{run['id']}/cancel/").status_code == 404
    assert client_of(stranger).get("/api/v1/runs/").json()["count"] == 0
    assert {client_of(staff).get(url).status_code for url in urls} == {200}
    assert {APIClient().get(url).status_code for url in urls} == {401}


def test_run_on_data_set_of_other_owner_is_404(stranger, dataset):
    answer = client_of(stranger).post("/api/v1/runs/", {"dataset": str(dataset.pk), "method": "cart"}, format="json")
    assert answer.status_code == 404


def test_body_without_json_is_400(api):
    for body in (b"{", b"", b"[]", b"null", b"\xff\xfe", b'{"dataset": NaN}'):
        assert api.post("/api/v1/runs/", body, content_type="application/json").status_code == 400


@pytest.fixture
def model(owner, dataset):
    """Provide a model with a tree that asks about columns that the data set does not have."""
    document = json.loads(json.dumps(trained("cart", depth=2)).replace('"width"', '"breadth"'))
    return registry.register(owner=owner, document=document, dataset=dataset, title="Other")


def start(api, dataset, model, method="exact"):
    body = {"dataset": str(dataset.pk), "method": method, "warm_start": str(getattr(model, "pk", model))}
    return api.post("/api/v1/runs/", body, format="json")


def test_invalid_start_tree_is_refused(api, dataset, model):
    answer = start(api, dataset, model)
    assert answer.status_code == 422
    assert "in 'Small' it is not among the columns" in str(answer.json())
    answer = start(api, dataset, model, method="cart")
    assert answer.status_code == 422
    assert "cannot begin with another one" in str(answer.json())


def test_a_strangers_model_is_no_start(stranger, api, dataset, model):
    answer = start(client_of(stranger), dataset, model)
    assert answer.status_code == 404
    assert start(api, dataset, "00000000-0000-0000-0000-000000000000").status_code == 404


def keyed(api, dataset, key, **changes):
    body = {"dataset": str(dataset.pk), "method": "cart"} | changes
    return api.post("/api/v1/runs/", body, format="json", headers={"Idempotency-Key": key})


def test_the_same_key_and_body_are_the_same_run(api, dataset):
    first = keyed(api, dataset, "abc")
    again = keyed(api, dataset, "abc")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["id"] == again.json()["id"]
    assert TrainingRun.objects.count() == 1
    assert keyed(api, dataset, "another").json()["id"] != first.json()["id"]
    assert keyed(api, dataset, "").json()["id"] != keyed(api, dataset, "").json()["id"]


def test_reused_key_with_other_request_is_refused(api, dataset):
    keyed(api, dataset, "abc")
    answer = keyed(api, dataset, "abc", parameters={"depth": 2})
    assert answer.status_code == 422
    assert "Idempotency-Key" in answer.json()["detail"]
    assert TrainingRun.objects.count() == 1


def test_keys_of_two_users_are_apart(api, dataset, stranger, csv_file):
    from octweb.datasets import actions as datasets

    with csv_file.open("rb") as stream:
        other = datasets.create(owner=stranger, file=stream, source_name="small.csv", target="class")
    assert keyed(api, dataset, "abc").json()["id"] != keyed(client_of(stranger), other, "abc").json()["id"]


@pytest.mark.parametrize("key", ["x" * 201, "caf\u00e9"])
def test_a_bad_key_is_refused(api, dataset, key):
    assert keyed(api, dataset, key).status_code == 400
    assert TrainingRun.objects.count() == 0


def test_an_unchanged_answer_is_not_sent_again(api, run, dataset):
    for address in (f"/api/v1/runs/{run['id']}/", f"/api/v1/datasets/{dataset.pk}/", "/api/v1/methods/"):
        first = api.get(address)
        again = api.get(address, headers={"If-None-Match": first["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
    api.patch(f"/api/v1/datasets/{dataset.pk}/", {"name": "Renamed"}, format="json")
    etag = first["ETag"]
    assert api.get(f"/api/v1/datasets/{dataset.pk}/", headers={"If-None-Match": etag}).status_code == 200
