"""Daily looks at the counts: alarms, limits, closing, messages and permissions."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from octweb.audit.models import Record
from octweb.core.metrics import exposition
from octweb.datasets import actions as datasets
from octweb.figures.life import evidence_figure, leaves_figure
from octweb.life import looking
from octweb.life.actions import close_alarm, look_now, set_limit
from octweb.life.looking import look_at, look_at_due
from octweb.life.models import Alarm, DailyCount, Watching
from octweb.life.record import life_record
from octweb.notify.models import Delivery, Wish
from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import rows_of
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import ReviewEvent, State, TreeModel
from tests.octweb.life.filled import ROWS, fill, leaves_of, today
from tests.octweb.small_models import csv_of_small_table
from trainer.training.run import TrainRequest, train

pytestmark = pytest.mark.django_db


@pytest.fixture
def year(approved):
    """Provide an approved model that has been served for 120 days.

    From day 60 on, its largest leaf gets half as many rows again.
    """
    ReviewEvent.objects.filter(model=approved, after=State.APPROVED).update(at=timezone.now() - timedelta(days=120))
    fill(approved, 120, changed_from=60)
    return approved


def test_grown_leaf_has_an_alarm_with_its_begin(year):
    look_now(year)
    biggest = f"leaf {leaves_of(year)[0].id}"
    alarm = Alarm.objects.get(watch=biggest)
    change = today() - timedelta(days=60)
    assert alarm.grew
    assert abs((alarm.began - change).days) <= 7
    assert change < alarm.found < change + timedelta(days=45)
    assert alarm.rows == ROWS * ((alarm.found - alarm.began).days + 1)
    record = life_record(year, 365, timezone.now())
    own = next(a for a in record["alarms"] if a["watch"] == biggest)
    assert own["sentence"].startswith(f"Leaf {leaves_of(year)[0].id} answers “")
    assert "to more people than in training" in own["sentence"]
    assert "Began about" in own["when"]


def test_clean_days_have_no_alarm_and_say_what_they_could_show(approved):
    ReviewEvent.objects.filter(model=approved, after=State.APPROVED).update(at=timezone.now() - timedelta(days=120))
    fill(approved, 120)
    assert look_now(approved) == []
    record = life_record(approved, 365, timezone.now())
    assert any(
        sentence.startswith(("Nothing has changed in 120 days that 7,200 decisions", "Too few to tell"))
        for sentence in record["sentences"]
    )
    assert record["decisions"] == 120 * ROWS
    assert len(record["days"]) == len(record["watches"][0]["evidence"]) == 365


def test_second_look_changes_nothing(year):
    look_now(year)
    first = list(Alarm.objects.values_list("watch", "began", "found", "rows"))
    evidence = Watching.objects.get(model=year).evidence
    assert look_now(year) == []
    assert list(Alarm.objects.values_list("watch", "began", "found", "rows")) == first
    assert Watching.objects.get(model=year).evidence == evidence


@pytest.mark.slow
def test_evidence_does_not_depend_on_api_or_order_of_the_counts(year):
    before = look_at(year, today()).evidence
    rows = list(DailyCount.objects.order_by("-id"))
    DailyCount.objects.all().delete()
    for row in rows:
        half = row.number // 3
        for api, number in (("v2", half), ("batch", row.number - half)):
            DailyCount.objects.create(model=year, day=row.day, api=api, kind=row.kind, name=row.name, number=number)
    after = look_at(year, today()).evidence
    assert {k: v.tolist() for k, v in after.items()} == {k: v.tolist() for k, v in before.items()}


def test_time_zone_of_the_server_does_not_change_the_evidence(year, settings):
    before = look_at(year, today()).evidence
    settings.TIME_ZONE = "Pacific/Auckland"
    timezone.activate("Pacific/Auckland")
    try:
        after = look_at(year, today()).evidence
    finally:
        timezone.deactivate()
    assert {k: v.tolist() for k, v in after.items()} == {k: v.tolist() for k, v in before.items()}


def test_closing_needs_a_reason_and_is_a_record(year, client_of, owner):
    look_now(year)
    alarm = Alarm.objects.first()
    client = client_of(owner)
    path = f"/api/v1/models/{year.pk}/life/alarms/{alarm.pk}/close/"
    assert client.post(path, {"reason": "  "}, format="json").status_code == 400
    answer = client.post(path, {"reason": "A campaign brought other people."}, format="json")
    assert answer.status_code == 200
    closed = next(a for a in answer.json()["alarms"] if a["id"] == alarm.pk)
    assert (closed["closed_by"], closed["reason"]) == (owner.username, "A campaign brought other people.")
    record = Record.objects.get(what="alarm closed")
    assert record.details["watch"] == alarm.watch
    assert client.post(path, {"reason": "again"}, format="json").status_code == 409


def test_closed_watch_starts_again_on_the_next_day(year, owner):
    look_now(year)
    alarm = Alarm.objects.first()
    close_alarm(year, alarm.pk, by=owner, reason="known")
    assert look_now(year) == []
    watch = next(w for w in life_record(year, 30, timezone.now())["watches"] if w["watch"] == alarm.watch)
    assert watch["since"] == (today() + timedelta(days=1)).isoformat()
    assert set(watch["evidence"]) == {None}


def test_alarm_whose_share_has_gone_back_is_told_as_past(year):
    look_now(year)
    leaf = leaves_of(year)[0]
    recent = DailyCount.objects.filter(model=year, day__gt=today() - timedelta(days=28))
    recent.filter(name=str(leaf.id)).update(number=1)
    alarm = Alarm.objects.get(watch=f"leaf {leaf.id}")
    sentence = next(a["sentence"] for a in life_record(year, 90, timezone.now())["alarms"] if a["id"] == alarm.pk)
    days = DailyCount.objects.filter(model=year, day__range=(alarm.began, alarm.found))
    share = sum(c.number for c in days if c.name == str(leaf.id)) / sum(c.number for c in days)
    assert sentence.startswith(f"Leaf {leaf.id} answered “")
    assert f"to more people than in training: {100 * share:.1f}\u202f% from " in sentence
    assert "Now it is " in sentence


def test_later_limit_does_not_change_what_an_alarm_says(year, owner):
    look_now(year)
    leaf = leaves_of(year)[0].id
    alarm = Alarm.objects.get(watch=f"leaf {leaf}")
    close_alarm(year, alarm.pk, by=owner, reason="A campaign.")
    closed = next(a for a in life_record(year, 90, timezone.now())["alarms"] if a["id"] == alarm.pk)
    assert closed["sentence"].startswith(f"Leaf {leaf} answered “")
    assert "in training." in closed["sentence"]
    set_limit(year, f"leaf {leaf}", 0.9, by=owner)
    later = next(a for a in life_record(year, 90, timezone.now())["alarms"] if a["id"] == alarm.pk)
    assert later["sentence"] == closed["sentence"]


def test_limit_of_a_person_counts_from_the_next_day(year, owner, client_of):
    leaf = f"leaf {leaves_of(year)[-1].id}"
    answer = client_of(owner).post(
        f"/api/v1/models/{year.pk}/life/limits/", {"watch": leaf, "share": 0.4}, format="json"
    )
    own = next(w for w in answer.json()["watches"] if w["watch"] == leaf)
    assert (own["limit"], own["low"], own["high"]) == (0.4, 0.0, 0.4)
    assert own["since"] == (today() + timedelta(days=1)).isoformat()
    assert Record.objects.get(what="limit set").details == {"watch": leaf, "share": "0.4"}
    set_limit(year, leaf, None, by=owner)
    assert Watching.objects.get(model=year).limits == {}


@pytest.mark.slow
@pytest.mark.parametrize(("watch", "share"), [("leaf 999", 0.4), ("leaf", 0.4), ("", 0.4)])
def test_limit_of_an_unknown_watch_is_refused(year, owner, client_of, watch, share):
    path = f"/api/v1/models/{year.pk}/life/limits/"
    answer = client_of(owner).post(path, {"watch": watch, "share": share}, format="json")
    assert answer.status_code == 400


def test_rows_above_the_training_range_have_an_alarm(approved):
    ReviewEvent.objects.filter(model=approved, after=State.APPROVED).update(at=timezone.now() - timedelta(days=60))
    fill(approved, 60)
    for d in range(30):
        day = today() - timedelta(days=d + 1)
        DailyCount.objects.create(model=approved, day=day, api="v1", kind="above", name="width", number=20)
    look_now(approved)
    alarm = Alarm.objects.get(watch="above: width")
    assert alarm.grew
    record = life_record(approved, 365, timezone.now())
    assert any("width lies above the training range in more rows" in a["sentence"] for a in record["alarms"])


def test_first_day_of_a_new_year_starts_again(approved):
    ReviewEvent.objects.filter(model=approved, after=State.APPROVED).update(at=timezone.now() - timedelta(days=370))
    assert look_at(approved, today()).start == today() - timedelta(days=5)


def test_owner_is_notified_of_alarm_at_once_and_weekly(year, owner, settings):
    Wish.objects.create(user=owner, webhook="https://example.org/hook")
    settings.ADDRESS = "https://trees.example.org"
    look_now(year)
    message = Delivery.objects.get().message
    assert (message["event"], message["name"]) == ("model.alarm", year.title)
    assert message["url"] == f"https://trees.example.org/models/{year.pk}/?mode=life"
    assert message["words"].startswith("has ")
    assert f"Leaf {leaves_of(year)[0].id} answers “" in message["detail"]
    assert len(message["detail"].splitlines()) == Alarm.objects.count()
    look_now(year)
    assert Delivery.objects.count() == 1
    Alarm.objects.update(told_at=timezone.now() - timedelta(days=7))
    look_now(year)
    assert Delivery.objects.count() == 2
    Alarm.objects.update(told_at=timezone.now() - timedelta(days=7), closed_at=timezone.now())
    look_now(year)
    assert Delivery.objects.count() == 2


def test_nightly_evaluation_runs_once_after_six(year, monkeypatch):
    monkeypatch.setattr(looking._Nights, "done", None)
    early = datetime.now(UTC).replace(hour=5, minute=59)
    assert look_at_due(early) == 0
    late = early + timedelta(minutes=2)
    assert look_at_due(late) == 1
    monkeypatch.setattr(looking._Nights, "done", None)  # as in another worker process
    assert look_at_due(late) == 0
    assert look_at_due(late + timedelta(days=1)) == 1
    assert Alarm.objects.exists()


def test_nightly_evaluation_can_be_disabled(year, monkeypatch, settings):
    monkeypatch.setattr(looking._Nights, "done", None)
    settings.WATCH = False
    assert look_at_due(datetime.now(UTC).replace(hour=12)) == 0


def test_metrics_state_the_evidence_of_each_watch(year):
    look_now(year)
    text = exposition().decode()
    leaf = leaves_of(year)[0].id
    line = f'octweb_watch_evidence{{model="{year.family.name}",version="1",watch="leaf {leaf}"}} '
    value = next(float(found.removeprefix(line)) for found in text.splitlines() if found.startswith(line))
    assert value > 3


def test_draft_is_not_watched(model, client_of, owner):
    client = client_of(owner)
    assert client.post(f"/api/v1/models/{model.pk}/watch/").status_code == 409
    answer = client.get(f"/api/v1/models/{model.pk}/life/")
    assert answer.status_code == 200
    assert (answer.json()["watches"], answer.json()["sentences"]) == ([], ["No decisions yet."])


def test_life_is_for_owner_and_administrators(year, client_of, stranger, staff, owner):
    look_now(year)
    paths = [f"/api/v1/models/{year.pk}/life/", f"/api/v1/models/{year.pk}/figures/life/leaves/"]
    assert [client_of(stranger).get(path).status_code for path in paths] == [404, 404]
    assert [client_of(staff).get(path).status_code for path in paths] == [200, 200]
    watch = f"/api/v1/models/{year.pk}/watch/"
    assert client_of(stranger).post(watch).status_code == 404
    assert client_of(owner, scope="predict").post(watch).status_code == 403
    assert client_of(owner).post(watch).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("days", ["0", "x", "99999", "-1"])
def test_invalid_number_of_days_is_refused(year, client_of, owner, days):
    assert client_of(owner).get(f"/api/v1/models/{year.pk}/life/?days={days}").status_code == 400


@pytest.mark.slow
@pytest.mark.parametrize("name", ["leaves", "evidence"])
@pytest.mark.parametrize("days", [1, 90, 365])
def test_figures_are_drawn_from_the_record(year, client_of, owner, name, days):
    look_now(year)
    answer = client_of(owner).get(f"/api/v1/models/{year.pk}/figures/life/{name}/?days={days}")
    assert answer.status_code == 200
    assert len(answer.json()["data"]) in (0, len(leaves_of(year)))
    json.dumps(answer.json(), allow_nan=False)


def test_page_shows_alarms_leaves_and_what_came_in(year, media, client, owner):
    look_now(year)
    DailyCount.objects.create(model=year, day=today(), api="v1", kind="refused_empty", name="colour", number=3)
    DailyCount.objects.create(model=year, day=today(), api="v1", kind="dry_run", name="", number=5)
    client.force_login(owner)
    text = client.get(f"/models/{year.pk}/?mode=life").content.decode()
    assert "to more people than in training" in text
    assert "Where decisions end, by week" in text
    assert "colour is empty, refused" in text
    assert "Dry runs, which are no decisions: 5." in text
    assert "Say what was done" in text


def test_page_without_decisions_says_so(approved, media, client, owner):
    client.force_login(owner)
    text = client.get(f"/models/{approved.pk}/?mode=life").content.decode()
    assert "No decisions yet." in text
    assert "Where decisions end" not in text


def test_page_closes_an_alarm_and_sets_a_limit(year, media, client, owner):
    look_now(year)
    alarm = Alarm.objects.first()
    client.force_login(owner)
    client.post(f"/models/{year.pk}/life/alarms/{alarm.pk}/close/", {"reason": "known"})
    assert Alarm.objects.get(pk=alarm.pk).reason == "known"
    client.post(f"/models/{year.pk}/life/limits/", {"watch": alarm.watch, "percent": "35,5"})
    assert Watching.objects.get(model=year).limits[alarm.watch]["share"] == pytest.approx(0.355)
    text = client.get(f"/models/{year.pk}/?mode=life").content.decode()
    assert "Closed alarms" in text


def test_page_of_a_stranger_has_no_life(year, media, client, stranger):
    client.force_login(stranger)
    text = client.get(f"/models/{year.pk}/?mode=life").content.decode()
    assert "mode=life" not in text
    assert client.post(f"/models/{year.pk}/life/look/").status_code == 404


def test_evidence_of_a_retired_model_ends_on_its_last_day(year, owner, staff):
    registry.retire(year, by=staff)
    ReviewEvent.objects.filter(after=State.RETIRED).update(at=timezone.now() - timedelta(days=30))
    record = life_record(TreeModel.objects.get(pk=year.pk), 60, timezone.now())
    assert [i for i, e in enumerate(record["watches"][0]["evidence"]) if e is not None] == list(range(30))
    assert record["served"] is False


def test_bars_are_as_wide_as_their_days(year):
    record = life_record(year, 15, timezone.now())
    trace = leaves_figure(record, model_file(year).tree.classes)["data"][0]
    assert [round(width / trace["width"][0]) for width in trace["width"]] == [1, 7, 7]
    assert trace["x"] == [record["days"][0], record["days"][1], record["days"][8]]


def test_shares_of_a_week_add_up(year):
    record = life_record(year, 100, timezone.now())
    traces = leaves_figure(record, model_file(year).tree.classes)["data"]
    assert [sum(trace["y"][k] for trace in traces) for k in range(14)] == pytest.approx([100] * 14, abs=0.1)


def test_lines_that_end_together_share_a_name(year):
    look_now(year)
    record = life_record(year, 100, timezone.now())
    for watch in record["watches"]:
        watch["evidence"] = [3.0] * 100
    words = evidence_figure(record, model_file(year).tree.classes)["layout"]["annotations"]
    assert len(words) == 1
    assert words[0]["text"].startswith("leaves ")


def test_folded_alarm_is_closed_on_the_page_too(year, media, client, owner):
    look_now(year)
    grown = Alarm.objects.get(grew=True)
    other = leaves_of(year)[-1].id
    alarm = Alarm.objects.create(
        model=year, watch=f"leaf {other}", grew=False, began=grown.began, found=grown.found, rows=1
    )
    client.force_login(owner)
    text = client.get(f"/models/{year.pk}/?mode=life").content.decode()
    assert f"Leaf {other} shrank, as leaf {leaves_of(year)[0].id} grows." in text
    assert f"/life/alarms/{alarm.pk}/close/" in text


def test_came_in_has_the_numbers_of_each_week(year, media, client, owner):
    for days, number in ((1, 3), (8, 2), (9, 4)):
        day = today() - timedelta(days=days)
        DailyCount.objects.create(model=year, day=day, api="v1", kind="above", name="width", number=number)
    client.force_login(owner)
    answer = client.get(f"/models/{year.pk}/?mode=life&days=90")
    entry = next(e for e in answer.context["came_in"] if e["words"].startswith("width above "))
    assert (entry["number"], entry["weeks"][-3:]) == (9, [0, 6, 3])
    assert [bar["height"] for bar in entry["bars"]] == [100, 50]
    high = model_file(year).tree.schema[0].range[1]
    assert entry["words"] == f"width above {high:g}, the highest in training"


def test_page_says_where_answers_are_not_recorded(year, media, client, owner):
    client.force_login(owner)
    text = client.get(f"/models/{year.pk}/?mode=life").content.decode()
    assert "there is no letter to a person, no outcome and no objection" in " ".join(text.split())


@pytest.mark.parametrize("of", ["leaves", "wrong", "cells"])
def test_evidence_is_drawn_of_leaves_and_of_wrong_answers(year, client_of, owner, of):
    Watching.objects.update_or_create(model=year, defaults={"promised": {str(v.id): [3, 30] for v in leaves_of(year)}})
    answer = client_of(owner).get(f"/api/v1/models/{year.pk}/figures/life/evidence/?of={of}")
    if of == "cells":
        assert answer.status_code == 400
        return
    names = [trace["name"] for trace in answer.json()["data"]]
    assert len(names) == len(leaves_of(year)) + (of == "wrong")
    assert ("all leaves" in names) == (of == "wrong")


def test_reference_of_leaves_has_held_out_rows_too(owner, media, staff):
    file = io.BytesIO(csv_of_small_table().encode())
    dataset = datasets.create(owner=owner, file=file, source_name="a.csv", name="A", target="kind")
    stored, classes = datasets.load(dataset)
    request = TrainRequest(table=stored, labels=classes, method="cart", parameters={"depth": 2}, test_share=0.25)
    model = registry.register(owner=owner, document=train(request).model.to_json(), dataset=dataset, title="A")
    registry.approve(registry.ask_for_approval(model, by=owner), by=staff, reason="A test.")
    look_now(model)
    watches = [w for w in life_record(model, 30, timezone.now())["watches"] if w["kind"] == "rows"]
    assert {w["reference"]["rows"] for w in watches} == {120}
    tree = model_file(model).tree
    leaves = tree.apply(rows_of(model).matrix)
    assert [w["reference"]["yes"] for w in watches] == [int((leaves == int(w["name"])).sum()) for w in watches]
