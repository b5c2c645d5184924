"""POST models/{id}/explain/."""

from __future__ import annotations

import pytest

from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import actions
from tests.octweb.registry.api_explain_cases import explain
from tests.octweb.registry.api_predict_cases import ROW, predict
from tests.octweb.small_models import small_table

pytestmark = pytest.mark.one_database  # everything is computed from the tree


def test_each_flip_is_an_answer_of_predict(model, client_of, owner):
    table, _ = small_table()
    colours = table.columns[3].schema.categories
    rows = [
        {"width": a, "height": b, "flag": int(c), "colour": colours[int(d)]}
        for a, b, c, d in table.matrix()[:20].tolist()
    ]
    client = client_of(owner)
    found = explain(client, model, {"rows": rows}).json()
    answers = predict(client, model, {"rows": rows}).json()["predictions"]
    flipped = 0
    for row, record, answer in zip(rows, found["explanations"], answers, strict=True):
        assert {key: record[key] for key in answer} == answer
        assert (record["flip"] is None) != (record["no_flip"] is None)
        for flip in [record["flip"], *record["alternatives"]] if record["flip"] else []:
            other = row | {name: to for name, (_, to) in flip["changes"].items()}
            assert predict(client, model, {"rows": [other]}).json()["predictions"][0]["label"] == flip["label"]
            assert flip["label"] != answer["label"]
            flipped += 1
    assert flipped >= 20
    assert found["measured_on"]


def test_immutable_columns_stay(model, client_of, owner):
    never = dict.fromkeys([c.name for c in model_file(model).tree.schema], "never")
    (record,) = explain(client_of(owner), model, {"rows": [ROW], "change": never}).json()["explanations"]
    assert record["flip"] is None
    assert "No permitted change" in record["no_flip"]


def test_costs_decide_between_columns(model, client_of, owner):
    client = client_of(owner)
    compared = 0
    for width, height in [(a / 4, b / 4) for a in range(-4, 5, 2) for b in range(-4, 5, 2)]:
        body = {"rows": [ROW | {"width": width, "height": height}]}
        (first,) = explain(client, model, body).json()["explanations"]
        options = [f for f in [first["flip"], *first["alternatives"]] if f and f["columns"] == 1]
        options = [f for f in options if set(f["changes"]) <= {"width", "height"}]
        if len(options) < 2:
            continue
        compared += 1
        for chosen, other in (options, options[::-1]):
            (cheap,), (dear,) = chosen["changes"], other["changes"]
            answer = explain(client, model, body | {"cost": {cheap: 0.001, dear: 1000}}).json()
            flip = answer["explanations"][0]["flip"]
            assert list(flip["changes"]) == [cheap]
            at, to = flip["changes"][cheap]
            assert flip["distance"] == pytest.approx(0.001 * abs(to - at))
            assert flip["proved"]
            assert "costs as given" in answer["measured_on"]
    assert compared


def test_the_smallest_total_never_costs_more(model, client_of, owner):
    client = client_of(owner)
    rows = [{"colour": "red", "width": a / 4, "height": b / 4} for a in range(-4, 5) for b in range(-4, 5)]
    body = {"rows": [ROW | row for row in rows]}
    few = explain(client, model, body).json()
    cheap = explain(client, model, body | {"least": "total"}).json()
    assert (few["least"], cheap["least"]) == ("columns", "total")
    for one, other in zip(few["explanations"], cheap["explanations"], strict=True):
        assert (one["flip"] is None) == (other["flip"] is None)
        if one["flip"]:
            assert other["least"] == "total"
            assert other["flip"]["distance"] <= one["flip"]["distance"]
            assert other["flip"]["columns"] >= one["flip"]["columns"]


def test_only_permitted_users_may_explain(model, client_of, owner, stranger, staff):
    body = {"rows": [ROW]}
    statuses = [explain(client_of(u), model, body).status_code for u in (owner, staff, stranger, None)]
    assert statuses == [200, 200, 404, 401]
    assert explain(client_of(owner, scope="predict"), model, body).status_code == 200
    actions.ask_for_approval(model, by=owner)
    assert explain(client_of(stranger), model, body).status_code == 404
    actions.approve(model, by=staff)
    assert explain(client_of(stranger), model, body).status_code == 200
    actions.retire(model, by=staff)
    assert explain(client_of(stranger), model, body).status_code == 410


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        (b"[]", 400, "rows"),
        ({}, 400, "rows"),
        ({"rows": [ROW], "more": 1}, 400, "more"),
        ({"rows": [{**ROW, "width": "wide"}]}, 422, "width"),
        ({"rows": [ROW], "change": []}, 400, "change"),
        ({"rows": [ROW], "change": {"widht": "up"}}, 400, "widht"),
        ({"rows": [ROW], "change": {"width": ["a"]}}, 400, "width"),
        ({"rows": [ROW], "change": {"colour": [["a"]]}}, 400, "colour"),
        ({"rows": [ROW], "cost": []}, 400, "cost"),
        ({"rows": [ROW], "cost": {"widht": 1}}, 400, "widht"),
        ({"rows": [ROW], "cost": {"colour": 1}}, 400, "colour"),
        ({"rows": [ROW], "cost": {"width": 0}}, 400, "width"),
        ({"rows": [ROW], "cost": {"width": "1"}}, 400, "width"),
        ({"rows": [ROW], "least": "money"}, 400, "columns, total"),
        ({"rows": [ROW], "least": []}, 400, "columns, total"),
        ({"rows": [ROW], "wanted": "nothing"}, 400, "wanted"),
        ({"rows": [ROW], "wanted": ["nothing"]}, 400, "wanted"),
        ({"rows": [ROW] * 101}, 413, "100"),
    ],
)
def test_bad_bodies_are_refused_in_words(model, client_of, owner, body, status, word):
    answer = explain(client_of(owner), model, body)
    assert answer.status_code == status
    assert word in answer.content.decode()
