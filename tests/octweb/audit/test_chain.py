"""The audit chain: what it records, and that every later change is located."""

from __future__ import annotations

import json
from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import call_command

from octweb.audit import actions as audit
from octweb.audit import chain
from octweb.audit.models import Head, Record
from octweb.registry.lifecycle import actions
from octweb.registry.models import ReviewEvent, State, TreeModel
from tests.octweb.small_models import trained

pytestmark = pytest.mark.django_db


@pytest.fixture
def reviewed(owner, staff, stranger):
    """Provide a model that was trained, sent back, approved, shared and exported."""
    model = actions.register(owner=owner, document=trained("cart", depth=2), dataset=None, title="Small cart")
    actions.ask_for_approval(model, by=owner, reason="please")
    actions.ask_back(model, by=staff, reason="say what −7 means")
    actions.ask_for_approval(model, by=owner, reason="no score on file")
    actions.approve(model, by=staff)
    actions.share(model, by=owner, username=stranger.username, level="read")
    actions.unshare(model, by=owner, username=stranger.username)
    return TreeModel.objects.get(pk=model.pk)


def run(capsys, *arguments, **options):
    """Return the exit status of `audit`, its lines, and the problems."""
    try:
        call_command("audit", *arguments, **options)
        status = 0
    except SystemExit as error:
        status = error.code
    out = capsys.readouterr()
    return status, out.out, out.err


def test_every_decision_is_a_record_with_previous_hash(reviewed, client, owner, capsys):
    client.force_login(owner)
    client.get(f"/models/{reviewed.pk}/download/json/")
    status, out, err = run(capsys, json=True)
    document = json.loads(out.splitlines()[-1])
    assert (status, err, document["whole"]) == (0, "", True)
    done = [r["what"] for r in document["records"]]
    assert done == ["trained", "ask", "return", "ask", "approve", "served", "shared", "no longer shared", "exported"]
    assert document["records"][2]["by"] == "ada"
    assert document["records"][2]["details"]["reason"] == "say what −7 means"
    before = chain.START
    for record in document["records"]:
        assert record["before"] == before
        assert chain.digest(record) == record["digest"]
        before = record["digest"]
    assert document["head"] == before
    status, out, _ = run(capsys, "small-cart/1", holds=before)
    assert status == 0
    assert "The chain is complete." in out
    assert run(capsys, holds="0" * 64)[0] == 1


CHANGES = {
    "a record": (lambda m: Record.objects.filter(number=3).update(by="nobody"), "record 3: its content"),
    "its time": (lambda m: Record.objects.filter(number=3).update(at="2020-01-01T00:00Z"), "record 3: its content"),
    "a removed record": (lambda m: Record.objects.filter(number=2).delete(), "record 3: record 2 is missing"),
    "the end cut off": (lambda m: Record.objects.filter(number__gt=4).delete(), "record 4: the chain ended with record 8"),
    "a step of the history": (lambda m: ReviewEvent.objects.filter(reason__contains="7").update(reason="fine"), "record 3: the history"),
    "a removed step": (lambda m: m.events.filter(after=State.APPROVED).delete(), "record 5: the step is missing"),
    "a step put in": (lambda m: ReviewEvent.objects.create(model=m, after=State.APPROVED), "has no record"),
    "the state": (lambda m: TreeModel.objects.filter(pk=m.pk).update(state=State.RETIRED), "record 6: small-cart version 1 is retired"),
    "that it is served": (lambda m: TreeModel.objects.filter(pk=m.pk).update(served_since=None), "record 6: small-cart version 1 is not served"),
    "the model file": (lambda m: TreeModel.objects.filter(pk=m.pk).update(document="{}"), "record 1: the model file"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_change_outside_of_application_is_located(reviewed, capsys, change):
    make, said = CHANGES[change]
    make(reviewed)
    status, _, err = run(capsys)
    assert status == 1
    assert said in err


def test_rewritten_record_breaks_the_next_one(reviewed, capsys):
    record = Record.objects.get(number=3)
    record.by = "nobody"
    record.digest = chain.digest(record.to_json())
    record.save()
    assert "record 4: the record before it is not the one" in run(capsys)[2]


def test_a_refused_step_leaves_no_record(reviewed, owner):
    before = audit.end()
    with pytest.raises(Exception, match="administrator"):
        actions.reject(reviewed, by=owner, reason="no")
    assert audit.end() == before


def test_earlier_history_is_added_to_the_chain(reviewed, capsys):
    Record.objects.all().delete()
    Head.objects.all().delete()
    import_module("octweb.registry.migrations.0004_steps_into_the_chain").into_the_chain(apps, None)
    assert [r.what for r in Record.objects.all()] == [
        "trained",
        "now in_review",
        "now draft",
        "now in_review",
        "now approved",
        "now approved",  # this record is for the serving
    ]
    assert run(capsys)[0] == 0


def test_missing_model_is_reported(db, capsys):
    with pytest.raises(Exception, match="There is no model 'nothing'"):
        call_command("audit", "nothing")
