"""The first page, signed out and signed in."""

from __future__ import annotations

import pytest

from octweb.home.example import FILE, SLUG, example_sample, example_tree
from octweb.registry.lifecycle import actions
from octweb.runs.models import TrainingRun
from trainer.check.recount.check import verify
from trainer.data.samples import csv_text


@pytest.fixture(autouse=True)
def _media(media):
    pass


def test_signed_out_it_shows_one_approved_model(client, approved):
    text = client.get("/").content.decode()
    assert "Sign in" in text
    assert approved.title in text


def test_signed_out_it_shows_no_draft_but_how_it_goes(client, model):
    text = client.get("/").content.decode()
    assert model.title not in text
    assert "From a table to a rule" in text


def test_first_pages_have_a_tree_to_touch(client, owner):
    for address in ("/", "/accounts/login/"):
        assert 'data-live-tree="live-tree"' in client.get(address).content.decode()
    client.force_login(owner)
    text = client.get("/").content.decode()
    assert 'data-live-tree="live-tree"' in text
    assert "Last models" not in text


def test_example_tree_is_true_of_the_sample(tmp_path):
    """The independent checker counts the shipped model again on the rows of the sample."""
    path = tmp_path / "sample.csv"
    path.write_text(csv_text(example_sample()), encoding="utf-8")
    findings = verify(FILE, path)
    assert [f for f in findings if f.verdict == "recounted"]
    assert not [f for f in findings if f.verdict == "refuted"]
    tree = example_tree()
    assert tree["badge"].style == "proved"
    assert tree["unseen"]["correct"] > tree["base_rows"]


def test_sample_is_trained_in_one_click_after_sign_in(client, owner):
    address = f"/start/{SLUG}/"
    assert client.get(address).headers["Location"] == f"/accounts/login/?next={address}"
    client.force_login(owner)
    assert b"autofocus" in client.get(address).content
    assert not TrainingRun.objects.exists()
    run_page = client.post(address).headers["Location"]
    assert run_page == f"/runs/{TrainingRun.objects.get(owner=owner).pk}/"
    assert client.get("/start/unknown/").status_code == 404


def test_administrators_see_what_waits(client, model, owner, staff, stranger):
    actions.ask_for_approval(model, by=owner)
    for user, seen in ((owner, False), (staff, True), (stranger, False)):
        client.force_login(user)
        answer = client.get("/")
        assert answer.status_code == 200
        assert ("Waiting for approval" in answer.content.decode()) is seen
    client.force_login(owner)
    assert model.title in client.get("/").content.decode()
