"""Who may call the API at all; which objects are visible is decided in `ownership`."""

from rest_framework.permissions import BasePermission


class SignedIn(BasePermission):
    """A signed-in user, or a token that covers the call: `predict` tokens reach only views that say so."""

    message = "Sign in, or send a token: Authorization: Token …"

    def has_permission(self, request, view) -> bool:
        if not (request.user and request.user.is_authenticated and request.user.is_active):
            return False
        scope = getattr(request.auth, "scope", "full")
        return scope == "full" or getattr(view, "predict_scope", False)
