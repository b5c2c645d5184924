"""Open Inference Protocol over REST: health, metadata, inference.

The views answer for approved models that are served. Errors have the member `error`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core import metrics, strict_json
from octweb.core.faults import DamagedDocument
from octweb.core.parsers import limited
from octweb.core.problems import document, exception_handler
from octweb.registry.api.request import AnyFormat
from octweb.registry.document.claims import certificate_parameters
from octweb.registry.document.model_files import is_damaged, model_file
from octweb.registry.lifecycle.access import may_call
from octweb.registry.lifecycle.model_cache import model_by_name
from octweb.registry.models import TreeModel
from octweb.registry.prediction.predictions import DECISION
from octweb.registry.prediction.recording import RecordedCall
from octweb.registry.prediction.responses import mark_notes
from octweb.registry.prediction.retired import recorded_call, refuse_if_name_retired, tally_of_call
from octweb.serving.inference import DEFAULT_OUTPUTS, OUTPUTS, configuration, infer, metadata, output
from octweb.serving.tensors import JSON_LENGTH, ProtocolError, answer, parse
from trainer.errors import DataError
from trainer.version import VERSION

EXTENSIONS = ("binary_tensor_data", "model_repository", "model_configuration")


def live(request: HttpRequest) -> HttpResponse:
    """Report that the process is alive."""
    return JsonResponse({"live": True})


def ready(request: HttpRequest) -> HttpResponse:
    """Report whether the database answers. Without it the process cannot predict, and the status is 503."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"ready": False, "error": "the database does not answer"}, status=503)
    return JsonResponse({"ready": True})


def errors(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return errors as plain JSON, with status 400 for invalid data, as the protocol requires.

    Return None for a 500.
    """
    if isinstance(error, ProtocolError | DataError):
        return Response(document(400, str(error)), status=400)
    response = exception_handler(error, context)
    if response is not None:
        response.content_type = "application/json"
    return response


class ProtocolView(APIView):
    """Base class of the views that need a signed-in caller.

    Each view reads the body itself, whatever its media type.
    """

    predict_scope = True
    query_parameters: frozenset[str] = frozenset()
    parser_classes: list[Any] = []
    content_negotiation_class = AnyFormat
    schema = None

    def get_exception_handler(self) -> Callable[..., Response]:
        return errors


def served_model(request: Request, name: str, version: str | None = None) -> TreeModel:
    """Return the model served under this name, by default in its default version, without its document.

    Raises Http404 if there is none or the caller may not call it, and Gone for a retired name.
    """
    if version is not None and not (version.isascii() and version.isdigit() and len(version) < 10):
        raise Http404(f"There is no version '{version[:20]}': versions are whole numbers such as 1.")
    model = model_by_name(name, None if version is None else int(version))
    if model is None or not may_call(request.user, request.auth, model, public=True):
        refuse_if_name_retired(name, None if version is None else int(version))
        which = f"model '{name[:60]}'" + (f" in version {version}" if version else "")
        raise Http404(f"There is no approved {which} that is served. Check its name, or ask its owner to serve it.")
    return model


class Server(ProtocolView):
    """Describe the server."""

    def get(self, request: Request) -> Response:
        return Response({"name": "octweb", "version": VERSION, "extensions": list(EXTENSIONS)})


class V2Model(ProtocolView):
    """Show the inputs, outputs and versions of a model."""

    def get(self, request: Request, name: str, version: str | None = None) -> Response:
        model = served_model(request, name, version)
        versions = TreeModel.objects.served().filter(family=model.family).order_by("version")
        return Response(metadata(model, list(versions.values_list("version", flat=True))))


class ModelReady(ProtocolView):
    """Report whether a served model is ready, which means that its document can be read. If not, the status is 503."""

    def get(self, request: Request, name: str, version: str | None = None) -> Response:
        model = served_model(request, name, version)
        answer: dict[str, Any] = {"name": model.family.name, "version": str(model.version)}
        try:
            model_file(model)
        except DamagedDocument as error:
            return Response(answer | {"ready": False, "error": str(error)}, status=503)
        return Response(answer | {"ready": True})


class Config(ProtocolView):
    """Show the configuration of a model, as in the protocol's extension."""

    def get(self, request: Request, name: str, version: str | None = None) -> Response:
        return Response(configuration(served_model(request, name, version)))


class RepositoryIndex(ProtocolView):
    """List all served models. Each version of a name has an entry of its own."""

    def post(self, request: Request) -> Response:
        _index_body(limited(request._request))
        models = (
            TreeModel.objects.served().select_related("family").defer("document").order_by("family__name", "version")
        )
        return Response([_entry(model) for model in models])


def _entry(model: TreeModel) -> dict[str, str]:
    damaged = is_damaged(model)
    reason = "its stored document was damaged or changed" if damaged else ""
    state = "UNAVAILABLE" if damaged else "READY"
    return {"name": model.family.name, "version": str(model.version), "state": state, "reason": reason}


def _index_body(content: bytes) -> None:
    """Raise ProtocolError unless this is a body of the extension. Its member `ready` is checked but ignored."""
    try:
        document = strict_json.loads(content) if content.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"The body is not valid JSON: {error}.") from error
    if not isinstance(document, dict) or not isinstance(document.get("ready", True), bool):
        raise ProtocolError('The body must be empty, or an object such as {"ready": true}.')


class Infer(ProtocolView):
    """Predict the rows of the request."""

    def post(self, request: Request, name: str, version: str | None = None) -> HttpResponse:
        with metrics.count_calls("v2") as call:
            model = served_model(request, name, version)
            recorded_name = name if version is None else f"{name}/{version}"
            recorded = recorded_call(request, model, "v2", recorded_name)
            call.of(model.family.name, model.version, tally_of_call(request, model, "v2"), recorded)
            return self._answer(request, model, call, recorded)

    def _answer(
        self, request: Request, model: TreeModel, call: metrics.Call, recorded: RecordedCall | None
    ) -> HttpResponse:
        inference = parse(limited(request._request), request.headers.get(JSON_LENGTH), OUTPUTS, DEFAULT_OUTPUTS)
        predictions = infer(model, inference.inputs, settings.MAX_PREDICT_ROWS).recorded(recorded)
        call.predicted(predictions.label_counts(), predictions.unseen, predictions.life_counts())
        call.compare(predictions.matrix, predictions.leaves)
        head: dict[str, Any] = {"model_name": model.family.name, "model_version": str(model.version)}
        if inference.id is not None:
            head["id"] = inference.id
        head["parameters"] = certificate_parameters(model)
        if notes := [*predictions.notes, *mark_notes(predictions)]:
            head["parameters"]["notes"] = "\n".join(notes)
        if predictions.decisions:
            head["parameters"][DECISION] = predictions.decisions[0]
        body, length = answer(head, [(o, output(predictions, o)) for o in inference.outputs], inference.outputs)
        response = HttpResponse(body, content_type="application/json" if length is None else "application/octet-stream")
        if length is not None:
            response[JSON_LENGTH] = str(length)
        return response
