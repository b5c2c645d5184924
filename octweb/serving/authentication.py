"""Authenticate API calls with `Authorization: Token …` or `Authorization: Bearer …`.

Tokens are looked up by digest, the primary key, and cached for some seconds: for a single row, the query costs more
than the prediction. A revoked token becomes invalid at once in the process that revokes it, and within REMEMBERED
seconds in others.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from django.conf import settings
from knox.auth import TokenAuthentication
from knox.crypto import hash_token
from rest_framework.authentication import get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from octweb.core.sign_in import may_use_tokens
from octweb.registry.lifecycle.access import is_token_valid
from octweb.serving.models import ApiToken

REMEMBERED = 5.0  # seconds that a valid token stays in the cache
MAX_REMEMBERED = 10_000

_known: dict[str, tuple[float, Any]] = {}
_lock = threading.Lock()


class ApiTokenAuthentication(TokenAuthentication):
    """Authentication with hashed tokens. The token becomes `request.auth`, whose scope the permissions check."""

    def authenticate(self, request: Request) -> tuple[Any, ApiToken] | None:
        scheme, _, token = get_authorization_header(request).strip().partition(b" ")
        if scheme.lower() == b"bearer" and token and b" " not in token:
            return self.authenticate_credentials(token)
        known: tuple[Any, ApiToken] | None = super().authenticate(request)
        return known

    def authenticate_credentials(self, token: bytes) -> tuple[Any, ApiToken]:
        api_token = lookup(token)
        if api_token is None:
            raise AuthenticationFailed("This token is not known; it may have been revoked. Make a new one.")
        if not is_token_valid(api_token):
            raise AuthenticationFailed(_reason_of_end(api_token))
        return api_token.user, api_token


def _reason_of_end(api_token: ApiToken) -> str:
    """Return why a token is not valid any more, and what to do."""
    if not api_token.user.is_active:
        return "The account of this token is closed. Ask an administrator, or use a token of another account."
    if not may_use_tokens(api_token.user):
        return f"The owner of this token has to sign in with {settings.OIDC_LABEL} again. Then it works as before."
    return "This token has expired. Make a new one."


def forget(digest: str | None = None) -> None:
    """Remove a token from the cache. Without a digest, remove all tokens."""
    with _lock:
        if digest is None:
            _known.clear()
        else:
            _known.pop(digest, None)


def lookup(token: bytes) -> ApiToken | None:
    """Return the token with its user, or None. The caller checks expiry and user (`is_token_valid`)."""
    try:
        return lookup_digest(hash_token(token.decode("ascii")))
    except UnicodeDecodeError:
        return None


def lookup_digest(digest: str) -> ApiToken | None:
    """Return the token with this digest like `lookup`."""
    now = time.monotonic()
    entry = _known.get(digest)
    if entry is not None and entry[0] > now:
        return entry[1]
    api_token = ApiToken.objects.select_related("user__sign_on").filter(digest=digest).first()
    with _lock:
        if len(_known) >= MAX_REMEMBERED:
            _known.clear()
        if api_token is not None:
            _known[digest] = (now + REMEMBERED, api_token)
        else:
            _known.pop(digest, None)
    return api_token
