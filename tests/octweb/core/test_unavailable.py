"""A full disk or an unavailable database: pages and API answer 503, and health calls name the cause."""

from __future__ import annotations

import errno
import os
import sqlite3

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.core.files.storage import FileSystemStorage
from django.db import OperationalError, connection
from django.urls import reverse

from octweb.core import unavailable
from octweb.datasets.models import Dataset
from tests.octweb.datasets.files import API, GOOD, api, stored_files, upload

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


@pytest.fixture
def page(client, owner):
    client.force_login(owner)
    client.raise_request_exception = False
    return client


def full(*arguments, **named):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def locked(*arguments, **named):
    raise OperationalError("database is locked")


def test_full_disk_is_reported_by_page_and_api(page, owner, media, monkeypatch):
    monkeypatch.setattr(FileSystemStorage, "_save", full)
    shown = page.post(reverse("datasets:new"), {"file": upload(GOOD)})
    assert (shown.status_code, shown["Retry-After"]) == (503, "10")
    assert "disk of the server is full" in shown.content.decode()
    client = api(owner)
    client.raise_request_exception = False
    answer = client.post(API, {"file": upload(GOOD), "target": "label"}, format="multipart")
    assert (answer.status_code, answer["Content-Type"]) == (503, "application/problem+json")
    assert "disk of the server is full" in answer.json()["detail"]
    assert not Dataset.objects.exists()
    assert not stored_files(media)


def test_locked_database_is_reported_by_page_and_api(page, owner, monkeypatch):
    client = api(owner)
    client.raise_request_exception = False
    monkeypatch.setattr("octweb.core.ownership.OwnedQuerySet.visible_to", locked)
    assert "Another process has locked the database" in page.get(reverse("datasets:list")).content.decode()
    answer = client.get(API)
    assert (answer.status_code, "Another process has locked the database" in answer.json()["detail"]) == (503, True)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="another database has a disk of its own")
def test_unopenable_database_on_full_disk_names_the_disk(monkeypatch):
    error = OperationalError("unable to open database file")
    assert unavailable.reason_of(error) == unavailable.NO_DATABASE
    monkeypatch.setattr(unavailable, "FREE_BYTES", 10**18)
    assert unavailable.reason_of(error) == unavailable.DISK_FULL


def test_table_in_use_is_locked():
    error = OperationalError("canceling statement due to lock timeout")
    assert unavailable.reason_of(error) == unavailable.LOCKED


def test_sign_in_reports_locked_database_too(client, owner, monkeypatch):
    client.raise_request_exception = False
    monkeypatch.setattr(SessionStore, "save", locked)
    answer = client.post(reverse("login"), {"username": "olga", "password": "a long password"})
    assert (answer.status_code, "Another process has locked the database" in answer.content.decode()) == (503, True)


def test_another_fault_is_still_a_server_error(page, monkeypatch):
    def broken(*arguments):
        raise RuntimeError("a fault")

    monkeypatch.setattr("octweb.core.ownership.OwnedQuerySet.visible_to", broken)
    assert page.get(reverse("datasets:list")).status_code == 500


def test_health_names_the_part(client, monkeypatch, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    parts = {"database": "ok", "disk": "ok", "files": "ok"}
    assert client.get("/readyz").json() == {"status": "ok", **parts, "oldest_record_seconds": 0}
    monkeypatch.setattr(unavailable, "FREE_BYTES", 10**18)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["disk"]) == (503, "full")
    monkeypatch.undo()
    monkeypatch.setattr(connection, "cursor", locked)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["database"]) == (503, "no answer")


def test_locked_database_cannot_be_written(tmp_path):
    path = tmp_path / "x.sqlite3"
    holder = sqlite3.connect(path, isolation_level=None)
    assert unavailable._can_write(str(path)) == "ok"
    holder.execute("BEGIN IMMEDIATE")
    assert unavailable._can_write(str(path)) == "locked"
    holder.close()
