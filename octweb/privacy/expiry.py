"""Remove what has expired: logins, sessions, staged files and sent messages."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone

from octweb.datasets import actions as datasets
from octweb.notify.delivery import KEEP
from octweb.notify.models import Delivery, DeliveryState

LOOK_SECONDS = 3600.0  # minimum time between two removals by a process


class _LastLook:
    """Time of this process's last removal, in seconds of `time.monotonic`."""

    at = -LOOK_SECONDS


def remove_due() -> int:
    """Remove what has expired, at most once per LOOK_SECONDS. Return how many rows."""
    now = time.monotonic()
    if now - _LastLook.at < LOOK_SECONDS:
        return 0
    _LastLook.at = now
    return remove_expired(timezone.now())


def remove_expired(now: datetime) -> int:
    """Remove logins older than OCTWEB_KEEP_LOGINS_DAYS, expired sessions, staged files and old sent messages.

    Return how many rows.
    """
    before = now - timedelta(days=settings.KEEP_LOGINS_DAYS)
    removed = datasets.prune()
    for model in (AccessLog, AccessAttempt, AccessFailureLog):
        removed += model.objects.filter(attempt_time__lt=before).delete()[0]
    removed += Session.objects.filter(expire_date__lt=now).delete()[0]
    sent = Delivery.objects.exclude(state=DeliveryState.WAITING).filter(finished__lt=now - KEEP)
    return removed + sent.delete()[0]
