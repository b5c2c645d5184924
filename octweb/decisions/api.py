"""API of recorded decisions for owners, administrators and users with a share for records, below /api/v1/."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotAcceptable, ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core.api import PROBLEMS, BodySerializer
from octweb.core.idempotency import idempotent_by_id
from octweb.core.parsers import StrictJSONParser
from octweb.core.problems import Gone
from octweb.decisions import collecting, later
from octweb.decisions.bulk import members_of, rows_of_body
from octweb.decisions.erasing import USER_REASONS, erase_decisions, erase_subject
from octweb.decisions.explaining import explanation_json
from octweb.decisions.later import LaterRow, add_later_rows
from octweb.decisions.letter import letter_file
from octweb.decisions.listing import FILTERS, OBJECTIONS, decisions_of, summaries, versions_of
from octweb.decisions.models import ChainEntry, Kind
from octweb.decisions.reading import (
    completable_models_of,
    decision_json,
    find_decision,
    find_model,
    later_json,
    record_look,
    refuse_to_complete,
)
from octweb.dossier import pdf
from octweb.registry.api.request import AnyFormat
from octweb.registry.models import TreeModel
from octweb.registry.prediction.recording import MAX_SUBJECT_CHARACTERS, SUBJECT_HEADER, by_text, subject_of
from octweb.registry.prediction.responses import CsvParser

SUBJECT = OpenApiParameter(
    SUBJECT_HEADER,
    str,
    OpenApiParameter.HEADER,
    description="Your reference to a person. The list then has only decisions whose calls sent it. No log contains this header.",
)
LETTERS = {"html": "text/html; charset=utf-8", "pdf": "application/pdf"}  # form → media type
PARAMETERS = [OpenApiParameter(name, str, description=text) for name, text in FILTERS.items()]


class DecisionSummarySerializer(serializers.Serializer):
    """A decision in a list, without the values of its row."""

    decision = serializers.UUIDField()
    at = serializers.DateTimeField()
    model = serializers.UUIDField()
    version = serializers.IntegerField()
    leaf = serializers.IntegerField(allow_null=True)
    label = serializers.CharField(allow_null=True, help_text="the answer; null: refused or erased")
    refused = serializers.CharField(help_text="why no answer was given; empty: there was one")
    erased = serializers.BooleanField()
    outcome = serializers.CharField(allow_null=True, help_text="what came true, by the last record")
    override = serializers.CharField(allow_null=True, help_text="what a person decided, by the last record")
    objection = serializers.ChoiceField(OBJECTIONS, allow_null=True, help_text="state by the last record")


class NotedSerializer(serializers.Serializer):
    """An unusual cell."""

    column = serializers.CharField()
    kind = serializers.CharField(help_text="empty, unknown, below or above (the training range)")


class LaterSerializer(serializers.Serializer):
    """A record about a decision. If it was erased, only the first four members are present."""

    id = serializers.UUIDField()
    number = serializers.IntegerField(help_text="its place in the chain")
    kind = serializers.ChoiceField([str(Kind.OUTCOME), str(Kind.OVERRIDE), str(Kind.OBJECTION), str(Kind.LOOK)])
    at = serializers.DateTimeField()
    by = serializers.CharField(required=False, help_text="`user` and an id, or `token` and its key")
    value = serializers.CharField(required=False, help_text="outcome: the class")
    known_at = serializers.CharField(required=False, help_text="outcome: as it was sent")
    source = serializers.CharField(required=False, help_text="outcome")
    label = serializers.CharField(required=False, help_text="override: the class")
    reason = serializers.CharField(required=False, help_text="override, objection")
    received = serializers.CharField(required=False, help_text="objection: as it was sent")
    text_ref = serializers.CharField(required=False, help_text="objection: your reference to the letter")
    state = serializers.ChoiceField(OBJECTIONS, required=False, help_text="objection")
    answer = serializers.CharField(required=False, help_text="objection")
    page = serializers.CharField(required=False, help_text="look: api, page or letter")


class SilentAnswerSerializer(serializers.Serializer):
    """The answer of a challenger, which nobody was given."""

    version_sha256 = serializers.CharField(help_text="of the challenger's model file")
    leaf = serializers.IntegerField(allow_null=True, help_text="its leaf; null: it has no answer")
    label = serializers.CharField(allow_null=True)


class ErasureSerializer(serializers.Serializer):
    """The erasure of a record's content."""

    at = serializers.DateTimeField(allow_null=True)
    why = serializers.CharField()
    number = serializers.IntegerField(allow_null=True, help_text="place of the record of the erasure")


class DecisionBlockSerializer(serializers.Serializer):
    """The sealed block of a record, with the proof that the block contains it (RFC 9162)."""

    number = serializers.IntegerField()
    header = serializers.CharField(help_text="the text whose SHA-256 is the hash of the block; it has the root")
    sha256 = serializers.CharField()
    index = serializers.IntegerField(help_text="place of the record in the block, from 0")
    path = serializers.ListField(child=serializers.CharField(), help_text="hashes from the record to the root")
    is_signed = serializers.BooleanField(help_text="it, or a later block, is signed")


class DecisionPlaceSerializer(serializers.Serializer):
    """The position of a record in the chain. SHA-256(0x00, salt, payload) is the commitment."""

    number = serializers.IntegerField()
    commitment = serializers.CharField()
    salt = serializers.CharField(allow_null=True)
    payload = serializers.CharField(allow_null=True, help_text="the record, verbatim")
    block = DecisionBlockSerializer(allow_null=True, help_text="null: not sealed yet")


class DecisionSerializer(serializers.Serializer):
    """A recorded decision, as it was given, and later records about it."""

    decision = serializers.UUIDField()
    at = serializers.DateTimeField()
    model = serializers.UUIDField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    version_sha256 = serializers.CharField(allow_null=True, help_text="of the model file that answered")
    asked_as = serializers.CharField(allow_null=True, help_text="name or id in the call")
    api = serializers.CharField(allow_null=True, help_text="v1, v2, invocations or file (a batch prediction)")
    call = serializers.CharField(allow_null=True, help_text="X-Request-ID, or an id")
    row = serializers.IntegerField(allow_null=True, help_text="place in the call, from 0")
    by = serializers.CharField(allow_null=True)
    has_subject = serializers.BooleanField(help_text="the caller named a person")
    values = serializers.DictField(
        help_text="cells that the tree tests, as the kernel read them; null: empty or unknown"
    )
    noted = NotedSerializer(many=True)
    refused = serializers.CharField(help_text="why no answer was given; empty: there was one")
    leaf = serializers.IntegerField(allow_null=True)
    label = serializers.CharField(allow_null=True)
    probabilities = serializers.DictField(allow_null=True)
    explanation = serializers.DictField(
        allow_null=True,
        help_text="as by `explain` with the version that answered: path, rule of the leaf, smallest changes, reasons; "
        "null: refused, erased, or its file is not the registered one",
    )
    answered_again = serializers.ChoiceField(
        ["same", "different"],
        allow_null=True,
        help_text="the row predicted again now, compared bit for bit; null as in `explanation`",
    )
    challenger = SilentAnswerSerializer(many=True, help_text="silent answers; empty without a challenger")
    outcome = LaterSerializer(allow_null=True, help_text="the last one")
    override = LaterSerializer(allow_null=True, help_text="the last one")
    objection = LaterSerializer(allow_null=True, help_text="the last one")
    later = LaterSerializer(many=True, help_text="all records about it in order; at most 50 looks")
    looks = serializers.IntegerField(help_text="how often it was read before")
    erased = ErasureSerializer(allow_null=True)
    chain = DecisionPlaceSerializer()


def _optional(most: int, words: str) -> serializers.CharField:
    return serializers.CharField(required=False, allow_blank=True, allow_null=True, max_length=most, help_text=words)


class OutcomeSerializer(serializers.Serializer):
    """The outcome: the class that came true."""

    value = serializers.CharField(help_text="a class of the model")
    known_at = _optional(40, "a date or a time")
    source = _optional(later.MAX_SOURCE_CHARACTERS, "where it is known from")


class OverrideSerializer(serializers.Serializer):
    """The class that a person chose instead, and the reason."""

    label = serializers.CharField(help_text="a class of the model")
    reason = serializers.CharField(max_length=later.MAX_REASON)


class ObjectionSerializer(serializers.Serializer):
    """An objection by the person. Members that are left out are copied from the last objection to this decision."""

    received = _optional(40, "a date or a time; today if it is left out")
    reason = _optional(later.MAX_REASON, "what the person objects to; needed once")
    text_ref = _optional(later.MAX_REFERENCE, "your reference to the letter")
    state = serializers.ChoiceField(OBJECTIONS, required=False, help_text="open if it is left out")
    answer = _optional(later.MAX_REASON, "what the person is answered; needed with upheld and refused")


class EraseSerializer(BodySerializer):
    """The reason for an erasure."""

    why = serializers.ChoiceField(USER_REASONS, default=USER_REASONS[0], help_text="becomes a record")


class EraseSubjectSerializer(EraseSerializer):
    """The person whose decisions are erased, and the reason."""

    subject = serializers.CharField(
        max_length=MAX_SUBJECT_CHARACTERS,
        help_text=f"your reference to the person, as calls sent it in `{SUBJECT_HEADER}`",
    )


class ErasedSerializer(serializers.Serializer):
    """The decisions that this call has erased. Those erased before are not included."""

    erased = serializers.ListField(child=serializers.UUIDField())


class BulkSerializer(serializers.Serializer):
    """Many records. Each row has `decision` and the members of the single call."""

    rows = serializers.ListField(child=serializers.DictField())


class AddedSerializer(serializers.Serializer):
    """Number of records that a bulk call has added."""

    added = serializers.IntegerField()
    unchanged = serializers.IntegerField(help_text="rows whose content was already the last record")


class ModelDecisions(GenericAPIView):
    """Recorded decisions of a model, newest first."""

    serializer_class = DecisionSummarySerializer
    query_parameters = frozenset({*FILTERS, "page_size", "page", "cursor"})
    cursor_key = "number"
    cursor_time = "at"

    def get_object(self) -> TreeModel:
        return find_model(self.request.user, self.kwargs["pk"])

    @extend_schema(
        operation_id="models_decisions",
        parameters=[*PARAMETERS, SUBJECT],
        responses={200: DecisionSummarySerializer(many=True)} | PROBLEMS(400, 401, 403, 404, 429),
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        model = self.get_object()
        query = request.query_params
        models = {m.pk: m for m in versions_of(request.user, model, query.get("version", ""))}
        entries = decisions_of(request.user, model, query, subject_of(request.META))
        page = self.paginate_queryset(entries.order_by("-at", "-number"))
        return self.get_paginated_response(summaries(page or [], models))


class Decision(APIView):
    """A recorded decision. Each call is recorded, too."""

    @extend_schema(
        operation_id="decisions_retrieve", responses={200: DecisionSerializer} | PROBLEMS(401, 403, 404, 429)
    )
    def get(self, request: Request, decision: uuid.UUID) -> Response:
        record = find_decision(request.user, decision)
        answer = decision_json(record) | {"explanation": explanation_json(record, request.user)}
        record_look(record, by_text(request.user, request.auth), "api")
        return Response(DecisionSerializer(answer).data)


class DecisionLetter(APIView):
    """The letter for the person about a recorded decision. Each call is recorded, too."""

    content_negotiation_class = AnyFormat

    @extend_schema(
        operation_id="decisions_letter",
        parameters=[OpenApiParameter("format", str, enum=list(LETTERS), description="in place of the header Accept")],
        responses={(200, "text/html"): OpenApiTypes.STR, (200, "application/pdf"): OpenApiTypes.BINARY}
        | PROBLEMS(400, 401, 403, 404, 406, 410, 429),
    )
    def get(self, request: Request, decision: uuid.UUID) -> HttpResponse:
        """Return the letter as HTML or PDF: the answer, its reasons, and how to object."""
        form = _letter_form(request)
        record = find_decision(request.user, decision)
        if record.is_erased:
            raise Gone("The content of this decision was erased, so there is no letter.")
        content = letter_file(record, form, user=request.user, by=by_text(request.user, request.auth))
        return HttpResponse(content, content_type=LETTERS[form])


def _letter_form(request: Request) -> str:
    """Return "html" or "pdf", from `?format=` or the header Accept. Raises ValidationError and NotAcceptable."""
    form = request.query_params.get("format")
    if form is None:
        accepted = [part.partition(";")[0].strip().lower() for part in request.headers.get("Accept", "").split(",")]
        form = "pdf" if "application/pdf" in accepted and "text/html" not in accepted else "html"
    if form not in LETTERS:
        raise ValidationError({"format": f"'{form[:40]}' is not one of {', '.join(LETTERS)}."})
    if form == "pdf" and not pdf.can_print():
        raise NotAcceptable("This server has no library for PDF. Ask for format=html and print it.")
    return form


class _LaterView(APIView):
    """Base class of views that add one record about a decision."""

    parser_classes = [StrictJSONParser]
    kind = ""

    def add(self, request: Request, decision: uuid.UUID) -> Response:
        """Add the record, unless the last one has the same content. Return the last record."""
        rows = [LaterRow(decision, members_of(self.kind, request.data))]
        by = by_text(request.user, request.auth)
        added = add_later_rows(self.kind, rows, user=request.user, by=by, single=True)
        record = find_decision(request.user, decision)
        entry = ChainEntry.objects.filter(about=decision, kind=self.kind).latest("number")
        return Response(LaterSerializer(later_json(entry, record.tree)).data, status=201 if added.added else 200)

    def restored(self, request: Request, key: str, decision: uuid.UUID) -> Any:
        """Return a record that an earlier call has added, without what was erased since."""
        record = find_decision(request.user, decision)
        return LaterSerializer(later_json(ChainEntry.objects.get(about=decision, key=key), record.tree)).data


STATUSES = (400, 401, 403, 404, 410, 413, 415, 429)
LATER = {200: LaterSerializer, 201: LaterSerializer} | PROBLEMS(*STATUSES)


class DecisionOutcome(_LaterView):
    """Record the class that came true.

    The same outcome again adds nothing. A different one corrects it, and both are kept.
    """

    kind = str(Kind.OUTCOME)

    @extend_schema(operation_id="decisions_outcome", request=OutcomeSerializer, responses=LATER)
    @idempotent_by_id
    def post(self, request: Request, decision: uuid.UUID) -> Response:
        return self.add(request, decision)


class DecisionOverride(_LaterView):
    """Record the class that a person chose instead, and the reason."""

    kind = str(Kind.OVERRIDE)

    @extend_schema(operation_id="decisions_override", request=OverrideSerializer, responses=LATER)
    @idempotent_by_id
    def post(self, request: Request, decision: uuid.UUID) -> Response:
        return self.add(request, decision)


class DecisionObjection(_LaterView):
    """Record an objection, or the answer to it."""

    kind = str(Kind.OBJECTION)

    @extend_schema(operation_id="decisions_objection", request=ObjectionSerializer, responses=LATER)
    @idempotent_by_id
    def post(self, request: Request, decision: uuid.UUID) -> Response:
        return self.add(request, decision)


ERASED: Any = {200: ErasedSerializer} | PROBLEMS(400, 401, 403, 404, 413, 415, 429)


class DecisionErase(APIView):
    """Erase the content of a decision and of all later records about it.

    Commitment and position in the chain are kept.
    """

    parser_classes = [StrictJSONParser]

    @extend_schema(operation_id="decisions_erase", request=EraseSerializer, responses=ERASED)
    def post(self, request: Request, decision: uuid.UUID) -> Response:
        form = EraseSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        collecting.collect()
        record = find_decision(request.user, decision)
        refuse_to_complete(request.user, record.model)
        by = by_text(request.user, request.auth)
        return Response({"erased": erase_decisions([record.entry.key], by=by, why=form.validated_data["why"])})


class SubjectErase(APIView):
    """Erase all decisions about a person: those of your models, or of all models for administrators."""

    parser_classes = [StrictJSONParser]

    @extend_schema(operation_id="subjects_erase", request=EraseSubjectSerializer, responses=ERASED)
    def post(self, request: Request) -> Response:
        form = EraseSubjectSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        collecting.collect()  # include answers of the last second
        models = list(completable_models_of(request.user).values_list("pk", flat=True))
        by = by_text(request.user, request.auth)
        why = form.validated_data["why"]
        return Response({"erased": erase_subject(form.validated_data["subject"], by=by, why=why, models=models)})


class _BulkView(APIView):
    """Base class of views that add many records, all or none."""

    parser_classes = [StrictJSONParser, CsvParser]
    kind = ""

    def add(self, request: Request) -> Response:
        rows = rows_of_body(self.kind, request.data)
        added = add_later_rows(self.kind, rows, user=request.user, by=by_text(request.user, request.auth))
        return Response(added._asdict())


BULK: Any = {"application/json": BulkSerializer, "text/csv": OpenApiTypes.STR}
ADDED: Any = {200: AddedSerializer} | PROBLEMS(400, 401, 403, 413, 415, 429)


class Outcomes(_BulkView):
    """Record many outcomes, all or none: JSON, or CSV with the columns decision, outcome, known_at, source."""

    kind = str(Kind.OUTCOME)

    @extend_schema(operation_id="outcomes_create", request=BULK, responses=ADDED)
    def post(self, request: Request) -> Response:
        return self.add(request)


class Overrides(_BulkView):
    """Record many overrides, all or none: JSON, or CSV with the columns decision, label, reason."""

    kind = str(Kind.OVERRIDE)

    @extend_schema(operation_id="overrides_create", request=BULK, responses=ADDED)
    def post(self, request: Request) -> Response:
        return self.add(request)


class Objections(_BulkView):
    """Record many objections, all or none: JSON, or CSV with the columns decision, received, reason, text_ref, state, answer."""

    kind = str(Kind.OBJECTION)

    @extend_schema(operation_id="objections_create", request=BULK, responses=ADDED)
    def post(self, request: Request) -> Response:
        return self.add(request)
