"""Look up the query parameters that the OpenAPI document declares for a call."""

from __future__ import annotations

import functools
import re
import threading
from typing import Any

from drf_spectacular.generators import SchemaGenerator

from octweb.core.problems import CONTENT_TYPE

Schema = dict[str, Any]
# drf-spectacular loads its extensions at the first use, which failed when two threads did so at once
_BUILDING = threading.RLock()
PROBLEM = {"content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}, "description": ""}


class LockedGenerator(SchemaGenerator):
    """Generator that builds OpenAPI documents one at a time. Its base class is not typed."""

    def get_schema(self, request: Any = None, public: bool = False) -> Schema:
        with _BUILDING:
            document: Schema = super().get_schema(request=request, public=public)  # type: ignore[no-untyped-call]
            return document


def schema_document() -> Schema:
    """Return the OpenAPI document. It is cached, because it does not change while the server runs."""
    with _BUILDING:
        return _build_document()


@functools.cache
def _build_document() -> Schema:
    return LockedGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]


def declared_parameters(path: str, method: str) -> frozenset[str]:
    """Return the names of the query parameters that the OpenAPI document declares for a call."""
    method = "get" if method == "HEAD" else method.lower()
    for pattern, operations in _operations():
        if pattern.fullmatch(path):
            return operations.get(method, frozenset())
    return frozenset()


@functools.cache
def _operations() -> list[tuple[re.Pattern[str], dict[str, frozenset[str]]]]:
    """Return for each path the parameters by method. Paths with fewer placeholders come first."""
    paths = schema_document()["paths"]
    pairs = []
    for path in sorted(paths, key=lambda path: path.count("{")):
        pattern = re.compile("[^/]+".join(re.escape(part) for part in re.split(r"{\w+}", path)))
        operations = {
            method: frozenset(p["name"] for p in operation.get("parameters", []) if p["in"] == "query")
            for method, operation in paths[path].items()
        }
        pairs.append((pattern, operations))
    return pairs


def document_refusals(result: Schema, generator: Any, request: Any, public: bool) -> Schema:
    """Declare status 400 for every call, because every call refuses unknown parameters. A hook of drf-spectacular."""
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"].setdefault("400", PROBLEM)
    return result
