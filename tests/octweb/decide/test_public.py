"""The public page of an approved model: who opens it, who sees it, and what it says of training rows."""

from __future__ import annotations

import json
import re
import uuid

import pytest

from octweb.decide.actions import guidance_of
from octweb.registry import actions as registry

FORM = {"purpose": "Pre-screening of <loans>.\nA person decides.", "contact": "loans@example.org"}


def settings(client, model, **form):
    return client.post(f"/models/{model.pk}/public/", form)


def public(client, model):
    return client.get(f"/public/{guidance_of(model).key}/")


def data(page):
    found = re.search(r'<script id="questionnaire-data" type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(found.group(1))


def test_an_approved_model_is_opened_by_its_owner_for_everyone(approved_model, owner, client):
    client.force_login(owner)
    assert settings(client, approved_model, **FORM).status_code == 302
    client.logout()
    answer = public(client, approved_model)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert answer["X-Robots-Tag"] == "noindex"
    assert "Pre-screening of &lt;loans&gt;." in page
    assert "loans@example.org" in page
    assert not answer.cookies
    client.force_login(owner)
    assert settings(client, approved_model, close="1").status_code == 302
    assert public(client, approved_model).status_code == 404


@pytest.mark.parametrize("allowed", [False, True])
def test_training_rows_are_not_spoken_of_unless_allowed(approved_model, owner, client, allowed):
    client.force_login(owner)
    settings(client, approved_model, **FORM, **({"show_training": "on"} if allowed else {}))
    found = data(public(client, approved_model).content.decode())["tree"]
    counted = {key for node in found["nodes"] for key in node} & {"r", "c", "u"}
    assert counted == ({"r", "c"} if allowed else set())
    if not allowed:
        assert {c["scale"] for c in found["columns"] if "scale" in c} == {1.0}


def test_it_closes_with_the_approval_and_for_others_it_is_not_there(approved_model, owner, staff, stranger, client):
    client.force_login(stranger)
    assert settings(client, approved_model, **FORM).status_code == 404
    assert client.get(f"/models/{approved_model.pk}/public/").status_code == 404
    client.force_login(owner)
    settings(client, approved_model, **FORM)
    assert public(client, approved_model).status_code == 200
    assert client.get(f"/public/{uuid.uuid4()}/").status_code == 404
    assert client.post(f"/public/{guidance_of(approved_model).key}/").status_code == 405
    registry.retire(approved_model, by=staff)
    assert public(client, approved_model).status_code == 404


def test_what_is_missing_is_said(approved_model, table_model, owner, client):
    client.force_login(owner)
    answer = settings(client, approved_model, purpose="", contact="me")
    assert answer.status_code == 422
    assert "Purpose" in answer.content.decode()
    assert not guidance_of(approved_model).public


def test_a_draft_has_no_public_page(table_model, owner, client):
    client.force_login(owner)
    answer = settings(client, table_model, **FORM)
    assert answer.status_code == 422
    assert "approved" in answer.content.decode()
