"""MLflow's scoring protocol: `POST /invocations`, `GET /ping`, `GET /version`.

The protocol serves one model at a URL and has no tokens. In octweb, `?model=` or the header `Octweb-Model` names the
model. MLflow's client sends neither, so the login of its `.netrc` entry may name it, too. The password of the entry is
the token.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from rest_framework.authentication import get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, ParseError, UnsupportedMediaType, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from octweb.core import metrics, strict_json
from octweb.core.parsers import limited
from octweb.core.permissions import KnownParameters
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.registry.prediction.predictions import Predictions, predict_rows
from octweb.registry.prediction.request_bodies import CSV, check_rows, predict_csv, records_of_columns
from octweb.registry.prediction.responses import columns_record, notes_header
from octweb.registry.prediction.retired import recorded_call, tally_of_call
from octweb.serving.authentication import ApiTokenAuthentication
from octweb.serving.v2 import ProtocolView, served_model
from trainer.data.parsing import ColumnParsing
from trainer.errors import list_names
from trainer.version import VERSION

HEADER = "Octweb-Model"
DECISION_HEADER = "Octweb-Decision"  # id of the first row's recorded decision
FORMATS = ("dataframe_split", "dataframe_records", "instances", "inputs")
OUTPUTS = ("label", "probabilities", "records")
WHICH = f"Name the model: /invocations?model=NAME, the header {HEADER}, or the login of a .netrc entry."


class BasicTokenAuthentication(ApiTokenAuthentication):
    """Authentication with `Token`, or with `Basic` and a token as password, as clients send it from `.netrc`."""

    def authenticate(self, request: Request) -> Any:
        kind, _, value = get_authorization_header(request).partition(b" ")
        if kind.lower() != b"basic":
            return super().authenticate(request)
        try:
            login, _, secret = base64.b64decode(value, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError) as error:
            raise AuthenticationFailed("The header Authorization: Basic is damaged.") from error
        request._request.META["octweb.login"] = login
        return self.authenticate_credentials(secret.encode())


class ScoringView(ProtocolView):
    """Base class of the scoring views, which find the named model."""

    query_parameters = frozenset({"model", "version"})
    authentication_classes = [BasicTokenAuthentication, *ProtocolView.authentication_classes[1:]]

    def named(self, request: Request) -> tuple[str, str | None]:
        """Return the name and version in the call. Without them, the name is "" and the version is None."""
        query = request.query_params
        name = query.get("model") or request.headers.get(HEADER) or request.META.get("octweb.login") or ""
        name, _, version = name.partition("/")
        return name, query.get("version") or version or None


class Ping(ScoringView):
    """Report that the server runs, to everyone. With a model, report that it is served, to users who may call it."""

    def get_permissions(self) -> list[Any]:
        name, _ = self.named(self.request)
        return super().get_permissions() if name else [KnownParameters()]

    def get(self, request: Request) -> HttpResponse:
        name, version = self.named(request)
        if name:
            served_model(request, name, version)
        return HttpResponse("\n", content_type="application/json")


class Invocations(ScoringView):
    """Predict the rows of the body."""

    def post(self, request: Request) -> Response:
        with metrics.count_calls("invocations") as call:
            model = self._model(request)
            recorded = recorded_call(request, model, "invocations", "/".join(filter(None, self.named(request))))
            call.of(model.family.name, model.version, tally_of_call(request, model, "invocations"), recorded)
            predictions, params = _predict_body(model, request)
            output = _output_of(params)
            predictions = predictions.recorded(recorded)
            answers = _answers(predictions, output, model_file(model).class_values.tolist())
            call.predicted(predictions.label_counts(), predictions.unseen, predictions.life_counts())
            call.compare(predictions.matrix, predictions.leaves)
        headers = {HEADER: f"{model.family.name}/{model.version}"} | notes_header(predictions)
        if predictions.decisions:
            headers[DECISION_HEADER] = predictions.decisions[0]
        return Response({"predictions": answers}, headers=headers)

    def _model(self, request: Request) -> TreeModel:
        name, version = self.named(request)
        if not name:
            names = TreeModel.objects.served().order_by().values_list("family__name", flat=True).distinct()[:2]
            if len(names) != 1:
                raise ValidationError(
                    {"model": WHICH}
                    if names
                    else {"model": "No model is served. Have one approved, and serve it under its name."}
                )
            name = names[0]
        try:
            return served_model(request, name, version)
        except Http404 as error:
            raise Http404(f"{error} {WHICH}") from error


def version(request: HttpRequest) -> HttpResponse:
    """Return the version of octweb."""
    return HttpResponse(VERSION, content_type="text/plain")


def _predict_body(model: TreeModel, request: Request) -> tuple[Predictions, dict[str, Any]]:
    kind = (request.content_type or "").partition(";")[0].strip().lower()
    content = limited(request._request)
    if kind == CSV:
        return predict_csv(model, content), {}
    if kind != "application/json":
        raise UnsupportedMediaType(kind or "none", f"Send application/json or text/csv; this is '{kind[:40]}'.")
    document = _json(content)
    sent = [name for name in FORMATS if isinstance(document, dict) and name in document]
    if len(sent) != 1:
        raise ParseError(f"The body must be a JSON object with exactly one of {', '.join(FORMATS)}.")
    params = document.get("params") or {}
    if not isinstance(params, dict):
        raise ValidationError({"params": 'This is not an object. Send for example {"output": "label"}.'})
    data = document[sent[0]]
    return (_split(model, data) if sent[0] == "dataframe_split" else _rows(model, data, sent[0])), params


def _json(content: bytes) -> Any:
    try:
        return strict_json.loads(content)
    except ValueError as error:
        if b"NaN" not in content or isinstance(error, strict_json.TooManyValues | strict_json.DuplicateName):
            raise ParseError(f"The body is not valid JSON: {error}.") from error
    except RecursionError as error:
        raise ParseError("The body is nested too deeply. Send fewer levels of lists and objects.") from error
    try:
        # The client of MLflow writes the empty cells of a data frame as NaN.
        return json.loads(
            content,
            parse_constant=lambda word: None if word == "NaN" else float(word),
            object_pairs_hook=strict_json.object_of,
        )
    except (ValueError, RecursionError) as error:
        raise ParseError(f"The body is not valid JSON: {error}.") from error


def _split(model: TreeModel, data: Any) -> Predictions:
    names, rows = (data.get("columns"), data.get("data")) if isinstance(data, dict) else (None, None)
    if not isinstance(names, list) or not isinstance(rows, list) or not all(isinstance(name, str) for name in names):
        raise ValidationError(
            {"dataframe_split": "This is not an object with 'columns' (a list of names) and 'data' (a list of rows)."}
        )
    if len(set(names)) < len(names):
        raise ValidationError({"dataframe_split": "A column appears twice in 'columns'. Send each column once."})
    return _predict(model, _records(names, rows, "dataframe_split.data"))


def _rows(model: TreeModel, data: Any, place: str) -> Predictions:
    if isinstance(data, dict):
        return _predict(model, records_of_columns(data))
    if not isinstance(data, list) or not data:
        raise ValidationError({place: "This is neither a list of rows nor an object of columns, or it is empty."})
    check_rows(len(data))
    if isinstance(data[0], list):
        return predict_rows(model, _records([c.name for c in model_file(model).tree.schema], data, place))
    return _predict(model, data)


def _predict(model: TreeModel, rows: list[Any]) -> Predictions:
    """Predict rows as MLflow does: unknown columns are ignored, with a note.

    Unknown columns are an error if a column of the tree is absent, because one of them may be its misspelled name.
    """
    file = model_file(model)
    tree = file.tree
    parsing = ColumnParsing.from_json(file.reading)
    sent = {name for row in rows if isinstance(row, dict) for name in row}
    derived = set(parsing.names([name for name in parsing.columns if name in sent])) | sent
    column_names = {c.name for c in tree.schema} | set(parsing.columns) | {file.target, *model.ignored}
    extra = sent - column_names
    if not extra or any(tree.schema[j].name not in derived for j in tree.used_columns):
        return predict_rows(model, rows)
    model_rows = [{k: v for k, v in row.items() if k not in extra} if isinstance(row, dict) else row for row in rows]
    predictions = predict_rows(model, model_rows)
    note = f"Columns that the model does not know are ignored: {list_names(sorted(extra))}."
    return replace(predictions, notes=(note, *predictions.notes))


def _records(names: list[str], rows: list[Any], place: str) -> list[dict[str, Any]]:
    """Return rows that were sent as lists as records. Raises ValidationError for a row of another length."""
    check_rows(len(rows))
    for i, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(names):
            raise ValidationError(
                {
                    f"{place}[{i}]": f"This is not a list of {len(names)} values. Send them in this order: {', '.join(names)}."
                }
            )
    return [dict(zip(names, row, strict=True)) for row in rows]


def _output_of(params: dict[str, Any]) -> str:
    output: str = params.get("output", "label")
    if output not in OUTPUTS:
        raise ValidationError({"params.output": f"'{str(output)[:40]}' is not one of {', '.join(OUTPUTS)}."})
    return output


def _answers(predictions: Predictions, output: str, values: list[Any]) -> list[Any]:
    """Return the answers in the requested form.

    Labels are taken from `values`, the values of the classes in their own type.
    """
    if output == "probabilities":
        return [record["probabilities"] for record in predictions.records()]
    labels = [values[code] for code in predictions.tree.labels[predictions.leaves].tolist()]
    if output == "label":
        return labels
    columns = columns_record(predictions) | {"label": labels}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
