"""Sign in the user whom a proxy has authenticated (OCTWEB_REMOTE_USER_HEADER)."""

from __future__ import annotations

import contextlib
import logging
import unicodedata
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import auth
from django.contrib.auth.backends import RemoteUserBackend
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare

from octweb.core.roles import role_of_groups, set_role_of_groups
from octweb.environment import split_groups

PROOF = "HTTP_OCTWEB_PROXY_SECRET"  # where WSGI has the header Octweb-Proxy-Secret
BACKEND = "octweb.core.remote_user.ProxyUserBackend"
log = logging.getLogger(__name__)


class ProxyUserBackend(RemoteUserBackend):
    """Backend of users whom the proxy names. Unknown names get no account, unless OCTWEB_REMOTE_USER_CREATE is 1."""

    @property
    def create_unknown_user(self) -> bool:
        return bool(settings.REMOTE_USER_CREATE)

    def configure_user(self, request: HttpRequest | None, user: Any, created: bool = True) -> Any:
        """Give a new account no password, so that only the proxy opens it."""
        if created:
            user.set_unusable_password()
            user.save()
        return user


class ProxyUserMiddleware:
    """Middleware that believes the header only if the proxy's secret came with it.

    Without the secret, or without the header, a user who was signed in this way is signed out. It calls its backend
    itself, because a lockout after wrong passwords must not count names from the proxy, which all have its address.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        if not settings.REMOTE_USER_HEADER:
            raise MiddlewareNotUsed
        self.get_response = get_response
        self.header = "HTTP_" + settings.REMOTE_USER_HEADER.upper().replace("-", "_")

    def __call__(self, request: HttpRequest) -> HttpResponse:
        name = self._proved_name(request)
        if not name or request.user.get_username() != name:
            user = ProxyUserBackend().authenticate(request, remote_user=name) if name else None
            if user is not None and self._give_role(request, user):
                auth.login(request, user, backend=BACKEND)
            elif request.session.get(auth.BACKEND_SESSION_KEY) == BACKEND:
                auth.logout(request)
        elif not self._give_role(request, request.user):
            auth.logout(request)
        return self.get_response(request)

    def _give_role(self, request: HttpRequest, user: Any) -> bool:
        """Give the user the role of the groups in the header. Return whether they give one."""
        if not settings.REMOTE_USER_GROUPS_HEADER:
            return True
        key = "HTTP_" + settings.REMOTE_USER_GROUPS_HEADER.upper().replace("-", "_")
        role = role_of_groups(split_groups(_decode(request.META.get(key, ""))))
        if role is None:
            return False
        set_role_of_groups(user, role)
        return True

    def _proved_name(self, request: HttpRequest) -> str:
        """Return the name in the header, or "" if there is none or the secret of the proxy is missing."""
        name = _decode(request.META.get(self.header, ""))
        sent = request.META.get(PROOF, "")
        if name and not constant_time_compare(sent.encode(), settings.REMOTE_USER_SECRET.encode()):
            log.warning("%s came without the secret of the proxy and was ignored", settings.REMOTE_USER_HEADER)
            return ""
        return name


def _decode(value: str) -> str:
    """Return a header as the proxy meant it.

    WSGI decodes headers as Latin-1, and proxies send UTF-8. Names of accounts are composed (é is one character).
    """
    value = value.strip()
    with contextlib.suppress(UnicodeError):  # it is Latin-1 indeed
        value = value.encode("latin-1").decode("utf-8")
    return unicodedata.normalize("NFC", value)
