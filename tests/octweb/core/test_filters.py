"""Search, dates and order of the API's lists."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from octweb.core.parameters import schema_document
from octweb.registry.models import TreeModel

pytestmark = pytest.mark.django_db
MODELS = "/api/v1/models/"
LISTS = ("datasets", "runs", "experiments", "workbenches", "models", "predictions")


@pytest.fixture
def api(client_of, owner):
    return client_of(owner)


@pytest.fixture
def models(register):
    """Provide three models of three days: Birch, Ash and Cedar. Ash has no unseen accuracy."""
    rows = [("Birch wood", 1, 0.7), ("Ash wood", 2, None), ("Cedar", 3, 0.9)]
    for title, day, unseen in rows:
        model = register(title=title)
        created = datetime(2026, 3, day, 12, tzinfo=UTC)
        TreeModel.objects.filter(pk=model.pk).update(created=created, unseen_accuracy=unseen)
    return rows


def titles(api, **query):
    answer = api.get(MODELS, query)
    assert answer.status_code == 200, answer.content
    return [model["title"].split()[0] for model in answer.json()["results"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, "Cedar Ash Birch"),
        ({"ordering": "-created"}, "Cedar Ash Birch"),
        ({"ordering": "created"}, "Birch Ash Cedar"),
        ({"ordering": "title"}, "Ash Birch Cedar"),
        ({"ordering": "-title"}, "Cedar Birch Ash"),
        ({"ordering": "unseen_accuracy"}, "Birch Cedar Ash"),
        ({"ordering": "-unseen_accuracy"}, "Cedar Birch Ash"),
        ({"search": "WOOD"}, "Ash Birch"),
        ({"search": "wood birch"}, "Birch"),
        ({"search": "oak"}, ""),
        ({"since": "2026-03-02"}, "Cedar Ash"),
        ({"until": "2026-03-02"}, "Ash Birch"),
        ({"since": "2026-03-01T12:00:00Z", "until": "2026-03-03T11:59:59Z"}, "Ash Birch"),
        ({"since": "2026-03-02T13:00:01+01:00"}, "Cedar"),
        ({"search": "wood", "ordering": "title", "since": "2026-03-02"}, "Ash"),
    ],
)
def test_list_is_searched_bounded_and_sorted(api, models, query, expected):
    assert titles(api, **query) == expected.split()


def test_sorted_list_has_pages_by_number(api, models):
    first = api.get(MODELS, {"ordering": "title", "page_size": 2}).json()
    assert "page=2" in first["next"]
    assert "ordering=title" in first["next"]
    second = api.get(first["next"]).json()
    assert [model["title"] for model in second["results"]] == ["Cedar"]
    assert second["next"] is None


def test_filters_stay_in_the_links_of_cursors(api, models):
    first = api.get(MODELS, {"search": "wood", "page_size": 1}).json()
    assert (first["count"], "cursor=" in first["next"]) == (2, True)
    assert [model["title"] for model in api.get(first["next"]).json()["results"]] == ["Birch wood"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"ordering": "sha256"}, "Use one of created, name, title"),
        ({"ordering": "-"}, "is not an order"),
        ({"ordering": "title", "cursor": "abc"}, "Leave one out"),
        ({"since": "yesterday"}, "is neither a date nor a time"),
        ({"until": "2026-02-30"}, "is neither a date nor a time"),
        ({"since": "0001-01-01T00:00:00+01:00"}, "is neither a date nor a time"),
        ({"until": "9999-12-31T23:59:59-01:00"}, "is neither a date nor a time"),
        ({"search": "a\x00b"}, "null characters"),
        ({"search": "a" * 201}, "at most 200"),
    ],
)
def test_invalid_filter_is_named(api, query, words):
    refused = api.get(MODELS, query)
    assert refused.status_code == 400
    assert words in refused.json()["detail"]
    assert refused.json()["errors"][0]["attr"] in query


@pytest.mark.parametrize("name", LISTS)
def test_every_list_takes_each_of_its_orders(api, name):
    call = schema_document()["paths"][f"/api/v1/{name}/"]["get"]
    parameters = {p["name"]: p for p in call["parameters"]}
    assert {"search", "since", "until", "ordering"} <= parameters.keys()
    for order in parameters["ordering"]["schema"]["enum"]:
        query = {"ordering": order, "search": "x", "since": "2026-01-01", "until": "2026-12-31"}
        assert api.get(f"/api/v1/{name}/", query).status_code == 200, order
