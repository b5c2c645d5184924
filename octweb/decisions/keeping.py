"""API of what is kept of a model's answers, and for how long, below /api/v1/."""

from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from octweb.core.api import PROBLEMS, BodySerializer, StrictTextField
from octweb.registry.lifecycle.actions import MAX_KEEP_DAYS, set_recording
from octweb.registry.models import Recording, TreeModel
from octweb.registry.prediction.recording import is_recorded


class RecordingSerializer(BodySerializer):
    """What is kept of a model's answers, and for how long. A change needs a reason, which becomes a record."""

    recording = serializers.ChoiceField(Recording.choices, required=False, help_text="left out: as it is")
    keep_days = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MAX_KEEP_DAYS,
        help_text="days after which records are erased; null: those of the site; left out: as it is",
    )
    reason = StrictTextField(max_length=5000, write_only=True)
    is_recorded = serializers.BooleanField(read_only=True, help_text="each answer is recorded now")
    days = serializers.IntegerField(read_only=True, help_text="days after which records are erased")
    site_days = serializers.IntegerField(read_only=True, help_text="OCTWEB_RECORD_KEEP_DAYS")


def recording_record(model: TreeModel) -> dict[str, Any]:
    """Return what is kept of a model's answers, and for how long."""
    return {
        "recording": model.recording,
        "keep_days": model.keep_days,
        "is_recorded": is_recorded(model),
        "days": model.days_of_records,
        "site_days": settings.RECORD_KEEP_DAYS,
    }


class ModelRecording(GenericAPIView):
    """What is kept of a model's answers, and for how long."""

    serializer_class = RecordingSerializer
    pagination_class = None

    def get_object(self) -> TreeModel:
        """Return the model. OPTIONS calls this to find out whether the caller may change it."""
        model: TreeModel = TreeModel.objects.select_related("family").get_for(self.request, self.kwargs["pk"])
        return model

    @extend_schema(operation_id="models_recording", responses={200: RecordingSerializer} | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        return Response(recording_record(self.get_object()))

    @extend_schema(
        operation_id="models_recording_set",
        request=RecordingSerializer,
        responses={200: RecordingSerializer} | PROBLEMS(400, 401, 403, 404, 413, 415, 429),
    )
    def put(self, request: Request, pk: uuid.UUID) -> Response:
        """Change what is kept, or for how long. Records that are too old are erased within a day."""
        model = self.get_object()
        form = RecordingSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        values = {"recording": model.recording, "keep_days": model.keep_days} | form.validated_data
        return Response(recording_record(set_recording(model, by=request.user, **values)))
