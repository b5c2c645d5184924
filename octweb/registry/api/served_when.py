"""API of the version that was served under a name at a time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core.api import PROBLEMS
from octweb.core.ownership import may_see
from octweb.core.parsers import StrictJSONParser
from octweb.core.problems import Conflict, Gone
from octweb.registry.api.prediction_serializers import RowsSerializer
from octweb.registry.api.request import rows_of
from octweb.registry.lifecycle.serving_history import Period, approver_of, parse_moment_or_now, served_period, sha256_at
from octweb.registry.models import State, TreeModel
from octweb.registry.prediction.predictions import predict_rows

AT = OpenApiParameter(
    "at", str, description="a date (its end) or a time; without a zone in that of the site; now if it is left out"
)


class ServedWhenSerializer(serializers.Serializer):
    """The version that was served under a name at a time."""

    name = serializers.CharField()
    at = serializers.DateTimeField()
    model = serializers.UUIDField()
    version = serializers.IntegerField()
    sha256 = serializers.CharField(allow_null=True, help_text="of its model file, as the chain of records has it")
    approved_by = serializers.CharField(help_text="who approved it, as the chain of records has it; may be empty")
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True, help_text="null: it answers now")
    records = serializers.ListField(
        child=serializers.IntegerField(), help_text="the records of the chain that began and ended it"
    )


class ServedWhenAnswersSerializer(ServedWhenSerializer):
    """The version that was served under a name at a time, and its predictions."""

    predictions = serializers.ListField(child=serializers.DictField())
    notes = serializers.ListField(child=serializers.CharField())


class ServedWhen(APIView):
    """The version that was served under a name at a time, read from the audit chain."""

    parser_classes = [StrictJSONParser]
    query_parameters = frozenset({"at"})

    @extend_schema(
        operation_id="models_on",
        parameters=[AT],
        responses={200: ServedWhenSerializer} | PROBLEMS(400, 401, 403, 404, 429),
    )
    def get(self, request: Request, name: str) -> Response:
        """Return the version that was served under the name at that time."""
        moment = parse_moment_or_now(request.query_params.get("at", ""))
        return Response(_record(name, moment, served_period(name, moment)))

    @extend_schema(
        operation_id="models_on_predict",
        parameters=[AT],
        request=RowsSerializer,
        responses={200: ServedWhenAnswersSerializer} | PROBLEMS(400, 401, 403, 404, 409, 410, 413, 415, 422, 429),
    )
    def post(self, request: Request, name: str) -> Response:
        """Predict rows with that version. The answers do not count as decisions."""
        moment = parse_moment_or_now(request.query_params.get("at", ""))
        period = served_period(name, moment)
        model = _model_of(period, request.user)
        predictions = predict_rows(model, rows_of(request.data))
        answers = {"predictions": predictions.records(explain=False), "notes": list(predictions.notes)}
        return Response(_record(name, moment, period) | answers)


def _model_of(period: Period, user: Any) -> TreeModel:
    """Return the model of a period. Raises Gone if it was deleted, and Conflict if its file has changed.

    Raises PermissionDenied if it is no longer approved and `user` is neither its owner nor an administrator.
    """
    model = TreeModel.objects.select_related("family").filter(pk=period.model, deleted_at=None).first()
    if model is None:
        raise Gone(f"Version {period.version} was deleted. Its record stays, but it gives no more answers.")
    if model.state != State.APPROVED and not may_see(user, model):
        raise PermissionDenied(
            f"Version {period.version} is retired. Only its owner and administrators may ask what it would have answered."
        )
    recorded = sha256_at(period)
    if recorded is not None and recorded != model.sha256:
        raise Conflict(
            f"The model file of version {period.version} was changed since then, so its answers may differ. Restore it from a backup."
        )
    return model


def _record(name: str, moment: datetime, period: Period) -> dict[str, Any]:
    return {
        "name": name,
        "at": moment,
        "model": period.model,
        "version": period.version,
        "sha256": sha256_at(period),
        "approved_by": approver_of(period),
        "since": period.since,
        "until": period.until,
        "records": [number for number in (period.record, period.ended_by) if number is not None],
    }
