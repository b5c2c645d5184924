"""Request pages and calls of this installation inside this process, and report those that fail."""

from __future__ import annotations

from collections.abc import Iterator

from django.apps import apps
from django.conf import settings
from django.contrib import auth
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client
from django.urls import reverse

PUBLIC = ("/healthz", "/readyz", "/accounts/login/", "/api/schema/")
LISTS = ("home", "datasets:list", "searches", "registry:list", "decisions")
DETAILS = (
    ("registry.TreeModel", "registry:detail"),
    ("datasets.Dataset", "datasets:detail"),
    ("runs.TrainingRun", "runs:detail"),
)
NEWEST = 5  # objects of each kind


def failing_addresses() -> Iterator[tuple[str, int]]:
    """Yield each address that fails, with its status: public ones, and lists and the newest objects for an administrator."""
    host = next((name.lstrip(".") for name in settings.ALLOWED_HOSTS if name != "*"), "localhost")
    client = Client(raise_request_exception=False, headers={"host": host})
    yield from _failing(client, list(PUBLIC))
    users = auth.get_user_model().objects.filter(is_superuser=True, is_active=True)
    administrator = users.order_by("pk").first()
    if administrator is None:
        return
    # a session without signing in, which would change the time of the last sign-in
    session = SessionStore()
    session[auth.SESSION_KEY] = str(administrator.pk)
    session[auth.BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[auth.HASH_SESSION_KEY] = administrator.get_session_auth_hash()
    session.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
    try:
        yield from _failing(client, [reverse(name) for name in LISTS])
        for label, page in DETAILS:
            newest = apps.get_model(label)._default_manager.kept().order_by("-created")[:NEWEST]
            yield from _failing(client, [reverse(page, args=[item.pk]) for item in newest])
    finally:
        session.delete()


def _failing(client: Client, addresses: list[str]) -> Iterator[tuple[str, int]]:
    for address in addresses:
        path = address.removeprefix(settings.FORCE_SCRIPT_NAME or "")
        status = client.get(path, secure=settings.HTTPS).status_code
        if status != 200:
            yield address, status
