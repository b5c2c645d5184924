"""Middleware for OPTIONS requests, private caching and rate limit headers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve
from django.utils.cache import patch_cache_control

from octweb.core.throttles import RATE
from octweb.core.views import is_api

Answer = Callable[[HttpRequest], HttpResponse]
ANY = ["GET", "HEAD", "POST"]


class OptionsMiddleware:
    """Answer OPTIONS requests for pages, whose views would treat them like GET. The API answers its own."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method != "OPTIONS":
            return self.get_response(request)
        methods = ANY
        if request.path_info.strip("/") != "*":  # "*" asks about the whole server
            try:
                view = resolve(request.path_info).func
            except Resolver404:
                return self.get_response(request)
            if is_api(request) and hasattr(view, "cls"):
                return self.get_response(request)
            methods = allowed(view)
        return HttpResponse(status=204, headers={"Allow": ", ".join([*methods, "OPTIONS"])})


def allowed(view: Any) -> list[str]:
    """Return the HTTP methods of a view, from its class or from its decorators."""
    owner = getattr(view, "view_class", None) or getattr(view, "cls", None)
    if owner is not None:
        names = [name.upper() for name in owner.http_method_names if hasattr(owner, name) and name != "options"]
        return names if "HEAD" in names or "GET" not in names else [*names, "HEAD"]
    while view is not None:
        free = (
            dict(zip(view.__code__.co_freevars, view.__closure__ or (), strict=True))
            if hasattr(view, "__code__")
            else {}
        )
        if "request_method_list" in free:  # Django's require_http_methods and its variants close over this list
            return list(free["request_method_list"].cell_contents)
        view = getattr(view, "__wrapped__", None)
    return ANY


class RateLimitMiddleware:
    """Add the RateLimit headers to the response of a counted call."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        for name, value in request.META.get(RATE, ()):
            response[name] = value
        return response


class PrivateMiddleware:
    """Set `Cache-Control: private, no-store` on responses without that header.

    Static files do not pass this middleware.
    """

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not response.has_header("Cache-Control"):
            patch_cache_control(response, private=True, no_store=True)
        return response
