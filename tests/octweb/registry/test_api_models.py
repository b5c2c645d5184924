"""GET models/, models/{id}/, download/, POST review/."""

from __future__ import annotations

import uuid

import pytest

from octweb.registry.lifecycle import actions
from octweb.registry.models import State
from octweb.registry.page.downloads import FORMATS

LIST = "/api/v1/models/"


def url(model, rest=""):
    return f"{LIST}{model.pk}/{rest}"


def test_the_list_shows_own_and_approved_models(register, client_of, owner, stranger, staff):
    mine = register()
    theirs = register(owner=stranger)
    assert [m["id"] for m in client_of(owner).get(LIST).json()["results"]] == [str(mine.pk)]
    assert client_of(staff).get(LIST).json()["count"] == 2
    actions.ask_for_approval(theirs, by=stranger)
    actions.approve(theirs, by=staff)
    assert {m["id"] for m in client_of(owner).get(LIST).json()["results"]} == {str(mine.pk), str(theirs.pk)}
    assert client_of().get(LIST).status_code == 401


def test_filters(register, client_of, owner):
    register()
    client = client_of(owner)
    for query, count in (("state=draft", 1), ("state=approved", 0), ("method=cart", 1), ("name=small-cart", 1)):
        assert client.get(f"{LIST}?{query}").json()["count"] == count
    assert client.get(f"{LIST}?dataset={uuid.uuid4()}").json()["count"] == 0
    for query in ("state=nonsense", "status=nonsense", "dataset=7", "method=%00"):
        answer = client.get(f"{LIST}?{query}")
        assert answer.status_code == 400, query
        assert answer["Content-Type"] == "application/problem+json"
    assert client.get(f"{LIST}?page=99").status_code == 404
    assert client.get(f"{LIST}?page_size=1").json()["results"]


def test_the_detail_has_tree_metrics_certificate_and_history(model, client_of, owner, cart_document):
    body = client_of(owner).get(url(model)).json()
    assert body["tree"] == cart_document["nodes"]
    assert body["metrics"] == cart_document["metrics"]
    assert body["certificate"]["status"] == "heuristic"
    assert body["claims"][0]["words"] == "Heuristic"
    assert body["review"]["possible"] == ["ask"]
    assert [e["after"] for e in body["review"]["history"]] == ["draft"]
    assert [c["name"] for c in body["columns"]] == ["width", "height", "flag", "colour"]


@pytest.mark.parametrize("rest", ["", "download/"])
def test_only_permitted_users_may_view(model, client_of, owner, stranger, staff, rest):
    statuses = [client_of(user).get(url(model, rest)).status_code for user in (owner, staff, stranger, None)]
    assert statuses == [200, 200, 404, 401]
    actions.ask_for_approval(model, by=owner)
    actions.approve(model, by=staff)
    assert client_of(stranger).get(url(model, rest)).status_code == 200


def test_strangers_do_not_read_reasons(approved, client_of, stranger):
    assert client_of(stranger).get(url(approved)).json()["review"]["history"] == []


def test_prediction_token_permits_nothing_else(model, client_of, owner):
    assert client_of(owner, scope="predict").get(url(model)).status_code == 403


@pytest.mark.parametrize("name", FORMATS)
def test_downloads(model, client_of, owner, name):
    answer = client_of(owner).get(url(model, f"download/?format={name}"))
    assert answer.status_code == 200
    assert answer.content
    assert f"small-cart-1.{FORMATS[name].ending}" in answer["Content-Disposition"]
    if name == "json":
        assert answer.content.decode() == model.document


def test_an_unknown_format_is_refused_with_the_known_ones(model, client_of, owner):
    answer = client_of(owner).get(url(model, "download/?format=pickle"))
    assert answer.status_code == 400
    assert "onnx" in answer.json()["detail"]


def test_review_over_the_api(model, client_of, owner, staff, stranger):
    def post(user, action, **more):
        return client_of(user).post(url(model, "review/"), {"action": action, **more}, format="json")

    assert post(stranger, "ask").status_code == 404
    assert post(owner, "approve").status_code == 403
    assert post(staff, "approve").status_code == 409
    assert post(owner, "ask", reason="please").json()["state"] == State.IN_REVIEW
    assert post(staff, "reject").status_code == 400
    assert post(staff, "approve").json()["state"] == State.APPROVED
    assert post(stranger, "retire").status_code == 403
    assert post(owner, "retire").json()["review"]["history"][-1]["after"] == "retired"
    assert post(owner, "burn").status_code == 400


def test_ids_that_are_none_get_problem_details(client_of, owner):
    for path in (f"{LIST}{uuid.uuid4()}/", f"{LIST}7/", f"{LIST}%00/"):
        answer = client_of(owner).get(path)
        assert answer.status_code == 404
        assert answer.json()["status"] == 404


@pytest.mark.parametrize(("publish", "serves"), [(True, True), (False, False), (None, True)])
def test_serving_over_the_api(model, client_of, owner, staff, publish, serves):
    def ask(user, method, path, body=None):
        return getattr(client_of(user), method)(url(model, path), body, format="json")

    ask(owner, "post", "review/", {"action": "ask"})
    body = {"action": "approve"} | ({} if publish is None else {"publish": publish})
    found = ask(staff, "post", "review/", body).json()
    assert (found["state"], found["served"], found["served_since"] is not None) == ("approved", serves, serves)
    served = client_of(owner).get(f"/v2/models/{model.family.name}/ready").status_code
    assert served == (200 if serves else 404)
    if not serves:
        assert ask(owner, "post", "publish/", {}).json()["served"] is True
    found = ask(owner, "delete", "publish/")
    assert (found.status_code, found.json()["served"], found.json()["state"]) == (200, False, "approved")
    assert ask(owner, "delete", "publish/").status_code == 409
