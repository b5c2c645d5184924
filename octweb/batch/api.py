"""API of batch predictions, below /api/v1/."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from octweb.audit import actions as audit
from octweb.batch import actions
from octweb.batch.files import MEDIA_TYPES, result_file
from octweb.batch.models import BatchPrediction, Format
from octweb.core import strict_json
from octweb.core.api import PROBLEMS, BodySerializer, StrictTextField
from octweb.core.idempotency import idempotent
from octweb.core.parsers import StrictJSONParser
from octweb.core.permissions import is_limited
from octweb.jobs.models import RunStatus
from octweb.jobs.queue import queue_position
from octweb.registry.api.request import AnyFormat, callable_model
from octweb.registry.prediction.retired import DRY_RUN_PARAMETER, retired_headers, retired_note
from trainer.explain.least import COLUMNS, ORDERS


class BatchProgressSerializer(serializers.Serializer):
    """Last progress that the worker has reported."""

    phase = serializers.CharField(required=False)
    rows = serializers.IntegerField(required=False, help_text="predicted so far")
    of = serializers.IntegerField(required=False, help_text="0 while the file is still being read")
    t = serializers.FloatField(required=False, help_text="seconds since the start")


class BatchPredictionSerializer(serializers.ModelSerializer):
    """A batch prediction: the uploaded file, its options, and its result."""

    name = serializers.CharField(source="model.family.name")
    version = serializers.IntegerField(source="model.version")
    retired = serializers.SerializerMethodField(help_text="a note if the model is retired, otherwise null")
    queue_position = serializers.SerializerMethodField()
    progress = BatchProgressSerializer()
    rows = serializers.IntegerField(source="summary.rows", default=None, allow_null=True)
    predicted = serializers.IntegerField(
        source="summary.predicted", default=None, allow_null=True, help_text="rows without a gap that the tree needs"
    )
    labels = serializers.DictField(
        source="summary.labels",
        default=dict,
        child=serializers.IntegerField(),
        help_text="rows of each predicted class",
    )
    known = serializers.IntegerField(
        source="summary.known",
        default=None,
        allow_null=True,
        help_text="rows with a prediction whose class the file has",
    )
    correct = serializers.IntegerField(
        source="summary.correct",
        default=None,
        allow_null=True,
        help_text="rows of `known` whose prediction is their class",
    )
    base_correct = serializers.IntegerField(
        source="summary.base_correct",
        default=None,
        allow_null=True,
        help_text="rows of `known` with the most frequent class of the training; null for files that were predicted before this was counted",
    )
    trained = serializers.IntegerField(
        source="summary.trained",
        default=None,
        allow_null=True,
        help_text="rows of `known` that equal rows of the training in their class and in all columns that the tree asks, so that being right "
        "on them says little; null for users who may not see the training rows, and where these are gone",
    )
    notes = serializers.ListField(source="summary.notes", default=list, child=serializers.CharField())
    problems = serializers.ListField(
        source="summary.problems",
        default=list,
        child=serializers.CharField(),
        help_text="each note names its row and column",
    )
    result = serializers.SerializerMethodField()
    kept_until = serializers.DateTimeField(allow_null=True)
    owner = serializers.CharField(source="owner.username")

    class Meta:
        model = BatchPrediction
        fields = [
            "id", "model", "name", "version", "retired", "source_name", "source_bytes", "format", "sheet", "header", "keep_columns", "explain", "change", "cost", "least",
            "status", "queue_position", "attempt", "cancel_requested", "created", "started", "finished", "progress", "rows", "predicted", "labels",
            "known", "correct", "base_correct", "trained", "notes", "error", "problems", "result", "result_bytes", "kept_until", "owner",
        ]  # fmt: skip
        read_only_fields = fields

    def get_retired(self, job: BatchPrediction) -> str | None:
        return retired_note(job.model)

    def get_queue_position(self, job: BatchPrediction) -> int | None:
        return queue_position(job)

    def get_result(self, job: BatchPrediction) -> str | None:
        """Return the URL of the answers once they exist."""
        return reverse("batch-result", args=[job.pk], request=self.context["request"]) if job.is_ready else None


@extend_schema_field(OpenApiTypes.OBJECT)
class ObjectField(serializers.JSONField):
    """An object. Forms send it as JSON text."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        try:
            value = strict_json.loads(data.encode()) if isinstance(data, str) else super().to_internal_value(data)
        except ValueError as error:
            raise serializers.ValidationError(f"This is not valid JSON: {error}.") from error
        if not isinstance(value, dict):
            raise serializers.ValidationError("This is not an object. Send one member per column: column → value.")
        return value


class NewBatchPredictionSerializer(BodySerializer):
    """A file of rows, the model that predicts them, and options."""

    model = serializers.UUIDField()
    file = serializers.FileField(allow_empty_file=True, help_text="CSV (also .gz), .xlsx, Parquet or Arrow")
    format = serializers.ChoiceField(Format.choices, required=False, default=Format.CSV, help_text="of the answers")
    sheet = StrictTextField(
        required=False,
        default="",
        allow_blank=True,
        max_length=200,
        help_text="of an .xlsx file; the sheet of the training or the first visible one if not given",
    )
    header = serializers.BooleanField(
        required=False, default=True, help_text="false: the first line is a row, as in the training file"
    )
    keep_columns = serializers.BooleanField(
        required=False,
        default=False,
        help_text="true: put all columns of the file before the answers (the default is false here, and true on the page)",
    )
    explain = serializers.BooleanField(
        required=False,
        default=False,
        help_text="add path, flip, flip_label, flip_distance, flip_proved and no_flip to the answers",
    )
    change = ObjectField(
        required=False,
        default=dict,
        help_text='with explain: JSON, column → free, up, down, whole, never, or a list of categories, as in explain: {"age": "never"}',
    )
    cost = ObjectField(
        required=False,
        default=dict,
        help_text='with explain: JSON, column → what a change of 1 costs: {"income": 0.01}',
    )
    least = serializers.ChoiceField(
        list(ORDERS.items()),
        required=False,
        default=COLUMNS,
        help_text="with explain: which change is the smallest, as in explain",
    )


@extend_schema_view(
    list=extend_schema(
        responses={200: BatchPredictionSerializer(many=True)} | PROBLEMS(400, 401, 403, 404, 429),
        parameters=[
            OpenApiParameter("status", str, enum=RunStatus.values),
            OpenApiParameter("model", OpenApiTypes.UUID),
        ],
    ),
    retrieve=extend_schema(responses={200: BatchPredictionSerializer} | PROBLEMS(401, 403, 404, 429)),
    destroy=extend_schema(responses={204: None} | PROBLEMS(401, 403, 404, 409, 429)),
)
class BatchPredictionViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, mixins.DestroyModelMixin, viewsets.GenericViewSet
):
    """Batch predictions. A token for predictions is sufficient, and sees only its own."""

    predict_scope = True
    serializer_class = BatchPredictionSerializer
    queryset = BatchPrediction.objects.none()
    search_fields = ("source_name", "model__family__name")
    ordering_fields = {"created": "created", "source_name": "source_name", "status": "status", "finished": "finished"}

    def get_parsers(self) -> list[Any]:
        if getattr(self, "action_map", {}).get(self.request.method.lower() if self.request else "post") == "create":
            return [MultiPartParser()]
        return [StrictJSONParser()]

    def get_queryset(self) -> QuerySet:
        query = self.request.query_params
        jobs = self._open_to_caller().visible_to(self.request.user)
        if status := query.get("status"):
            if status not in RunStatus.values:
                raise ValidationError({"status": f"'{status[:40]}' is not one of {', '.join(RunStatus.values)}."})
            jobs = jobs.filter(status=status)
        if model := query.get("model"):
            try:
                jobs = jobs.filter(model_id=uuid.UUID(model))
            except ValueError as error:
                raise ValidationError(
                    {"model": f"'{model[:60]}' is not an id. Take the id of a model from /api/v1/models/."}
                ) from error
        return jobs

    def get_object(self) -> BatchPrediction:
        return self._open_to_caller().get_for(self.request, self.kwargs["pk"])

    def _open_to_caller(self) -> Any:
        """Return the jobs that the caller may see. A prediction token sees only its own."""
        jobs = BatchPrediction.objects.select_related("owner", "model__family").defer("model__document")
        token = self.request.auth
        return jobs.filter(made_by=token) if is_limited(token) else jobs

    @extend_schema(
        request={"multipart/form-data": NewBatchPredictionSerializer},
        parameters=[DRY_RUN_PARAMETER],
        responses={201: BatchPredictionSerializer} | PROBLEMS(400, 401, 403, 404, 409, 410, 413, 415, 422, 429),
    )
    @idempotent
    def create(self, request: Request) -> Response:
        form = NewBatchPredictionSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        values = form.validated_data
        job = actions.enqueue(
            owner=request.user,
            model=callable_model(request, values["model"], document=False),
            file=values["file"],
            source_name=values["file"].name or "rows.csv",
            options=actions.BatchOptions(
                format=values["format"],
                sheet=values["sheet"],
                header=values["header"],
                keep_columns=values["keep_columns"],
                explain=values["explain"],
                change=values["change"],
                cost=values["cost"],
                least=values["least"],
            ),
            made_by=request.auth,
        )
        answer = Response(self.get_serializer(job).data, status=201, headers=retired_headers(job.model))
        answer["Location"] = reverse("batch-detail", args=[job.pk], request=request)
        return answer

    def perform_destroy(self, instance: BatchPrediction) -> None:
        with transaction.atomic():
            actions.delete(instance)
            audit.record("deleted", instance, by=self.request.user)

    @extend_schema(request=None, responses={200: BatchPredictionSerializer} | PROBLEMS(401, 403, 404, 409, 429))
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        return Response(self.get_serializer(actions.cancel(self.get_object())).data)

    @extend_schema(
        responses={(200, media_type): OpenApiTypes.BINARY for media_type in MEDIA_TYPES.values()}
        | PROBLEMS(401, 403, 404, 409, 429),
    )
    @action(detail=True, methods=["get"], pagination_class=None, content_negotiation_class=AnyFormat)
    def result(self, request: Request, pk: str) -> FileResponse:
        return result_file(self.get_object())
