"""Answers and errors parse with the types that are generated from the protocol."""

from __future__ import annotations

import pytest
from open_inference.openapi.types import (
    InferenceErrorResponse,
    InferenceResponse,
    MetadataModelResponse,
    MetadataServerResponse,
)

from octweb.serving.inference import OUTPUTS
from tests.octweb.registry.api_predict_cases import ROW
from tests.octweb.serving.protocol_types_cases import body

pytestmark = pytest.mark.django_db


def test_server_and_model(client_of, approved, owner):
    client = client_of(owner)
    name = approved.family.name
    assert MetadataServerResponse(**client.get("/v2").json()).name == "octweb"
    for address in (f"/v2/models/{name}", f"/v2/models/{name}/versions/1"):
        model = MetadataModelResponse(**client.get(address).json())
        assert (model.name, model.versions) == (name, ["1"])
        assert {t.name for t in model.inputs} == set(ROW)
        assert [t.name for t in model.outputs] == list(OUTPUTS)


@pytest.mark.parametrize("outputs", [None, ["label"], ["path", "leaf"]])
def test_answers(client_of, approved, owner, outputs):
    wanted = {} if outputs is None else {"outputs": [{"name": n} for n in outputs]}
    answer = client_of(owner).post(f"/v2/models/{approved.family.name}/infer", body() | wanted, format="json")
    found = InferenceResponse(**answer.json())
    assert (found.id, found.model_name, found.model_version) == ("r1", approved.family.name, "1")
    assert [o.name for o in found.outputs] == (outputs or ["label", "probabilities", "leaf"])


def test_errors(client_of, approved, owner):
    answer = client_of(owner).post(f"/v2/models/{approved.family.name}/infer", body(width="wide"), format="json")
    assert answer.status_code == 400
    assert "'width'" in InferenceErrorResponse(**answer.json()).error
