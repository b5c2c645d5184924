"""Serve the pages that sign users in and out, with the OpenID provider if there is one."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import auth
from django.contrib.auth.views import LoginView, LogoutView
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

SIGN_ON_BACKEND = "octweb.core.sign_on.SignOnBackend"


class SignIn(LoginView):
    """Sign-in page, with a button for the provider."""

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        label = settings.OIDC_LABEL if settings.OIDC_ISSUER else ""
        return super().get_context_data(sign_on=label, **context)


class SignOut(LogoutView):
    """End the session, and lead on to the provider if it began there."""

    def post(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        address = ""
        if settings.OIDC_ISSUER and request.session.get(auth.BACKEND_SESSION_KEY) == SIGN_ON_BACKEND:
            from octweb.core.sign_on import sign_out_address

            address = sign_out_address(request)
        response = super().post(request, *args, **options)
        return redirect(address) if address else response


def begin(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider."""
    return _respond(request, "SignOnBegin")


def answer(request: HttpRequest) -> HttpResponse:
    """Receive the user from the provider."""
    return _respond(request, "SignOnAnswer")


def _respond(request: HttpRequest, name: str) -> HttpResponse:
    if not settings.OIDC_ISSUER:
        raise Http404
    from octweb.core import sign_on  # its packages are optional

    return sign_on.respond(getattr(sign_on, name).as_view(), request)


def may_use_tokens(user: Any) -> bool:
    """Return whether a user's tokens work: those of users of the provider end some time after the last sign-in."""
    identity = getattr(user, "sign_on", None) if settings.OIDC_ISSUER else None
    until = None if identity is None else identity.tokens_until
    return until is None or until > timezone.now()
