"""Purpose, tier, review dates and inventory of models: stated, due, reminded and recorded."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.urls import reverse
from django.utils import timezone

from octweb.audit.models import Record
from octweb.core.problems import Conflict
from octweb.datasets import actions as datasets
from octweb.datasets import versions
from octweb.life.models import Alarm, DailyCount
from octweb.notify.models import Delivery, Wish
from octweb.oversight import actions
from octweb.oversight.due import due_reasons, reasons_of
from octweb.oversight.models import Degree, Oversight
from octweb.oversight.reminding import remind
from octweb.registry.lifecycle import actions as registry
from octweb.registry.lifecycle.audit_trail import audit_models
from octweb.registry.models import State

pytestmark = pytest.mark.django_db
CSV = "size,class\n" + "".join(f"{i % 10},{'pq'[i % 3 == 0]}\n" for i in range(60))


def kinds(model, today=None):
    return [reason.kind for reason in due_reasons(model, today or timezone.localdate())]


@pytest.mark.parametrize(
    ("exposure", "consequence", "tier"),
    [
        ("high", "high", 1), ("high", "medium", 1), ("medium", "medium", 2), ("low", "high", 2), ("low", "medium", 3),
        ("low", "low", 3), ("", "high", None), ("high", "", None),
    ],
)  # fmt: skip
def test_tier_follows_from_exposure_and_consequence(exposure, consequence, tier):
    assert Oversight(exposure=exposure, consequence=consequence).tier == tier
    assert Oversight(exposure=consequence, consequence=exposure).tier == tier


def test_each_trigger_makes_a_model_due(owner, staff, media, register):
    dataset = datasets.create(owner=owner, file=io.BytesIO(CSV.encode()), source_name="a.csv", target="class")
    model = register(dataset=dataset)
    today = timezone.localdate()
    actions.state_oversight(model, by=owner, values={"review_on": today})
    assert kinds(model) == []  # a draft is never due
    registry.ask_for_approval(model, by=owner)
    registry.approve(model, by=staff)
    assert kinds(model) == ["date"]
    assert kinds(model, today - timedelta(days=1)) == []
    Alarm.objects.create(model=model, watch="leaf 4", grew=True, began=today, found=today, rows=9)
    versions.new_version(dataset, owner=owner, file=io.BytesIO(CSV.encode()), source_name="b.csv")
    assert kinds(model) == ["date", "alarm", "data"]
    actions.finish_review(model, by=staff, finding="Still right.")
    assert kinds(model) == ["alarm"]  # only a person closes an alarm
    Alarm.objects.update(closed_at=timezone.now())
    assert kinds(model) == []
    versions.new_version(dataset, owner=owner, file=io.BytesIO(CSV.encode()), source_name="c.csv")
    assert kinds(model) == ["data"]


def test_version_after_a_reviewed_version_makes_a_model_due(owner, staff, media, register):
    version = datasets.create(owner=owner, file=io.BytesIO(CSV.encode()), source_name="a.csv", target="class")
    model = register(dataset=version)
    registry.ask_for_approval(model, by=owner)
    registry.approve(model, by=staff)
    for _ in range(3):
        version = versions.new_version(version, owner=owner, file=io.BytesIO(CSV.encode()), source_name="b.csv")
        assert kinds(model) == ["data"]
        actions.finish_review(model, by=staff, finding="Still right.")
        assert kinds(model) == []


def test_review_is_a_record_and_sets_the_next_date(approved, staff):
    actions.state_oversight(approved, by=approved.owner, values={"review_days": 90, "exposure": "high"})
    found = actions.finish_review(approved, by=staff, finding=" As in training. ")
    assert found.review_on == timezone.localdate() + timedelta(days=90)
    record = Record.objects.get(what="reviewed again")
    assert (record.by, record.details["finding"]) == ("ada", "As in training.")
    assert audit_models([approved]).problems == []


def test_review_of_a_draft_is_refused(model):
    with pytest.raises(Conflict, match="is draft"):
        actions.finish_review(model, by=model.owner, finding="Fine.")
    assert not Oversight.objects.exists()


def test_reminders_come_early_on_the_day_and_weekly(approved):
    day = timezone.localdate() + timedelta(days=100)
    actions.state_oversight(approved, by=approved.owner, values={"review_on": day})
    Wish.objects.create(user=approved.owner, webhook="https://example.org/hook")
    sent = [n for n in range(-20, 30) if remind(day + timedelta(days=n))]
    assert sent == [-14, 0, 7, 14, 21, 28]
    words = Delivery.objects.first().message
    assert (words["event"], words["status"]) == ("model.review", "review")
    registry.retire(approved, by=approved.owner, reason="Replaced.")
    assert remind(day + timedelta(days=60)) == 0


def test_storing_the_same_date_sends_no_second_reminder(approved):
    """The form on the page always sends the date, also if only the purpose changes."""
    today = timezone.localdate()
    actions.state_oversight(approved, by=approved.owner, values={"review_on": today})
    assert remind(today) == 1
    actions.state_oversight(approved, by=approved.owner, values={"purpose": "Loans", "review_on": today})
    assert remind(today) == 0
    actions.state_oversight(approved, by=approved.owner, values={"review_on": today + timedelta(days=3)})
    assert remind(today) == 1


def test_purpose_is_stored_although_the_review_date_has_passed(approved, client_of):
    yesterday = timezone.localdate() - timedelta(days=1)
    Oversight.objects.create(model=approved, review_on=yesterday)
    stated = {"purpose": "Loans", "review_on": yesterday.isoformat()}
    answer = client_of(approved.owner).put(f"/api/v1/models/{approved.pk}/oversight/", stated, format="json")
    assert (answer.status_code, answer.json().get("purpose")) == (200, "Loans")


def test_day_of_new_data_is_that_of_the_time_zone():
    moment = datetime(2027, 1, 1, 20, tzinfo=UTC)
    found = SimpleNamespace(state=State.APPROVED, review_on=None, alarm_since=None, data_since=moment)
    with timezone.override("Asia/Tokyo"):
        (reason,) = reasons_of(found, date(2027, 1, 2))
    assert (reason.since, reason.sentence) == (date(2027, 1, 2), "Its data have had a later version since 2 Jan 2027.")


def test_api_states_and_lists_for_owner_and_administrators_only(approved, owner, stranger, staff, client_of):
    address = f"/api/v1/models/{approved.pk}/oversight/"
    stated = {"purpose": "Loans", "exposure": "high", "consequence": "medium", "review_on": "2030-01-31"}
    answer = client_of(owner).put(address, stated, format="json")
    assert answer.status_code == 200, answer.content
    assert answer.json()["tier"] == 1
    assert client_of(owner).put(address, {"review_days": 30}, format="json").json()["purpose"] == "Loans"
    DailyCount.objects.create(model=approved, day=timezone.localdate(), api="v1", kind="rows", name="2", number=12)
    assert client_of(stranger).get(address).status_code == 404
    assert client_of(stranger).put(address, stated, format="json").status_code == 404
    assert client_of(stranger).post(f"{address}review/", {"finding": "x"}, format="json").status_code == 404
    assert client_of(stranger).get("/api/v1/inventory/").json()["results"] == []
    for user in (owner, staff):
        (row,) = client_of(user).get("/api/v1/inventory/").json()["results"]
        assert (row["owner"], row["tier"], row["decisions"], row["due"]) == ("olga", 1, 12, [])
        assert client_of(user).get("/api/v1/inventory/", {"due": "true"}).json()["results"] == []


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"exposure": "huge"}, "exposure"), ({"review_on": "2001-01-01"}, "review_on"), ({"review_days": 0}, "review_days"),
        ({"review_on": "soon"}, "review_on"), ({"purpose": "x" * 4001}, "purpose"),
    ],
)  # fmt: skip
def test_wrong_statement_is_refused_and_named(approved, client_of, values, name):
    answer = client_of(approved.owner).put(f"/api/v1/models/{approved.pk}/oversight/", values, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["attr"]) == (400, name)


def test_pages_show_what_is_due_and_record_the_review(approved, owner, stranger, client, media):
    client.force_login(owner)
    today = timezone.localdate()
    form = {"purpose": "Loans", "exposure": Degree.LOW, "consequence": Degree.HIGH, "review_on": today.isoformat()}
    page = client.post(reverse("oversight:state", args=[approved.pk]), form, follow=True).content.decode()
    assert "Its review was due on" in page
    inventory = reverse("oversight:inventory")
    assert "Due for review (1)" in client.get(inventory, {"due": "1"}).content.decode()
    answer = client.post(reverse("oversight:review", args=[approved.pk]), {"finding": "Good."}, follow=True)
    assert "The review is a record." in answer.content.decode()
    assert "No model is due" in client.get(inventory, {"due": "1"}).content.decode()
    wrong = client.post(reverse("oversight:state", args=[approved.pk]), form | {"review_on": "soon"}, follow=True)
    assert "is not a day" in wrong.content.decode()
    client.force_login(stranger)
    assert client.post(reverse("oversight:review", args=[approved.pk]), {"finding": "x"}).status_code == 404
    assert "Loans" not in client.get(inventory).content.decode()


def test_oversight_is_part_of_the_record_of_a_life(approved, client_of):
    actions.state_oversight(approved, by=approved.owner, values={"purpose": "Loans"})
    body = client_of(approved.owner).get(f"/api/v1/models/{approved.pk}/life/").json()
    assert (body["oversight"]["purpose"], body["oversight"]["due"]) == ("Loans", [])
