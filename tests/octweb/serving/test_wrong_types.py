"""Wrong types in any part of a valid call never cause a server error."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.octweb.registry.api_predict_cases import ROW
from tests.octweb.serving.protocol_types_cases import body

pytestmark = pytest.mark.django_db

WRONG = [None, [], {}, [[]], [{}], 0, -1, 1.5, True, "", "x", 10**30, [1, "x", None]]


def parts(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value within a document."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from parts(inner, (*path, key))


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    out = copy.deepcopy(document)
    inner = out
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return out


@pytest.mark.slow
@pytest.mark.parametrize("api", ["v1", "v2"])
def test_no_wrong_type_is_a_server_error(client_of, approved, owner, api):
    client = client_of(owner)
    client.raise_request_exception = False
    if api == "v2":
        address = f"/v2/models/{approved.family.name}/infer"
        document = body() | {"outputs": [{"name": "label"}]}
        document["parameters"] = {"binary_data_output": False}
        document["inputs"][0]["parameters"] = {"content_type": "np"}
    else:
        address = f"/api/v1/models/{approved.pk}/predict/"
        document = {"rows": [ROW, ROW]}
    assert client.post(address, document, format="json").status_code == 200
    seen = set()
    for path in parts(document):
        for wrong in WRONG:
            answer = client.post(address, replaced(document, path, wrong), format="json")
            assert answer.status_code < 500, (path, wrong)
            seen.add(answer.status_code)
    assert seen >= {200, 400}
