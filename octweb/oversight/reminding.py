"""Remind owners of reviews: two weeks before the date, on the date, and weekly afterwards."""

from __future__ import annotations

import time
from datetime import date, timedelta

from django.db.models import Q
from django.utils import timezone

from octweb.oversight.models import Oversight
from octweb.oversight.signals import review_due
from octweb.registry.models import State

EARLY = timedelta(days=14)
AGAIN = timedelta(days=7)
LOOK_SECONDS = 3600.0  # minimum time between two checks of a process


class _LastLook:
    """Time of this process's last check, in seconds of `time.monotonic`."""

    at = -LOOK_SECONDS


def look_for_due() -> int:
    """Send due reminders at most once per LOOK_SECONDS, and return how many."""
    now = time.monotonic()
    if now - _LastLook.at < LOOK_SECONDS:
        return 0
    _LastLook.at = now
    return remind(timezone.localdate())


def remind(today: date) -> int:
    """Send the reminders of a day, and return how many. Each is claimed by one UPDATE, so two workers send it once."""
    soon = Oversight.objects.filter(
        model__state=State.APPROVED, model__deleted_at=None, review_on__lte=today + EARLY
    ).exclude(reminded_on=today)
    sent = 0
    for oversight in soon.select_related("model__owner", "model__family").defer("model__document"):
        if oversight.review_on is None or not _is_wanted(oversight.review_on, oversight.reminded_on, today):
            continue
        same = Oversight.objects.filter(Q(reminded_on=oversight.reminded_on), pk=oversight.pk)
        if same.update(reminded_on=today):
            review_due.send(sender=Oversight, model=oversight.model, review_on=oversight.review_on)
            sent += 1
    return sent


def _is_wanted(review_on: date, reminded_on: date | None, today: date) -> bool:
    """Return whether a reminder is sent today, given the day of the last one."""
    if reminded_on is None:
        return True
    if today < review_on:
        return False
    return reminded_on < review_on or today - reminded_on >= AGAIN
