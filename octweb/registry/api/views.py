"""List, import, show, review, serve and share models by the API."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core.api import PROBLEMS
from octweb.core.idempotency import idempotent
from octweb.core.model_schema import reference
from octweb.datasets.models import Dataset
from octweb.registry.api.request import AnyFormat, readable_model
from octweb.registry.api.review_serializers import (
    PublishSerializer,
    ReviewPageSerializer,
    ReviewSerializer,
    ShareSerializer,
    review_record,
)
from octweb.registry.api.serializers import BringSerializer, ModelDetailSerializer, ModelSerializer
from octweb.registry.lifecycle import actions
from octweb.registry.lifecycle.importing import import_tree
from octweb.registry.lifecycle.pruning import prune
from octweb.registry.models import State, TreeModel
from octweb.registry.page.downloads import FORMATS, download
from trainer.certificate import Status
from trainer.registry import METHODS


class ModelList(ListAPIView):
    """Your models, approved models, and models shared with you. Administrators see all."""

    serializer_class = ModelSerializer
    parser_classes = [MultiPartParser]
    queryset = TreeModel.objects.none()
    search_fields = ("title", "family__name", "method")
    ordering_fields = {
        "created": "created",
        "name": "family__name",
        "title": "title",
        "version": "version",
        "gap": "gap",
        "leaves": "leaves",
        "depth": "depth",
        "train_accuracy": "train_accuracy",
        "unseen_accuracy": "unseen_accuracy",
    }

    def get_queryset(self) -> QuerySet:
        models = TreeModel.objects.readable_by(self.request.user).defer("document").select_related("family", "owner")
        query = self.request.query_params
        for name, values in (("state", State.values), ("status", [str(s) for s in Status])):
            if value := query.get(name):
                if value not in values:
                    raise ValidationError({name: f"'{value[:40]}' is not one of {', '.join(values)}."})
                models = models.filter(**{name: value})
        if method := query.get("method"):
            models = models.filter(method=_clean(method))
        if family := query.get("name"):
            models = models.filter(family__name=_clean(family))
        if dataset := query.get("dataset"):
            try:
                models = models.filter(dataset_id=uuid.UUID(dataset))
            except ValueError as error:
                raise ValidationError(
                    {"dataset": f"'{dataset[:60]}' is not an id. Take the id of a data set from /api/v1/datasets/."}
                ) from error
        return models

    @extend_schema(
        operation_id="models_list",
        parameters=[
            OpenApiParameter("state", str, enum=State.values),
            OpenApiParameter("status", str, enum=[str(s) for s in Status]),
            OpenApiParameter("method", str, enum=[m.id for m in METHODS]),
            OpenApiParameter("name", str, description="the family"),
            OpenApiParameter("dataset", OpenApiTypes.UUID),
        ],
        responses={200: ModelSerializer(many=True)} | PROBLEMS(400, 401, 403, 404, 429),
    )
    def get(self, request: Request) -> Response:
        return self.list(request)

    @extend_schema(
        operation_id="models_create",
        description="A tree of LightGBM, PMML or an octweb file as a draft, counted on one of your data sets.",
        request={"multipart/form-data": BringSerializer},
        responses={201: ModelDetailSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 422, 429, 503),
    )
    @idempotent
    def post(self, request: Request) -> Response:
        model = _bring_model(request.user, request.data)
        return Response(ModelDetailSerializer(model, context={"request": request}).data, status=201)


class ModelDetail(APIView):
    """A model with its tree, its claims, and its history."""

    @extend_schema(
        operation_id="models_retrieve", responses={200: ModelDetailSerializer} | PROBLEMS(401, 403, 404, 429)
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        model = readable_model(request, pk)
        return Response(ModelDetailSerializer(model, context={"request": request}).data)


class ModelDownload(APIView):
    """Download the model as a file, in one of many formats."""

    content_negotiation_class = AnyFormat

    @extend_schema(
        parameters=[OpenApiParameter("format", str, enum=list(FORMATS), default="json")],
        responses={
            (200, "application/json"): {"oneOf": [reference("ModelFile"), reference("TableContract")]},
            (200, "text/plain"): OpenApiTypes.STR,
            (200, "text/x-python"): OpenApiTypes.STR,
            (200, "application/sql"): OpenApiTypes.STR,
            (200, "application/xml"): OpenApiTypes.STR,
            (200, "application/octet-stream"): OpenApiTypes.BINARY,
            (200, "text/html"): OpenApiTypes.STR,
            (200, "text/javascript"): OpenApiTypes.STR,
            (200, "text/x-c"): OpenApiTypes.STR,
            (200, "text/x-java"): OpenApiTypes.STR,
            (200, "text/x-r"): OpenApiTypes.STR,
            (200, "text/csv"): OpenApiTypes.STR,
        }
        | PROBLEMS(400, 401, 403, 404, 422, 429),
    )
    def get(self, request: Request, pk: uuid.UUID) -> HttpResponse:
        model = readable_model(request, pk)
        name = request.query_params.get("format", "json")
        if name not in FORMATS:
            raise ValidationError({"format": f"'{name[:40]}' is not one of {', '.join(FORMATS)}."})
        address = request.build_absolute_uri(reverse("registry:detail", args=[model.pk]))
        return download(model, name, address, by=request.user)


class ModelReview(GenericAPIView):
    """The review of a model: its checklist, and its steps (ask for approval, withdraw, approve, return, reject, retire)."""

    serializer_class = ReviewSerializer

    @extend_schema(
        description="What a reviewer reads: purpose, answers, and the checklist, for the owner and for administrators.",
        responses={200: ReviewPageSerializer} | PROBLEMS(401, 403, 404, 429),
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        model = TreeModel.objects.select_related("family", "owner", "dataset").get_visible(request.user, pk)
        return Response(review_record(model, request.user))

    @extend_schema(
        request=ReviewSerializer,
        responses={200: ModelDetailSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 429),
    )
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        model = readable_model(request, pk)
        form = ReviewSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        step = form.validated_data
        approves = step["action"] == "approve"
        more = {n: step[n] for n in ("publish", "recording", "keep_days") if n in step} if approves else {}
        actions.STEPS[step["action"]](model, by=request.user, reason=step["reason"], **more)
        return Response(ModelDetailSerializer(model, context={"request": request}).data)


class ModelPublish(GenericAPIView):
    """Serve an approved model under its name, or under another name of its owner, or stop serving it."""

    serializer_class = PublishSerializer

    @extend_schema(
        request=PublishSerializer,
        responses={200: ModelDetailSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 429),
    )
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        model = readable_model(request, pk)
        form = PublishSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        model = actions.publish(model, by=request.user, name=form.validated_data["name"])
        return Response(ModelDetailSerializer(model, context={"request": request}).data)

    @extend_schema(
        description="It stays approved. The name answers with the version that was served before, or with none.",
        responses={200: ModelDetailSerializer} | PROBLEMS(401, 403, 404, 409, 429),
    )
    def delete(self, request: Request, pk: uuid.UUID) -> Response:
        model = actions.stop_serving(readable_model(request, pk), by=request.user)
        return Response(ModelDetailSerializer(model, context={"request": request}).data)


class ModelShares(GenericAPIView):
    """The users with whom a model is shared, independent of its review."""

    serializer_class = ShareSerializer
    pagination_class = None

    def _model(self, pk: uuid.UUID) -> TreeModel:
        return TreeModel.objects.select_related("family").get_for(self.request, pk)

    def _list(self, model: TreeModel) -> Response:
        shares = model.shares.select_related("user")
        return Response([{"username": s.user.username, "level": s.level, "records": s.records} for s in shares])

    @extend_schema(responses={200: ShareSerializer(many=True)} | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        return self._list(self._model(pk))

    @extend_schema(
        request=ShareSerializer,
        responses={200: ShareSerializer(many=True)} | PROBLEMS(400, 401, 403, 404, 413, 415, 429),
    )
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        model = self._model(pk)
        form = ShareSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        actions.share(model, by=request.user, **form.validated_data)
        return self._list(model)

    @extend_schema(
        responses={204: None} | PROBLEMS(400, 401, 403, 404, 429),
        parameters=[OpenApiParameter("username", str, required=True)],
    )
    def delete(self, request: Request, pk: uuid.UUID) -> Response:
        model = self._model(pk)
        name = _clean(request.query_params.get("username", ""))
        if not name:
            raise ValidationError({"username": "This is empty. Name the user with whom the model is no longer shared."})
        actions.unshare(model, by=request.user, username=name)
        return Response(status=204)


class ModelPrune(APIView):
    """Create a new version without the questions that change no answer. Every row keeps its class."""

    @extend_schema(request=None, responses={201: ModelDetailSerializer} | PROBLEMS(401, 403, 404, 409, 422, 429))
    @idempotent
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        pruned_model = prune(readable_model(request, pk), by=request.user)
        return Response(ModelDetailSerializer(pruned_model, context={"request": request}).data, status=201)


def _bring_model(user: Any, data: Any) -> TreeModel:
    """Import the tree of a call.

    Raises ValidationError, Http404 for another user's data set, and the errors of `import_tree`.
    """
    form = BringSerializer(data=data)
    form.is_valid(raise_exception=True)
    values = dict(form.validated_data)
    dataset = Dataset.objects.get_changeable(user, values.pop("dataset"))
    return import_tree(owner=user, dataset=dataset, source_name=values["file"].name or "model", **values)


def _clean(text: str) -> str:
    if "\x00" in text:
        raise ValidationError("A query parameter contains a null character. Send it without one.")
    return text
