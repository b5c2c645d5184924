"""Read from the audit chain which version was served under a name, and when."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, time
from typing import NamedTuple

from django.http import Http404
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from rest_framework.exceptions import ValidationError

from octweb.audit.models import Record
from octweb.registry.lifecycle.audit_trail import ENDS, SERVES, recorded_sha256

SEPARATOR = " version "  # between name and version in a record


class Period(NamedTuple):
    """A period in which one version was the default of a name. `until` is None for the current period."""

    model: uuid.UUID
    version: int
    since: datetime
    until: datetime | None
    record: int  # number of the record in the audit chain
    ended_by: int | None


class _Service(NamedTuple):
    name: str
    version: int
    since: datetime


def served_periods(name: str) -> list[Period]:
    """Return the periods of a name's default versions, oldest first."""
    periods: list[Period] = []
    for record, at, first in _changes(name):
        if periods and periods[-1].until is None:
            periods[-1] = periods[-1]._replace(until=at, ended_by=record.number)
        if first is not None:
            model, service = first
            periods.append(Period(model, service.version, at, None, record.number, None))
    return periods


def _changes(name: str) -> Iterator[tuple[Record, datetime, tuple[uuid.UUID, _Service] | None]]:
    """Yield each record that changes the default version of the name, with its time and the new version or None."""
    steps = Record.objects.filter(subject="model", what__in=SERVES | ENDS).order_by("number")
    under_name = steps.filter(what__in=SERVES, name__startswith=f"{name}{SEPARATOR}").values("subject_id")
    serving: dict[uuid.UUID, _Service] = {}
    before = None
    for record in steps.filter(subject_id__in=under_name):
        at = _time_of(record)
        if record.what in SERVES:
            served_name, _, version = record.name.rpartition(SEPARATOR)
            serving[record.subject_id] = _Service(served_name, int(version), at)
        else:
            serving.pop(record.subject_id, None)
        candidates = [(model, service) for model, service in serving.items() if service.name == name]
        first = max(candidates, key=lambda one: one[1].since, default=None)
        if first != before:
            yield record, at, first
            before = first


def _time_of(record: Record) -> datetime:
    recorded = record.details.get("served_since") or record.details.get("event_at")
    return record.at if recorded is None else datetime.fromisoformat(recorded)


def period_at(periods: list[Period], moment: datetime) -> Period | None:
    """Return the period that contains the moment, or None if nothing was served then."""
    return next((p for p in periods if p.since <= moment and (p.until is None or moment < p.until)), None)


def approver_of(period: Period) -> str:
    """Return who approved the version last before the period began, as recorded. "" if no record says so."""
    approvals = Record.objects.filter(
        subject="model", subject_id=period.model, what="approve", number__lt=period.record
    )
    return approvals.order_by("-number").values_list("by", flat=True).first() or ""


def sha256_at(period: Period) -> str | None:
    """Return the recorded SHA-256 of the model file, or None if old records lack it."""
    records = Record.objects.filter(subject="model", subject_id=period.model).order_by("number")
    return recorded_sha256(records)


def parse_moment(text: str) -> datetime:
    """Parse a time, by default in the site's zone, or a date. A date means its end; today means now.

    Raises ValidationError for other texts, and for future times.
    """
    moment = _parse_moment(text)
    now = timezone.now()
    if moment is None:
        raise ValidationError(
            {"at": f"'{text[:40]}' is neither a date nor a time. Use 2026-03-31 or 2026-03-31T14:00:00+01:00."}
        )
    if moment.date() == timezone.localdate() and len(text.strip()) == len("2026-03-31"):
        return now
    if moment > now:
        raise ValidationError({"at": f"{text[:40]} is in the future. Give a time up to now."})
    return moment


def _parse_moment(text: str) -> datetime | None:
    try:
        moment = parse_datetime(text.strip()) if "T" in text or ":" in text else None
        day = parse_date(text.strip()) if moment is None else None
    except ValueError:  # the text looks like a date, but no such date exists
        return None
    if day is not None:
        moment = datetime.combine(day, time.max)
    if moment is None:
        return None
    try:
        return timezone.make_aware(moment) if timezone.is_naive(moment) else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parse_moment_or_now(text: str) -> datetime:
    return parse_moment(text) if text.strip() else timezone.now()


def served_period(name: str, moment: datetime) -> Period:
    """Return the period at a moment. If nothing was served then, raise Http404, which states the first time."""
    periods = served_periods(name)
    period = period_at(periods, moment)
    if period is None:
        began = f" It was first served on {timezone.localtime(periods[0].since):%Y-%m-%d %H:%M %Z}." if periods else ""
        raise Http404(f"No version was served under '{name[:60]}' at that time.{began}")
    return period
