"""API of challengers, below /api/v1/."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.challengers import actions
from octweb.challengers.models import Challenge
from octweb.challengers.record import challenger_record, daily_differences, latest_challenge
from octweb.core.api import PROBLEMS, BodySerializer, StrictTextField
from octweb.core.model_schema import reference
from octweb.core.problems import Conflict
from octweb.figures.life import differences_figure
from octweb.registry.api.request import readable_model
from octweb.registry.models import TreeModel


class ChallengerLeafSerializer(serializers.Serializer):
    """A leaf of the served tree, and the challenger's answers to its rows."""

    leaf = serializers.IntegerField()
    answer = serializers.CharField(help_text="of the served tree")
    rows = serializers.IntegerField(help_text="that the challenger answered, too")
    different = serializers.IntegerField()
    instead = serializers.DictField(child=serializers.IntegerField(), help_text="different answers by class")
    challenger_right = serializers.IntegerField(help_text="of the different answers with a known outcome")
    served_right = serializers.IntegerField()
    neither_right = serializers.IntegerField()
    unknown = serializers.IntegerField(help_text="different answers whose outcome is due and not known")


class ChallengerOutcomesSerializer(serializers.Serializer):
    """Number of differing answers with a due outcome, by the model that was right."""

    known = serializers.IntegerField()
    unknown = serializers.IntegerField()
    challenger_right = serializers.IntegerField()
    served_right = serializers.IntegerField()
    neither_right = serializers.IntegerField()
    odds = serializers.FloatField(help_text="evidence against \u201cboth are right equally often\u201d, to 1")


class ChallengerSerializer(serializers.Serializer):
    """A challenge: a model that silently answers the rows of an approved model, and the comparison of the answers."""

    model = serializers.UUIDField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    state = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateField(allow_null=True, help_text="last day, in UTC")
    outcome_days = serializers.IntegerField(help_text="outcomes count so many days after the answer")
    named_by = serializers.CharField(allow_null=True)
    running = serializers.BooleanField()
    ended_at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField(help_text="why it ended")
    rows = serializers.IntegerField(help_text="rows that both answered")
    different = serializers.IntegerField()
    not_compared = serializers.IntegerField(
        help_text="rows without a column that the challenger tests, and rows to which it gives no answer"
    )
    skipped = serializers.IntegerField(help_text="rows that were not compared because too many waited")
    leaves = ChallengerLeafSerializer(many=True)
    outcomes = ChallengerOutcomesSerializer()
    sentences = serializers.ListField(child=serializers.CharField())


class ChallengeSerializer(BodySerializer):
    """The approved model to challenge, and how long."""

    to = StrictTextField(max_length=140, help_text="served name, name and version (`credit-risk/2`), or id")
    until = serializers.DateField(required=False, allow_null=True, help_text="last day, in UTC")
    outcome_days = serializers.IntegerField(required=False, default=0, min_value=0, max_value=actions.MAX_OUTCOME_DAYS)


class ChallengeReasonSerializer(BodySerializer):
    """Reason for the request."""

    reason = StrictTextField(required=False, default="", allow_blank=True, max_length=actions.MAX_REASON)


class ChallengeView(GenericAPIView):
    """Base class of the challenger views."""

    serializer_class = ChallengerSerializer
    pagination_class = None

    def get_object(self) -> Challenge:
        """Return the running challenge of this model against a model of the caller, or raise Http404."""
        challenge = actions.challenge_by(self.kwargs["pk"], self.request.user)
        if challenge is None:
            raise Http404(actions.NO_CHALLENGER)
        return challenge

    def answer(self, challenge: Challenge, status: int = 200) -> Response:
        record: Any = challenger_record(challenge.model, timezone.now())
        return Response(ChallengerSerializer(record).data, status=status)


class ModelChallenger(ChallengeView):
    """Use a model as challenger of an approved model of yours.

    It answers the same rows, but its answers are never returned.
    """

    def get_serializer_class(self) -> Any:
        return ChallengeSerializer if self.request.method == "PUT" else ChallengerSerializer

    @extend_schema(
        operation_id="models_challenger",
        responses={200: ChallengerSerializer} | PROBLEMS(401, 403, 404, 429),
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        return self.answer(self.get_object())

    @extend_schema(
        operation_id="models_challenger_name",
        request=ChallengeSerializer,
        responses={201: ChallengerSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 422, 429),
    )
    def put(self, request: Request, pk: uuid.UUID) -> Response:
        challenger = readable_model(request, pk)
        form = ChallengeSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        data = form.validated_data
        model = actions.served_model_named(request.user, data["to"])
        challenge = actions.name_challenger(
            model, challenger, by=request.user, until=data.get("until"), outcome_days=data["outcome_days"]
        )
        return self.answer(challenge, 201)

    @extend_schema(
        operation_id="models_challenger_end",
        request=None,
        responses={204: None} | PROBLEMS(401, 403, 404, 409, 429),
    )
    def delete(self, request: Request, pk: uuid.UUID) -> Response:
        actions.end_challenge(self.get_object(), by=request.user)
        return Response(status=204)


class ModelChallengerPromote(ChallengeView):
    """Request approval of the challenger, with the comparison as a note to the reviewer. Nothing is served yet."""

    serializer_class = ChallengeReasonSerializer

    @extend_schema(
        operation_id="models_challenger_promote",
        request=ChallengeReasonSerializer,
        responses={200: ChallengerSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 429),
    )
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        readable_model(request, pk)
        challenge = actions.challenge_by(pk, request.user)
        if challenge is None:
            raise Conflict(actions.NO_CHALLENGER)
        form = ChallengeReasonSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        actions.ask_for_promotion(challenge, by=request.user, reason=form.validated_data["reason"])
        return self.answer(challenge)


class DifferencesFigure(APIView):
    """Share of the rows to which the challenger of a model of the caller gives another answer, by day."""

    @extend_schema(
        operation_id="models_figures_life_differences",
        responses={200: reference("Figure")} | PROBLEMS(401, 403, 404, 429),
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        model = TreeModel.objects.select_related("family", "owner", "dataset").get_for(request, pk)
        challenge = latest_challenge(model)
        return Response(differences_figure([] if challenge is None else daily_differences(challenge)))
