"""Show the API reference, which is made from the OpenAPI document."""

from __future__ import annotations

import functools
import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from octweb.core.parameters import schema_document

METHODS = ("get", "post", "put", "patch", "delete")
DEEPEST = 4  # levels of nested objects that the page spells out
Schema = dict[str, Any]


@require_GET
def reference(request: HttpRequest) -> HttpResponse:
    """Render all calls with parameters, bodies and responses, grouped by tag."""
    return render(request, "serving/reference.html", {"groups": groups()})


@functools.cache
def groups() -> list[dict[str, Any]]:
    """Return the calls of each tag in the order of the document. They are cached for the life of the process."""
    document = schema_document()
    schemas = document["components"]["schemas"]
    calls_by_tag: dict[str, list[dict[str, Any]]] = {}
    for path, operations in document["paths"].items():
        for method in METHODS:
            if method in operations:
                call = operations[method]
                calls_by_tag.setdefault((call.get("tags") or ["other"])[0], []).append(
                    _call(path, method, call, schemas)
                )
    return [{"name": name, "calls": calls} for name, calls in calls_by_tag.items()]


def _call(path: str, method: str, call: Schema, known: Schema) -> dict[str, Any]:
    description = call.get("description", "").strip()
    bodies = (call.get("requestBody") or {}).get("content", {})
    answers = sorted(call.get("responses", {}).items())
    return {
        "id": call["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": call.get("summary") or description.split("\n")[0],
        "description": description,
        "parameters": [
            {
                "name": p["name"],
                "where": p["in"],
                "required": p.get("required", False),
                "type": type_words(p.get("schema", {}), known),
                "words": p.get("description", ""),
            }
            for p in call.get("parameters", [])
        ],
        "bodies": [_content(kind, content, known) for kind, content in bodies.items()],
        "answers": [
            {
                "status": status,
                "contents": [_content(kind, c, known) for kind, c in answer.get("content", {}).items()],
            }
            for status, answer in answers
            if status.startswith("2")
        ],
        "problems": [status for status, _ in answers if not status.startswith("2")],
    }


def _content(kind: str, content: Schema, known: Schema) -> dict[str, Any]:
    """Return the media type of a body or response, and its skeleton as text if it is JSON or a form."""
    schema = content.get("schema", {})
    has_shape = kind.endswith("json") or kind.startswith("multipart")
    shape = skeleton(schema, known) if has_shape else None
    return {"kind": kind, "shape": json.dumps(shape, indent=2, ensure_ascii=False) if has_shape else ""}


def skeleton(schema: Schema, known: Schema, depth: int = 0) -> Any:
    """Return an example of the schema's shape, with types in words instead of values."""
    schema = _resolve_schema(schema, known)
    if "properties" in schema:
        if depth >= DEEPEST:
            return "object"
        return {name: skeleton(part, known, depth + 1) for name, part in schema["properties"].items()}
    if schema.get("type") == "array":
        return [skeleton(schema.get("items", {}), known, depth + 1)]
    return type_words(schema, known)


def type_words(schema: Schema, known: Schema) -> str:
    """Return the type in words: `integer from 0 to 9`, `one of "a", "b"`, `text (uuid) or null`."""
    schema = _resolve_schema(schema, known)
    choices = [type_words(part, known) for part in schema.get("oneOf") or schema.get("anyOf") or ()]
    if choices:
        words = " or ".join(dict.fromkeys(choices))
    elif "enum" in schema:
        words = "one of " + ", ".join(json.dumps(v) for v in schema["enum"])
    else:
        words = {"string": "text", "": "any value"}.get(str(schema.get("type", "")), str(schema.get("type")))
        words += f" ({schema['format']})" if "format" in schema else ""
        low = schema.get("minimum")
        high = schema.get("maximum")
        words += f" from {low}" if low is not None else ""
        words += f" to {high}" if high is not None else ""
    return f"{words} or null" if schema.get("nullable") and "null" not in words else words


def _resolve_schema(schema: Schema, known: Schema) -> Schema:
    """Return the schema that a reference names, or the only part of an `allOf`."""
    while "$ref" in schema or len(schema.get("allOf", ())) == 1:
        inner = known[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema["allOf"][0]
        schema = inner | {k: v for k, v in schema.items() if k not in ("$ref", "allOf")}
    return schema
