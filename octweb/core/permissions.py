"""Who may call the API at all, and with which parameters; which objects are visible is decided in `ownership`."""

from rest_framework.exceptions import ValidationError
from rest_framework.permissions import BasePermission

MAX_NAME = 60  # characters of a parameter's name in an error
MAX_NAMES = 10


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


class KnownParameters(BasePermission):
    """Every query parameter is declared, by the OpenAPI document or in `query_parameters` of the view.

    Any other one is refused with its name, so that none is ignored in silence.
    """

    def has_permission(self, request, view) -> bool:
        sent = set(request.query_params)
        if not sent or request.method == "OPTIONS":
            return True
        known = getattr(view, "query_parameters", None)
        if known is None:
            # the document needs REST framework's views, which import this module
            from octweb.core.parameters import declared_parameters

            known = declared_parameters(request.path_info, request.method)
        if unknown := sorted(sent - known):
            names = ", ".join(sorted(known))
            words = f"Known parameters: {names}." if names else "This call has no query parameters."
            raise ValidationError(
                {name[:MAX_NAME]: f"Not a parameter of this call. {words}" for name in unknown[:MAX_NAMES]}
            )
        return True
