"""Who may call the API at all; which objects are visible is decided in `ownership`."""

from rest_framework.permissions import BasePermission


class SignedIn(BasePermission):
    """A signed-in user, or a token that covers the call: `predict` tokens reach only views that say so."""

    message = "Sign in, or send a token: Authorization: Token …"

    def has_permission(self, request, view) -> bool:
        if not (request.user and request.user.is_authenticated and request.user.is_active):
            return False
        return not is_limited(request.auth) or getattr(view, "predict_scope", False)


def is_limited(token) -> bool:
    """Whether a token may do less than its user; None is a session, which may do all."""
    return getattr(token, "scope", "full") != "full"
