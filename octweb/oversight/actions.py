"""State purpose, tier and review dates of a model, and record reviews, for pages and API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from rest_framework.exceptions import ValidationError

from octweb.audit import actions as audit
from octweb.core.problems import Conflict
from octweb.oversight.models import Degree, Oversight
from octweb.registry.models import State, TreeModel

MAX_TEXT = 4_000
MAX_DAYS = 3_650  # days to the next review


def state_oversight(model: TreeModel, *, by: Any, values: Mapping[str, Any]) -> Oversight:
    """Set some of purpose, exposure, consequence, review_on, review_days and outcome_days. Return the oversight.

    Only changed values are checked, so a review date that has passed may stay. Raises ValidationError.
    """
    with transaction.atomic():
        audit.hold()
        oversight, _ = Oversight.objects.select_for_update().get_or_create(model=model)
        changed = {name: value for name, value in values.items() if value != getattr(oversight, name)}
        _check(changed)
        for name, value in changed.items():
            setattr(oversight, name, value)
        if "review_on" in changed:
            oversight.reminded_on = None
        oversight.save()
        audit.record(
            "oversight stated",
            model,
            by=by,
            exposure=oversight.exposure,
            consequence=oversight.consequence,
            tier=oversight.tier,
            review_on=_text(oversight.review_on),
            outcome_days=oversight.outcome_days,
        )
    return oversight


def finish_review(model: TreeModel, *, by: Any, finding: str, review_on: date | None = None) -> Oversight:
    """Record the result of a review, and set the date of the next one. Return the oversight.

    Without `review_on`, the next one is `review_days` later, if they are set. Raises ValidationError without a finding
    or for an invalid date, and Conflict if the model is not approved.
    """
    finding = finding.replace("\x00", "").strip()
    if not finding:
        raise ValidationError({"finding": "Say what the review found: it becomes a record."})
    if model.state != State.APPROVED:
        raise Conflict(f"{model} is {model.get_state_display().lower()}; only an approved model is reviewed again.")
    _check({"finding": finding} | ({"review_on": review_on} if review_on else {}))
    today = timezone.localdate()
    with transaction.atomic():
        audit.hold()
        oversight, _ = Oversight.objects.select_for_update().get_or_create(model=model)
        if review_on is None and oversight.review_days:
            review_on = today + timedelta(days=oversight.review_days)
        oversight.reviewed_at = timezone.now()
        oversight.reviewed_by = by
        oversight.finding = finding
        oversight.review_on = review_on
        oversight.reminded_on = None
        oversight.save()
        audit.record("reviewed again", model, by=by, finding=finding, review_on=_text(review_on))
    return oversight


def _check(values: Mapping[str, Any]) -> None:
    """Raise ValidationError for an invalid value."""
    wrong: dict[str, str] = {}
    for name in ("purpose", "finding"):
        if len(values.get(name) or "") > MAX_TEXT:
            wrong[name] = f"This has {len(values[name]):,} characters; the limit is {MAX_TEXT:,}. Shorten it."
    for name in ("exposure", "consequence"):
        if values.get(name) and values[name] not in Degree.values:
            wrong[name] = (
                f"'{str(values[name])[:20]}' is not a degree. Write {', '.join(Degree.values)}, or leave it empty."
            )
    review_on = values.get("review_on")
    today = timezone.localdate()
    if review_on and not today <= review_on <= today + timedelta(days=MAX_DAYS):
        wrong["review_on"] = (
            f"{review_on} is not within the next {MAX_DAYS // 365} years. Name today or a day within them."
        )
    days = values.get("review_days")
    if days is not None and not 1 <= days <= MAX_DAYS:
        wrong["review_days"] = f"{days} is not a number of days from 1 to {MAX_DAYS:,}."
    days = values.get("outcome_days")
    if days is not None and not 0 <= days <= MAX_DAYS:
        wrong["outcome_days"] = f"{days} is not a number of days from 0 to {MAX_DAYS:,}."
    if wrong:
        raise ValidationError(wrong)


def _text(day: date | None) -> str:
    return "" if day is None else day.isoformat()
