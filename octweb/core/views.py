"""Serve health checks, metrics and error pages.

Errors of API calls are problem details.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import get_template
from django.templatetags.static import static
from django.urls import resolve
from django.utils.crypto import constant_time_compare
from prometheus_client import CONTENT_TYPE_LATEST

from octweb.core import unavailable
from octweb.core.headers import security_headers
from octweb.core.metrics import exposition
from octweb.core.problems import problem
from octweb.core.request_log import HEALTH, request_id_of

log = logging.getLogger(__name__)


class HealthMiddleware:
    """Answer health checks before host and scheme are checked. Load balancers call an IP address without TLS.

    The responses do not depend on the host.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method in ("GET", "HEAD") and request.path_info in HEALTH:
            view, positional, keywords = resolve(request.path_info)
            response = view(request, *positional, **keywords)
            for name, value in security_headers().items():
                response[name] = value
            return response
        return self.get_response(request)


def healthz(request: HttpRequest) -> HttpResponse:
    """Report that the process responds."""
    return JsonResponse({"status": "ok"})


def icon(request: HttpRequest) -> HttpResponse:
    """Redirect to the icon, for pages without a link to it, such as the administration."""
    return redirect(static("icon.svg"))


def readyz(request: HttpRequest) -> HttpResponse:
    """Report whether the process can work, and which part is unavailable if not."""
    parts = unavailable.parts()
    well = all(state == "ok" for state in parts.values())
    facts = {name: fact() for name, fact in unavailable.FACTS.items()}
    return JsonResponse({"status": "ok" if well else "unavailable", **parts, **facts}, status=200 if well else 503)


def metrics_page(request: HttpRequest) -> HttpResponse:
    """Return Prometheus metrics.

    If OCTWEB_METRICS_TOKEN is set, it is accepted as bearer token. A staff session is always accepted.
    """
    token = settings.METRICS_TOKEN
    sent = request.headers.get("Authorization", "")
    user = request.user
    if not (token and constant_time_compare(sent, f"Bearer {token}")) and not (user.is_active and user.is_staff):
        return problem(
            403,
            "Only administrators can read the metrics. Sign in as one, or send OCTWEB_METRICS_TOKEN as a bearer token.",
        )
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)


def is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith(("/api/v1/", "/v2", "/invocations", "/ping"))


def _error(request: HttpRequest, status: int, heading: str, detail: str, todo: str) -> HttpResponse:
    if is_api(request):
        return problem(status, detail)
    context = {
        "status": status,
        "heading": heading,
        "detail": detail,
        "todo": todo,
        "request_id": request_id_of(request),
    }
    return render(request, "error.html", context, status=status)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    detail = str(exception) if isinstance(exception, BadRequest) else "The request is damaged or too large."
    return _error(
        request,
        400,
        "This request cannot be read",
        detail,
        "Go back and try again. If you sent a file, choose a smaller one.",
    )


def forbidden(request: HttpRequest, exception: Exception | None = None, reason: str = "") -> HttpResponse:
    return _error(
        request,
        403,
        "Not allowed",
        reason or str(exception or "") or "Your account may not do this.",
        "Sign in with an account that may, or ask an administrator.",
    )


def locked_out(request: HttpRequest, credentials: dict[str, str], *args: object) -> HttpResponse:
    """Refuse a sign-in after too many wrong passwords for this user from this address."""
    seconds = round(settings.AXES_COOLOFF_TIME * 3600)
    response = _error(
        request,
        429,
        "Too many attempts",
        f"The password was wrong {settings.AXES_FAILURE_LIMIT} times. Signing in with this name from here is locked.",
        f"Wait {seconds // 60} minutes, or ask an administrator.",
    )
    response["Retry-After"] = str(seconds)
    return response


def too_many(request: HttpRequest, detail: str, *, seconds: int) -> HttpResponse:
    """Return status 429 with the time until a retry. `detail` should say when to come back."""
    response = _error(request, 429, "Too many for now", detail, "")
    response["Retry-After"] = str(seconds)
    return response


def sign_on_failed(request: HttpRequest, detail: str, *, status: int = 403) -> HttpResponse:
    """Refuse a sign-in through the OpenID provider."""
    log.warning("sign-on refused with status %s", status)
    return _error(
        request,
        status,
        "You are not signed in",
        detail,
        "Try again from the sign-in page. If it happens again, show this page to an administrator.",
    )


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _error(
        request,
        404,
        "Nothing here",
        "There is nothing at this address, or it is not yours.",
        "Check the address, or go back.",
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the error page. If a part is unavailable, name it."""
    if reason := unavailable.reason_of(sys.exc_info()[1]):
        page = {"reason": reason, "request_id": request_id_of(request)}
        response = (
            problem(503, reason)
            if is_api(request)
            else HttpResponse(get_template("unavailable.html").render(page), status=503)
        )
        response["Retry-After"] = str(unavailable.RETRY_SECONDS)
        return response
    return _error(
        request,
        500,
        "Internal error",
        "The error is a fault of the server, and has been logged.",
        "Try again. If it happens again, tell your administrator what you did.",
    )
