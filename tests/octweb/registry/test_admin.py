"""Review in Django's admin."""

from __future__ import annotations

import pytest
from django.utils import timezone

from octweb.registry.lifecycle import actions
from octweb.registry.models import State, TreeModel
from tests.octweb.small_models import trained

LIST = "/admin/registry/treemodel/"


@pytest.fixture(autouse=True)
def _media(media):
    pass


@pytest.fixture
def admin(client, staff):
    client.force_login(staff)
    return client


def act(client, action, *models, **more):
    return client.post(LIST, {"action": action, "_selected_action": [m.pk for m in models], **more}, follow=True)


def test_the_list_with_filters(admin, model):
    assert model.title in admin.get(LIST).content.decode()
    assert model.title in admin.get(f"{LIST}?state__exact=draft&method=cart").content.decode()
    assert "0 models" in admin.get(f"{LIST}?state__exact=approved").content.decode()
    assert admin.get("/admin/registry/family/").status_code == 200


def test_tree_certificate_and_check_are_in_view(admin, register, model, staff):
    text = admin.get(f"{LIST}{model.pk}/change/").content.decode()
    for words in ("leaf_penalty", "checked again from the file", "no version of this name is served", "width"):
        assert words.lower() in text.lower()
    assert "<textarea" not in text
    assert f"{timezone.localtime(model.created):%H:%M}" in text  # the time format of the other pages, not "3:59 p.m."
    actions.ask_for_approval(model, by=staff, reason="for the winter")
    actions.approve(model, by=staff)
    second = register(document=trained("cart", depth=1))
    text = admin.get(f"{LIST}{second.pk}/change/").content.decode()
    assert "version 1, served" in text
    assert "for the winter" in admin.get(f"{LIST}{model.pk}/change/").content.decode()


def test_approve_and_retire(admin, register, staff):
    first = register()
    second = register()
    actions.ask_for_approval(first, by=staff)
    text = act(admin, "approve_chosen", first, second).content.decode()
    assert TreeModel.objects.get(pk=first.pk).state == State.APPROVED
    assert TreeModel.objects.get(pk=second.pk).state == State.DRAFT
    assert "cannot be approved" in text
    act(admin, "retire_chosen", first)
    assert TreeModel.objects.get(pk=first.pk).state == State.RETIRED


def test_approving_serving_and_both_are_three_actions(admin, register, staff):
    first = register()
    second = register()
    for model in (first, second):
        actions.ask_for_approval(model, by=staff)
    act(admin, "approve_only_chosen", first)
    assert actions.served_version(first.family) is None
    act(admin, "approve_chosen", second)
    assert actions.served_version(first.family) == second
    act(admin, "serve_chosen", first)
    assert actions.served_version(first.family) == first
    assert "no longer served" in act(admin, "stop_serving_chosen", first).content.decode()
    assert actions.served_version(first.family) == second
    assert "is not served" in act(admin, "stop_serving_chosen", first).content.decode()


def test_asking_back_asks_what_is_missing(admin, model, owner):
    actions.ask_for_approval(model, by=owner)
    assert "Say what is missing" in act(admin, "ask_back_chosen", model).content.decode()
    act(admin, "ask_back_chosen", model, reason="which rows")
    assert TreeModel.objects.get().state == State.DRAFT
    assert model.events.last().reason == "which rows"


def test_reject_asks_for_the_reason(admin, model, owner):
    actions.ask_for_approval(model, by=owner)
    assert "The owner reads this" in act(admin, "reject_chosen", model).content.decode()
    assert "Say why" in act(admin, "reject_chosen", model, reason=" ").content.decode()
    assert TreeModel.objects.get().state == State.IN_REVIEW
    act(admin, "reject_chosen", model, reason="too deep")
    assert TreeModel.objects.get().state == State.REJECTED
    assert model.events.last().reason == "too deep"


def test_admin_is_read_only_and_for_staff(admin, client, model, owner):
    assert admin.post(f"{LIST}{model.pk}/change/", {"title": "x"}).status_code == 403
    assert admin.post(f"{LIST}{model.pk}/delete/", {"post": "yes"}).status_code == 403
    client.force_login(owner)
    assert client.get(LIST).status_code == 302


def test_approving_asks_for_a_note_against_open_points(client, staff, model):
    """An owner who asks again without an answer leaves an open point."""
    actions.ask_for_approval(model, by=model.owner)
    actions.ask_back(model, by=staff, reason="Whose rows?")
    actions.ask_for_approval(model, by=model.owner)
    client.force_login(staff)
    address = "/admin/registry/treemodel/"
    chosen = {"action": "approve_only_chosen", "_selected_action": [str(model.pk)]}
    assert "Say why you approve them all the same" in client.post(address, chosen).content.decode()
    model.refresh_from_db()
    assert model.state == "in_review"
    client.post(address, {**chosen, "reason": "I know the rows."})
    model.refresh_from_db()
    assert (model.state, model.events.last().reason) == ("approved", "I know the rows.")
