"""API of runs and methods, below /api/v1/."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.audit import actions as audit
from octweb.core.api import PROBLEMS
from octweb.core.idempotency import idempotent, key_of
from octweb.core.model_schema import reference
from octweb.core.ownership import check_deletable
from octweb.datasets.models import Dataset
from octweb.jobs.models import RunStatus
from octweb.runs import actions
from octweb.runs.chart import chart
from octweb.runs.models import TrainingRun
from octweb.runs.serializers import (
    MethodSerializer,
    NewRunSerializer,
    ProgressSerializer,
    RunAgainSerializer,
    RunSerializer,
)
from trainer.registry import METHODS

PROGRESS_PAGE = 1000


class MethodsView(APIView):
    """The training methods, with the declarations of their parameters. Forms and command line are built from these."""

    @extend_schema(responses={200: MethodSerializer(many=True)} | PROBLEMS(401, 403, 429))
    def get(self, request: Request) -> Response:
        return Response([method.to_json() for method in METHODS])


def _uuid(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError as error:
        raise ValidationError(
            {"dataset": f"'{text[:60]}' is not an id. Take the id of a data set from /api/v1/datasets/."}
        ) from error


@extend_schema_view(
    list=extend_schema(
        responses={200: RunSerializer(many=True)} | PROBLEMS(400, 401, 403, 404, 429),
        parameters=[OpenApiParameter("status", str, enum=RunStatus.values), OpenApiParameter("dataset", str)],
    ),
    retrieve=extend_schema(responses={200: RunSerializer} | PROBLEMS(401, 403, 404, 429)),
    destroy=extend_schema(responses={204: None} | PROBLEMS(401, 403, 404, 409, 429)),
)
class RunViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, mixins.DestroyModelMixin, viewsets.GenericViewSet):
    """Training runs of the caller."""

    serializer_class = RunSerializer
    queryset = TrainingRun.objects.none()
    search_fields = ("name", "method", "dataset__name")
    ordering_fields = {
        "created": "created",
        "name": "name",
        "method": "method",
        "status": "status",
        "finished": "finished",
    }

    def get_queryset(self) -> QuerySet:
        runs = TrainingRun.objects.visible_to(self.request.user).select_related("owner")
        status = self.request.query_params.get("status")
        dataset = self.request.query_params.get("dataset")
        if status:
            if status not in RunStatus.values:
                raise ValidationError({"status": f"'{status}' is not one of {', '.join(RunStatus.values)}."})
            runs = runs.filter(status=status)
        if dataset:
            runs = runs.filter(dataset_id=_uuid(dataset))
        return runs

    def get_object(self) -> TrainingRun:
        return TrainingRun.objects.select_related("owner").get_for(self.request, self.kwargs["pk"])

    @extend_schema(
        request=NewRunSerializer,
        responses={201: RunSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 422, 429),
    )
    def create(self, request: Request) -> Response:
        key = key_of(request)
        form = NewRunSerializer(data=request.data, context={"request": request, "key": key})
        form.is_valid(raise_exception=True)
        return Response(RunSerializer(form.save()).data, status=201)

    def perform_destroy(self, instance: TrainingRun) -> None:
        check_deletable(self.request.user, instance)
        with transaction.atomic():
            actions.delete(instance)
            audit.record("deleted", instance, by=self.request.user)

    @extend_schema(request=None, responses={200: RunSerializer} | PROBLEMS(401, 403, 404, 409, 429))
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        return Response(RunSerializer(actions.cancel(self.get_object())).data)

    @extend_schema(
        request=RunAgainSerializer,
        responses={201: RunSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 422, 429),
    )
    @action(detail=True, methods=["post"])
    @idempotent
    def again(self, request: Request, pk: str) -> Response:
        """Queue a run with the same settings, on the same data set or on another one, such as its next version."""
        run = self.get_object()
        form = RunAgainSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        other = form.validated_data.get("dataset")
        dataset = None if other is None else Dataset.objects.get_for(request, other)
        return Response(RunSerializer(actions.run_again(run, owner=request.user, dataset=dataset)).data, status=201)

    @extend_schema(
        responses={200: ProgressSerializer} | PROBLEMS(400, 401, 403, 404, 429),
        parameters=[OpenApiParameter("since", int, description="how many lines are known already")],
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def progress(self, request: Request, pk: str) -> Response:
        run = self.get_object()
        raw = request.query_params.get("since", "0")
        if not (raw.isascii() and raw.isdigit() and len(raw) < 10):
            raise ValidationError({"since": f"'{raw}' is not a whole number of at least 0."})
        since = int(raw)
        records = [
            r.record for r in run.records.filter(attempt=run.attempt, line__gte=since).order_by("line")[:PROGRESS_PAGE]
        ]
        return Response(
            {"status": run.status, "attempt": run.attempt, "next": since + len(records), "records": records}
        )

    @extend_schema(responses={200: reference("Figure")} | PROBLEMS(401, 403, 404, 429))
    @action(detail=True, methods=["get"], url_path="figures/progress", pagination_class=None)
    def progress_figure(self, request: Request, pk: str) -> Response:
        """Plotly figure: objective and bound over the search time.

        For methods without a bound, the growth of the tree.
        """
        return Response(chart(self.get_object()))
