"""Authorization: Token … for the API."""

from knox.auth import TokenAuthentication


class ApiTokenAuthentication(TokenAuthentication):
    """Knox tokens; the token itself becomes `request.auth`, so that its scope can be looked at."""
