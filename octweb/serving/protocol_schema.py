"""Describe `/v2` and `/invocations` in the OpenAPI document.

Their views read bodies of several media types themselves, so the descriptions are written here.
"""

from __future__ import annotations

from typing import Any

from octweb.core.model_schema import ANY_OBJECT, Schema, reference
from octweb.registry.prediction.retired import DRY_RUN_HEADER
from octweb.serving.invocations import FORMATS, HEADER, OUTPUTS
from octweb.serving.tensors import JSON_LENGTH

TEXT: Schema = {"type": "string"}
NUMBERS: Schema = {"type": "array", "items": {"type": "integer"}}
PARAMETERS: Schema = ANY_OBJECT
ROWS: Schema = {"type": "array", "items": {}}
SECURITY: list[dict[str, list[str]]] = [{"token": []}, {"cookieAuth": []}]
# statuses of the errors of a call
STATUSES = (400, 401, 403, 404, 406, 410, 429)
INFER_STATUSES = (400, 401, 403, 404, 406, 410, 413, 415, 422, 429, 503)
BINARY_CONTENT: Schema = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return schema | {"required": list(required)} if required else schema


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


TENSOR = _object(
    ("name", "shape", "datatype"), name=TEXT, shape=NUMBERS, datatype=TEXT, parameters=PARAMETERS, data=ROWS
)  # `data` is optional, because the values may follow the JSON as bytes
COMPONENTS: dict[str, Schema] = {
    "InferenceTensor": TENSOR,
    "InferenceTensorMetadata": _object(
        ("name", "shape", "datatype"), name=TEXT, shape=NUMBERS, datatype=TEXT, parameters=PARAMETERS
    ),
    "InferenceRequest": _object(
        ("inputs",),
        id=TEXT,
        parameters=PARAMETERS,
        inputs=_list(reference("InferenceTensor")),
        outputs=_list(_object(("name",), name=TEXT, parameters=PARAMETERS)),
    ),
    "InferenceResponse": _object(
        ("model_name", "outputs"),
        model_name=TEXT,
        model_version=TEXT,
        id=TEXT,
        parameters=PARAMETERS,
        outputs=_list(reference("InferenceTensor")),
    ),
    "InferenceServer": _object(("name", "version", "extensions"), name=TEXT, version=TEXT, extensions=_list(TEXT)),
    "InferenceModel": _object(
        ("name", "platform", "inputs", "outputs"),
        name=TEXT,
        versions=_list(TEXT),
        platform=TEXT,
        inputs=_list(reference("InferenceTensorMetadata")),
        outputs=_list(reference("InferenceTensorMetadata")),
        parameters=PARAMETERS,
    ),
    "InferenceModelReady": _object(("name", "ready"), name=TEXT, version=TEXT, ready={"type": "boolean"}, error=TEXT),
    "InferenceModelState": _object(
        ("name", "state"),
        name=TEXT,
        version=TEXT,
        state={"type": "string", "enum": ["READY", "UNAVAILABLE"]},
        reason=TEXT,
    ),
    "InvocationRequest": {
        "type": "object",
        "description": f"exactly one of {', '.join(FORMATS)}",
        "properties": {
            "dataframe_split": _object(("columns", "data"), columns=_list(TEXT), data=_list(ROWS), index=ROWS),
            "dataframe_records": _list(ANY_OBJECT),
            "instances": ROWS,
            "inputs": {},
            "params": _object((), output={"type": "string", "enum": list(OUTPUTS)}),
        },
    },
    "InvocationResponse": _object(("predictions",), predictions=ROWS),
}
NAME = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": TEXT,
    "description": "the name under which it is served",
}
VERSION = {
    "name": "version",
    "in": "path",
    "required": True,
    "schema": TEXT,
    "description": "a whole number, such as 1",
}
DRY_RUN = {"name": DRY_RUN_HEADER, "in": "header", "schema": {"type": "string", "enum": ["0", "1"]}, "description": "1: ask a retired model, as its owner"}  # fmt: skip
MODEL_QUERY = [
    {"name": "model", "in": "query", "schema": TEXT, "description": f"the name; also as the header {HEADER}"},
    {"name": "version", "in": "query", "schema": TEXT},
]


def _content(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _call(
    tag: str, name: str, summary: str, answer: Schema, *, problems: tuple[int, ...] = STATUSES, **members: Any
) -> Schema:
    """Return a call that answers 200 with this content, or a problem with one of the statuses of `problems`.

    `members` are further members of the operation, such as `parameters`.
    """
    answers = {"200": {"content": answer, "description": ""}}
    answers |= {str(status): {"content": _content(reference("Problem")), "description": ""} for status in problems}
    return {
        "operationId": name,
        "summary": summary,
        "tags": [tag],
        "security": SECURITY,
        "responses": answers,
    } | members


def _infer(name: str, what: str, parameters: list[Schema]) -> Schema:
    body = {
        "required": True,
        "description": f"JSON, or JSON followed by the bytes of tensors, with its length in the header {JSON_LENGTH}",
        "content": _content(reference("InferenceRequest")) | BINARY_CONTENT,
    }
    answer = _content(reference("InferenceResponse")) | BINARY_CONTENT
    return _call(
        "v2",
        name,
        f"Predict rows with {what}.",
        answer,
        parameters=parameters,
        requestBody=body,
        problems=INFER_STATUSES,
    )


def _model_paths(base: str, suffix: str, parameters: list[Schema]) -> dict[str, Schema]:
    """Return the calls of a model, or of one of its versions."""
    what = "a version" if suffix else "a model"
    ready = _call(
        "v2",
        f"v2_{suffix}model_ready",
        f"Ask whether {what} is ready.",
        _content(reference("InferenceModelReady")),
        parameters=parameters,
    )
    unavailable = {"503": {"content": _content(reference("InferenceModelReady")), "description": ""}}
    return {
        base: {"get": _call("v2", f"v2_{suffix}model_metadata", f"Show the inputs and outputs of {what}.", _content(reference("InferenceModel")), parameters=parameters)},
        f"{base}/ready": {"get": ready | {"responses": ready["responses"] | unavailable}},
        f"{base}/config": {"get": _call("v2", f"v2_{suffix}model_config", f"Show the configuration of {what}.", _content(ANY_OBJECT), parameters=parameters)},
        f"{base}/infer": {"post": _infer(f"v2_{suffix}model_infer", what, [*parameters, DRY_RUN])},
    }  # fmt: skip


def paths() -> dict[str, Schema]:
    """Return the calls of both protocols by path."""
    model = "/v2/models/{name}"
    index_body = {"content": _content(_object((), ready={"type": "boolean"})), "required": False}
    invocation_body = {
        "required": True,
        "content": _content(reference("InvocationRequest")) | {"text/csv": {"schema": TEXT}},
    }
    live = _call(
        "v2",
        "v2_server_live",
        "Ask whether the process is alive.",
        _content(_object(("live",), live={"type": "boolean"})),
    )
    ready_answer = _content(_object(("ready",), ready={"type": "boolean"}, error=TEXT))
    ready = _call("v2", "v2_server_ready", "Ask whether the server can predict.", ready_answer)
    for call in (live, ready):
        call["security"] = []
        call["responses"] = {"200": call["responses"]["200"]}
    ready["responses"]["503"] = {"content": ready_answer, "description": ""}
    return {
        "/v2": {"get": _call("v2", "v2_server_metadata", "Describe the server.", _content(reference("InferenceServer")))},
        "/v2/health/live": {"get": live},
        "/v2/health/ready": {"get": ready},
        "/v2/repository/index": {"post": _call("v2", "v2_repository_index", "List the served models.", _content(_list(reference("InferenceModelState"))), requestBody=index_body, problems=(400, 401, 403, 406, 413, 429, 503))},
        **_model_paths(model, "", [NAME]),
        **_model_paths(f"{model}/versions/{{version}}", "version_", [NAME, VERSION]),
        "/invocations": {"post": _call("invocations", "invocations", "Predict rows as MLflow's clients send them.", _content(reference("InvocationResponse")), parameters=[*MODEL_QUERY, DRY_RUN], requestBody=invocation_body, problems=INFER_STATUSES)},
    }  # fmt: skip


def add_protocols(result: Schema, **_: Any) -> Schema:
    """Add both protocols to the OpenAPI document. drf-spectacular calls this."""
    result["components"]["schemas"] |= COMPONENTS
    result["paths"] |= paths()
    return result
