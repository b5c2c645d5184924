"""Convert exceptions of the API to problem details (RFC 9457).

Every problem has `type`, `title`, `status`, `detail` and `errors`. Clients of the Open Inference Protocol read the
additional member `error`.
"""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, JsonResponse
from django.urls import get_script_prefix
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from octweb.core.faults import DamagedDocument, StoreUnavailable
from octweb.core.throttles import StrangerThrottle
from trainer.errors import DataError, InfeasibleError, ModelFileError, ParameterError, RowError, TrainerError

CONTENT_TYPE = "application/problem+json"
CODES = {413: "too-large", 422: "unprocessable"}  # Python versions phrase these two statuses differently


class Conflict(exceptions.APIException):
    """The state of the object does not allow this action."""

    status_code = 409
    default_code = "conflict"


class Gone(exceptions.APIException):
    """The object was served before, but is not served any more."""

    status_code = 410
    default_code = "gone"


class Busy(exceptions.APIException):
    """The server has no capacity for this work now."""

    status_code = 503
    default_code = "busy"
    wait = 10  # seconds that the client should wait before it tries again


class Unprocessable(exceptions.APIException):
    """The request is well formed but cannot be executed."""

    status_code = 422
    default_code = "unprocessable"


def document(status: int, detail: str, errors: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return the members of a problem.

    `type` is the URL of its explanation, which ends with a code such as `not-found`.
    """
    phrase = HTTPStatus(status).phrase
    code = CODES.get(status) or phrase.lower().replace(" ", "-")
    return {
        "type": f"{get_script_prefix()}docs/problems/#{code}",
        "title": phrase,
        "status": status,
        "detail": detail,
        "errors": errors or [],
        "error": detail,
    }


def problem(status: int, detail: str, errors: list[dict[str, Any]] | None = None) -> JsonResponse:
    """Return a problem as a response of plain Django views."""
    return JsonResponse(document(status, detail, errors), status=status, content_type=CONTENT_TYPE)


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return the problem response for an exception, or None for a 500. A hook of REST framework."""
    headers: dict[str, str] = {}
    errors: list[dict[str, Any]] = []
    if isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        error = _count_anonymous_call(error, context)
    if isinstance(error, Http404):
        status = 404
        detail = str(error) or "There is nothing at this address, or it is not yours. Check the address."
    elif isinstance(error, PermissionDenied):
        status = 403
        detail = str(error) or "Your account may not do this. Sign in with one that may, or ask an administrator."
    elif isinstance(error, TrainerError):
        status, detail, errors = _of_trainer(error)
    elif isinstance(error, exceptions.APIException):
        status = error.status_code
        errors = flatten(error.detail)
        detail = "; ".join(f"{e['attr']}: {e['detail']}" if e["attr"] else e["detail"] for e in errors)
        if getattr(error, "auth_header", None):
            headers["WWW-Authenticate"] = error.auth_header
        if getattr(error, "wait", None):
            headers["Retry-After"] = str(max(1, math.ceil(error.wait)))
    else:
        return None
    set_rollback()
    return Response(document(status, detail, errors), status=status, headers=headers, content_type=CONTENT_TYPE)


def _count_anonymous_call(error: exceptions.APIException, context: dict[str, Any]) -> exceptions.APIException:
    """Count a call without valid credentials against its address. Return the error, or Throttled beyond the limit.

    REST framework refuses such a call before it checks throttles.
    """
    request = context.get("request")
    throttle = StrangerThrottle()
    if request is None or throttle.allow_stranger(request):
        return error
    return exceptions.Throttled(wait=throttle.wait())


def _of_trainer(error: TrainerError) -> tuple[int, str, list[dict[str, Any]]]:
    if isinstance(error, ParameterError):
        return (
            422,
            str(error),
            [{"attr": name, "detail": text, "code": "invalid"} for name, text in error.errors.items()],
        )
    if isinstance(error, RowError):
        return 422, str(error), [{"attr": f"rows[{error.row}]", "detail": str(error), "code": "row"}]
    if isinstance(error, StoreUnavailable | DamagedDocument):
        return 503, str(error), []
    if isinstance(error, DataError | ModelFileError | InfeasibleError):
        problems = getattr(error, "problems", ())
        return 422, str(error), [{"attr": None, "detail": text, "code": "data"} for text in problems]
    return 422, str(error), []


def flatten(detail: Any, attr: str | None = None) -> list[dict[str, Any]]:
    """Flatten REST framework's nested error details to a list of {attr, detail, code}."""
    if isinstance(detail, dict):
        return [e for key, value in detail.items() for e in flatten(value, _join(attr, str(key)))]
    if isinstance(detail, list):
        return [
            e
            for i, value in enumerate(detail)
            for e in flatten(value, f"{attr}[{i}]" if isinstance(value, dict) else attr)
        ]
    return [{"attr": attr, "detail": str(detail), "code": getattr(detail, "code", "invalid")}]


def _join(attr: str | None, key: str) -> str | None:
    if key == "non_field_errors":
        return attr
    return f"{attr}.{key}" if attr else key
