"""Change the watches of a model on behalf of users, for pages and API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from rest_framework.exceptions import ValidationError

from octweb.audit import actions as audit
from octweb.core.problems import Conflict
from octweb.life.looking import watch_model
from octweb.life.models import Alarm, Watching
from octweb.life.watches import first_day, watches_of
from octweb.registry.models import State, TreeModel

MAX_REASON = 5000


def look_now(model: TreeModel) -> list[Alarm]:
    """Evaluate an approved model, and return the new alarms. Raises Conflict if it is not approved."""
    if model.state != State.APPROVED:
        raise Conflict(
            f"{model} is {model.get_state_display().lower()}; only an approved model is watched. Have it approved first."
        )
    return watch_model(model, timezone.now())


def close_alarm(model: TreeModel, number: int, *, by: Any, reason: str) -> Alarm:
    """Close an alarm, record the reason, and return the alarm. Its watch starts again on the next day.

    Raises ValidationError without a reason or for an unknown alarm, and Conflict if it is closed already.
    """
    reason = reason.strip()[:MAX_REASON]
    if not reason:
        raise ValidationError({"reason": "Say what was done: the reason becomes a record."})
    with transaction.atomic():
        audit.hold()
        alarm = Alarm.objects.select_for_update().filter(model=model, pk=number).first()
        if alarm is None:
            raise ValidationError({"alarm": f"{model} has no alarm {number}. Take a number from its list of alarms."})
        if alarm.closed_at is not None:
            raise Conflict(f"The alarm of {alarm.watch} is closed already, so its reason stays as it is.")
        alarm.closed_at = timezone.now()
        alarm.closed_by = by
        alarm.reason = reason
        alarm.save(update_fields=["closed_at", "closed_by", "reason"])
        audit.record(
            "alarm closed",
            model,
            by=by,
            watch=alarm.watch,
            found=alarm.found.isoformat(),
            alarm=alarm.pk,
            reason=reason,
        )
    return alarm


def set_limit(model: TreeModel, watch: str, share: float | None, *, by: Any) -> None:
    """Set the largest share of a watch, or remove the limit (None). Raises ValidationError.

    A new limit applies from the next day on, because it may have been chosen after seeing the counts so far.
    """
    start = first_day(model, datetime.now(UTC).date())
    known = [] if start is None else [candidate.id for candidate in watches_of(model, start)]
    if watch not in known:
        raise ValidationError({"watch": f"'{watch[:60]}' is not watched. Watched are: {', '.join(known) or 'none'}."})
    if share is not None and not 0 < share < 1:
        raise ValidationError({"share": f"{share:g} is not a share between 0 and 1. Write 0.35 for 35 %."})
    with transaction.atomic():
        audit.hold()
        watching, _ = Watching.objects.select_for_update().get_or_create(model=model)
        watching.limits.pop(watch, None)
        if share is not None:
            since = datetime.now(UTC).date() + timedelta(days=1)
            watching.limits[watch] = {"share": share, "since": since.isoformat()}
        watching.save(update_fields=["limits"])
        audit.record("limit set", model, by=by, watch=watch, share="none" if share is None else repr(share))
