"""The Open Inference Protocol with Triton's client against a live server, and every refusal."""

from __future__ import annotations

import base64
import random
import struct

import numpy as np
import orjson
import pytest

from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from octweb.serving.actions import create_token
from tests.octweb.small_models import small_table, trained

NAME = "small-cart"
COLUMNS = (("width", "FP64"), ("height", "FP64"), ("flag", "INT64"), ("colour", "BYTES"))


@pytest.fixture(autouse=True)
def _media(media):
    pass


def tensors(rows=5):
    """Return one JSON tensor for each column, with the first rows of the small table."""
    table, _ = small_table()
    colours = table.columns[3].schema.categories
    m = table.matrix()[:rows]
    cells = {"width": m[:, 0].tolist(), "height": m[:, 1].tolist(), "flag": [int(v) for v in m[:, 2]]}
    cells["colour"] = [colours[int(v)] for v in m[:, 3]]
    return [{"name": n, "datatype": t, "shape": [rows], "data": cells[n]} for n, t in COLUMNS]


def expected(model, rows=5):
    table, _ = small_table()
    tree = model_file(model).tree
    m = table.matrix()[:rows]
    return tree.apply(m), [tree.classes[k] for k in tree.predict(m)], tree.predict_proba(m)


def infer(client, body, path=f"/v2/models/{NAME}/infer", **headers):
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    return client.post(path, data, content_type="application/json", headers=headers or None)


def outputs(answer):
    return {o["name"]: np.array(o["data"]).reshape(o["shape"]) for o in answer.json()["outputs"]}


def test_only_health_needs_no_token(client, approved):
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    for path in ("/v2", f"/v2/models/{NAME}", f"/v2/models/{NAME}/ready"):
        answer = client.get(path)
        assert answer.status_code == 401
        assert answer.json()["error"]
    assert infer(client, {}).status_code == 401


def test_metadata_has_real_names_types_and_classes(client_of, approved, stranger):
    client = client_of(stranger, scope="predict")
    assert client.get("/v2").json()["name"] == "octweb"
    for path in (f"/v2/models/{NAME}", f"/v2/models/{NAME}/versions/1"):
        body = client.get(path).json()
        assert [(i["name"], i["datatype"]) for i in body["inputs"]] == [
            (n, "FP64" if t == "INT64" else t) for n, t in COLUMNS
        ]
        assert body["versions"] == ["1"]
        assert body["parameters"]["classes"] == ["a", "b", "c"]
        assert client.get(f"{path}/ready").json()["ready"] is True


def test_only_approved_models_are_listed(client_of, model, owner, staff):
    client = client_of(owner)
    for rest in ("", "/ready", "/versions/1", "/versions/1/ready"):
        assert client.get(f"/v2/models/{NAME}{rest}").status_code == 404
    assert infer(client, {"inputs": tensors()}).status_code == 404
    actions.ask_for_approval(model, by=owner)
    actions.approve(model, by=staff, reason="Tested.")
    assert infer(client, {"inputs": tensors()}).status_code == 200
    for version in ("2", "0", "x", "99999999999999999999"):
        assert client.get(f"/v2/models/{NAME}/versions/{version}").status_code == 404
    actions.retire(model, by=staff)
    assert infer(client, {"inputs": tensors()}).status_code == 410


def test_the_highest_version_answers_unless_another_is_named(client_of, approved, register, owner, staff):
    second = register(document=trained("cart", depth=0))
    actions.ask_for_approval(second, by=owner)
    actions.approve(second, by=staff, reason="Tested.")
    client = client_of(owner)
    assert infer(client, {"inputs": tensors()}).json()["model_version"] == "2"
    old = infer(client, {"inputs": tensors()}, f"/v2/models/{NAME}/versions/1/infer").json()
    assert old["model_version"] == "1"


def test_one_tensor_a_column(client_of, approved, owner):
    leaves, labels, shares = expected(approved)
    answer = infer(client_of(owner), {"id": "a1", "inputs": tensors()})
    assert answer.json()["id"] == "a1"
    got = outputs(answer)
    assert got["leaf"].tolist() == leaves.tolist()
    assert got["label"].tolist() == labels
    assert np.array_equal(got["probabilities"], shares)


def test_one_tensor_of_text_for_all_columns(client_of, approved, owner):
    columns = [t["data"] for t in tensors()]
    cells = [[str(v) for v in row] for row in zip(*columns, strict=True)]
    for data in (cells, [c for row in cells for c in row]):
        body = {"inputs": [{"name": "rows", "datatype": "BYTES", "shape": [5, 4], "data": data}]}
        assert outputs(infer(client_of(owner), body))["label"].tolist() == expected(approved)[1]


def test_one_tensor_of_numbers_for_all_columns(client_of, register, owner, staff):
    document = trained("cart", depth=1)
    model = register(document=document, title="Numbers")
    actions.ask_for_approval(model, by=owner)
    actions.approve(model, by=staff, reason="Tested.")
    table, _ = small_table()
    tree = model_file(model).tree
    body = {"inputs": [{"name": "x", "datatype": "FP64", "shape": [9, 4], "data": table.matrix()[:9].ravel().tolist()}]}
    answer = infer(client_of(owner), body, "/v2/models/numbers/infer")
    if 3 in tree.used_columns:
        assert answer.status_code == 400
        assert "colour" in answer.json()["error"]
    else:
        assert outputs(answer)["leaf"].tolist() == tree.apply(table.matrix()[:9]).tolist()


def test_chosen_outputs_with_the_path_in_words(client_of, approved, owner):
    body = {"inputs": tensors(2), "outputs": [{"name": "path"}, {"name": "label"}]}
    answer = infer(client_of(owner), body).json()
    assert [o["name"] for o in answer["outputs"]] == ["path", "label"]
    assert "So it is " in answer["outputs"][0]["data"][0]


def test_unknown_categories_are_stated(client_of, approved, owner):
    inputs = tensors(2)
    inputs[3]["data"][1] = "mauve"
    answer = infer(client_of(owner), {"inputs": inputs}).json()
    assert "mauve" in answer["parameters"]["notes"]


def change(at, **changes):
    inputs = tensors(2)
    inputs[at] = inputs[at] | changes
    return {"inputs": inputs}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", ["JSON"]),
        (b"[]", ["object"]),
        ({}, ["inputs"]),
        ({"inputs": []}, ["inputs"]),
        ({"inputs": 7}, ["inputs"]),
        ({"inputs": [7]}, ["inputs[0]"]),
        (change(0, name="widht"), ["widht", "width"]),
        (change(0, datatype="TEXT"), ["datatype"]),
        (change(0, shape=[3]), ["shape and data disagree"]),
        (change(0, shape=[2, -1]), ["shape"]),
        (change(0, shape=[2**62, 2**62]), ["shape"]),
        (change(0, data=[1.5, "wide"]), ["width", "[1]", "wide"]),
        (change(0, data=[1.5, None]), ["width", "rows[1]"]),
        (change(0, data=[[1.5], [2.5, 3]]), ["shape and data disagree"]),
        (change(3, data=["red", 7]), ["colour", "[1]"]),
        (change(3, shape=[1], data=["red"]), ["different numbers of rows"]),
        ({"inputs": tensors(2)[1:]}, ["width", "missing"]),
        ({"inputs": [*tensors(2), tensors(2)[0]]}, ["twice"]),
        ({"inputs": [{"name": "x", "datatype": "FP64", "shape": [1, 2], "data": [1, 2]}]}, ["width", "colour"]),
        ({"inputs": tensors(2), "outputs": [{"name": "score"}]}, ["score", "label"]),
        ({"inputs": tensors(2), "id": 7}, ["id"]),
        ({"inputs": tensors(2), "parameters": []}, ["parameters"]),
        ({"inputs": tensors(2), "parameters": {"binary_data_output": "yes"}}, ["binary_data_output"]),
    ],
)
def test_errors_are_400_and_say_where(client_of, approved, owner, body, words):
    answer = infer(client_of(owner), body)
    assert answer.status_code == 400, answer.content
    assert all(word in answer.json()["error"] for word in words), answer.json()["error"]
    assert answer["Content-Type"] == "application/json"


def test_limits(client_of, approved, owner, settings):
    settings.MAX_PREDICT_ROWS = 4
    assert infer(client_of(owner), {"inputs": tensors(5)}).status_code == 400
    settings.MAX_PREDICT_BYTES = 100
    assert infer(client_of(owner), {"inputs": tensors(3)}).status_code == 413


def test_300_damaged_binary_bodies_never_break_the_server(client_of, approved, owner):
    rng = random.Random(5)
    client = client_of(owner)
    width = np.array([1.5, 7.0]).tobytes()
    height = np.array([0.1, -0.2]).tobytes()
    flag = np.array([0, 1], "<i8").tobytes()
    colour = b"".join(struct.pack("<I", 3) + b"red" for _ in range(2))
    blobs = {"width": width, "height": height, "flag": flag, "colour": colour}
    inputs = [
        {"name": n, "datatype": t, "shape": [2], "parameters": {"binary_data_size": len(blobs[n])}} for n, t in COLUMNS
    ]
    head = orjson.dumps({"inputs": inputs})
    good = head + b"".join(blobs.values())
    assert infer(client, good, **{"Inference-Header-Content-Length": str(len(head))}).status_code == 200
    seen = set()
    for _ in range(300):
        at = rng.randrange(len(good))
        data = good[:at] + bytes(rng.randrange(256) for _ in range(rng.randrange(3))) + good[at + rng.randrange(4) :]
        length = rng.choice([str(len(head))] * 6 + ["-1", "x", "99999999", "0", str(rng.randrange(len(good)))])
        answer = infer(client, data, **{"Inference-Header-Content-Length": length})
        seen.add(answer.status_code)
        assert answer.status_code in {200, 400}, (answer.status_code, data)
    assert seen == {200, 400}


@pytest.mark.django_db(transaction=True)
def test_tritons_client_in_all_four_combinations(live_server, approved, owner):
    http = pytest.importorskip("tritonclient.http", reason="tritonclient is missing; requirements-test.txt brings it")
    from tritonclient.utils import InferenceServerException

    _, secret = create_token(owner=owner)
    headers = {"Authorization": f"Token {secret}"}
    client = http.InferenceServerClient(live_server.url.removeprefix("http://"))
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(NAME, headers=headers)
    assert client.is_model_ready(NAME, "1", headers=headers)
    assert client.get_server_metadata(headers=headers)["name"] == "octweb"
    assert client.get_model_metadata(NAME, "1", headers=headers)["versions"] == ["1"]
    leaves, labels, shares = expected(approved)
    for binary_in in (False, True):
        for binary_out in (False, True):
            inputs = []
            for record in tensors():
                tensor = http.InferInput(record["name"], [5], record["datatype"])
                dtype = {"FP64": np.float64, "INT64": np.int64, "BYTES": np.object_}[record["datatype"]]
                tensor.set_data_from_numpy(np.array(record["data"], dtype), binary_data=binary_in)
                inputs.append(tensor)
            wanted = [
                http.InferRequestedOutput(n, binary_data=binary_out) for n in ("label", "probabilities", "leaf", "path")
            ]
            result = client.infer(NAME, inputs, outputs=wanted, request_id="r7", headers=headers)
            assert result.get_response()["id"] == "r7"
            assert result.as_numpy("leaf").tolist() == leaves.tolist()
            got = [v.decode() if isinstance(v, bytes) else v for v in result.as_numpy("label").tolist()]
            assert got == labels
            assert np.array_equal(result.as_numpy("probabilities"), shares)
            assert len(result.as_numpy("path")) == 5
    with pytest.raises(InferenceServerException, match="There is no approved model 'other'"):
        client.infer("other", inputs, headers=headers)


def test_base64_texts_are_decoded(client_of, approved, owner):
    client = client_of(owner)
    wanted = infer(client, {"inputs": tensors()}).json()["outputs"]
    coded = tensors()
    coded[3]["data"] = [base64.b64encode(text.encode()).decode() for text in coded[3]["data"]]
    own = [*coded[:3], coded[3] | {"parameters": {"content_type": "base64"}}]
    assert infer(client, {"inputs": own}).json()["outputs"] == wanted
    whole = {"inputs": coded, "parameters": {"content_type": "base64"}}
    assert infer(client, whole).json()["outputs"] == wanted
    coded[3]["data"][0] = "#"
    refused = infer(client, whole)
    assert (refused.status_code, "text 0 is not base64" in refused.json()["error"]) == (400, True)


@pytest.mark.parametrize(
    ("kind", "status"), [("np", 200), ("pd", 200), ("str", 200), ("datetime", 400), ("hf_json", 400), (7, 400)]
)
def test_content_type_is_known_or_refused(client_of, approved, owner, kind, status):
    named = {"parameters": {"content_type": kind}}
    for body in ({"inputs": tensors()} | named, {"inputs": [tensor | named for tensor in tensors()]}):
        answer = infer(client_of(owner), body)
        assert answer.status_code == status
        assert status == 200 or "content type" in answer.json()["error"]


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_constant_that_json_lacks_says_to_send_null(client_of, approved, owner, word):
    text = '{"inputs": [{"name": "width", "datatype": "FP64", "shape": [2], "data": [1.5, WORD]}]}'.replace(
        "WORD", word
    )
    answer = infer(client_of(owner), text.encode())
    assert (answer.status_code, f"JSON has no {word}: send null" in answer.json()["error"]) == (400, True)
