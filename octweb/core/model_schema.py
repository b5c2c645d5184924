"""Describe model files, certificates and figures in the OpenAPI document.

The JSON Schema of model files is converted, so the document follows it. Certificates and progress follow their
dataclasses.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Mapping
from enum import EnumType
from typing import Any

from trainer.certificate import Certificate, Progress
from trainer.tree.document import SCHEMA_PATH

Schema = dict[str, Any]
PREFIX = "#/components/schemas/"
# name of a component of the API schema → its place in the schema of model files
PARTS = {
    "ModelColumn": ("columns", "items"),
    "TreeNode": ("nodes", "items"),
    "HeldOutRows": ("rows",),
    "TriedSizes": ("sizes",),
    "ColumnContracts": ("contract",),
    "TableReading": ("reading",),
}
PYTHON_TYPES: dict[Any, Schema] = {
    float: {"type": "number"},
    int: {"type": "integer"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
}
ANY_OBJECT: Schema = {"type": "object", "additionalProperties": {}}
FIGURE: Schema = {
    "type": "object",
    "description": "a figure of Plotly: https://plotly.com/javascript/reference/",
    "required": ["data", "layout"],
    "properties": {
        "data": {
            "type": "array",
            "items": {"type": "object", "properties": {"type": {"type": "string"}, "name": {"type": "string"}}},
        },
        "layout": ANY_OBJECT,
        "config": ANY_OBJECT,
    },
}
MEASURED_ROWS: Schema = {
    "type": "object",
    "description": "how a tree answers a set of rows; costs, folds and goals add members (docs/model-file.md)",
    "properties": {
        "n": {"type": "number", "description": "rows, or their weight"},
        "correct": {"type": "number"},
        "accuracy": {"type": "number", "nullable": True},
        "confusion": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "number"}},
            "description": "rows by actual and predicted class",
        },
    },
}
TRAIN_RECORD: Schema = {
    "type": "object",
    "description": "the JSON of `train`; empty before the run has ended",
    "properties": {
        "status": {"type": "string"},
        "claim": {"type": "string", "description": "the claim in words"},
        "proved_optimal": {"type": "boolean"},
        "train_accuracy": {"type": "number", "nullable": True},
        "unseen_accuracy": {"type": "number"},
        "features": {"type": "integer"},
        "encoded_features": {"type": "integer", "nullable": True},
        "classes": {"type": "array", "items": {"type": "string"}},
        "missing": {"type": "object", "additionalProperties": {"type": "string"}},
        "version": {"type": "string", "description": "of octweb"},
    },
}
# members that the JSON of `train` repeats from the certificate
REPEATED = (
    "method", "objective", "bound", "gap", "mip_gap", "unproved", "scope", "note", "correct", "n", "depth",
    "leaves", "seconds", "nodes", "solver", "solver_version", "warm_start_objective", "cuts", "splits",
    "splits_proved", "subtrees", "subtrees_proved",
)  # fmt: skip
METRICS: Schema = {
    "type": "object",
    "description": "measurements by set of rows: `train`, `test`, `cross_validation`",
    "additionalProperties": {"$ref": f"{PREFIX}MeasuredRows"},
}


def reference(name: str) -> Schema:
    """Return a reference to a component of this module."""
    return {"$ref": PREFIX + name}


def add_components(result: Schema, **_: Any) -> Schema:
    """Add the components to the OpenAPI document. drf-spectacular calls this."""
    result["components"]["schemas"] |= components()
    return result


@functools.cache
def components() -> dict[str, Schema]:
    """Return the schemas of the components by name."""
    source = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    properties = source["properties"]
    schemas: dict[str, Schema] = {_component(name): schema for name, schema in source["$defs"].items()}
    for name, (member, *below) in PARTS.items():
        holder = properties if not below else properties[member]
        key = below[0] if below else member
        schemas[name] = holder[key]
        holder[key] = reference(name)
    properties["certificate"] = reference("Certificate")
    properties["metrics"] = reference("Metrics")
    schemas["ModelFile"] = {name: part for name, part in source.items() if name not in ("$schema", "$defs", "title")}
    named: dict[str, Schema] = {}
    for name, schema in schemas.items():
        named |= _variants(name, schema)
    converted = {name: openapi(schema) for name, schema in named.items()}
    column = converted["ModelColumn"]
    used = {"type": "boolean", "description": "whether the tree asks the column"}
    converted["UsedColumn"] = column | {"properties": column["properties"] | {"used": used}}
    return dict(
        sorted(
            (
                converted
                | {
                    "Certificate": of_dataclass(Certificate),
                    "SearchProgress": of_dataclass(Progress),
                    "TrainRecord": _train_record(),
                    "Metrics": METRICS,
                    "MeasuredRows": MEASURED_ROWS,
                    "Figure": FIGURE,
                }
            ).items()
        )
    )


def _train_record() -> Schema:
    """Return the schema of the JSON of `train`, which repeats most members of the certificate."""
    certificate = of_dataclass(Certificate)["properties"]
    return TRAIN_RECORD | {"properties": {name: certificate[name] for name in REPEATED} | TRAIN_RECORD["properties"]}


def _component(name: str) -> str:
    """Return the component name of a definition: table_contract → TableContract."""
    return "".join(word.capitalize() for word in name.split("_"))


def _variants(name: str, schema: Schema) -> dict[str, Schema]:
    """Return a component, and a component for each of its alternatives.

    Code generators need named alternatives. Splits are distinguished by `kind`, nodes by their members.
    """
    alternatives = schema.get("oneOf")
    if alternatives is None:
        return {name: schema}
    if "properties" not in schema:
        kinds = {part["properties"]["kind"]["const"]: part for part in alternatives}
        names = {kind: f"{kind.capitalize()}{name}" for kind in kinds}
        mapping = {kind: PREFIX + names[kind] for kind in kinds}
        union = {
            "oneOf": [reference(n) for n in names.values()],
            "discriminator": {"propertyName": "kind", "mapping": mapping},
        }
        return {name: union} | {names[kind]: part for kind, part in kinds.items()}
    names = {"TreeLeaf": alternatives[0]["required"], "TreeBranch": alternatives[1]["required"]}
    parts: dict[str, Schema] = {name: {"oneOf": [reference(n) for n in names]}}
    for part_name, required in names.items():
        others = {member for other in names.values() for member in other} - set(required)
        properties = {member: part for member, part in schema["properties"].items() if member not in others}
        parts[part_name] = {
            "type": "object",
            "required": [*schema["required"], *required],
            "properties": properties,
        }
    return parts


def openapi(schema: Any) -> Any:
    """Convert a JSON Schema (2020-12) to the dialect of OpenAPI 3.0."""
    if isinstance(schema, list):
        return [openapi(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = dict(schema)
    if "$ref" in schema:
        place = schema["$ref"]
        return reference(_component(place.rpartition("/")[2])) if place.startswith("#/$defs/") else schema
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if "prefixItems" in schema:
        schema["items"] = {"anyOf": schema.pop("prefixItems")}
    if schema.get("type") == "array":
        schema.setdefault("items", {})
    for side, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if side in schema:
            schema[limit] = schema[side]
            schema[side] = True
    kinds = schema.get("type")
    if isinstance(kinds, list):
        schema |= _types(schema, kinds)
    elif kinds is None and "enum" in schema:
        schema["type"] = "boolean" if isinstance(schema["enum"][0], bool) else _json_type(schema["enum"][0])
    return {key: _convert_value(key, value) for key, value in schema.items()}


def _convert_value(key: str, value: Any) -> Any:
    """Convert the value of a keyword. Property names and plain values are not keywords, so they stay unchanged."""
    if key in ("enum", "required", "default", "discriminator"):
        return value
    if key == "properties":
        return {name: openapi(part) for name, part in value.items()}
    return openapi(value)


def _types(schema: Schema, kinds: list[str]) -> Schema:
    """Return the keywords for a list of types. Remove `type` from the schema if several remain."""
    other = [kind for kind in kinds if kind != "null"]
    nullable: Schema = {"nullable": True} if "null" in kinds else {}
    if len(other) == 1:
        return {"type": other[0], **nullable}
    del schema["type"]
    return {"anyOf": [{"type": kind} for kind in other], **nullable}


def _json_type(value: Any) -> str:
    return {int: "integer", float: "number", str: "string"}[type(value)]


def of_dataclass(record: Any) -> Schema:
    """Return the schema of a dataclass that `to_json` writes.

    No member is required, because files may lack newer ones.
    """
    hints = typing.get_type_hints(record)
    summary = str(record.__doc__ or "").split("\n")[0]
    properties = {field.name: _of_hint(hints[field.name]) for field in dataclasses.fields(record)}
    return {"type": "object", "description": summary, "properties": properties}


def _of_hint(hint: Any) -> Schema:
    """Return the schema of a type hint."""
    if hint in PYTHON_TYPES:
        # JSON has no infinity and no NaN, so such floats are written as null.
        return PYTHON_TYPES[hint] | ({"nullable": True} if hint is float else {})
    if isinstance(hint, EnumType):
        return {"type": "string", "enum": [str(member) for member in hint]}  # type: ignore[var-annotated]
    parts = typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        (part,) = (part for part in parts if part is not types.NoneType)
        return _of_hint(part) | {"nullable": True}
    if typing.get_origin(hint) is tuple:
        return {"type": "array", "items": _of_hint(parts[0])}
    if typing.get_origin(hint) in (dict, Mapping):
        return {"type": "object", "additionalProperties": PYTHON_TYPES.get(parts[1], {})}
    return {}
