"""API that creates dossiers and returns them in all formats."""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotAcceptable, NotFound, ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from octweb.core.api import PROBLEMS, BodySerializer
from octweb.core.ownership import may_change
from octweb.core.problems import Conflict
from octweb.dossier import actions
from octweb.dossier.models import ModelDossier
from octweb.dossier.texts import TYPED
from octweb.dossier.views import answer
from octweb.jobs.models import RunStatus
from octweb.jobs.queue import worker_seen
from octweb.registry.api.request import AnyFormat, readable_model
from octweb.registry.models import TreeModel

# maximum and default time that a call waits for its dossier, and time between two polls, in seconds
LONGEST_WAIT = 30.0
USUAL_WAIT = 20.0
LOOK = 0.2
RETRY_SECONDS = "5"  # seconds that the client should wait before it tries again
_waiting = threading.BoundedSemaphore(2)  # at most two threads of this process may wait for dossiers
ACCEPTED = {"application/json": "json", "text/html": "html", "application/pdf": "pdf", "application/zip": "zip"}


class TextsSerializer(BodySerializer):
    """Texts of a dossier. Missing ones are copied from the last dossier."""

    ends = serializers.CharField(required=False, allow_blank=True, max_length=actions.MAX_TEXT)
    groups = serializers.ListField(
        child=serializers.CharField(max_length=300),
        required=False,
        max_length=actions.MAX_GROUPS,
        help_text="further columns to group the rows by",
    )

    def get_fields(self) -> dict[str, Any]:
        """Return the fields, with one for each text of the owner."""
        texts = {
            name: serializers.CharField(required=False, allow_blank=True, max_length=actions.MAX_TEXT, help_text=words)
            for name, (_, words) in TYPED.items()
        }
        return texts | super().get_fields()


class DossierJobSerializer(serializers.ModelSerializer):
    """The job of a dossier."""

    class Meta:
        model = ModelDossier
        fields = ["id", "model", "status", "created", "finished", "error", "approval", "sha256"]
        read_only_fields = fields


class DossierView(GenericAPIView):
    """The dossier of a model."""

    content_negotiation_class = AnyFormat
    serializer_class = TextsSerializer

    @extend_schema(
        operation_id="models_dossier",
        parameters=[
            OpenApiParameter("format", str, enum=list(actions.FORMATS), description="in place of the header Accept"),
            OpenApiParameter("of", str, enum=["approval"], description="the dossier that the approval made"),
            OpenApiParameter(
                "wait", float, description=f"seconds to wait for the first dossier, at most {LONGEST_WAIT:g}"
            ),
        ],
        responses={
            (200, "application/json"): OpenApiTypes.OBJECT,
            (200, "text/html"): OpenApiTypes.STR,
            (200, "application/pdf"): OpenApiTypes.BINARY,
            (200, "application/zip"): OpenApiTypes.BINARY,
            202: DossierJobSerializer,
        }
        | PROBLEMS(400, 401, 403, 404, 406, 409, 422, 429),
    )
    def get(self, request: Request, pk: uuid.UUID) -> HttpResponse:
        """Return the last finished dossier.

        If there is none, an owner's call creates it and waits (202: call again).
        """
        model = readable_model(request, pk)
        form = _form(request)
        wait = _wait(request)
        if "of" in request.query_params:
            return _approval_response(request, model, form)
        job = actions.latest_dossier(model)
        if job is None:
            if not may_change(request.user, model):
                raise NotFound("There is no dossier of this model. Its owner can make one.")
            first = actions.start(by=request.user, model=model, site=request.build_absolute_uri("/"))
            job = _wait_for_end(first, wait)
            if job.status in (RunStatus.FAILED, RunStatus.CANCELLED):
                raise Conflict(f"The dossier could not be made: {job.error}")
            if job.status != RunStatus.SUCCEEDED:
                return _accepted_response(job)
        return answer(job, model, form, actions.content(job, form, by=request.user))

    @extend_schema(
        operation_id="models_dossier_make",
        request=TextsSerializer,
        responses={202: DossierJobSerializer} | PROBLEMS(400, 401, 403, 404, 409, 413, 415, 429),
    )
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        """Make a new dossier with these texts."""
        model = readable_model(request, pk)
        form = self.get_serializer(data=request.data)
        form.is_valid(raise_exception=True)
        texts = dict(form.validated_data)
        groups = texts.pop("groups", None)
        return _accepted_response(
            actions.start(by=request.user, model=model, said=texts, groups=groups, site=request.build_absolute_uri("/"))
        )


def _approval_response(request: Request, model: TreeModel, form: str) -> HttpResponse:
    """Return the dossier that the approval of a model made. Raises NotFound and ValidationError."""
    if (of := request.query_params["of"]) != "approval":
        raise ValidationError({"of": f"'{of[:40]}' is not 'approval'. Leave it out to get the latest dossier."})
    job = actions.approval_dossier(model)
    if job is None:
        raise NotFound(actions.absence_words(model) or actions.approval_absence_words(model))
    return answer(job, model, form, actions.content(job, form, by=request.user))


def _accepted_response(job: ModelDossier) -> Response:
    return Response(DossierJobSerializer(job).data, status=202, headers={"Retry-After": RETRY_SECONDS})


def _form(request: Request) -> str:
    """Return the requested format, from `?format=` or the header Accept."""
    requested = request.query_params.get("format")
    if requested is not None:
        if requested not in actions.FORMATS:
            raise ValidationError({"format": f"'{requested[:40]}' is not one of {', '.join(actions.FORMATS)}."})
        return requested
    header = request.headers.get("Accept", "*/*") or "*/*"
    kinds = [part.partition(";")[0].strip().lower() for part in header.split(",")]
    for kind in kinds:
        if kind in ACCEPTED:
            return ACCEPTED[kind]
        if kind in ("*/*", "application/*"):
            return "json"
    raise NotAcceptable(f"A dossier does not come as '{header[:60]}'. Accept one of {', '.join(ACCEPTED)}.")


def _wait(request: Request) -> float:
    text = request.query_params.get("wait", str(USUAL_WAIT))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_WAIT:
        raise ValidationError({"wait": f"'{text[:40]}' is not a number of seconds from 0 to {LONGEST_WAIT:g}."})
    return seconds


def _wait_for_end(job: ModelDossier, seconds: float) -> Any:
    """Wait up to `seconds` for the job to end, and return it.

    Return at once if there is no worker, or if too many calls are waiting.
    """
    if not seconds or not worker_seen() or not _waiting.acquire(blocking=False):
        return job
    try:
        until = time.monotonic() + seconds
        while not job.is_finished and time.monotonic() < until:
            time.sleep(LOOK)
            job.refresh_from_db()
    finally:
        _waiting.release()
    return job
