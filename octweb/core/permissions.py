"""Permissions of API calls and their query parameters.

`ownership` decides which objects are visible.
"""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.permissions import BasePermission

MAX_NAME_CHARACTERS = 60  # an error quotes at most this many characters of a parameter's name
MAX_NAMES = 10


class SignedIn(BasePermission):
    """Allow signed-in users, and tokens that cover the call. A prediction token reaches only views that permit it."""

    message = "Sign in, or send a token: Authorization: Token … or Bearer …"

    def has_permission(self, request: Any, view: Any) -> bool:
        if not (request.user and request.user.is_authenticated and request.user.is_active):
            return False
        if not is_limited(request.auth) or getattr(view, "predict_scope", False):
            return True
        self.message = "This token is for predictions only. Send a token with full scope."
        return False


def is_limited(token: Any) -> bool:
    """Return whether a token has fewer rights than its user. A session (None) has all of them."""
    return getattr(token, "scope", "full") != "full"


class KnownParameters(BasePermission):
    """Refuse undeclared query parameters, so that none is ignored silently.

    The view declares them in `query_parameters`; otherwise the OpenAPI document does.
    """

    def has_permission(self, request: Any, view: Any) -> bool:
        sent = set(request.query_params)
        if not sent or request.method == "OPTIONS":
            return True
        known = getattr(view, "query_parameters", None)
        if known is None:
            # the document imports REST framework's views, which import this module
            from octweb.core.parameters import declared_parameters

            known = declared_parameters(request.path_info, request.method)
        if unknown := sorted(sent - known):
            names = ", ".join(sorted(known))
            words = f"Known parameters: {names}." if names else "This call has no query parameters."
            raise ValidationError(
                {name[:MAX_NAME_CHARACTERS]: f"Not a parameter of this call. {words}" for name in unknown[:MAX_NAMES]}
            )
        return True
