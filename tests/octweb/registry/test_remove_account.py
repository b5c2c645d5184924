"""The administration refuses to delete an account with models that others may rely on."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from octweb.registry.models import TreeModel

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_client(client, staff):
    client.force_login(staff)
    return client


def test_one_account(admin_client, owner, approved, media):
    address = f"/admin/auth/user/{owner.pk}/delete/"
    page = admin_client.get(address)
    assert page.status_code == 200
    answer = admin_client.post(address, {"post": "yes"})
    assert answer.status_code in (200, 403)
    assert get_user_model().objects.filter(pk=owner.pk).exists()
    assert TreeModel.objects.filter(pk=approved.pk).exists()


def test_account_with_models_is_not_removed(admin_client, owner, approved, media):
    body = {"action": "delete_selected", "_selected_action": [owner.pk], "post": "yes"}
    answer = admin_client.post("/admin/auth/user/", body)
    assert answer.status_code in (200, 403)
    assert get_user_model().objects.filter(pk=owner.pk).exists()


def test_an_account_without_models_is_removed(admin_client, stranger, media):
    assert admin_client.post(f"/admin/auth/user/{stranger.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not get_user_model().objects.filter(pk=stranger.pk).exists()
