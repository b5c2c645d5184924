"""The list of personal data: complete, limited to the reader, and removed when it expires."""

from __future__ import annotations

from datetime import timedelta

import pytest
from axes.models import AccessLog
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.sessions.models import Session
from django.urls import reverse
from django.utils import timezone

from octweb.core.models import StoredAnswer
from octweb.datasets import actions as datasets
from octweb.privacy.expiry import remove_expired
from octweb.privacy.holdings import holdings
from tests.octweb.decisions.conftest import recorded, spool  # noqa: F401
from tests.octweb.decisions.rows import record_rows
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


def counts(user):
    return {h.key: h.count for h in holdings(user)}


@pytest.fixture
def filled(owner, dataset, recorded):  # noqa: F811
    """Provide an owner with a data set, an upload, ten recorded decisions and a sign-in."""
    record_rows(recorded, 5)
    datasets.stage(owner=owner, file=dataset.file.open("rb"), source_name="again.parquet")
    AccessLog.objects.create(username=owner.username, ip_address="10.0.0.1")
    StoredAnswer.objects.create(owner=owner, key="k", digest="d", created=timezone.now())
    return owner


def test_list_of_a_user_counts_only_what_is_theirs(filled, stranger, staff):
    mine = counts(filled)
    assert mine | {"sessions": 0} == mine
    expected = {"accounts": 1, "logins": 1, "uploads": 1, "datasets": 1, "models": 1, "records": 20, "answers": 1}
    assert {key: mine[key] for key in expected} == expected
    others = counts(stranger)
    assert {key: others[key] for key in expected} == dict.fromkeys(expected, 0) | {"accounts": 1}
    everything = counts(None)
    assert {key: everything[key] for key in expected} == expected | {"accounts": 3}


def test_log_of_the_administration_is_listed_for_both_accounts(owner, stranger, staff):
    LogEntry.objects.log_actions(staff.pk, [owner], CHANGE, change_message="New e-mail address.", single_object=True)
    assert [counts(user)["administration"] for user in (owner, staff, None, stranger)] == [1, 1, 1, 0]


def test_every_kind_names_its_expiry_from_the_settings(filled, settings):
    settings.KEEP_LOGINS_DAYS = 33
    settings.RECORD_KEEP_DAYS = 44
    settings.KEEP_PREDICTIONS_DAYS = 5
    until = {h.key: h.until for h in holdings(filled)}
    assert until["logins"].startswith("33 days")
    assert until["records"].startswith("44 days")
    assert until["predictions"].startswith("5 days")
    assert all(until.values())


def test_page_shows_everything_to_administrators_only(filled, stranger, staff, client):
    address = reverse("privacy:holdings")
    client.force_login(stranger)
    page = client.get(address).content.decode()
    assert "About you, and in your objects" in page
    assert "again.parquet" not in page
    assert client.get(address, {"user": "olga"}).status_code == 404
    client.force_login(staff)
    assert "again.parquet" in client.get(address).content.decode()
    assert "again.parquet" not in client.get(address, {"user": "sam"}).content.decode()
    assert client.get(address, {"user": "nobody"}).status_code == 404


def test_api_limits_the_list_to_the_caller(filled, stranger, client_of):
    answer = client_of(stranger).get("/api/v1/privacy/")
    assert {h["key"]: h["count"] for h in answer.json()}["datasets"] == 0
    mine = {h["key"]: h for h in client_of(filled).get("/api/v1/privacy/", {"user": "olga"}).json()}
    assert mine["datasets"]["items"][0]["erase_url"].endswith("/erase/")
    assert client_of(stranger).get("/api/v1/privacy/", {"user": "olga"}).status_code == 404


def test_expired_logins_sessions_and_uploads_are_removed(filled, settings):
    now = timezone.now()
    Session.objects.create(session_key="old", session_data="", expire_date=now - timedelta(days=1))
    Session.objects.create(session_key="new", session_data="", expire_date=now + timedelta(days=1))
    settings.KEEP_LOGINS_DAYS = 2
    assert remove_expired(now) == 1
    assert [s.session_key for s in Session.objects.all()] == ["new"]
    assert counts(filled)["logins"] == 1
    AccessLog.objects.update(attempt_time=now - timedelta(days=3))
    assert remove_expired(now) == 1
    assert counts(filled)["logins"] == 0
