"""The watch of wrong answers: outcomes count on their due day, once, and what comes later changes nothing."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, time, timedelta

import numpy as np
import pytest
from django.urls import reverse
from django.utils import timezone
from scipy.stats import beta

from octweb.decisions import erasing
from octweb.decisions.adding import hold
from octweb.decisions.models import ChainEntry, DecisionHead, Kind
from octweb.decisions.reading import nanoseconds_of
from octweb.life.actions import close_alarm, set_limit
from octweb.life.looking import look_at, watch_model
from octweb.life.models import Alarm, DailyCount, Watching
from octweb.life.record import life_record
from octweb.life.watches import OUTCOMES, WRONG_LEVEL, watches_of
from octweb.oversight.actions import state_oversight
from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import rows_of
from octweb.registry.lifecycle import actions as registry
from octweb.registry.models import Recording, ReviewEvent, State
from tests.octweb.noisy_runs import noisy_dataset, trained
from tests.octweb.visible_text import visible

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]
DUE_DAYS = 2
START = 100  # days since the approval and the first look


class Chain:
    """Entries of a model's chain, with times of the past. `day` counts days since START."""

    def __init__(self, model):
        self.model = model
        self.tree = model_file(model).tree
        self.first = datetime.now(UTC).date() - timedelta(days=START)
        self.number = 0

    def moment(self, day):
        return datetime.combine(self.first + timedelta(days=day), time(12), UTC)

    def entry(self, kind, day, **values):
        self.number += 1
        key = uuid.uuid4()
        at = nanoseconds_of(self.moment(day)) + self.number
        return ChainEntry(number=self.number, key=key, kind=kind, model=self.model.pk, at=at, payload="{}", **values)

    def decision(self, leaf, day):
        return self.entry(Kind.DECISION, day, leaf=leaf.id, label=leaf.label)

    def outcome(self, decision, day, *, wrong):
        return self.entry(
            Kind.OUTCOME, day, about=decision.key, label=(decision.label + wrong) % len(self.tree.classes)
        )

    def add(self, leaf, day, outcome_day=None, *, wrong=False):
        """Store a decision, with an outcome if a day is given, and return it."""
        decision = self.decision(leaf, day)
        decision.save()
        if outcome_day is not None:
            self.outcome(decision, outcome_day, wrong=wrong).save()
        return decision

    def look(self, day):
        """Look in the morning of a day."""
        return watch_model(self.model, self.moment(day))

    def counts(self):
        """Return the counts of outcomes: (day, kind, leaf) → number."""
        rows = DailyCount.objects.filter(model=self.model, kind__in=OUTCOMES)
        return {((c.day - self.first).days, c.kind, c.name): c.number for c in rows}


@pytest.fixture
def chain(recorded, owner):
    """Provide the chain of a recorded model whose outcomes are due after DUE_DAYS days, after the first look."""
    moment = timezone.now() - timedelta(days=START)
    ReviewEvent.objects.filter(model=recorded, after=State.APPROVED).update(at=moment)
    state_oversight(recorded, by=owner, values={"outcome_days": DUE_DAYS})
    chain = Chain(recorded)
    chain.look(0)
    return chain


@pytest.fixture
def leaf(chain):
    return chain.tree.leaves[0]


def test_outcome_counts_on_its_due_day_whenever_it_came(chain, leaf):
    for outcome_day in (1, 2, 3):
        chain.add(leaf, 1, outcome_day, wrong=outcome_day == 2)
    chain.look(3)
    assert chain.counts() == {}
    chain.look(4)
    name = str(leaf.id)
    assert chain.counts() == {(3, "right", name): 2, (3, "wrong", name): 1}


def test_late_and_missing_outcomes_stay_without_outcome(chain, leaf):
    chain.add(leaf, 1)
    chain.add(leaf, 1, 4, wrong=True)
    chain.look(10)
    assert chain.counts() == {(3, "due", str(leaf.id)): 2}


def test_last_outcome_of_the_due_day_counts_once(chain, leaf):
    decision = chain.add(leaf, 1, 1, wrong=True)
    for day, wrong in ((2, True), (3, False), (4, True)):  # repeated, corrected in time, and corrected too late
        chain.outcome(decision, day, wrong=wrong).save()
    chain.look(9)
    chain.look(9)
    chain.look(10)
    assert chain.counts() == {(3, "right", str(leaf.id)): 1}


def test_one_late_look_counts_as_daily_looks_would(chain, leaf):
    rng = np.random.default_rng(2)
    for day in range(1, 12):
        for _ in range(3):
            chain.add(leaf, day, day + int(rng.integers(0, 5)), wrong=bool(rng.random() < 0.5))
    for day in range(1, 15):
        chain.look(day)
    daily = chain.counts()
    DailyCount.objects.all().delete()
    first = chain.first - timedelta(days=1)
    Watching.objects.update(outcomes_on=first, decided_on=first - timedelta(days=DUE_DAYS))
    chain.look(14)
    assert daily == chain.counts()
    assert sum(daily.values()) == 33


def test_erasure_before_the_due_day_only_changes_counts(chain, leaf):
    early = chain.add(leaf, 1, 1, wrong=True)
    late = chain.add(leaf, 1, 1, wrong=True)
    hold()
    DecisionHead.objects.update(records=chain.number)
    erasing.erase_decisions([early.key], why="request", by="test")
    chain.look(4)
    before = chain.counts()
    assert before == {(3, "wrong", str(leaf.id)): 1}
    evidence = look_at(chain.model, chain.moment(8).date()).evidence["wrong: all leaves"].tolist()
    erasing.erase_decisions([late.key], why="request", by="test")
    chain.look(8)
    assert chain.counts() == before
    assert look_at(chain.model, chain.moment(8).date()).evidence["wrong: all leaves"].tolist() == evidence


def test_changed_outcome_days_count_no_decision_twice(chain, leaf, owner):
    for day in range(1, 30):
        chain.add(leaf, day, day)
    chain.look(10)
    for now, days in ((15, 6), (20, 0), (25, 9), (60, 2)):
        state_oversight(chain.model, by=owner, values={"outcome_days": days})
        chain.look(now)
    assert sum(chain.counts().values()) == 29


def test_outcomes_are_not_watched_before_a_due_day_is_set(chain, leaf, owner):
    state_oversight(chain.model, by=owner, values={"outcome_days": None})
    Watching.objects.all().delete()
    chain.add(leaf, 1, 1)
    chain.look(20)
    assert chain.counts() == {}
    assert not [w for w in look_at(chain.model, chain.moment(20).date()).watches if w.kind == "wrong"]
    state_oversight(chain.model, by=owner, values={"outcome_days": DUE_DAYS})
    chain.look(21)
    chain.look(30)
    assert chain.counts() == {}  # the decision was due before the first look at outcomes


def test_levels_of_all_watches_add_up_to_one_percent(chain):
    watches = watches_of(chain.model, chain.first)
    assert 2 * sum(1 / w.threshold for w in watches) == pytest.approx(0.01)
    wrong = [w for w in watches if w.kind == "wrong"]
    assert 2 * sum(1 / w.threshold for w in wrong) == pytest.approx(0.004)
    assert [2 / w.threshold for w in wrong if not w.name] == pytest.approx([0.002])
    assert {w.low for w in wrong} == {0.0}


def promise(chain, wrong_shares, days=50, per_day=20):
    """Store decisions of each leaf with outcomes, wrong with these shares by day, and look every tenth day."""
    Watching.objects.update(promised={str(v.id): [100, 1000] for v in chain.tree.leaves})
    rng = np.random.default_rng(4)
    entries = []
    for day in range(1, days):
        for leaf in chain.tree.leaves:
            share = wrong_shares(leaf, day)
            for wrong in [] if share is None else rng.random(per_day) < share:
                decision = chain.decision(leaf, day)
                entries += [decision, chain.outcome(decision, day + 1, wrong=bool(wrong))]
    ChainEntry.objects.bulk_create(entries)
    for day in range(10, days + 10, 10):
        chain.look(day)
    return life_record(chain.model, 365, timezone.now())


def states(record):
    return {w["watch"]: w["promise"] for w in record["watches"] if w["kind"] == "wrong"}


def test_page_says_which_promises_are_broken(chain, leaf, client, owner):
    Watching.objects.update(promised={str(v.id): [100, 1000] for v in chain.tree.leaves})
    day = chain.first
    Alarm.objects.create(model=chain.model, watch=f"wrong: leaf {leaf.id}", grew=True, began=day, found=day, rows=1)
    client.force_login(owner)
    text = visible(client.get(reverse("registry:detail", args=[chain.model.pk]) + "?mode=life").content.decode())
    assert f"Leaf {leaf.id} is wrong more often than promised." in text
    assert f"broken, {day.day} {day:%b %Y}" in text
    assert "few outcomes" in text


def test_broken_promise_is_an_alarm_with_its_begin(chain, leaf, owner):
    record = promise(chain, lambda own, day: 0.45 if own.id == leaf.id and day >= 25 else 0.1)
    alarm = Alarm.objects.get(watch=f"wrong: leaf {leaf.id}")
    change = chain.first + timedelta(days=25 + DUE_DAYS)
    assert abs((alarm.began - change).days) <= 2
    assert change <= alarm.found <= change + timedelta(days=7)
    assert alarm.rows == 20 * ((alarm.found - alarm.began).days + 1)
    assert alarm.told_at is not None
    assert states(record)[alarm.watch] == "broken"
    kept = {s for watch, s in states(record).items() if watch not in (alarm.watch, "wrong: all leaves")}
    assert kept == {"kept"}
    own = next(a for a in record["alarms"] if a["id"] == alarm.pk)
    assert own["sentence"].startswith(f"Leaf {leaf.id} is wrong more often than promised.")
    assert "by the day on which outcomes are due" in own["when"]
    close_alarm(chain.model, alarm.pk, by=owner, reason="A new supplier.")
    closed = next(a for a in life_record(chain.model, 365, timezone.now())["alarms"] if a["id"] == alarm.pk)
    assert closed["sentence"].startswith(f"Leaf {leaf.id} was wrong more often than promised: ")


def test_promise_without_outcomes_is_never_called_kept(chain):
    answer = chain.tree.leaves[0].label
    record = promise(chain, lambda own, day: 0.1 if own.label == answer else None)
    for own in chain.tree.leaves:
        wanted = "kept" if own.label == answer else "cannot be known"
        assert states(record)[f"wrong: leaf {own.id}"] == wanted


def test_few_outcomes_are_called_few(chain):
    record = promise(chain, lambda own, day: 0.1, days=3, per_day=2)
    assert set(states(record).values()) == {"few outcomes"}


def test_limit_of_wrong_answers_replaces_the_interval(chain, leaf, owner):
    watch = f"wrong: leaf {leaf.id}"
    Watching.objects.update(promised={})
    assert states(life_record(chain.model, 30, timezone.now()))[watch] is None
    set_limit(chain.model, watch, 0.35, by=owner)
    own = next(w for w in life_record(chain.model, 30, timezone.now())["watches"] if w["watch"] == watch)
    assert (own["low"], own["high"], own["promise"]) == (0.0, 0.35, "few outcomes")


def test_promised_shares_are_those_of_unseen_rows(owner, staff):
    run = trained(owner, noisy_dataset(owner))
    registry.ask_for_approval(run.model, by=owner)
    model = registry.approve(run.model, by=staff, recording=Recording.FULL)
    state_oversight(model, by=owner, values={"outcome_days": 5})
    watch_model(model, timezone.now())
    rows = len(rows_of(model).unseen)
    tree = model_file(model).tree
    wrong = sum(
        tree.labels[tree.apply(rows_of(model).matrix[[i]])[0]] != rows_of(model).codes[i] for i in rows_of(model).unseen
    )
    assert rows == 40
    own = next(w for w in life_record(model, 30, timezone.now())["watches"] if w["watch"] == "wrong: all leaves")
    assert own["reference"] == {"yes": wrong, "rows": rows, "share": wrong / rows}
    assert own["high"] == pytest.approx(beta.ppf(1 - WRONG_LEVEL, wrong + 1, rows - wrong))
