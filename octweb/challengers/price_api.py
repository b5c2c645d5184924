"""API of the price of staying, below /api/v1/."""

from __future__ import annotations

import uuid

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from octweb.challengers import price
from octweb.core.api import PROBLEMS, BodySerializer
from octweb.jobs import queue
from octweb.jobs.models import RunStatus
from octweb.registry.models import TreeModel

NO_PRICE = "Nobody asked for the price of staying with this model. POST to this address first."


class PriceFoundSerializer(serializers.Serializer):
    """Result of a search: how much better the best tree of the size is on decisions with a known outcome."""

    finished = serializers.DateTimeField()
    days = serializers.IntegerField()
    rows = serializers.IntegerField(help_text="decisions with a known outcome")
    unknown = serializers.IntegerField(help_text="decisions of these days without known outcome")
    answers_without_outcome = serializers.ListField(
        child=serializers.CharField(), help_text="answers without any decision whose outcome is known"
    )
    mistakes = serializers.IntegerField(help_text="of this version")
    best_mistakes = serializers.IntegerField(help_text="of the best tree that was found")
    least_mistakes = serializers.IntegerField(
        allow_null=True,
        help_text="no tree of this size with one threshold or category in each question has fewer; null: nothing proved",
    )
    points_at_most = serializers.FloatField(allow_null=True, help_text="price of staying, rounded up to a tenth")
    leaves = serializers.IntegerField()
    depth = serializers.IntegerField()
    columns = serializers.ListField(child=serializers.CharField())
    rules = serializers.CharField(help_text="the better tree that was found; empty: none")
    sentence = serializers.CharField()


class PriceSerializer(serializers.Serializer):
    """The last search for the price of staying, and the last result."""

    status = serializers.ChoiceField(RunStatus.choices)
    monthly = serializers.BooleanField(help_text="whether workers search again every 30 days")
    queue_position = serializers.IntegerField(allow_null=True)
    error = serializers.CharField()
    found = PriceFoundSerializer(allow_null=True)


class NewPriceSerializer(BodySerializer):
    """Days of decisions to use, and time limit of the search."""

    days = serializers.IntegerField(required=False, default=price.USUAL_DAYS, min_value=1, max_value=price.MAX_DAYS)
    seconds = serializers.IntegerField(
        required=False,
        default=None,
        allow_null=True,
        min_value=1,
        help_text="the longest time of the search, at most the server's limit; 60 if it is not given",
    )
    monthly = serializers.BooleanField(required=False, default=False, help_text="search again every 30 days")


class ModelPrice(GenericAPIView):
    """The price of staying: how much more often the best tree of the same size would have been right on recent decisions."""

    serializer_class = NewPriceSerializer
    pagination_class = None

    def get_object(self) -> TreeModel:
        """Return a model of the caller, or any model for administrators. Raises Http404."""
        models = TreeModel.objects.select_related("family", "owner")
        return models.get_for(self.request, self.kwargs["pk"])

    def answer(self, model: TreeModel, status: int = 200) -> Response:
        record = price.price_record(model)
        if record is None:
            raise Http404(NO_PRICE)
        return Response(PriceSerializer(record).data, status=status)

    @extend_schema(operation_id="models_price", responses={200: PriceSerializer} | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        return self.answer(self.get_object())

    @extend_schema(
        operation_id="models_price_find",
        request=NewPriceSerializer,
        responses={202: PriceSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 429),
    )
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        model = self.get_object()
        form = NewPriceSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        price.start(owner=request.user, model=model, **form.validated_data)
        return self.answer(model, 202)

    @extend_schema(
        operation_id="models_price_cancel",
        request=None,
        responses={200: PriceSerializer} | PROBLEMS(401, 403, 404, 409, 429),
    )
    def delete(self, request: Request, pk: uuid.UUID) -> Response:
        """Stop the queued or running search."""
        model = self.get_object()
        job = price.latest(model)
        if job is None:
            raise Http404(NO_PRICE)
        queue.cancel(job)
        return self.answer(model)
