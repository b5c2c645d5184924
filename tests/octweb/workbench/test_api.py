"""/api/v1/workbenches/: every call and every refusal."""

from __future__ import annotations

import json

import pytest
from rest_framework.test import APIClient

from octweb.workbench import actions
from octweb.workbench.models import Workbench

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/api/v1/workbenches/"


@pytest.fixture
def api(owner):
    client = APIClient()
    client.force_authenticate(owner)
    return client


@pytest.mark.slow
@pytest.mark.one_database
def test_model_is_edited_and_saved_through_the_api(api, model, serve):
    response = api.post(URL, {"model": str(model.pk)}, format="json")
    assert response.status_code == 201
    address = f"{URL}{response.json()['id']}/"
    why = {"forbid root width": "not known early enough"}
    edited = api.post(f"{address}edits/", {"add": ["forbid root width"], "reasons": why}, format="json")
    assert (edited.status_code, edited.json()["state"], edited.json()["number"]) == (201, "waiting", 2)
    assert api.post(f"{address}prices/", {"place": "root"}, format="json").status_code == 201
    assert api.post(f"{address}good-trees/", {"slack": "0.1"}, format="json").status_code == 201
    serve(Workbench.objects.get())
    step = api.get(f"{address}edits/2/").json()
    assert step["state"] == "done"
    assert step["result"]["status"] == "optimal"
    assert step["result"]["wishes"][0]["price"] >= 0
    assert step["result"]["wishes"][0]["reason"] == why["forbid root width"]
    assert step["request"]["reasons"] == why
    assert [s["state"] for s in api.get(f"{address}edits/").json()] == ["done"] * 4
    for name in ("draft", "tolerance", "questions", "good-trees/1"):
        figure = api.get(f"{address}figures/{name}/")
        assert figure.status_code == 200
        assert set(figure.json()) == {"data", "layout"}
    assert api.post(f"{address}undo/").json()["number"] == 1
    assert api.post(f"{address}redo/").json()["number"] == 2
    assert api.post(f"{address}unseen/").json()["looks"] == 1
    saved = api.post(f"{address}save/", {}, format="json")
    assert saved.status_code == 201
    assert saved.json()["version"] == model.version + 1
    assert api.get(address).json()["step"]["wishes"] == ["forbid root width"]
    assert api.get(URL).json()["results"][0]["id"] == response.json()["id"]
    assert api.delete(address).status_code == 204


@pytest.mark.slow
@pytest.mark.one_database
@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("edits/", {"wishes": ["leaf y no"], "add": ["leaf n no"]}, 400),
        ("edits/", {"drop": ["leaf y no"]}, 400),
        ("edits/", {"wishes": ["x" * 2000]}, 400),
        ("edits/", {"add": ["leaf y no"], "reasons": {"leaf n no": "of another wish"}}, 422),
        ("edits/", {"add": ["leaf y no"], "reasons": {"leaf y no": "x" * 501}}, 400),
        ("prices/", {"place": "left"}, 400),
        ("good-trees/", {"slack": "0.1", "slack_rows": "3"}, 400),
        ("good-trees/", {}, 400),
        ("good-trees/", {"slack": "0.1", "rate": "luck"}, 400),
        ("good-trees/", {"slack": "much"}, 422),
        ("good-trees/", {"slack_rows": "-1"}, 422),
        ("good-trees/", {"slack": "0.1", "must": ["widht"]}, 422),
        ("good-trees/", {"slack": "0.1", "without": ["widht"]}, 422),
        ("good-trees/", {"slack": "0.1", "recalls": {"nope": "0.9"}}, 422),
        ("good-trees/", {"slack": "0.1", "groups": "colour"}, 422),
        ("good-trees/", {"slack": "0.1", "difference": "0.1"}, 422),
        ("good-trees/", {"slack": "0.1", "groups": "colur", "difference": "0.1"}, 422),
        ("good-trees/", {"slack": "0.1", "groups": "colour", "difference": "0.1", "favoured": "nope"}, 422),
        ("good-trees/", {"slack": "0.1", "agree_rows": "5-x"}, 422),
        ("good-trees/", {"slack": "0.1", "agree_rows": "all"}, 409),
        ("undo/", {}, 409),
        ("redo/", {}, 409),
        ("save/", {}, 409),
        ("unseen/", {}, 409),
    ],
)
def test_each_bad_call_is_refused(api, model, owner, path, body, status):
    bench = actions.open_for(owner=owner, model=model)
    answer = api.post(f"{URL}{bench.pk}/{path}", body, format="json")
    assert answer.status_code == status
    assert answer.json()["detail"]
    assert bench.steps.count() == 1  # the first tree alone: no search was queued


@pytest.mark.slow
@pytest.mark.one_database
def test_good_trees_filter_by_shown_tree_and_group_rates(api, model, serve):
    answer = api.post(URL, {"model": str(model.pk)}, format="json").json()
    address = f"{URL}{answer['id']}/"
    bench = Workbench.objects.get()
    serve(bench)
    bodies = (
        {"slack": "3", "listed": 1000},
        {"slack": "3", "listed": 1000, "agree_rows": "all"},
        {"slack": "3", "listed": 1000, "groups": "colour", "difference": "0"},
    )
    for body in bodies:
        assert api.post(f"{address}good-trees/", body, format="json").status_code == 201
    serve(bench)
    every, agreeing, fair = [step for step in api.get(f"{address}edits/").json() if step["kind"] == "good"]
    assert 0 < agreeing["result"]["count"] < every["result"]["count"]
    assert agreeing["result"]["answers"] == 1
    assert 0 < fair["result"]["count"] < every["result"]["count"]


def test_strangers_see_nothing(model, owner, stranger, api):
    bench = actions.open_for(owner=owner, model=model)
    other = APIClient()
    other.force_authenticate(stranger)
    for method, path in (("get", ""), ("post", "edits/"), ("post", "save/"), ("get", "edits/1/"), ("delete", "")):
        assert getattr(other, method)(f"{URL}{bench.pk}/{path}", format="json").status_code == 404
    assert other.post(URL, {"model": str(model.pk)}, format="json").status_code == 404
    assert other.get(URL).json()["results"] == []
    assert APIClient().get(URL).status_code == 401


@pytest.mark.one_database
def test_a_workbench_needs_a_model_or_a_data_set(api, dataset, stranger):
    assert api.post(URL, {}, format="json").status_code == 400
    assert api.post(URL, {"dataset": str(dataset.pk), "parameters": {"depth": 2}}, format="json").status_code == 201
    assert api.post(URL, {"dataset": str(dataset.pk), "parameters": {"deep": 2}}, format="json").status_code == 422
    chosen = {"dataset": str(dataset.pk), "method": "odt", "parameters": {"topology": "auto"}}
    refused = api.post(URL, chosen, format="json")
    assert refused.status_code == 422
    assert "does not support wishes" in refused.content.decode()


def test_head_with_a_body_changes_no_wishes(api, model):
    bench = actions.open_for(owner=model.owner, model=model)
    body = json.dumps({"add": ["forbid root width"]})
    answer = api.generic("HEAD", f"{URL}{bench.pk}/edits/", body, content_type="application/json")
    assert answer.status_code == 200
    assert bench.steps.count() == 1


@pytest.mark.parametrize(("method", "status"), [("get", "failed"), ("head", "failed"), ("post", "queued")])
def test_only_post_wakes_a_stalled_workbench(api, model, method, status):
    bench = actions.open_for(owner=model.owner, model=model)
    Workbench.objects.filter(pk=bench.pk).update(status="failed", error="died")
    address = f"{URL}{bench.pk}/stop/" if method == "post" else f"{URL}{bench.pk}/edits/1/"
    assert getattr(api, method)(address).status_code == 200
    bench.refresh_from_db()
    assert bench.status == status


@pytest.mark.slow
@pytest.mark.one_database
@pytest.mark.parametrize("field", ["add", "wishes"])
def test_unreadable_wish_is_a_problem_and_no_step(api, model, serve, field):
    bench = actions.open_for(owner=model.owner, model=model)
    serve(bench)
    answer = api.post(f"{URL}{bench.pk}/edits/", {field: ["no colour anywhere please"]}, format="json")
    assert answer.status_code == 422
    assert answer["content-type"] == "application/problem+json"
    assert answer.json()["errors"][0]["attr"] == field
    assert "Nearest columns: colour." in answer.json()["detail"]
    assert bench.steps.count() == 1
