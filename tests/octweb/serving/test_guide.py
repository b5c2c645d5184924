"""The API page and `manage.py token`."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from octweb.serving.models import ApiToken


@pytest.fixture(autouse=True)
def _media(media):
    pass


def test_token_is_created_shown_once_and_revoked(client, owner):
    client.force_login(owner)
    text = client.post("/api/", {"name": "laptop", "scope": "predict", "days": "30"}).content.decode()
    secret = re.search(r'id="secret" tabindex="0">(\w+)<', text).group(1)
    assert client.get("/api/v1/models/", headers={"Authorization": f"Token {secret}"}).status_code == 403
    page = client.get("/api/").content.decode()
    assert secret not in page
    assert "laptop" in page
    key = ApiToken.objects.get().token_key
    assert client.post(f"/api/tokens/{key}/revoke/").status_code == 302
    assert not ApiToken.objects.exists()


def test_invalid_form_is_refused(client, owner):
    client.force_login(owner)
    assert client.post("/api/", {"scope": "predict", "days": "0"}).status_code == 200
    assert client.post("/api/", {"scope": "everything"}).status_code == 200
    assert not ApiToken.objects.exists()


def test_users_cannot_revoke_tokens_of_others(client, owner, stranger):
    token, _ = ApiToken.objects.create(user=owner)
    client.force_login(stranger)
    client.post(f"/api/tokens/{token.token_key}/revoke/")
    assert ApiToken.objects.count() == 1


def test_the_page_has_a_call_of_your_own_model(client, model, owner, stranger):
    client.force_login(owner)
    text = client.get("/api/").content.decode()
    assert f"/api/v1/models/{model.pk}/predict/" in text
    assert "probabilities" in text
    client.force_login(stranger)
    assert "You cannot call any model yet" in client.get("/api/").content.decode()
    client.logout()
    assert client.get("/api/").status_code == 302


def test_the_command_prints_a_token_that_works(client, owner):
    out = StringIO()
    call_command("token", owner.username, stdout=out)
    secret = out.getvalue().strip()
    assert client.get("/api/v1/models/", headers={"Authorization": f"Token {secret}"}).status_code == 200
    with pytest.raises(CommandError):
        call_command("token", "nobody")
