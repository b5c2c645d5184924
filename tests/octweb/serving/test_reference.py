"""The reference page lists all calls of the OpenAPI document."""

from __future__ import annotations

import pytest

from octweb.serving.reference import groups, skeleton, type_words
from octweb.serving.summaries import SUMMARIES

pytestmark = pytest.mark.django_db


def test_every_call_of_the_document_is_on_the_page(client, media):
    document = client.get("/api/schema/?format=json").json()
    page = client.get("/api/docs/").content.decode()
    calls = [(m.upper(), path, call) for path, ops in document["paths"].items() for m, call in ops.items()]
    shown = {(c["method"], c["path"]): c for group in groups() for c in group["calls"]}
    assert len(calls) == len(shown) > 40
    summaries = [call["summary"] for call in shown.values()]
    assert len(set(summaries)) == len(summaries)
    assert {call["operationId"] for _, _, call in calls} >= SUMMARIES.keys()
    for method, path, call in calls:
        assert f'<b class="verb">{method}</b> <code>{path}</code>' in page
        found = shown[method, path]
        assert [p["name"] for p in found["parameters"]] == [p["name"] for p in call.get("parameters", [])]
        assert set(call["responses"]) == {a["status"] for a in found["answers"]} | set(found["problems"])


def test_types_are_described_in_words():
    known = {"Kind": {"type": "string", "enum": ["a", "b"]}, "Point": {"properties": {"x": {"type": "number"}}}}
    point = {"$ref": "#/components/schemas/Point"}
    assert (
        type_words({"allOf": [{"$ref": "#/components/schemas/Kind"}], "nullable": True}, known)
        == 'one of "a", "b" or null'
    )
    assert type_words({"type": "integer", "minimum": 0, "maximum": 9}, known) == "integer from 0 to 9"
    assert (
        type_words({"oneOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]}, known) == "text (uuid) or null"
    )
    assert skeleton({"type": "array", "items": point}, known) == [{"x": "number"}]
    known["Loop"] = {"properties": {"next": {"$ref": "#/components/schemas/Loop"}}}
    assert skeleton({"$ref": "#/components/schemas/Loop"}, known) == {"next": {"next": {"next": {"next": "object"}}}}
