"""MLflow's scoring protocol, and the repository index and configuration of the Open Inference Protocol."""

from __future__ import annotations

import base64
import json

import pytest

from octweb.registry.lifecycle import actions
from octweb.serving.actions import create_token
from octweb.serving.inference import OUTPUTS
from tests.octweb.serving.test_clients import labels, rows
from tests.octweb.small_models import trained

pytestmark = pytest.mark.django_db
NAMES = ["width", "height", "flag", "colour"]


def post(client, body, query="", kind="application/json", **headers):
    data = json.dumps(body) if isinstance(body, dict | list) else body
    return client.post(f"/invocations{query}", data, content_type=kind, headers=headers or None)


def tables() -> dict[str, dict]:
    cells = [list(r.values()) for r in rows()]
    by_column = {n: [r[n] for r in rows()] for n in NAMES}
    split = {"columns": NAMES, "data": cells}
    return {
        "split": {"dataframe_split": split | {"index": [0, 1, 2, 3, 4]}},
        "records": {"dataframe_records": rows()},
        "instances": {"instances": rows()},
        "columns": {"inputs": by_column},
        "lists": {"inputs": cells},
        "instances of lists": {"instances": cells, "params": {}},
    }


@pytest.mark.parametrize("name", tables())
def test_every_form_of_a_table(client_of, approved, owner, name):
    answer = post(client_of(owner), tables()[name], "?model=small-cart")
    assert answer.json() == {"predictions": labels(approved)}
    assert (answer["Content-Type"], answer["Octweb-Model"]) == ("application/json", "small-cart/1")


def test_csv_download_is_complete(client_of, approved, owner):
    lines = [",".join(NAMES), *(",".join(str(v) for v in r.values()) for r in rows())]
    assert post(client_of(owner), "\n".join(lines), kind="text/csv").json() == {"predictions": labels(approved)}


def test_other_outputs(client_of, approved, owner):
    body = {"instances": rows(2), "params": {"output": "probabilities"}}
    shares = post(client_of(owner), body).json()["predictions"]
    assert [max(s, key=s.get) for s in shares] == labels(approved, 2)
    records = post(client_of(owner), body | {"params": {"output": "records"}}).json()["predictions"]
    assert [r["label"] for r in records] == labels(approved, 2)
    assert post(client_of(owner), body | {"params": {"output": "score"}}).status_code == 400


def test_model_is_chosen_by_argument_or_header(client, client_of, approved, register, owner, staff):
    calls = client_of(owner)
    body = {"instances": rows()}
    assert post(calls, body).status_code == 200  # there is only one
    second = register(document=trained("cart", depth=0), title="Other", name="other")
    actions.ask_for_approval(second, by=owner)
    actions.approve(second, by=staff, reason="One answer for all.")
    refused = post(calls, body)
    assert (refused.status_code, "?model=NAME" in refused.json()["detail"]) == (400, True)
    assert len(set(post(calls, body, "?model=other").json()["predictions"])) == 1
    assert len(set(post(calls, body, **{"Octweb-Model": "other/1"}).json()["predictions"])) == 1
    assert post(calls, body, "?model=small-cart&version=1").json()["predictions"] == labels(approved)
    _, secret = create_token(owner=owner)
    basic = base64.b64encode(f"small-cart:{secret}".encode()).decode()
    assert post(client, body, Authorization=f"Basic {basic}").json()["predictions"] == labels(approved)
    for query in ("?model=small-cart&version=2", "?model=nothing", "?model=small-cart&version=x"):
        assert post(calls, body, query).status_code == 404
    actions.retire(second, by=staff)
    assert post(calls, body, "?model=other").status_code == 410


def test_call_needs_a_valid_token(client, client_of, model, approved, owner):
    body = {"instances": rows()}
    assert post(client, body).status_code == 401
    for header in ("Basic x", "Basic " + base64.b64encode(b"a:b").decode(), "Basic", "Token x"):
        assert post(client, body, Authorization=header).status_code == 401
    assert post(client_of(owner, scope="predict"), body).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{", "JSON"),
        ("[]", "dataframe_split"),
        ({}, "dataframe_split"),
        ({"inputs": [], "instances": []}, "one of"),
        ({"inputs": []}, "inputs"),
        ({"inputs": 3}, "inputs"),
        ({"inputs": [[1, 2]]}, "inputs[0]"),
        ({"inputs": [{"wide": 1}]}, "'wide'"),
        ({"inputs": {"width": 1}}, "width"),
        ({"dataframe_split": {"columns": NAMES}}, "dataframe_split"),
        ({"dataframe_split": {"columns": ["a", "a"], "data": []}}, "twice"),
        ({"dataframe_split": {"columns": NAMES, "data": [[1, 2, 0, "red"], [1]]}}, "dataframe_split.data[1]"),
        ({"instances": rows(1), "params": []}, ""),
        ({"instances": rows(1), "params": 3}, "params"),
        ('{"instances": [], "instances": []}', "twice"),
        ('{"instances": [], "params": {"a": NaN, "a": 1}}', "twice"),
        ('{"inputs": [[NaN, 1, 0, "red"]]}', "'width' has no value"),
        ('{"inputs": [[Infinity, NaN, 0, "red"]]}', "'width'"),
    ],
)
def test_errors_are_reported(client_of, approved, owner, body, words):
    answer = post(client_of(owner), body)
    assert answer.status_code == (200 if words == "" else 400), answer.content
    assert words in answer.json().get("error", "")


def test_limits(client_of, approved, owner, settings):
    assert post(client_of(owner), "x", kind="text/plain").status_code == 415
    settings.MAX_PREDICT_ROWS = 4
    for name in tables():
        assert post(client_of(owner), tables()[name]).status_code == 413, name
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    assert post(client_of(owner), tables()["split"]).status_code == 413


def test_ping(client, client_of, approved, owner):
    assert client.get("/ping").status_code == 200
    assert client.get("/ping?model=small-cart").status_code == 401
    assert client_of(owner).get("/ping?model=small-cart").status_code == 200
    assert client_of(owner).get("/ping", headers={"Octweb-Model": "other"}).status_code == 404
    assert client.get("/version").content


def test_the_repository_index_lists_what_is_served(client, client_of, approved, register, owner, staff):
    register(document=trained("cart", depth=1), title="A draft", name="draft")
    calls = client_of(owner)
    address = "/v2/repository/index"
    row = {"name": "small-cart", "version": "1", "state": "READY", "reason": ""}
    for body in (b"", b"{}", b'{"ready": true}', b'{"repository_name": ""}'):
        assert calls.post(address, body, content_type="application/json").json() == [row]
    for body in (b"[]", b"{", b'{"ready": 1}', b'{"ready": true, "ready": true}'):
        assert calls.post(address, body, content_type="application/json").status_code == 400
    assert client.post(address).status_code == 401
    assert "model_repository" in calls.get("/v2").json()["extensions"]


def test_the_configuration_of_a_model(client_of, approved, owner):
    for address in ("/v2/models/small-cart/config", "/v2/models/small-cart/versions/1/config"):
        answer = client_of(owner).get(address).json()
        assert [(t["name"], t["data_type"]) for t in answer["input"]] == [
            ("width", "TYPE_FP64"), ("height", "TYPE_FP64"), ("flag", "TYPE_FP64"), ("colour", "TYPE_STRING"),
        ]  # fmt: skip
        assert [t["name"] for t in answer["output"]] == list(OUTPUTS)
    assert client_of(owner).get("/v2/models/other/config").status_code == 404


def test_extra_columns_are_ignored_and_a_header_says_so(client_of, approved, owner):
    extra = [row | {"index": i, "site": "x"} for i, row in enumerate(rows())]
    bodies = {
        "records": {"dataframe_records": extra},
        "split": {"dataframe_split": {"columns": list(extra[0]), "data": [list(row.values()) for row in extra]}},
        "columns": {"inputs": {name: [row[name] for row in extra] for name in extra[0]}},
    }
    for name, body in bodies.items():
        answer = post(client_of(owner), body)
        assert answer.json() == {"predictions": labels(approved)}, name
        assert json.loads(answer["Octweb-Notes"]) == ["Columns that the model does not know are ignored: index, site."]
    assert "Octweb-Notes" not in post(client_of(owner), {"instances": rows()})


def test_misspelled_column_is_an_error(client_of, approved, owner):
    wrong = [{("widht" if name == "width" else name): cell for name, cell in row.items()} for row in rows()]
    refused = post(client_of(owner), {"instances": wrong})
    assert (refused.status_code, "'widht'" in refused.json()["detail"]) == (400, True)
