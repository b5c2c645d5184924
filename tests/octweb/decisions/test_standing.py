"""The summary of records on the page Life: outcomes by leaf, people who decided, objections."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from octweb.decisions import erasing
from octweb.decisions.later import LaterRow, add_later_rows
from octweb.decisions.models import ChainEntry
from octweb.decisions.standing import standing_record
from octweb.oversight.actions import state_oversight
from octweb.registry.document.model_files import model_file
from tests.octweb.visible_text import visible

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


def add(model, kind, rows):
    later = [LaterRow(entry.key, members) for entry, members in rows]
    add_later_rows(kind, later, user=model.owner, by="test")


@pytest.fixture
def standing(recorded, ids):
    """Provide the entries of twenty decisions: the first eight have an outcome, every third one another class."""
    classes = model_file(recorded).tree.classes
    entries = list(ChainEntry.objects.filter(kind="decision").order_by("number"))
    outcomes = [(e, {"value": classes[(e.label + (i % 3 == 0)) % 2]}) for i, e in enumerate(entries[:8])]
    add(recorded, "outcome", outcomes)
    return entries


def test_outcomes_are_counted_by_leaf(recorded, standing):
    found = standing_record(recorded, timezone.now())
    assert (found["decisions"], found["known"], found["right"]) == (20, 8, 5)
    assert (found["right_at_least"], found["right_at_most"]) == (5 / 20, 17 / 20)
    for leaf in found["leaves"]:
        own = [(i, e) for i, e in enumerate(standing) if e.leaf == int(leaf["leaf"])]
        known = [i for i, _ in own if i < 8]
        assert (leaf["decisions"], leaf["known"]) == (len(own), len(known))
        assert leaf["wrong"] == sum(i % 3 == 0 for i in known)


def test_last_outcome_counts_and_erased_decisions_do_not(recorded, standing):
    classes = model_file(recorded).tree.classes
    add(recorded, "outcome", [(standing[0], {"value": classes[standing[0].label]})])
    assert standing_record(recorded, timezone.now())["right"] == 6
    erasing.erase_decisions([standing[0].key], why="request", by="test")
    found = standing_record(recorded, timezone.now())
    assert (found["decisions"], found["known"], found["right"], found["erased"]) == (19, 7, 5, 1)


def test_answers_are_left_out_until_their_outcome_is_due(recorded, standing, owner):
    state_oversight(recorded, by=owner, values={"outcome_days": 30})
    now = timezone.now()
    assert standing_record(recorded, now)["decisions"] == 0
    assert standing_record(recorded, now + timedelta(days=31))["decisions"] == 20
    assert standing_record(recorded, now + timedelta(days=95))["decisions"] == 0


def test_answer_without_any_outcome_cannot_be_known(recorded, ids):
    classes = model_file(recorded).tree.classes
    entries = list(ChainEntry.objects.filter(kind="decision"))
    granted = [e for e in entries if e.label == entries[0].label]
    assert len(granted) < len(entries)
    add(recorded, "outcome", [(e, {"value": classes[0]}) for e in granted])
    found = standing_record(recorded, timezone.now())
    assert {leaf["answer"] for leaf in found["leaves"] if leaf["knowable"]} == {classes[entries[0].label]}


def test_people_and_open_objections_are_counted(recorded, standing):
    classes = model_file(recorded).tree.classes
    other = classes[1 - standing[0].label]
    same = classes[standing[1].label]
    add(recorded, "override", [(e, {"label": c, "reason": "r"}) for e, c in zip(standing, (other, same), strict=False)])
    add(recorded, "objection", [(e, {"reason": "wrong"}) for e in standing[:2]])
    add(recorded, "objection", [(standing[0], {"state": "refused", "answer": "no"})])
    found = standing_record(recorded, timezone.now())
    assert (found["overridden"], found["objections_open"]) == (1, 1)
    assert found["oldest_objection"] <= timezone.now()


def test_model_without_records_has_no_summary(approved):
    assert standing_record(approved, timezone.now()) is None


def test_page_life_shows_the_same_numbers_as_the_api(client, client_of, owner, recorded, standing):
    api = client_of(owner).get(f"/api/v1/models/{recorded.pk}/life/").json()["records"]
    assert (api["known"], api["right"]) == (8, 5)
    client.force_login(owner)
    text = visible(client.get(reverse("registry:detail", args=[recorded.pk]) + "?mode=life").content.decode())
    assert "Right, outcome known 62.5 % of 8" in text
    assert "5 of 8 answers with a known outcome were right." in text
    assert "of all 20 between 25.0 % and 85.0 % were right" in text
    assert "On a day" in text
