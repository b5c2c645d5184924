"""Calls with an Idempotency-Key are executed once, and each repetition gets the same answer."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import resolve
from django.utils import timezone

from octweb.batch.models import BatchPrediction
from octweb.core.idempotency import ABANDONED, LIFE, REPLAYED, purge
from octweb.core.models import StoredAnswer
from octweb.core.parameters import schema_document
from octweb.datasets.models import Dataset
from octweb.serving.models import ApiToken
from tests.octweb.runs.conftest import CSV
from tests.octweb.small_models import csv_of_small_table

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]
KEY = {"Idempotency-Key": "k-1"}
DATASETS = "/api/v1/datasets/"


@pytest.fixture
def api(client_of, owner):
    return client_of(owner)


def upload(api, content: str = CSV, key=KEY, **members):
    """Send a file. Each form has its own boundary, like the forms of real clients."""
    file = SimpleUploadedFile("small.csv", content.encode())
    return api.post(DATASETS, {"file": file, "target": "class"} | members, format="multipart", headers=key)


def test_repeated_upload_makes_one_data_set(api):
    first = upload(api)
    again = upload(api)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert REPLAYED not in first
    assert again[REPLAYED] == "true"
    assert Dataset.objects.count() == 1


@pytest.mark.parametrize("change", [{"content": CSV + "9.5,1,red,no\n"}, {"name": "Another"}, {"target": "colour"}])
def test_key_of_another_call_is_refused(api, change):
    upload(api)
    refused = upload(api, **change)
    assert refused.status_code == 422
    assert "Take a new key" in refused.json()["detail"]
    assert Dataset.objects.count() == 1
    assert upload(api, key={"Idempotency-Key": "k-2"}, **change).status_code == 201


def test_call_without_key_is_executed_each_time(api):
    assert [upload(api, key={}).status_code for _ in range(2)] == [201, 201]
    assert Dataset.objects.count() == 2
    assert not StoredAnswer.objects.exists()


def test_refused_call_may_be_sent_again(api):
    assert upload(api, target="nonsense").status_code == 422
    assert not StoredAnswer.objects.exists()
    assert upload(api).status_code == 201


def test_users_have_keys_of_their_own(api, client_of, stranger):
    first = upload(api).json()["id"]
    other = upload(client_of(stranger))
    assert other.status_code == 201
    assert other.json()["id"] != first


def test_call_that_is_being_executed_is_a_conflict_with_a_pause(api):
    upload(api)
    StoredAnswer.objects.update(status=None)
    refused = upload(api)
    assert refused.status_code == 409
    assert refused["Retry-After"] == "1"


def test_call_whose_process_was_lost_is_executed_again(api):
    upload(api)
    StoredAnswer.objects.update(status=None, created=timezone.now() - ABANDONED - timedelta(seconds=1))
    assert upload(api).status_code == 201
    assert Dataset.objects.count() == 2


def test_answers_are_kept_for_a_day(api):
    upload(api)
    StoredAnswer.objects.update(created=timezone.now() - LIFE - timedelta(seconds=1))
    assert upload(api).status_code == 201
    assert Dataset.objects.count() == 2
    assert StoredAnswer.objects.count() == 1


def test_purge_deletes_old_answers_of_every_user(api, client_of, stranger):
    upload(api)
    StoredAnswer.objects.update(created=timezone.now() - LIFE - timedelta(seconds=1))
    upload(client_of(stranger))
    assert purge(timezone.now()) == 1
    assert StoredAnswer.objects.get().owner == stranger


@pytest.mark.parametrize("key", ["k" * 201, "kä"])
def test_invalid_key_is_refused(api, key):
    assert upload(api, key={"Idempotency-Key": key.encode().decode("latin-1")}).status_code == 400


def test_secret_of_a_token_is_not_stored(api):
    first = api.post("/api/v1/tokens/", {"name": "a"}, format="json", headers=KEY)
    secret = first.json()["token"]
    again = api.post("/api/v1/tokens/", {"name": "a"}, format="json", headers=KEY)
    assert again.status_code == 409
    assert "shown once" in again.json()["detail"]
    assert secret not in str(StoredAnswer.objects.values_list())
    assert ApiToken.objects.filter(name="a").count() == 1


def test_repeated_file_to_predict_is_predicted_once(api, model):
    def send():
        rows = SimpleUploadedFile("rows.csv", csv_of_small_table().encode())
        return api.post("/api/v1/predictions/", {"model": str(model.pk), "file": rows}, format="multipart", headers=KEY)

    first = send()
    again = send()
    assert again.json()["id"] == first.json()["id"]
    assert again["Location"] == first["Location"]
    assert BatchPrediction.objects.count() == 1


def test_every_creating_call_takes_a_key():
    """Runs store the key themselves, without a time limit."""
    creating = []
    for path, operations in schema_document()["paths"].items():
        call = operations.get("post", {})
        if "201" not in call.get("responses", {}):
            continue
        assert "Idempotency-Key" in [p["name"] for p in call["parameters"]], path
        address = path
        for name in ("id", "decision"):
            address = address.replace(f"{{{name}}}", "00000000-0000-0000-0000-000000000000")
        view = resolve(address).func
        method = getattr(view, "actions", {}).get("post", "post")
        creating.append(path)
        handler = getattr(view.cls, method)
        assert path == "/api/v1/runs/" or handler.is_idempotent, path
    assert len(creating) >= 15
