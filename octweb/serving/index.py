"""Return the URLs of the API: `GET /api/v1/`."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from octweb.core.api import PROBLEMS

PLACES = {
    "datasets": "dataset-list",
    "sources": "api-sources",
    "counts": "count-list",
    "methods": "api-methods",
    "runs": "run-list",
    "experiments": "experiment-list",
    "workbenches": "workbench-list",
    "models": "api-models",
    "inventory": "inventory",
    "predictions": "batch-list",
    "privacy": "privacy",
    "teams": "api-teams",
    "tokens": "api-tokens",
    "schema": "schema",
    "documentation": "api-docs",
}


class IndexSerializer(serializers.Serializer):
    """URLs of the API by name."""

    def get_fields(self) -> dict[str, serializers.Field]:
        return {name: serializers.URLField(read_only=True) for name in PLACES}


class Index(APIView):
    """The URLs of the API."""

    predict_scope = True

    @extend_schema(operation_id="index", tags=["index"], responses={200: IndexSerializer} | PROBLEMS(401, 429))
    def get(self, request: Request) -> Response:
        return Response({name: reverse(view, request=request) for name, view in PLACES.items()})
