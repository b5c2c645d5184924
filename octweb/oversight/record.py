"""Build the records of oversight: of one model, and the inventory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import QuerySet, Sum
from django.utils import timezone

from octweb.core.tally import ROWS
from octweb.life.models import DailyCount
from octweb.oversight.due import DueReason, due_reasons, only_due, oversight_of, reasons_of, with_triggers
from octweb.oversight.models import Oversight
from octweb.registry.models import State, TreeModel

COUNTED_DAYS = 28


def oversight_record(model: TreeModel, now: datetime) -> dict[str, Any]:
    """Return what is stated about a model, its last review, and why it is due."""
    reasons = due_reasons(model, timezone.localtime(now).date())
    return _stated(oversight_of(model)) | {"due": [_reason(reason) for reason in reasons]}


def inventory_models(user: Any, *, due: bool, today: date) -> QuerySet[Any]:
    """Return approved and retired models of the user, or of everybody for administrators; with `due`, those due."""
    models = TreeModel.objects.visible_to(user).filter(state__in=(State.APPROVED, State.RETIRED))
    models = with_triggers(models.select_related("family", "owner", "oversight__reviewed_by").defer("document"))
    return only_due(models, today) if due else models


def inventory_rows(models: Sequence[Any], today: date) -> list[dict[str, Any]]:
    """Return a record for each model of `inventory_models`, with its decisions of the last COUNTED_DAYS."""
    counts = (
        DailyCount.objects.filter(
            model__in=[m.pk for m in models], kind=ROWS, day__gt=today - timedelta(days=COUNTED_DAYS)
        )
        .order_by()
        .values_list("model")
        .annotate(Sum("number"))
    )
    decisions = dict(counts)
    return [_row(model, decisions.get(model.pk, 0), today) for model in models]


def _row(model: Any, decisions: int, today: date) -> dict[str, Any]:
    stated = getattr(model, "oversight", None) or Oversight(model=model)
    return {
        "id": model.pk,
        "name": model.family.name,
        "version": model.version,
        "title": model.title,
        "state": model.state,
        "served": model.served_since is not None,
        "owner": model.owner.get_username(),
        "decisions": decisions,
        **_stated(stated),
        "due": [_reason(reason) for reason in reasons_of(model, today)],
    }


def _stated(oversight: Oversight) -> dict[str, Any]:
    by = oversight.reviewed_by
    return {
        "purpose": oversight.purpose,
        "exposure": oversight.exposure,
        "consequence": oversight.consequence,
        "tier": oversight.tier,
        "review_on": oversight.review_on,
        "review_days": oversight.review_days,
        "outcome_days": oversight.outcome_days,
        "reviewed_at": oversight.reviewed_at,
        "reviewed_by": None if by is None else by.get_username(),
        "finding": oversight.finding,
    }


def _reason(reason: DueReason) -> dict[str, Any]:
    return {"kind": reason.kind, "since": reason.since, "sentence": reason.sentence}
