"""The walk after an upgrade asks for pages and the newest objects, and names those that fail."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from octweb import urls
from octweb.core import walk

pytestmark = pytest.mark.django_db
urlpatterns = urls.urlpatterns


@pytest.fixture
def administrator(media):
    user = get_user_model().objects.create_superuser("anna", password="a long password")
    get_user_model().objects.filter(pk=user.pk).update(last_login=timezone.now())
    user.refresh_from_db()
    return user


def test_walk_visits_the_newest_objects_without_signing_in(administrator, approved, monkeypatch):
    asked = []
    get = walk.Client.get
    monkeypatch.setattr(walk.Client, "get", lambda self, path, **how: asked.append(path) or get(self, path, **how))
    before = administrator.last_login
    assert list(walk.failing_addresses()) == []
    assert {"/", "/healthz", "/datasets/", f"/models/{approved.pk}/"} <= set(asked)
    administrator.refresh_from_db()
    assert administrator.last_login == before
    assert not Session.objects.exists()


def test_upgrade_names_the_page_that_fails_and_the_way_back(administrator, approved, settings, monkeypatch):
    settings.ROOT_URLCONF = __name__
    monkeypatch.setattr(
        "tests.octweb.core.test_walk.urlpatterns",
        [path("datasets/", lambda request: HttpResponse(status=500)), *urls.urlpatterns],
    )
    monkeypatch.setattr("octweb.core.management.commands.upgrade.call_command", lambda *words, **options: None)
    with pytest.raises(CommandError, match=r"/datasets/: status 500\nTo go back.*restore your backup"):
        call_command("upgrade", no_backup=True)
