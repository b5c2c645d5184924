"""POST, GET and DELETE tokens/, and what a token permits."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.exceptions import ValidationError

from octweb.core.problems import Conflict, document
from octweb.serving.actions import create_token
from octweb.serving.authentication import forget
from octweb.serving.models import ApiToken
from tests.conftest import ROOT

URL = "/api/v1/tokens/"
MODELS = "/api/v1/models/"


def test_a_token_is_shown_once(client_of, owner):
    client = client_of(owner)
    response = client.post(URL, {"name": "notebook", "scope": "predict", "days": 30}, format="json")
    assert response.status_code == 201
    body = response.json()
    listed = client.get(URL).json()["results"]
    assert [t["name"] for t in listed] == ["notebook", ""]
    assert body["token"] not in client.get(URL).content.decode()
    assert not ApiToken.objects.filter(digest=body["token"]).exists()
    assert body["expiry"]


@pytest.mark.parametrize(
    "body", [{"days": 0}, {"days": "soon"}, {"scope": "all"}, {"name": "x" * 101}, {"name": 0}, {"name": True}, []]
)
def test_invalid_request_is_refused(client_of, owner, body):
    assert client_of(owner).post(URL, body, format="json").status_code == 400


def test_a_revoked_token_ends_at_once(client_of, owner, stranger):
    client = client_of(owner)
    key = client.get(URL).json()["results"][0]["key"]
    assert client_of(stranger).delete(f"{URL}{key}/").status_code == 404
    assert client.delete(f"{URL}{key}/").status_code == 204
    assert client.get(URL).status_code == 401


def test_expired_token_is_refused_despite_cache(client_of, owner):
    client = client_of(owner, days=1)
    assert client.get(MODELS).status_code == 200
    ApiToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    forget()
    assert client.get(MODELS).status_code == 401
    assert "expired" in client.get(MODELS).json()["detail"]


def test_a_token_of_a_closed_account_is_refused(client_of, owner):
    client = client_of(owner)
    owner.is_active = False
    owner.save()
    assert client.get(MODELS).status_code == 401


@pytest.mark.parametrize("header", ["Token", "Token a b", "Token \xff\xfe", "Token " + "0" * 64, "Bearer x", "Token é"])
def test_damaged_headers_are_401(client, db, header):
    answer = client.get(MODELS, headers={"Authorization": header})
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Token"


def test_a_remembered_token_costs_no_query(client_of, owner, django_assert_num_queries):
    client = client_of(owner)
    client.get(MODELS)
    with django_assert_num_queries(2):  # the count and the rows of the list, nothing for the token
        client.get(MODELS)


def test_there_is_a_limit_of_tokens(owner, settings):
    settings.REST_KNOX = settings.REST_KNOX | {"TOKEN_LIMIT_PER_USER": 2}
    create_token(owner=owner)
    create_token(owner=owner, days=1)
    with pytest.raises(Conflict):
        create_token(owner=owner)
    ApiToken.objects.filter(expiry__isnull=False).update(expiry=timezone.now() - timedelta(days=1))
    create_token(owner=owner)


def test_token_cannot_create_a_longer_lived_one(client_of, owner):
    client = client_of(owner, days=2)
    assert client.post(URL, {"days": 3}, format="json").status_code == 400
    for body in ({}, {"days": 1}):
        answer = client.post(URL, body, format="json").json()
        assert answer["expiry"] <= ApiToken.objects.order_by("created").first().expiry.isoformat()
    assert client_of(owner).post(URL, {"days": 30}, format="json").status_code == 201
    mine, _ = create_token(owner=owner, scope="predict")
    with pytest.raises(ValidationError):
        create_token(owner=owner, made_by=mine)


@pytest.mark.parametrize("size", ["null", "0", "-1", "1.5", "", "x", "1e3", "²"])
def test_invalid_page_size_is_refused(client_of, owner, size):
    answer = client_of(owner).get(MODELS, {"page_size": size})
    assert (answer.status_code, "page_size" in answer.json()["detail"]) == (400, True)
    assert client_of(owner).get(MODELS, {"page_size": "2"}).status_code == 200


def test_sign_out_everywhere_by_token_ends_all(client_of, owner, stranger, client):
    program = client_of(owner)
    other = client_of(stranger)
    client.force_login(owner)
    answer = program.post("/api/v1/sign-out-everywhere/")
    assert (answer.status_code, answer.json()) == (200, {"tokens": 1, "sessions": 1})
    assert program.get(MODELS).status_code == 401
    assert client.get(MODELS).status_code == 401
    assert other.get(MODELS).status_code == 200


def test_sign_out_everywhere_by_session_keeps_it(client_of, owner, client):
    program = client_of(owner)
    client.force_login(owner)
    elsewhere = Client()
    elsewhere.force_login(owner)
    assert client.post("/api/v1/sign-out-everywhere/").json() == {"tokens": 1, "sessions": 1}
    assert client.get(MODELS).status_code == 200
    assert elsewhere.get(MODELS).status_code == 401
    assert program.get(MODELS).status_code == 401


def test_predict_token_cannot_sign_its_owner_out(client_of, owner):
    program = client_of(owner, scope="predict")
    assert program.post("/api/v1/sign-out-everywhere/").status_code == 403
    assert ApiToken.objects.filter(user=owner).exists()


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Bearer {}", 200),
        ("bearer {}", 200),
        ("Bearer {} {}", 401),
        ("Bearer", 401),
        ("Bearer x{}", 401),
        ("Basic {}", 401),
    ],
)
def test_bearer_names_a_token_like_token(owner, header, status):
    secret = create_token(owner=owner)[1]
    assert Client().get(MODELS, headers={"Authorization": header.format(secret, secret)}).status_code == status


def test_each_problem_has_a_section_in_the_documents():
    text = (ROOT / "docs" / "problems.md").read_text()
    sections = {line[3:].lower().replace(" ", "-") for line in text.splitlines() if line.startswith("## ")}
    for status in (400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 503):
        address, _, code = document(status, "").pop("type").partition("#")
        assert address == "/docs/problems/"
        assert code in sections
