"""Predict rows with a model by the API."""

from __future__ import annotations

import uuid

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core import metrics
from octweb.core.api import PROBLEMS
from octweb.core.parsers import StrictJSONParser
from octweb.registry.api.prediction_serializers import PredictionsSerializer, RowsSerializer
from octweb.registry.api.request import callable_model, flag, rows_of
from octweb.registry.document.claims import certificate_status
from octweb.registry.models import TreeModel
from octweb.registry.prediction.predictions import Predictions, predict_rows
from octweb.registry.prediction.request_bodies import (
    ARROW_FILE,
    ARROW_STREAM,
    CSV,
    predict_arrow,
    predict_columns,
    predict_csv,
)
from octweb.registry.prediction.responses import (
    ArrowFileParser,
    ArrowRenderer,
    ArrowStreamParser,
    CsvParser,
    CsvRenderer,
    columns_record,
    response_type,
    table_response,
)
from octweb.registry.prediction.retired import (
    DRY_RUN_PARAMETER,
    SUBJECT_PARAMETER,
    recorded_call,
    retired_headers,
    retired_member,
    tally_of_call,
)


class ModelPredict(APIView):
    """Predict the classes of rows."""

    predict_scope = True
    parser_classes = [StrictJSONParser, CsvParser, ArrowStreamParser, ArrowFileParser]
    renderer_classes = [*APIView.renderer_classes, CsvRenderer, ArrowRenderer]

    @extend_schema(
        operation_id="models_predict",
        request={
            "application/json": RowsSerializer,
            CSV: OpenApiTypes.STR,
            ARROW_STREAM: OpenApiTypes.BINARY,
            ARROW_FILE: OpenApiTypes.BINARY,
        },
        parameters=[
            OpenApiParameter("explain", bool, description="adds the path of each row in words; JSON only"),
            DRY_RUN_PARAMETER,
            SUBJECT_PARAMETER,
        ],
        responses={
            (200, "application/json"): PredictionsSerializer,
            (200, CSV): OpenApiTypes.STR,
            (200, ARROW_STREAM): OpenApiTypes.BINARY,
        }
        | PROBLEMS(400, 401, 403, 404, 406, 410, 413, 415, 422, 429, 503),
    )
    def post(self, request: Request, pk: uuid.UUID) -> HttpResponse:
        with metrics.count_calls("v1") as call:
            model = callable_model(request, pk, document=False)
            recorded = recorded_call(request, model, "v1", str(pk))
            call.of(model.family.name, model.version, tally_of_call(request, model, "v1"), recorded)
            explain = flag(request, "explain")
            kind = response_type(request)
            if explain and kind != "application/json":
                raise ValidationError(
                    {"explain": "Paths in words are only in JSON answers: send Accept: application/json."}
                )
            predictions, by_column = predict_body(model, request)
            predictions = predictions.recorded(recorded)
            call.predicted(predictions.label_counts(), predictions.unseen, predictions.life_counts())
            call.compare(predictions.matrix, predictions.leaves)
        if kind != "application/json":
            return table_response(model, predictions, kind)
        if by_column and not explain:
            answers = {"columns": columns_record(predictions)}
        else:
            answers = {"predictions": predictions.records(explain=explain)}
        head = {
            "model": str(model.pk),
            "name": model.family.name,
            "version": model.version,
            "certificate": certificate_status(model),
        } | retired_member(model)
        proposals = (
            {"proposals": [proposal.to_json() for proposal in predictions.proposals]} if predictions.proposals else {}
        )
        record = {**head, **answers, "notes": list(predictions.notes), **proposals}
        return Response(record, headers=retired_headers(model))


def predict_body(model: TreeModel, request: Request) -> tuple[Predictions, bool]:
    """Predict the rows of a body of any type. Also return whether it contains JSON columns."""
    body = request.data
    if isinstance(body, bytes):
        return (predict_csv if request.content_type.startswith(CSV) else predict_arrow)(model, body), False
    if isinstance(body, dict) and body.keys() == {"columns"}:
        return predict_columns(model, body["columns"]), True
    return predict_rows(model, rows_of(body)), False
