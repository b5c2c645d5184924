"""Give each call an id, and log and count it.

The id is in the header X-Request-ID of the answer, in the log lines of the call and on its error page. The access log
has no IP addresses, no user names and no query strings.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter, Histogram

from octweb.core.logs import FIELDS, REQUEST_ID

HEADER = "X-Request-ID"
CALL = "octweb.call"  # key of the call in a request's environment
HEALTH = ("/healthz", "/readyz", "/v2/health/live", "/v2/health/ready")
STATIC = "static/"  # route of all static files
NO_ROUTE = "none"  # route of addresses that do not exist, so that strangers cannot fill the memory with them
METHODS = frozenset(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
OTHER_METHOD = "other"
# proxies send such ids; anything else is replaced, so that no caller can write lines into a log
_SENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}", re.ASCII)

REQUESTS = Counter("octweb_http_requests", "Calls by route and status", ["method", "route", "status"])
SECONDS = Histogram(
    "octweb_http_seconds",
    "Seconds until the answer began, without predictions, which octweb_predict_seconds has",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
log = logging.getLogger("octweb.access")


class HttpCall:
    """Id, method, path and start of a call; its route and the status of its answer once they are known."""

    __slots__ = ("id", "is_timed", "method", "path", "route", "start", "start_response", "status")

    def __init__(self, environ: dict[str, Any], start_response: Any = None) -> None:
        sent = environ.get("HTTP_X_REQUEST_ID")
        self.id = sent if sent and _SENT_ID.fullmatch(sent) else os.urandom(8).hex()
        self.start = time.perf_counter()
        self.method: str = environ["REQUEST_METHOD"]
        self.path: str = environ.get("PATH_INFO", "")
        self.route = NO_ROUTE
        self.is_timed = True
        self.status = "500"
        self.start_response = start_response

    def begin_response(self, status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
        """Start the response, with the id among its headers. A `start_response` of WSGI."""
        self.status = status[:3]
        return self.start_response(status, [*headers, (HEADER, self.id)], *rest)

    def force_close(self) -> None:
        """Let gunicorn close the connection after the response (see `octweb.serving.wire.close_after`)."""
        force = getattr(getattr(self.start_response, "__self__", None), "force_close", None)
        if force is not None:
            force()

    def finish(self) -> None:
        """Count the call, and write its line into the access log."""
        seconds = time.perf_counter() - self.start
        _requests(self.method if self.method in METHODS else OTHER_METHOD, self.route, self.status).inc()
        if self.is_timed:
            _seconds(self.route).observe(seconds)
        if log.isEnabledFor(logging.INFO):
            path = self._readable_path() if self.route != NO_ROUTE else "-"
            ms = round(seconds * 1000, 1)
            fields = {"method": self.method, "path": path, "route": self.route, "status": int(self.status), "ms": ms}
            log.info("%s %s %s %s ms", self.method, path, self.status, ms, extra={FIELDS: fields})

    def _readable_path(self) -> str:
        if self.start_response is None:  # Django has decoded the path
            return self.path
        return self.path.encode("latin-1").decode("utf-8", "replace")  # WSGI decodes bytes as Latin-1


@lru_cache(maxsize=4096)
def _requests(method: str, route: str, status: str) -> Counter:
    return REQUESTS.labels(method, route, status)


@lru_cache(maxsize=1024)
def _seconds(route: str) -> Histogram:
    return SECONDS.labels(route)


class RequestLog:
    """WSGI wrapper around the whole application."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self.application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        call = environ[CALL] = HttpCall(environ, start_response)
        token = REQUEST_ID.set(call.id)
        try:
            return self.application(environ, call.begin_response)
        finally:
            call.finish()
            REQUEST_ID.reset(token)


class RouteMiddleware:
    """Middleware that notes the route of a call. Without `RequestLog`, as in tests, it does the work of that, too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if CALL in request.META:
            response = self.get_response(request)
            request.META[CALL].route = _route(request)
            return response
        call = request.META[CALL] = HttpCall(request.META)
        token = REQUEST_ID.set(call.id)
        try:
            response = self.get_response(request)
            call.route = _route(request)
            call.status = str(response.status_code)
        finally:
            call.finish()
            REQUEST_ID.reset(token)
        response[HEADER] = call.id
        return response


def _route(request: HttpRequest) -> str:
    """Return the pattern of the address, such as `datasets/<uuid:pk>/`."""
    call: HttpCall = request.META[CALL]
    if request.resolver_match is not None:
        return request.resolver_match.route or "/"
    if call.route != NO_ROUTE:
        return call.route
    if request.path_info in HEALTH:
        return request.path_info.lstrip("/")
    return STATIC if request.path.startswith(settings.STATIC_URL) else NO_ROUTE


def request_id_of(request: HttpRequest) -> str:
    """Return the id of a call, or "" for a request that no server has received."""
    call = request.META.get(CALL)
    return call.id if call is not None else ""
