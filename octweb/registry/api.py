"""API of models, below /api/v1/: list, detail, download, review, predict."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import Http404, HttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core import metrics
from octweb.core.api import PROBLEMS
from octweb.core.parsers import BodyTooLarge, StrictJSONParser
from octweb.registry import actions
from octweb.registry.access import may_call, may_read
from octweb.registry.answers import (
    ArrowFileParser,
    ArrowRenderer,
    ArrowStreamParser,
    CsvParser,
    CsvRenderer,
    answer_type,
    columns_record,
    table_answer,
)
from octweb.registry.bodies import ARROW_FILE, ARROW_STREAM, CSV, predict_arrow, predict_columns, predict_csv
from octweb.registry.bringing_views import BringSerializer, bring_model
from octweb.registry.claims import certificate_status
from octweb.registry.downloads import FORMATS, download
from octweb.registry.models import State, TreeModel
from octweb.registry.predicting import Predictions, predict_rows
from octweb.registry.retired import (
    DRY_RUN_PARAMETER,
    SUBJECT_PARAMETER,
    dry_run,
    recorded_call,
    refuse_if_retired,
    retired_headers,
    retired_member,
    tally_of_call,
    was_approved,
)
from octweb.registry.serializers import (
    ModelDetailSerializer,
    ModelSerializer,
    PredictionsSerializer,
    PublishSerializer,
    ReviewPageSerializer,
    ReviewSerializer,
    RowsSerializer,
    ShareSerializer,
    review_record,
)
from trainer.certificate import Status
from trainer.registry import METHODS

YES = {"true", "1", "yes"}
NO = {"", "false", "0", "no"}


class AnyFormat(BaseContentNegotiation):
    """The view itself decides what it answers; `?format=` is then its own parameter, not the framework's."""

    def select_parser(self, request, parsers):
        return parsers[0] if parsers else None

    def select_renderer(self, request, renderers, format_suffix=None):
        return renderers[0], renderers[0].media_type


def callable_model(request: Request, pk: uuid.UUID, *, document: bool = True) -> TreeModel:
    """Return the model, or raise 404 if it does not exist or this caller may not call it: the two look the same.

    Raises Gone for a retired model that everybody could call once, unless its owner asks for a dry run.
    """
    try:
        model = _get_document(request, pk, document, may_call)
    except Http404:
        retired = was_approved(TreeModel.objects.filter(pk=pk, deleted_at=None, state=State.RETIRED)).first()
        if retired is not None and request.user.is_authenticated:
            refuse_if_retired(retired)
        raise
    if not dry_run(request, model):
        refuse_if_retired(model)
    return model


def readable_model(request: Request, pk: uuid.UUID, *, document: bool = True) -> TreeModel:
    """As `callable_model`, with the models that were shared with the caller for reading alone."""
    return _get_document(request, pk, document, may_read)


def _get_document(
    request: Request, pk: uuid.UUID, document: bool, may: Callable[[Any, Any, TreeModel], bool]
) -> TreeModel:
    models = TreeModel.objects.select_related("family")
    model = (models if document else models.defer("document")).filter(pk=pk).first()
    if model is None or not may(request.user, request.auth, model):
        raise Http404("There is no model with this id, or it is not yours and not approved.")
    return model


def flag(request: Request, name: str) -> bool:
    """A yes-or-no query parameter."""
    value = request.query_params.get(name, "").lower()
    if value not in YES | NO:
        raise ValidationError({name: f"'{value[:40]}' is neither true nor false."})
    return value in YES


class ModelList(ListAPIView):
    """Your models and those that were approved; administrators see all."""

    serializer_class = ModelSerializer
    parser_classes = [MultiPartParser]
    queryset = TreeModel.objects.none()

    def get_queryset(self):
        models = TreeModel.objects.readable_by(self.request.user).defer("document").select_related("family", "owner")
        query = self.request.query_params
        for name, values in (("state", State.values), ("status", [str(s) for s in Status])):
            if chosen := query.get(name):
                if chosen not in values:
                    raise ValidationError({name: f"'{chosen[:40]}' is not one of {', '.join(values)}."})
                models = models.filter(**{name: chosen})
        if method := query.get("method"):
            models = models.filter(method=_clean(method))
        if family := query.get("name"):
            models = models.filter(family__name=_clean(family))
        if dataset := query.get("dataset"):
            try:
                models = models.filter(dataset_id=uuid.UUID(dataset))
            except ValueError as error:
                raise ValidationError({"dataset": f"'{dataset[:60]}' is not an id."}) from error
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
    def post(self, request: Request) -> Response:
        model = bring_model(request.user, request.data)
        return Response(ModelDetailSerializer(model, context={"request": request}).data, status=201)


class ModelDetail(APIView):
    """One model."""

    @extend_schema(
        operation_id="models_retrieve", responses={200: ModelDetailSerializer} | PROBLEMS(401, 403, 404, 429)
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        model = readable_model(request, pk)
        return Response(ModelDetailSerializer(model, context={"request": request}).data)


class ModelDownload(APIView):
    """The model as a file."""

    content_negotiation_class = AnyFormat

    @extend_schema(
        parameters=[OpenApiParameter("format", str, enum=list(FORMATS), default="json")],
        responses={
            (200, "application/json"): OpenApiTypes.OBJECT,
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
    """Ask for approval, withdraw, approve, ask back or reject (with a reason), retire; the checklist of a reviewer."""

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
        more = {"publish": step["publish"], "recording": step["recording"]} if approves else {}
        actions.VERBS[step["action"]](model, by=request.user, reason=step["reason"], **more)
        return Response(ModelDetailSerializer(model, context={"request": request}).data)


class ModelPublish(GenericAPIView):
    """Serve an approved model under its name, or under another name of its owner; or serve it no more."""

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
    """Who may use a model besides its owner, whatever its review says."""

    serializer_class = ShareSerializer
    pagination_class = None

    def _model(self, pk: uuid.UUID) -> TreeModel:
        return TreeModel.objects.select_related("family").get_visible(self.request.user, pk)

    def _list(self, model: TreeModel) -> Response:
        shares = model.shares.select_related("user")
        return Response([{"username": s.user.username, "level": s.level} for s in shares])

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
            raise ValidationError({"username": "Say with whom it is no longer shared."})
        actions.unshare(model, by=request.user, username=name)
        return Response(status=204)


class ModelPredict(APIView):
    """Classify rows. No serializer looks at the rows: they go from the parsed body into one matrix."""

    predict_scope = True
    parser_classes = [StrictJSONParser, CsvParser, ArrowStreamParser, ArrowFileParser]
    renderer_classes = [*APIView.renderer_classes, CsvRenderer, ArrowRenderer]

    @extend_schema(
        operation_id="models_predict",
        request={
            "application/json": RowsSerializer,
            CSV: OpenApiTypes.STR,
            ARROW_STREAM: OpenApiTypes.BINARY,
            ARROW_FILE: OpenApiTypes.BINARY,
        },
        parameters=[
            OpenApiParameter("explain", bool, description="adds the path of each row in words; JSON only"),
            DRY_RUN_PARAMETER,
            SUBJECT_PARAMETER,
        ],
        responses={
            (200, "application/json"): PredictionsSerializer,
            (200, CSV): OpenApiTypes.STR,
            (200, ARROW_STREAM): OpenApiTypes.BINARY,
        }
        | PROBLEMS(400, 401, 403, 404, 406, 410, 413, 415, 422, 429, 503),
    )
    def post(self, request: Request, pk: uuid.UUID) -> HttpResponse:
        with metrics.count_calls("v1") as call:
            model = callable_model(request, pk, document=False)
            recorded = recorded_call(request, model, "v1", str(pk))
            call.of(model.family.name, model.version, tally_of_call(request, model, "v1"), recorded)
            explain = flag(request, "explain")
            kind = answer_type(request)
            if explain and kind != "application/json":
                raise ValidationError(
                    {"explain": "Paths in words are only in JSON answers: send Accept: application/json."}
                )
            found, by_column = predicted(model, request)
            found = found.recorded(recorded)
            call.predicted(found.label_counts(), found.unseen, found.life_counts())
        if kind != "application/json":
            return table_answer(model, found, kind)
        if by_column and not explain:
            answers = {"columns": columns_record(found)}
        else:
            answers = {"predictions": found.records(explain=explain)}
        head = {
            "model": str(model.pk),
            "name": model.family.name,
            "version": model.version,
            "certificate": certificate_status(model),
        } | retired_member(model)
        proposals = {"proposals": [own.to_json() for own in found.proposals]} if found.proposals else {}
        record = {**head, **answers, "notes": list(found.notes), **proposals}
        return Response(record, headers=retired_headers(model))


def predicted(model: TreeModel, request: Request) -> tuple[Predictions, bool]:
    """The predictions for the rows of a body, of whatever type, and whether it is JSON columns."""
    body = request.data
    if isinstance(body, bytes):
        return (predict_csv if request.content_type.startswith(CSV) else predict_arrow)(model, body), False
    if isinstance(body, dict) and body.keys() == {"columns"}:
        return predict_columns(model, body["columns"]), True
    return predict_rows(model, rows_of(body)), False


def rows_of(body: object) -> list:
    """The list of rows of a request's body; raises 400 for another shape and 413 for too many."""
    if not isinstance(body, dict):
        raise ParseError('The body must be an object with the member "rows": {"rows": [{"column": value}]}.')
    if unknown := set(body) - {"rows"}:
        raise ValidationError({sorted(unknown)[0][:60]: 'Not known. The body has one member, "rows" or "columns".'})
    rows = body.get("rows")
    if not isinstance(rows, list):
        raise ValidationError({"rows": "A list of objects is needed: one object per row, column → value."})
    if len(rows) > settings.MAX_PREDICT_ROWS:
        raise BodyTooLarge(f"{len(rows):,} rows are too many; {settings.MAX_PREDICT_ROWS:,} is the limit of one call.")
    return rows


def _clean(text: str) -> str:
    if "\x00" in text:
        raise ValidationError("A query parameter contains a zero byte.")
    return text
