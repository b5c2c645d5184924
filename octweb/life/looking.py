"""Compute the daily evidence of each watch, and raise alarms."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

import numpy as np
from django.conf import settings
from django.db import connection, transaction
from django.db.models import CharField
from django.db.models.functions import Cast
from django.utils import timezone

from octweb.core.tally import ROWS
from octweb.life.models import Alarm, DailyCount, Watching
from octweb.life.signals import alarmed, outcomes_due
from octweb.life.watches import OUTCOMES, QUESTIONS, RIGHT, WRONG, Watch, first_day, last_day, rows_by_leaf, watches_of
from octweb.registry.models import TreeModel
from trainer.monitoring import ShareLimits, began_about, dispersion, evidence, outcomes_are_units, rows_are_units

log = logging.getLogger(__name__)

EVALUATION_HOUR = 6  # hour of the daily evaluation, in the server's time zone
TOLD_AGAIN_DAYS = 7


@dataclass(frozen=True)
class DayCounts:
    """Counts of consecutive days by kind and name of a watch, int64 (days,)."""

    first: date
    days: int
    by_watch: dict[tuple[str, str], np.ndarray]

    def of(self, kind: str, name: str) -> np.ndarray:
        """Return the counts of a kind and name. Outcomes of no leaf are those of all leaves together."""
        if kind in OUTCOMES and not name:
            return self._sum(kind)
        counts = self.by_watch.get((kind, name))
        return np.zeros(self.days, np.int64) if counts is None else counts

    @cached_property
    def rows(self) -> np.ndarray:
        """Number of rows answered on each day, int64 (days,)."""
        return self._sum(ROWS)

    def rows_of(self, watch: Watch) -> np.ndarray:
        """Return how many rows answer the question of a watch on each day: for wrong answers, known outcomes."""
        if watch.kind == WRONG:
            return self.of(WRONG, watch.name) + self.of(RIGHT, watch.name)
        return self.rows

    def _sum(self, kind: str) -> np.ndarray:
        own = [numbers for (of, _), numbers in self.by_watch.items() if of == kind]
        return np.sum(own, axis=0) if own else np.zeros(self.days, np.int64)

    def date(self, index: int) -> date:
        return self.first + timedelta(days=index)


@dataclass(frozen=True)
class Look:
    """Evaluated counts of a model. `evidence` is log10 by watch, float64 (days,), NaN before the watch began."""

    counts: DayCounts
    start: date
    watches: list[Watch]
    evidence: dict[str, np.ndarray]
    grew: dict[str, np.ndarray]
    units: np.ndarray  # bool (days + 1,): True if each row is a bet, False if the whole day is one
    dispersion: np.ndarray


def day_counts(model: TreeModel, first: date, last: date) -> DayCounts:
    """Read the counts of the days from `first` to `last`, inclusive."""
    days = max(0, (last - first).days + 1)
    kinds = [ROWS, *QUESTIONS, *OUTCOMES]
    rows = DailyCount.objects.filter(model=model, kind__in=kinds, day__range=(first, last)).order_by()
    place = {(first + timedelta(days=i)).isoformat(): i for i in range(days)}
    numbers: dict[tuple[str, str], list[int]] = {}
    # there are tens of thousands of rows, and a queryset that parses SQLite's dates takes three times as long
    query = rows.annotate(text=Cast("day", CharField())).values_list("kind", "name", "text", "number").query
    with connection.cursor() as cursor:
        cursor.execute(*query.sql_with_params())
        for kind, name, day, number in cursor.fetchall():
            counts = numbers.get((kind, name))
            if counts is None:
                counts = numbers[kind, name] = [0] * days
            counts[place[day]] += number
    return DayCounts(first, days, {key: np.array(counts, np.int64) for key, counts in numbers.items()})


def look_at(model: TreeModel, today: date) -> Look | None:
    """Compute the evidence of all watched days before `today` (UTC). None if the model was never approved.

    The evidence depends only on counts, limits, approvals and closed alarms, not on earlier evaluations.
    """
    last = last_day(model, today)
    start = first_day(model, last)
    if start is None:
        return None
    watches = watches_of(model, start)
    counts = day_counts(model, start, last)
    leaves = [counts.of(w.kind, w.name) for w in watches if w.is_leaf]
    table = np.stack(leaves, axis=1) if leaves else np.zeros((counts.days, 0), np.int64)
    units = rows_are_units(table)
    outcome_units = _outcome_units(watches, counts)
    logs: dict[str, np.ndarray] = {}
    grew: dict[str, np.ndarray] = {}
    for since in {w.since for w in watches}:
        watches_since = [w for w in watches if w.since == since]
        skipped = min(counts.days, (since - start).days)
        by_row = np.stack([outcome_units if w.kind == WRONG else units for w in watches_since], axis=1)[skipped:-1]
        _add_evidence(watches_since, counts, by_row, skipped, logs, grew)
    return Look(counts, start, watches, logs, grew, units, dispersion(table))


def _outcome_units(watches: list[Watch], counts: DayCounts) -> np.ndarray:
    """Return whether each outcome is a bet about wrong answers, bool (days + 1,), else the day is one."""
    wrong = [w.name for w in watches if w.kind == WRONG]
    if not wrong:
        return np.ones(counts.days + 1, bool)
    leaves = [name for name in wrong if name] or [""]
    tables = [np.stack([counts.of(kind, name) for name in leaves], axis=1) for kind in (WRONG, RIGHT)]
    return outcomes_are_units(*tables)


def _add_evidence(
    watches: list[Watch],
    counts: DayCounts,
    by_row: np.ndarray,
    skipped: int,
    logs: dict[str, np.ndarray],
    grew: dict[str, np.ndarray],
) -> None:
    """Add the evidence of watches that began on the same day."""
    yes = np.stack([counts.of(w.kind, w.name)[skipped:] for w in watches], axis=1)
    rows = np.stack([counts.rows_of(w)[skipped:] for w in watches], axis=1)
    limits = ShareLimits(low=np.array([w.low for w in watches]), high=np.array([w.high for w in watches]))
    log_evidence = evidence(yes, rows, limits, by_row)
    for k, watch in enumerate(watches):
        logs[watch.id] = np.concatenate([np.full(skipped, np.nan), log_evidence.log[:, k] / math.log(10)])
        grew[watch.id] = np.concatenate([np.zeros(skipped, bool), log_evidence.grew[:, k]])


def watch_model(model: TreeModel, now: datetime) -> list[Alarm]:
    """Evaluate a model, store evidence and alarms, and return the new alarms. [] if it was never approved."""
    with transaction.atomic():
        watching, _ = Watching.objects.select_for_update().get_or_create(model=model)
        today = now.astimezone(UTC).date()
        if watching.leaf_rows is None:
            watching.leaf_rows = rows_by_leaf(model)
        outcomes_due.send(sender=Watching, model=model, watching=watching, last=last_day(model, today))
        watching.save()
        look = look_at(model, today)
        if look is None:
            return []
        fresh = [alarm for watch in look.watches if (alarm := _new_alarm(model, watch, look)) is not None]
        last = {name: float(log[-1]) for name, log in look.evidence.items() if len(log) and math.isfinite(log[-1])}
        watching.evidence = last
        watching.looked_at = now
        watching.looked_on = timezone.localtime(now).date()
        watching.save()
        _tell(model, now)
    return fresh


def _new_alarm(model: TreeModel, watch: Watch, look: Look) -> Alarm | None:
    """Store and return an alarm if the watch's evidence reached the threshold and it has no open alarm.

    Otherwise, None.
    """
    logs = look.evidence[watch.id]
    over = np.flatnonzero(logs >= math.log10(watch.threshold))  # false for NaN
    if not len(over) or model.alarms.filter(watch=watch.id, closed_at=None).exists():
        return None
    day = int(over[0])
    skipped = max(0, (watch.since - look.start).days)
    grew = bool(look.grew[watch.id][day])
    yes = look.counts.of(watch.kind, watch.name)[skipped : day + 1]
    rows = look.counts.rows_of(watch)
    began = skipped + began_about(yes, rows[skipped : day + 1], watch.high if grew else watch.low, grew=grew)
    return Alarm.objects.create(
        model=model,
        watch=watch.id,
        grew=grew,
        began=look.counts.date(began),
        found=look.counts.date(day),
        rows=int(rows[began : day + 1].sum()),
    )


def _tell(model: TreeModel, now: datetime) -> None:
    """Send the signal for open alarms that were never reported, or not within TOLD_AGAIN_DAYS."""
    due = [
        a for a in model.alarms.filter(closed_at=None) if a.told_at is None or _days(a.told_at, now) >= TOLD_AGAIN_DAYS
    ]
    if due:
        Alarm.objects.filter(pk__in=[a.pk for a in due]).update(told_at=now)
        alarmed.send(sender=Alarm, model=model, alarms=due)


def _days(before: datetime, now: datetime) -> int:
    """Return the number of calendar days between two moments in the server's time zone.

    Daily evaluations are not exactly a day apart.
    """
    return (timezone.localtime(now).date() - timezone.localtime(before).date()).days


class _Nights:
    """Last day on which this process has finished its daily evaluations."""

    done: date | None = None


def look_at_due(now: datetime | None = None) -> int:
    """Evaluate, after EVALUATION_HOUR, the approved models that were not evaluated today. Return how many.

    Each evaluation is one transaction that locks the model's Watching row, so two workers never do the same one. If a
    worker is killed, another one repeats its evaluation.
    """
    now = now or timezone.now()
    local = timezone.localtime(now)
    if not settings.WATCH or local.hour < EVALUATION_HOUR or _Nights.done == local.date():
        return 0
    models = TreeModel.objects.approved().filter(deleted_at=None).select_related("family", "owner", "dataset")
    looked = 0
    for pk in list(models.exclude(watching__looked_on__gte=local.date()).values_list("pk", flat=True)):
        model = models.filter(pk=pk).first()
        if model is None:  # retired or deleted meanwhile
            continue
        try:
            with transaction.atomic():
                watching, _ = Watching.objects.select_for_update().get_or_create(model=model)
                if watching.looked_on is None or watching.looked_on < local.date():
                    watch_model(model, now)
                    looked += 1
        except Exception:  # an unreadable model must not prevent the evaluation of others
            log.exception("the look at %s failed; it is tried again tomorrow", model)
            Watching.objects.update_or_create(model=model, defaults={"looked_on": local.date()})
    _Nights.done = local.date()
    return looked
