"""The OpenAPI document: typed model files and figures, both protocols, and stable names."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.urls import URLPattern

from octweb.core.model_schema import components, openapi
from octweb.registry.document.model_files import document_of
from octweb.serving import v2_urls
from tests.conftest import ROOT
from tests.octweb.registry.api_predict_cases import ROW
from tests.octweb.small_models import trained
from trainer.tree.document import check

OPERATIONS = Path(__file__).with_name("operations.txt")
# JSON whose members depend on what the owner wrote, or on the protocol's extension
UNTYPED = {"models_dossier", "v2_model_config", "v2_version_model_config"}
TREES = sorted((ROOT / "docs" / "methods" / "trees").glob("*.json"))


def answer_schema(document, path: str, method: str = "get") -> dict[str, Any]:
    return document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]


@pytest.mark.parametrize("path", TREES, ids=lambda path: path.stem)
def test_model_file_matches_the_document(complaints, path):
    assert complaints({"$ref": "#/components/schemas/ModelFile"}, json.loads(path.read_text())) == []


def leaf_of(file) -> dict[str, Any]:
    return next(node for node in file["nodes"] if "class" in node)


def branch_of(file) -> dict[str, Any]:
    return next(node for node in file["nodes"] if "split" in node)


@pytest.mark.parametrize(
    "change",
    [
        lambda file: leaf_of(file).pop("class"),
        lambda file: branch_of(file).pop("left"),
        lambda file: branch_of(file)["split"].update(kind="magic"),
        lambda file: branch_of(file)["split"].update(threshold="5"),
        lambda file: branch_of(file)["split"].update(extra=1),
        lambda file: file["certificate"].update(status="wonderful"),
        lambda file: file["certificate"].update(bound="1"),
        lambda file: file["columns"][0].update(change_unit=0),
        lambda file: file["metrics"].update(train=7),
        lambda file: file.update(format_version=2),
    ],
)
def test_wrong_model_file_is_not_as_the_document_says(complaints, change):
    file = trained("cart", folds=3)
    schema = {"$ref": "#/components/schemas/ModelFile"}
    assert complaints(schema, file) == []
    changed = copy.deepcopy(file)
    change(changed)
    assert complaints(schema, changed) != []


def test_components_follow_the_schema_of_model_files():
    """The document has a component for each kind of split and node that the library accepts."""
    check(trained("cart"))
    known = components()
    kinds = known["Split"]["discriminator"]["mapping"]
    assert {known[name.rpartition("/")[2]]["properties"]["kind"]["enum"][0] for name in kinds.values()} == set(kinds)
    assert len(kinds) >= 5
    assert known["TreeBranch"]["properties"].keys() >= {"split", "left", "right"}


@pytest.mark.parametrize(
    ("schema", "converted"),
    [
        ({"const": 1}, {"enum": [1], "type": "integer"}),
        ({"type": ["number", "null"]}, {"type": "number", "nullable": True}),
        ({"type": ["string", "number"]}, {"anyOf": [{"type": "string"}, {"type": "number"}]}),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "number", "minimum": 0, "exclusiveMinimum": True}),
        ({"$ref": "#/$defs/class_type"}, {"$ref": "#/components/schemas/ClassType"}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"properties": {"const": {"const": "x"}}}, {"properties": {"const": {"enum": ["x"], "type": "string"}}}),
    ],
)
def test_keywords_of_json_schema_are_converted(schema, converted):
    assert openapi(schema) == converted


def test_every_json_answer_has_a_shape(document):
    untyped = []
    for operations in document["paths"].values():
        for call in operations.values():
            for status, answer in call["responses"].items():
                schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
                if status.startswith("2") and schema.get("type") == "object" and not schema.get("properties"):
                    untyped.append(call["operationId"])
    assert set(untyped) == UNTYPED


def test_operations_keep_their_names(document):
    """A changed name breaks generated clients. OCTWEB_WRITE_OPERATIONS=1 writes the file after a call was added."""
    lines = [
        f"{call['operationId']} {method.upper()} {path}"
        for path, ops in document["paths"].items()
        for method, call in ops.items()
    ]
    assert len({line.split()[0] for line in lines}) == len(lines)
    if "OCTWEB_WRITE_OPERATIONS" in os.environ:
        OPERATIONS.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    assert sorted(lines) == OPERATIONS.read_text(encoding="utf-8").splitlines()


def test_every_address_of_the_protocol_is_described(document):
    described = {path for path in document["paths"] if path.startswith("/v2")}
    routes = [str(p.pattern) for p in v2_urls.urlpatterns if isinstance(p, URLPattern)]
    served = {f"/v2{route}".replace("<str:", "{").replace(">", "}").replace("^/?$", "") for route in routes}
    assert described == served
    assert "/invocations" in document["paths"]


@pytest.mark.django_db
def test_answers_of_models_match_the_schema(document, complaints, client_of, owner, approved):
    client = client_of(owner)
    base = f"/api/v1/models/{approved.pk}/"
    for path in ("", "figures/tree/", "figures/tree-map/"):
        answer = client.get(base + path)
        assert answer.status_code == 200
        assert complaints(answer_schema(document, "/api/v1/models/{id}/" + path), answer.json()) == [], path
    file = json.loads(document_of(approved))
    assert complaints(answer_schema(document, "/api/v1/models/{id}/download/"), file) == []


@pytest.mark.django_db
def test_answers_of_both_protocols_match_the_schema(document, complaints, client_of, owner, approved):
    client = client_of(owner, scope="predict")
    tensors = [
        {"name": name, "datatype": "BYTES" if isinstance(v, str) else "FP64", "shape": [1], "data": [v]}
        for name, v in ROW.items()
    ]
    calls = {
        "/v2": None, "/v2/health/live": None, "/v2/health/ready": None, "/v2/repository/index": {},
        **{f"/v2/models/{{name}}{version}{end}": body for version in ("", "/versions/{version}")
           for end, body in (("", None), ("/ready", None), ("/config", None), ("/infer", {"inputs": tensors}))},
        "/invocations": {"dataframe_records": [ROW], "params": {"output": "records"}},
    }  # fmt: skip
    for path, body in calls.items():
        address = path.format(name=approved.family.name, version=1)
        answer = client.get(address) if body is None else client.post(address, body, format="json")
        assert answer.status_code == 200, (path, answer.content)
        method = "get" if body is None else "post"
        assert complaints(answer_schema(document, path, method), json.loads(answer.content)) == [], path
        request = document["paths"][path][method].get("requestBody")
        if request is not None:
            assert complaints(request["content"]["application/json"]["schema"], body) == [], path
