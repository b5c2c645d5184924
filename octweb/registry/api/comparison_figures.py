"""Return Plotly figures that compare several trees."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core.api import PROBLEMS
from octweb.core.model_schema import reference
from octweb.figures.frontier import frontier_figure
from octweb.registry.api.request import readable_model
from octweb.registry.comparing.comparison import compare_models
from octweb.registry.comparing.views import models_of_dataset
from octweb.registry.document.sensitivity_frontier import frontier_context
from octweb.registry.models import TreeModel

FIGURE: dict[Any, Any] = {200: reference("Figure")}


class CompareFigure(APIView):
    """Accuracy on unseen rows against leaves, for the models of a data set: by default, that of your newest model."""

    @extend_schema(
        parameters=[OpenApiParameter("dataset", OpenApiTypes.UUID)], responses=FIGURE | PROBLEMS(401, 403, 404, 429)
    )
    def get(self, request: Request) -> Response:
        _, _, picked = models_of_dataset(request)
        return Response(frontier_figure([_point(row) for row in compare_models(picked)["rows"]]))


class ReachFigure(APIView):
    """Specificity against sensitivity: the pairs that trees of a topology can reach.

    Needs a run of odt with a frontier.
    """

    @extend_schema(responses=FIGURE | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        frontier = frontier_context(readable_model(request, pk))
        if frontier is None:
            raise Http404(
                "This model keeps no frontier of sensitivity and specificity: train it with odt and its frontier."
            )
        return Response(frontier["figure"])


def _point(row: dict[str, Any]) -> dict[str, Any]:
    model: TreeModel = row["model"]
    return {
        "name": f"{model.title} (version {model.version})",
        "leaves": row["leaves"],
        "accuracy": row["unseen"],
        "sd": row["deviation"],
        "id": str(model.pk),
        "claim": row["claims"][0].kind,
    }
