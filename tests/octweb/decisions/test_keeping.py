"""A model keeps its records for its own number of days, and the chain stays whole."""

from __future__ import annotations

import io
import itertools
import json
import random
from datetime import UTC, datetime, timedelta

import pytest

from octweb.audit.models import Record
from octweb.decisions import adding, erasing
from octweb.decisions.audited import audit_decisions
from octweb.decisions.exporting import export_chain
from octweb.decisions.models import Block, ChainEntry, Kind
from octweb.registry.lifecycle import actions
from octweb.registry.models import Recording
from tests.octweb.decisions.erasing_cases import check_decisions
from tests.octweb.decisions.rows import record_rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


@pytest.fixture
def other(recorded, register, staff):
    model = register()
    return actions.approve(actions.ask_for_approval(model, by=model.owner), by=staff, recording=Recording.FULL)


def keep(model, days):
    return actions.set_recording(model, by=model.owner, recording=model.recording, keep_days=days, reason="a test")


def in_days(days):
    return datetime.now(UTC) + timedelta(days=days)


def exported():
    stream = io.StringIO()
    export_chain(stream)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def unerased(model):
    return ChainEntry.objects.filter(model=model.pk, kind=Kind.DECISION).exclude(payload="").count()


@pytest.fixture
def records_of_two(recorded, other, settings):
    """Record answers of two models in turn; those of `recorded` are kept for 10 days, the others for 100."""
    settings.RECORD_KEEP_DAYS = 100
    for _ in range(3):
        record_rows(recorded, 1)
        record_rows(other, 1)
    exported()
    keep(recorded, 10)


def test_each_model_has_its_own_days(records_of_two, recorded, other):
    assert erasing.erase_old(in_days(9)) == 0
    assert erasing.erase_old(in_days(11)) == 12
    assert (unerased(recorded), unerased(other)) == (0, 12)
    keep(other, 400)
    assert erasing.erase_old(in_days(399)) == 0
    assert unerased(other) == 12
    assert erasing.erase_old(in_days(401)) == 12
    found = audit_decisions()
    assert (found.problems, dict(found.erased)) == ([], {"retention": 24})
    assert check_decisions.check([json.dumps(line) for line in exported()]) == []


def test_shorter_days_of_one_model_excuse_no_gap_in_another(records_of_two, recorded, other):
    erasing.erase_old(in_days(11))
    victim = ChainEntry.objects.filter(model=other.pk, kind=Kind.DECISION)[5]
    ChainEntry.objects.filter(pk=victim.pk).update(payload="", salt="", subject="", leaf=None, label=None)
    words = f"record {victim.number}: its content is gone"
    assert any(words in problem for problem in audit_decisions().problems)
    assert any(words in problem for problem in check_decisions.check([json.dumps(line) for line in exported()]))
    # and not by moving it to the model whose records are gone
    ChainEntry.objects.filter(pk=victim.pk).update(model=recorded.pk)
    assert any(words in problem for problem in audit_decisions().problems)


def test_runs_and_ranges_agree_with_sets_of_numbers(count):
    rng = random.Random(0)
    for _ in range(20 * count):
        numbers = sorted(rng.sample(range(1, 40), rng.randint(0, 39)))
        runs = erasing.runs_of(numbers)
        assert [n for first, last in runs for n in range(first, last + 1)] == numbers
        assert all(b[0] > a[1] + 1 for a, b in itertools.pairwise(runs))


def test_overlapping_ranges_of_older_records_are_read(recorded, settings):
    record_rows(recorded, 2)
    exported()
    entries = ChainEntry.objects.filter(kind=Kind.DECISION)
    numbers = list(entries.values_list("number", flat=True))
    entries.update(**erasing.NOTHING)
    adding.add_later(str(Kind.ERASED), "", why="retention", range=[numbers[0], numbers[-1]], numbers=[])
    adding.add_later(str(Kind.ERASED), "", why="retention", range=[numbers[1], numbers[2]], numbers=[])
    assert audit_decisions().problems == []
    assert check_decisions.check([json.dumps(line) for line in exported()]) == []


def test_many_ranges_are_split_into_records(recorded, other, monkeypatch):
    monkeypatch.setattr(erasing, "MAX_RANGES", 2)
    for _ in range(5):
        record_rows(recorded, 1)
        record_rows(other, 1)
    exported()
    keep(recorded, 1)
    assert erasing.erase_old(in_days(2)) == 20
    assert ChainEntry.objects.filter(kind=Kind.ERASED).count() == 3
    assert audit_decisions().problems == []


def test_owner_sets_days_with_a_reason_that_becomes_a_record(recorded, client_of, owner, stranger, settings):
    path = f"/api/v1/models/{recorded.pk}/recording/"
    api = client_of(owner)
    site = {"recording": "full", "keep_days": None, "is_recorded": True, "days": 1826, "site_days": 1826}
    assert api.get(path).json() == site

    def put(body, client=api):
        return client.put(path, json.dumps(body), content_type="application/json")

    assert put({"keep_days": 183}).status_code == 400
    assert put({"keep_days": 183, "reason": " "}).status_code == 400
    for wrong in (0, -1, 10**9, "x"):
        assert put({"keep_days": wrong, "reason": "r"}).status_code == 400
    assert put({"keep_days": 183, "reason": "less is enough"}, client_of(stranger)).status_code in (403, 404)
    before = Record.objects.count()
    assert put({"keep_days": 183, "reason": "less is enough"}).json() == site | {"keep_days": 183, "days": 183}
    assert put({"keep_days": 183, "reason": "again"}).status_code == 200
    assert put({"recording": "counts", "reason": "no longer needed"}).json()["is_recorded"] is False
    details = [record.details for record in Record.objects.filter(number__gt=before)]
    assert [(d["recording"], d["keep_days"], d["reason"]) for d in details] == [
        ("full", 183, "less is enough"),
        ("counts", 183, "no longer needed"),
    ]
    assert put({"keep_days": None, "reason": "as the site"}).json()["days"] == 1826


def test_approval_and_page_set_the_days(model, staff, owner, client, client_of):
    actions.ask_for_approval(model, by=owner)
    body = {"action": "approve", "reason": "a test", "recording": "full", "keep_days": 365}
    answer = client_of(staff).post(
        f"/api/v1/models/{model.pk}/review/", json.dumps(body), content_type="application/json"
    )
    assert answer.status_code == 200, answer.json()
    model.refresh_from_db()
    assert (model.recording, model.keep_days) == ("full", 365)
    client.force_login(owner)
    address = f"/models/{model.pk}/decisions/keep/"
    form = {"recording": "full", "keep_days": "30", "reason": "a shorter time"}
    assert "30 days" in client.post(address, form, follow=True).content.decode()
    for wrong in ("0", "-3", "x", "99999999", "٣"):
        client.post(address, form | {"keep_days": wrong})
        model.refresh_from_db()
        assert model.keep_days == 30
    client.post(address, form | {"keep_days": "40", "reason": ""})
    client.post(address, form | {"keep_days": "40", "recording": "all"})
    model.refresh_from_db()
    assert (model.keep_days, model.recording) == (30, "full")


def test_retention_of_many_blocks_takes_every_block_once(recorded, other, monkeypatch):
    monkeypatch.setattr(adding, "BLOCK_RECORDS", 3)
    for _ in range(4):
        record_rows(recorded, 1)
        record_rows(other, 1)
    exported()
    assert Block.objects.count() >= 10
    keep(other, 2)
    assert erasing.erase_old(in_days(3)) == 16
    assert erasing.erase_old(in_days(3)) == 0
    assert audit_decisions().problems == []
