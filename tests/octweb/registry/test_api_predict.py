"""POST models/{id}/predict/."""

from __future__ import annotations

import copy
import random

import numpy as np
import orjson
import pytest

from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from tests.octweb.registry.api_predict_cases import ROW, predict
from tests.octweb.small_models import small_table
from trainer.errors import DataError


def test_every_training_row_gets_the_trees_answer(model, client_of, owner):
    table, _ = small_table()
    tree = model_file(model).tree
    colours = table.columns[3].schema.categories
    rows = [
        {"width": a, "height": b, "flag": int(c), "colour": colours[int(d)]} for a, b, c, d in table.matrix().tolist()
    ]
    body = predict(client_of(owner), model, {"rows": rows}).json()
    assert body["model"] == str(model.pk)
    assert (body["name"], body["version"], body["certificate"]["proved_optimal"]) == ("small-cart", 1, False)
    assert body["notes"] == []
    expected = tree.predict_proba(table.matrix())
    assert [p["leaf"] for p in body["predictions"]] == tree.apply(table.matrix()).tolist()
    assert [p["label"] for p in body["predictions"]] == [tree.classes[k] for k in tree.predict(table.matrix())]
    shares = [[p["probabilities"][c] for c in tree.classes] for p in body["predictions"]]
    assert np.allclose(shares, expected)


def test_explain_adds_the_path(model, client_of, owner):
    answer = predict(client_of(owner), model, {"rows": [ROW]}, "?explain=true").json()
    path = answer["predictions"][0]["path"]
    assert len(path) >= 2
    assert path[-1].startswith(f"So it is {answer['predictions'][0]['label']}")
    assert "path" not in predict(client_of(owner), model, {"rows": [ROW]}).json()["predictions"][0]
    assert predict(client_of(owner), model, {"rows": [ROW]}, "?explain=perhaps").status_code == 400


def test_only_permitted_users_may_call(model, client_of, owner, stranger, staff):
    statuses = [predict(client_of(u), model, {"rows": [ROW]}).status_code for u in (owner, staff, stranger, None)]
    assert statuses == [200, 200, 404, 401]
    assert predict(client_of(owner, scope="predict"), model, {"rows": [ROW]}).status_code == 200
    actions.ask_for_approval(model, by=owner)
    assert predict(client_of(stranger), model, {"rows": [ROW]}).status_code == 404
    actions.approve(model, by=staff)
    assert predict(client_of(stranger), model, {"rows": [ROW]}).status_code == 200
    actions.retire(model, by=staff)
    assert predict(client_of(stranger), model, {"rows": [ROW]}).status_code == 410


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"width": "wide"}, ("rows[1]", "width", "wide")),
        ({"width": None}, ("rows[1]", "width")),
        ({"widht": 3}, ("rows[1]", "widht", "width")),
        ({"width": "9007199254740993"}, ("rows[1]", "width")),
        ({"width": [1]}, ("rows[1]", "width")),
    ],
)
def test_errors_name_row_and_column(model, client_of, owner, change, words):
    answer = predict(client_of(owner), model, {"rows": [ROW, ROW | change]})
    assert answer.status_code == 422
    assert answer["Content-Type"] == "application/problem+json"
    assert all(word in answer.json()["detail"] for word in words)
    assert answer.json()["errors"][0]["attr"] == "rows[1]"


def test_an_unknown_category_is_predicted_and_stated(model, client_of, owner):
    assert 3 in model_file(model).tree.used_columns
    answer = predict(client_of(owner), model, {"rows": [ROW | {"colour": "mauve"}]})
    assert answer.status_code == 200
    assert "mauve" in answer.json()["notes"][0]
    assert "colour" in answer.json()["notes"][0]
    many = predict(client_of(owner), model, {"rows": [ROW | {"colour": "mauve"}] * 1000}).json()
    assert len(many["notes"]) == 101


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"7", b'{"rows": {}}', b"{}", b'{"rows": [], "row": 1}', b'{"rows": [{"width": NaN}]}']
)
def test_bodies_of_another_shape_are_400(model, client_of, owner, body):
    assert predict(client_of(owner), model, body).status_code == 400


def test_nan_says_to_send_null(model, client_of, owner):
    answer = predict(client_of(owner), model, b'{"rows": [{"width": NaN}]}')
    assert (answer.status_code, "JSON has no NaN: send null" in answer.json()["detail"]) == (400, True)


def test_limits(model, client_of, owner, settings):
    settings.MAX_PREDICT_ROWS = 2
    assert predict(client_of(owner), model, {"rows": [ROW] * 3}).status_code == 413
    settings.MAX_PREDICT_BYTES = 100
    assert predict(client_of(owner), model, {"rows": [ROW] * 2}).status_code == 413


def test_other_media_types_are_415(model, client_of, owner):
    answer = client_of(owner).post(f"/api/v1/models/{model.pk}/predict/", "a=1", content_type="text/xml")
    assert answer.status_code == 415


JUNK = [
    None,
    True,
    -1,
    1e308,
    10**400,
    "",
    "x" * 300,
    "\x00",
    [],
    {},
    [[]],
    {"width": 1},
    "NaN",
    -0.0,
    2**64,
    "7",
    "🌳",
]


def _spoil(rng: random.Random, body):
    """Return a valid body with one to three things changed."""
    body = copy.deepcopy(body)
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(6)
        if not isinstance(body, dict) or not isinstance(body.get("rows"), list) or not body["rows"]:
            break
        i = rng.randrange(len(body["rows"]))
        row = body["rows"][i]
        if kind == 0:
            body["rows"][i] = rng.choice(JUNK)
        elif kind == 1 and isinstance(row, dict):
            row[rng.choice([*ROW, "other", ""])] = rng.choice(JUNK)
        elif kind == 2 and isinstance(row, dict) and row:
            row.pop(rng.choice(list(row)))
        elif kind == 3:
            body[rng.choice(["rows", "extra", ""])] = rng.choice(JUNK)
        elif kind == 4:
            return rng.choice(JUNK)
        else:
            body["rows"] = rng.choice([body["rows"] * 3, [body["rows"]], body["rows"][:0]])
    return body


@pytest.mark.one_database
def test_300_malformed_bodies_never_break_the_server(model, client_of, owner):
    rng = random.Random(7)
    client = client_of(owner)
    seen = set()
    for _ in range(300):
        spoiled = _spoil(rng, {"rows": [ROW, ROW]})
        try:
            data = orjson.dumps(spoiled)
        except TypeError:  # orjson refuses integers beyond 64 bits, but other programs do send them
            data = repr(spoiled).replace("'", '"').replace("None", "null").replace("True", "true").encode()
        if rng.random() < 0.3:
            at = rng.randrange(len(data) + 1)
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + rng.randrange(3) :]
        answer = predict(client, model, data)
        seen.add(answer.status_code)
        assert answer.status_code in {200, 400, 422}, (answer.status_code, data)
        if answer.status_code != 200:
            assert answer.json()["detail"]
    assert seen == {200, 400, 422}


def test_values_formatted_as_in_messy_file_predict_as_numbers():
    from trainer.data.parsing.values import plain_values

    reading = {
        "columns": {
            "price": {"taken_for": "number", "decimal": ",", "thousands": ".", "unit": "€", "missing": ["unknown"]},
            "when": {"taken_for": "date", "form": "dd.mm.yyyy", "origin": "2024-01-01"},
        }
    }
    rows = [{"price": "1.234,5 €", "when": "01.02.2024", "x": 1}, {"price": 7, "when year": 2020}, {"price": "unknown"}]
    day = {"when year": 2024, "when month": 2, "when weekday": "Thursday", "when days since 2024-01-01": 31}
    assert plain_values(reading, rows) == [{"price": 1234.5, **day, "x": 1}, rows[1], {"price": None}]
    assert plain_values(reading, [{"when": "2024-02-01"}]) == [day]  # an ISO date has one meaning
    for row in ({"price": "1.5"}, {"when": "2024-13-01"}, {"when": "01.02.2024", "when year": 2024}):
        with pytest.raises(DataError, match=r"rows\[0\]"):
            plain_values(reading, [row])
    assert plain_values(None, rows) is rows
