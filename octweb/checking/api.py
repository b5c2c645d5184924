"""API that compares imported trees with the best tree of their size."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.checking import comparing
from octweb.checking.models import Comparison
from octweb.core.api import PROBLEMS, BodySerializer
from octweb.core.ownership import SAFE_METHODS, may_change, may_see, refusal
from octweb.jobs import queue
from octweb.registry.api.request import readable_model
from octweb.registry.models import TreeModel

VERDICTS = ("not optimal", "no better tree", "open")


class FoundSerializer(serializers.Serializer):
    """Result of the search. Mistakes are misclassified rows of the data set."""

    verdict = serializers.ChoiceField(VERDICTS)
    words = serializers.CharField(help_text="the verdict as a sentence, with its scope")
    n = serializers.IntegerField(help_text="rows that were compared")
    mistakes = serializers.IntegerField(help_text="of the brought tree")
    best_mistakes = serializers.IntegerField(help_text="of the best tree that was found")
    least_mistakes = serializers.IntegerField(
        allow_null=True, help_text="no tree of the size has fewer (proved); null if nothing is known"
    )
    leaves = serializers.IntegerField(help_text="the searched trees had at most this many")
    depth = serializers.IntegerField()
    columns = serializers.ListField(child=serializers.CharField(), help_text="those that the trees could ask about")
    rules = serializers.CharField(help_text="the better tree as text; empty if none was found")
    seconds = serializers.FloatField()
    stopped = serializers.BooleanField(help_text="somebody ended the search before it had an answer")


class ComparisonSerializer(serializers.ModelSerializer):
    """A search for a tree that is better than an imported one of the same size."""

    queue_position = serializers.SerializerMethodField()
    found = serializers.SerializerMethodField()

    class Meta:
        model = Comparison
        fields = [
            "id", "model", "seconds", "status", "queue_position", "cancel_requested", "created", "started", "finished",
            "error", "found",
        ]  # fmt: skip
        read_only_fields = fields

    def get_queue_position(self, job: Comparison) -> int | None:
        return queue.queue_position(job)

    @extend_schema_field(FoundSerializer(allow_null=True))
    def get_found(self, job: Comparison) -> dict[str, Any] | None:
        return FoundSerializer(job.found).data if job.found else None


class NewComparisonSerializer(BodySerializer):
    """Time limit of the search."""

    seconds = serializers.IntegerField(
        required=False,
        default=None,
        allow_null=True,
        min_value=1,
        help_text="the longest time of the search, at most the server's limit; 60 if it is not given",
    )


NOT_COMPARED = "This tree has not been compared yet. Start a comparison first: POST to /api/v1/models/ID/comparison/."


def own_model(request: Request, pk: uuid.UUID) -> TreeModel:
    """Return a model whose rows the caller may see, because the result reveals something about them.

    Raises NotFound.
    """
    model = readable_model(request, pk)
    if not may_see(request.user, model):
        raise NotFound("There is no model with this id, or it is not yours. Check the id.")
    if request.method not in SAFE_METHODS and not may_change(request.user, model):
        raise PermissionDenied(refusal(request.user, model, "change"))
    return model


class ComparisonView(GenericAPIView):
    """Comparison of an imported tree with the best one of its size."""

    serializer_class = NewComparisonSerializer

    @extend_schema(
        operation_id="models_comparison", responses={200: ComparisonSerializer} | PROBLEMS(401, 403, 404, 429)
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        """Return the last comparison."""
        job = comparing.latest(own_model(request, pk))
        if job is None:
            raise NotFound(NOT_COMPARED)
        return Response(ComparisonSerializer(job).data)

    @extend_schema(
        operation_id="models_compare",
        request=NewComparisonSerializer,
        responses={202: ComparisonSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 429),
    )
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        """Search for a better tree with at most its leaves and depth, or return the job that already waits or runs."""
        model = own_model(request, pk)
        form = self.get_serializer(data=request.data)
        form.is_valid(raise_exception=True)
        job = comparing.start(owner=request.user, model=model, seconds=form.validated_data["seconds"])
        return Response(ComparisonSerializer(job).data, status=202)


class ComparisonCancel(APIView):
    """Stop a comparison."""

    @extend_schema(
        operation_id="models_comparison_cancel",
        request=None,
        responses={200: ComparisonSerializer} | PROBLEMS(401, 403, 404, 409, 429),
    )
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        """Stop the search. Its best tree so far is kept."""
        job = comparing.latest(own_model(request, pk))
        if job is None:
            raise NotFound(NOT_COMPARED)
        return Response(ComparisonSerializer(queue.cancel(job)).data)
