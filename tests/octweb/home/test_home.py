"""The first page, signed out and signed in."""

from __future__ import annotations

import pytest

from octweb.registry.lifecycle import actions


@pytest.fixture(autouse=True)
def _media(media):
    pass


def test_signed_out_it_shows_one_approved_model(client, approved):
    text = client.get("/").content.decode()
    assert "Sign in" in text
    assert approved.title in text
    assert "No model has been approved" not in text


def test_signed_out_it_shows_no_draft_but_how_it_goes(client, model):
    text = client.get("/").content.decode()
    assert model.title not in text
    assert "No model has been approved here yet" in text


def test_administrators_see_what_waits(client, model, owner, staff, stranger):
    actions.ask_for_approval(model, by=owner)
    for user, seen in ((owner, False), (staff, True), (stranger, False)):
        client.force_login(user)
        answer = client.get("/")
        assert answer.status_code == 200
        assert ("Waiting for approval" in answer.content.decode()) is seen
    client.force_login(owner)
    assert model.title in client.get("/").content.decode()
