"""Sign users in through an OpenID provider (OCTWEB_OIDC_ISSUER), with mozilla-django-oidc.

The library keeps state, nonce and PKCE, and exchanges the code. This module reads the provider's document, verifies
the ID token completely (the library checks neither issuer nor audience), and finds the account by issuer and subject.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import jwt
import requests
from django.conf import settings
from django.contrib import auth
from django.contrib.auth.backends import ModelBackend
from django.core.exceptions import SuspiciousOperation, ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from octweb.core.models import SignOnIdentity
from octweb.core.roles import role_of_groups, set_role_of_groups
from octweb.core.views import sign_on_failed

TIMEOUT_SECONDS = 10
DOCUMENT_LIFE_SECONDS = 3600
CLOCK_LEEWAY_SECONDS = 60
# signatures by a key that the provider alone has; HS256 would prove no more than the client's secret
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")

_documents: dict[str, tuple[float, dict[str, Any]]] = {}


class SignOnError(Exception):
    """A sign-in that failed, in words for the user."""


def provider() -> dict[str, Any]:
    """Return the provider's document (OpenID Connect Discovery), read at most once an hour."""
    issuer = settings.OIDC_ISSUER
    until, document = _documents.get(issuer, (0.0, {}))
    if until > time.monotonic():
        return document
    document = _fetch(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if document.get("issuer") != issuer or not all(isinstance(document.get(name), str) for name in ENDPOINTS):
        raise SignOnError("The sign-on service describes itself differently than OCTWEB_OIDC_ISSUER says.")
    _documents[issuer] = (time.monotonic() + DOCUMENT_LIFE_SECONDS, document)
    return document


def _fetch(address: str) -> dict[str, Any]:
    response = requests.get(address, timeout=TIMEOUT_SECONDS)
    response.raise_for_status()
    content = response.json()
    if not isinstance(content, dict):
        raise SignOnError("The sign-on service sent something that is not a JSON object.")
    return content


def library_setting(name: str, *default: Any) -> Any:
    """Return a setting of mozilla-django-oidc, from the provider's document and from octweb's settings."""
    document = provider()
    values = {
        "OIDC_OP_AUTHORIZATION_ENDPOINT": document["authorization_endpoint"],
        "OIDC_OP_TOKEN_ENDPOINT": document["token_endpoint"],
        "OIDC_OP_USER_ENDPOINT": document.get("userinfo_endpoint", ""),
        "OIDC_RP_CLIENT_ID": settings.OIDC_CLIENT_ID,
        "OIDC_RP_CLIENT_SECRET": settings.OIDC_CLIENT_SECRET,
        "OIDC_RP_SCOPES": settings.OIDC_SCOPES,
        "OIDC_AUTHENTICATION_CALLBACK_URL": "sign-on-answer",
        "OIDC_STORE_ID_TOKEN": True,  # the provider asks for it when the user signs out
        "OIDC_USE_PKCE": True,
        "OIDC_TIMEOUT": TIMEOUT_SECONDS,
        "OIDC_TOKEN_USE_BASIC_AUTH": "client_secret_basic"
        in document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"]),
        "LOGIN_REDIRECT_URL": settings.LOGIN_REDIRECT_URL,
    }
    return values[name] if name in values or not default else default[0]


class SignOnBackend(OIDCAuthenticationBackend):
    """Backend that finds, or makes, the account of a user whom the provider has authenticated."""

    get_settings = staticmethod(library_setting)
    get_user = ModelBackend.get_user  # the one of the library returns closed accounts

    def __init__(self) -> None:
        """Read nothing from the provider yet: Django makes a backend for each request with a session."""
        self.UserModel = auth.get_user_model()

    def authenticate(self, request: HttpRequest, nonce: str, code_verifier: str) -> Any:
        for name in ("OIDC_OP_TOKEN_ENDPOINT", "OIDC_OP_USER_ENDPOINT", "OIDC_RP_CLIENT_ID", "OIDC_RP_CLIENT_SECRET"):
            setattr(self, name, library_setting(name))
        return super().authenticate(request, nonce=nonce, code_verifier=code_verifier)

    def verify_token(self, token: str, **options: Any) -> dict[str, Any]:
        """Return the claims of a token whose signature, issuer, audience, times and nonce are right."""
        try:
            key = _signing_key(jwt.get_unverified_header(token))
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=settings.OIDC_CLIENT_ID,
                issuer=settings.OIDC_ISSUER,
                leeway=CLOCK_LEEWAY_SECONDS,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise SignOnError(f"The token of the sign-on service is not valid: {error}.") from error
        is_shared = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if (is_shared or "azp" in claims) and claims.get("azp") != settings.OIDC_CLIENT_ID:
            raise SignOnError("The token of the sign-on service is for another application.")
        if "nonce" in options and not constant_time_compare(str(claims.get("nonce", "")), str(options["nonce"])):
            raise SignOnError("The token of the sign-on service belongs to another sign-in. Begin again.")
        return dict(claims)

    def get_or_create_user(self, access_token: str, id_token: str, payload: dict[str, Any]) -> Any:
        claims = payload
        if self.OIDC_OP_USER_ENDPOINT:
            told = self.get_userinfo(access_token, id_token, payload)
            if not isinstance(told, dict) or told.get("sub") != payload["sub"]:
                raise SignOnError("The sign-on service answered about another user. Begin again.")
            claims = payload | told
        return account_of(claims)


def _signing_key(header: dict[str, Any]) -> jwt.PyJWK:
    """Return the provider's key that the header of a token names. Without a name, the only one that fits."""
    algorithm = header.get("alg")
    if algorithm not in ALGORITHMS:
        raise jwt.InvalidAlgorithmError(f"its algorithm {algorithm!r} is not accepted")
    keys = [key for key in _fetch(provider()["jwks_uri"]).get("keys", []) if key.get("use", "sig") == "sig"]
    if "kid" in header:
        keys = [key for key in keys if key.get("kid") == header["kid"]]
    if len(keys) != 1:
        raise jwt.InvalidKeyError("its key is not among those of the service")
    return jwt.PyJWK(keys[0], algorithm=algorithm)


def claim(claims: dict[str, Any], path: str) -> Any:
    """Return the claim of this name, or the member that its dots lead to (`realm_access.roles`), or None."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def account_of(claims: dict[str, Any]) -> Any:
    """Return the account of verified claims, with the role that its groups give. Raises SignOnError if there is none."""
    role = role_of_groups(_groups(claims))
    place = {"issuer": settings.OIDC_ISSUER, "subject": str(claims["sub"])}
    if role is None:
        _end_access(place)
        raise SignOnError("None of your groups may use octweb.")
    try:
        with transaction.atomic():
            identity = _identity(place, claims)
            set_role_of_groups(identity.user, role)
    except IntegrityError:
        raise SignOnError("This account was opened twice at the same time. Sign in again.") from None
    return identity.user


def _groups(claims: dict[str, Any]) -> list[str]:
    """Return the names in the claim of groups. A claim of another type has none."""
    groups = claim(claims, settings.OIDC_GROUPS_CLAIM)
    names = groups if isinstance(groups, list) else [groups]
    return [name for name in names if isinstance(name, str)]


def _end_access(place: dict[str, str]) -> None:
    """End the tokens and the role of a user whose groups may no longer use octweb."""
    identity = SignOnIdentity.objects.select_related("user").filter(**place).first()
    if identity is not None:
        identity.tokens_until = timezone.now()
        identity.save(update_fields=["tokens_until"])
        set_role_of_groups(identity.user, "member")


def _identity(place: dict[str, str], claims: dict[str, Any]) -> SignOnIdentity:
    """Return the identity of a user who signs in, with the new end of the tokens."""
    identity = SignOnIdentity.objects.select_related("user").filter(**place).first()
    if identity is None:
        user = _account_by_name(claims)
        # an identity of another issuer is from before OCTWEB_OIDC_ISSUER changed
        identity = SignOnIdentity.objects.filter(user=user).first() or SignOnIdentity(user=user)
        identity.issuer = place["issuer"]
        identity.subject = place["subject"]
    if not identity.user.is_active:
        raise SignOnError("Your account here is closed.")
    days = settings.OIDC_TOKEN_DAYS
    identity.tokens_until = timezone.now() + timedelta(days=days) if days else None
    identity.save()
    return identity


def _account_by_name(claims: dict[str, Any]) -> Any:
    """Return the account with the name in the claims, or a new one."""
    name = unicodedata.normalize("NFC", str(claim(claims, settings.OIDC_NAME_CLAIM) or "").strip())
    if not name:
        raise SignOnError(f"The sign-on service did not send '{settings.OIDC_NAME_CLAIM}', the name of your account.")
    users = auth.get_user_model().objects
    user = users.filter(username=name).first()
    if user is None:
        return _new_account(name, claims)
    if SignOnIdentity.objects.filter(user=user, issuer=settings.OIDC_ISSUER).exists():
        raise SignOnError(f"The name '{name}' belongs to another user of the sign-on service.")
    if user.has_usable_password() and not settings.OIDC_LINK:
        raise SignOnError(f"'{name}' is an account with a password, which sign-on does not open (OCTWEB_OIDC_LINK).")
    return user


def _new_account(name: str, claims: dict[str, Any]) -> Any:
    if not settings.OIDC_CREATE:
        raise SignOnError(f"There is no account '{name}' here.")
    email = str(claims.get("email") or "") if claims.get("email_verified", True) is True else ""
    user = auth.get_user_model()(username=name, email=email)
    user.set_unusable_password()
    try:
        user.full_clean()
    except ValidationError as error:
        words = " ".join(text for texts in error.message_dict.values() for text in texts)
        raise SignOnError(f"'{name[:60]}' cannot be the name of an account. {words}") from None
    user.save()
    return user


class SignOnBegin(OIDCAuthenticationRequestView):
    """Redirect to the provider."""

    get_settings = staticmethod(library_setting)


class SignOnAnswer(OIDCAuthenticationCallbackView):
    """Receive the user from the provider."""

    get_settings = staticmethod(library_setting)

    def get(self, request: HttpRequest) -> HttpResponse:
        if "error" in request.GET:
            raise SignOnError("The sign-on service did not sign you in.")
        return super().get(request)

    def login_failure(self) -> HttpResponse:
        raise SignOnError("This sign-in was not begun here, or your browser keeps no cookies.")

    def login_success(self) -> HttpResponse:
        session = self.request.session
        kept = {name: session[name] for name in ("oidc_id_token", "oidc_login_next") if name in session}
        if self.request.user.is_authenticated and self.request.user != self.user:
            auth.logout(self.request)  # Django would empty the session of another user
        self.request.session.update(kept)
        response = super().login_success()
        self.request.session.set_expiry(timezone.now() + timedelta(hours=settings.OIDC_SESSION_HOURS))
        return response


def respond(view: Callable[..., HttpResponse], request: HttpRequest) -> HttpResponse:
    """Call a view of the sign-on. A failure becomes a page that says why."""
    try:
        return view(request)
    except SignOnError as error:
        return sign_on_failed(request, str(error))
    except SuspiciousOperation:
        return sign_on_failed(request, "This sign-in was begun in another browser, or was used already.")
    except requests.RequestException as error:
        status = "no answer" if error.response is None else f"status {error.response.status_code}"
        return sign_on_failed(request, f"The sign-on service failed ({status}). Your password still works.", status=503)


def sign_out_address(request: HttpRequest) -> str:
    """Return where the provider ends its own session, or "" if it has no such address or does not answer."""
    try:
        address = provider().get("end_session_endpoint", "")
    except (SignOnError, requests.RequestException):
        return ""
    query = {
        "client_id": settings.OIDC_CLIENT_ID,
        "id_token_hint": request.session.get("oidc_id_token", ""),
        "post_logout_redirect_uri": request.build_absolute_uri(resolve_url(settings.LOGOUT_REDIRECT_URL)),
    }
    if not address:
        return ""
    separator = "&" if "?" in address else "?"
    return f"{address}{separator}{urlencode(query)}"
