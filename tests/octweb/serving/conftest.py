"""Fixtures of tests of the OpenAPI document."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from octweb.core.parameters import schema_document


def json_schema(schema: Any) -> Any:
    """Return a schema of OpenAPI 3.0 as a JSON Schema of draft 4, which knows no `nullable`."""
    if isinstance(schema, list):
        return [json_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: json_schema(part) for key, part in schema.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") is True else plain


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return schema_document()


@pytest.fixture(scope="module")
def complaints(document):
    """Provide a function that lists where a value violates a schema of the document."""
    known = json_schema(document["components"])

    def find(schema: dict[str, Any], value: Any) -> list[str]:
        whole = json_schema(schema) | {"components": known}
        return [
            f"{list(e.absolute_path)}: {e.message}"[:300] for e in jsonschema.Draft4Validator(whole).iter_errors(value)
        ]

    return find
