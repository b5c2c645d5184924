"""API of served models for owners and administrators, below /api/v1/."""

from __future__ import annotations

import uuid
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core.api import PROBLEMS, BodySerializer, StrictTextField
from octweb.core.model_schema import reference
from octweb.core.tally import ROWS
from octweb.figures.life import evidence_figure, leaves_figure
from octweb.life import actions
from octweb.life.parts import parts
from octweb.life.record import MAX_DAYS, life_record
from octweb.life.watches import WRONG
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel

DAYS = OpenApiParameter("days", int, description=f"how many days, today included; 1 to {MAX_DAYS}", default=365)
KINDS = {"leaves": ROWS, "wrong": WRONG}  # what a figure of evidence is about → kind of its watches
OF = OpenApiParameter("of", str, enum=list(KINDS), default="leaves", description="shares of leaves, or wrong answers")
FIGURE = {200: reference("Figure")} | PROBLEMS(400, 401, 403, 404, 429)


class ReferenceSerializer(serializers.Serializer):
    """Rows of the model and how many of them count as yes: for leaves all, for wrong answers the unseen rows."""

    yes = serializers.IntegerField()
    rows = serializers.IntegerField()
    share = serializers.FloatField()


class WatchSerializer(serializers.Serializer):
    """A yes/no question about each decision, and the evidence that its share has changed."""

    watch = serializers.CharField()
    kind = serializers.CharField(
        help_text="rows (of a leaf), wrong, empty, unknown, below or above (the training range)"
    )
    name = serializers.CharField(help_text="the leaf, or the column; empty: all leaves together")
    reference = ReferenceSerializer(allow_null=True)
    limit = serializers.FloatField(allow_null=True, help_text="the largest share, set by a person")
    low = serializers.FloatField(help_text="end of the interval of the share; 0: shrinking is not watched")
    high = serializers.FloatField(help_text="end of the interval of the share; 1: growth is not watched")
    threshold = serializers.FloatField(help_text="the evidence of an alarm")
    since = serializers.DateField(help_text="the first day that counts")
    counts = serializers.ListField(child=serializers.IntegerField(), help_text="of each day")
    outcomes = serializers.ListField(
        child=serializers.IntegerField(),
        allow_null=True,
        help_text="known outcomes due on each day; `counts` are the wrong answers among them; null for other kinds",
    )
    promise = serializers.ChoiceField(
        ["broken", "kept", "few outcomes", "cannot be known"],
        allow_null=True,
        help_text="whether the share of wrong answers is as promised; null for other kinds, and without an interval",
    )
    evidence = serializers.ListField(
        child=serializers.FloatField(allow_null=True),
        help_text="log10 at the end of each day; null where there was none",
    )
    recent = serializers.FloatField(
        allow_null=True, help_text="the share in the last 28 days, of wrong answers in the last 60"
    )
    rows_for_double = serializers.IntegerField(
        allow_null=True, help_text="about how many decisions show that the share has doubled"
    )
    alarm = serializers.IntegerField(allow_null=True, help_text="the open alarm")


class AlarmSerializer(serializers.Serializer):
    """An alarm: a watched share that has changed."""

    id = serializers.IntegerField()
    watch = serializers.CharField()
    grew = serializers.BooleanField()
    began = serializers.DateField(help_text="an estimate")
    found = serializers.DateField()
    decisions = serializers.IntegerField(help_text="from `began` to `found`; for wrong answers, known outcomes")
    folded = serializers.BooleanField(help_text="the leaf shrank because another one grows")
    sentence = serializers.CharField()
    when = serializers.CharField()
    closed_at = serializers.DateTimeField(allow_null=True)
    closed_by = serializers.CharField(allow_null=True)
    reason = serializers.CharField()


class RefusedSerializer(serializers.Serializer):
    """Rows without an answer."""

    reason = serializers.CharField()
    column = serializers.CharField(help_text="empty if it cannot be named")
    counts = serializers.ListField(child=serializers.IntegerField(), help_text="of each day")


class LifeSerializer(serializers.Serializer):
    """A model in use: decisions by day, watches, and alarms."""

    model = serializers.UUIDField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    state = serializers.CharField()
    served = serializers.BooleanField()
    days = serializers.ListField(child=serializers.DateField())
    rows = serializers.ListField(child=serializers.IntegerField(), help_text="rows answered on each day")
    decisions = serializers.IntegerField()
    since = serializers.DateField(allow_null=True, help_text="the first day of the present look-out")
    looked_at = serializers.DateTimeField(allow_null=True)
    unit = serializers.ChoiceField(["row", "day"], help_text="what counts as one decision today")
    dispersion = serializers.FloatField(allow_null=True, help_text="spread of the shares of days; 1: independent rows")
    watches = WatchSerializer(many=True)
    answers = serializers.DictField(child=serializers.CharField(), help_text="of each leaf")
    alarms = AlarmSerializer(many=True)
    refused = RefusedSerializer(many=True)
    dry_runs = serializers.IntegerField(help_text="calls with `Octweb-Dry-Run: 1`, which count as no decisions")
    sentences = serializers.ListField(child=serializers.CharField())

    def get_fields(self) -> dict[str, Any]:
        """Return the fields, including those of registered parts."""
        return super().get_fields() | {part.name: part.serializer() for part in parts}


class ReasonSerializer(BodySerializer):
    """Reason for closing an alarm."""

    reason = StrictTextField(max_length=actions.MAX_REASON)


class LimitSerializer(BodySerializer):
    """The largest share that a watch may have, or null for no limit."""

    watch = StrictTextField(max_length=320)
    share = serializers.FloatField(allow_null=True, min_value=0, max_value=1)


class LifeView(GenericAPIView):
    """Base class of views about a model of the caller, or about any model for administrators."""

    serializer_class = LifeSerializer
    pagination_class = None

    def get_object(self) -> TreeModel:
        """Return the model. OPTIONS calls this to find out whether the caller may POST."""
        models = TreeModel.objects.select_related("family", "owner", "dataset")
        return models.get_for(self.request, self.kwargs["pk"])

    def answer(self, days: int = 365) -> Response:
        """Return the record of the model as a response."""
        return Response(LifeSerializer(life_record(self.get_object(), days, timezone.now())).data)


class ModelLife(LifeView):
    """Decisions of a model by day, its watches, and its alarms."""

    query_parameters = frozenset({"days"})

    @extend_schema(
        operation_id="models_life",
        parameters=[DAYS],
        responses={200: LifeSerializer} | PROBLEMS(400, 401, 403, 404, 429),
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        return self.answer(days_of(request))


class ModelWatch(LifeView):
    """Evaluate the counts of an approved model now. The worker does the same every morning."""

    @extend_schema(
        operation_id="models_watch",
        request=None,
        responses={200: LifeSerializer} | PROBLEMS(401, 403, 404, 409, 429),
    )
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        actions.look_now(self.get_object())
        return self.answer()


class ModelAlarmClose(LifeView):
    """Close an alarm. The reason is recorded in the audit chain."""

    serializer_class = ReasonSerializer

    @extend_schema(
        operation_id="models_life_alarm_close",
        request=ReasonSerializer,
        responses={200: LifeSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 429),
    )
    def post(self, request: Request, pk: uuid.UUID, alarm: int) -> Response:
        model = self.get_object()
        form = ReasonSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        actions.close_alarm(model, alarm, by=request.user, reason=form.validated_data["reason"])
        return self.answer()


class ModelLimits(LifeView):
    """Set the largest share that a watch may have, or remove the limit."""

    serializer_class = LimitSerializer

    @extend_schema(
        operation_id="models_life_limit",
        request=LimitSerializer,
        responses={200: LifeSerializer} | PROBLEMS(400, 401, 403, 404, 413, 415, 429),
    )
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        model = self.get_object()
        form = LimitSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        actions.set_limit(model, by=request.user, **form.validated_data)
        return self.answer()


def _record_of(request: Request, pk: uuid.UUID) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the record of a model for a figure, and its classes."""
    model = TreeModel.objects.select_related("family", "owner", "dataset").get_for(request, pk)
    return life_record(model, days_of(request), timezone.now(), with_parts=False), model_file(model).tree.classes


class LeavesFigure(APIView):
    """Decisions by leaf and week."""

    query_parameters = frozenset({"days"})

    @extend_schema(parameters=[DAYS], responses=FIGURE)
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        return Response(leaves_figure(*_record_of(request, pk)))


class EvidenceFigure(APIView):
    """Evidence that the share of a leaf has changed, or that its answers are wrong more often than promised, by day."""

    query_parameters = frozenset({"days", "of"})

    @extend_schema(parameters=[DAYS, OF], responses=FIGURE)
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        of = request.query_params.get("of", "leaves")
        if of not in KINDS:
            raise ValidationError({"of": f"'{of[:20]}' is not one of {', '.join(KINDS)}."})
        return Response(evidence_figure(*_record_of(request, pk), kind=KINDS[of]))


def days_of(request: Any) -> int:
    """Return the query parameter `days`. Raises ValidationError."""
    text = request.query_params.get("days", "365")
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= MAX_DAYS):
        raise ValidationError({"days": f"'{text[:20]}' is not a whole number from 1 to {MAX_DAYS}."})
    return int(text)
