"""API of oversight and inventory, below /api/v1/."""

from __future__ import annotations

import uuid

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from octweb.core.api import PROBLEMS
from octweb.oversight import actions
from octweb.oversight.record import inventory_models, inventory_rows, oversight_record
from octweb.oversight.serializers import (
    InventorySerializer,
    OversightSerializer,
    RepeatedReviewSerializer,
    StatedSerializer,
)
from octweb.registry.models import TreeModel

CHANGED = {200: OversightSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 429)


class OversightView(GenericAPIView):
    """Base class of views about the oversight of a model of the caller, or of any model for administrators."""

    serializer_class = OversightSerializer
    pagination_class = None

    def get_object(self) -> TreeModel:
        """Return the model. OPTIONS calls this to find out whether the caller may change it."""
        models = TreeModel.objects.select_related("family", "owner", "dataset")
        model: TreeModel = models.get_for(self.request, self.kwargs["pk"])
        return model

    def answer(self, model: TreeModel) -> Response:
        """Return the record of the model as a response."""
        return Response(OversightSerializer(oversight_record(model, timezone.now())).data)


class ModelOversight(OversightView):
    """Purpose, tier and review dates of a model."""

    @extend_schema(operation_id="models_oversight", responses={200: OversightSerializer} | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        return self.answer(self.get_object())

    @extend_schema(operation_id="models_oversight_state", request=StatedSerializer, responses=CHANGED)
    def put(self, request: Request, pk: uuid.UUID) -> Response:
        """State purpose, exposure, consequence and review dates. Members that are left out stay as they are."""
        model = self.get_object()
        form = StatedSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        actions.state_oversight(model, by=request.user, values=form.validated_data)
        return self.answer(model)


class RepeatedReview(OversightView):
    """Reviews of an approved model."""

    serializer_class = RepeatedReviewSerializer

    @extend_schema(operation_id="models_oversight_review", request=RepeatedReviewSerializer, responses=CHANGED)
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        """Record the result of a review. The model is no longer due, except for open alarms."""
        model = self.get_object()
        form = RepeatedReviewSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        actions.finish_review(model, by=request.user, **form.validated_data)
        return self.answer(model)


class Inventory(GenericAPIView):
    """Approved and retired models with owner, purpose, tier and review dates."""

    serializer_class = InventorySerializer
    queryset = TreeModel.objects.none()
    query_parameters = frozenset({"due"})

    @extend_schema(
        operation_id="inventory",
        parameters=[OpenApiParameter("due", bool, description="true: only models that are due for a review")],
        responses={200: InventorySerializer(many=True)} | PROBLEMS(400, 401, 403, 404, 429),
    )
    def get(self, request: Request) -> Response:
        """Return the caller's models, or all for administrators, newest first."""
        text = request.query_params.get("due", "false")
        if text not in ("true", "false"):
            raise ValidationError({"due": f"'{text[:20]}' is neither true nor false."})
        today = timezone.localdate()
        page = self.paginate_queryset(inventory_models(request.user, due=text == "true", today=today))
        return self.get_paginated_response(InventorySerializer(inventory_rows(page or [], today), many=True).data)
