"""The public page over REST: only the owner may open, change and close it."""

from __future__ import annotations

import pytest

from octweb.decide.actions import guidance_of
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import ShareLevel

BODY = {"purpose": "Pre-screening. A person decides.", "contact": "loans@example.org"}


def address(model):
    return f"/api/v1/models/{model.pk}/public-page/"


def test_public_page_is_opened_changed_and_closed(approved_model, owner, staff, client_of, client):
    api = client_of(owner)
    assert api.get(address(approved_model)).json() == {
        "open": False,
        "address": None,
        "purpose": "",
        "contact": "",
        "show_training": False,
    }
    opened = api.put(address(approved_model), BODY, format="json").json()
    assert opened == {**opened, **BODY, "open": True, "show_training": False}
    assert opened["address"].endswith(f"/public/{guidance_of(approved_model).key}/")
    page = client.get(opened["address"])
    assert page.status_code == 200
    assert BODY["contact"] in page.content.decode()
    assert "training rows" not in page.content.decode()
    changed = api.put(address(approved_model), BODY | {"show_training": True}, format="json").json()
    assert (changed["address"], changed["show_training"]) == (opened["address"], True)
    assert api.delete(address(approved_model)).status_code == 204
    assert client.get(opened["address"]).status_code == 404
    assert api.get(address(approved_model)).json()["open"] is False
    api.put(address(approved_model), BODY, format="json")
    registry.retire(approved_model, by=staff)
    assert api.get(address(approved_model)).json()["open"] is False
    assert client.get(opened["address"]).status_code == 404


def test_public_page_belongs_to_the_owner(approved_model, owner, staff, stranger, client_of):
    registry.share(approved_model, by=owner, username=stranger.username, level=ShareLevel.CALL)
    for asker, statuses in (
        (stranger, (404, 404, 404)),
        (None, (401, 401, 401)),
        (staff, (200, 200, 204)),
        (owner, (200, 200, 204)),
    ):
        api = client_of(asker)
        at = address(approved_model)
        found = (api.get(at).status_code, api.put(at, BODY, format="json").status_code, api.delete(at).status_code)
        assert found == statuses, asker
    assert client_of(owner, scope="predict").put(address(approved_model), BODY, format="json").status_code == 403
    assert not guidance_of(approved_model).public


@pytest.mark.parametrize(
    ("more", "word"),
    [({"purpose": " "}, "purpose"), ({"contact": "x" * 301}, "contact"), ({"show_training": 3}, "show_training")],
)
def test_invalid_entries_are_named(approved_model, owner, client_of, more, word):
    answer = client_of(owner).put(address(approved_model), BODY | more, format="json")
    assert answer.status_code == 400
    assert word in answer.content.decode()
    assert not guidance_of(approved_model).public


def test_a_draft_has_none(table_model, owner, client_of):
    answer = client_of(owner).put(address(table_model), BODY, format="json")
    assert answer.status_code == 409
    assert "approved" in answer.json()["detail"]
