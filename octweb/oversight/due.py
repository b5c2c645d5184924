"""Find models that are due for a review: by date, by an open alarm, or by a later version of their data."""

from __future__ import annotations

from datetime import date
from typing import Any, NamedTuple

from django.db.models import DateTimeField, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from octweb.datasets.models import Dataset
from octweb.life.models import Alarm
from octweb.life.words import day_text
from octweb.oversight.models import Oversight
from octweb.registry.models import State, TreeModel

MAX_LATER = 10  # limit on the later versions of the training data that are searched; each makes the model due


class DueReason(NamedTuple):
    """A reason why a model is due: its kind (date, alarm or data), its first day, and a sentence."""

    kind: str
    since: date
    sentence: str


def oversight_of(model: TreeModel) -> Oversight:
    """Return the stored oversight of a model, or an unsaved one without content."""
    return Oversight.objects.select_related("reviewed_by").filter(model=model).first() or Oversight(model=model)


def with_triggers(models: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate models with what makes them due: `review_on`, `alarm_since` and `data_since`, or null.

    Only approved models are due. The date of a data set is that of the first later version since the last review, or
    since the training.
    """
    last = Coalesce(F("oversight__reviewed_at"), F("created"), output_field=DateTimeField())
    alarms = Alarm.objects.filter(model=OuterRef("pk"), closed_at=None).order_by("found").values("found")[:1]
    is_later = Q()
    for n in range(1, MAX_LATER + 1):
        is_later |= Q(**{"__".join(["previous"] * n): OuterRef("dataset")})
    later = Dataset.objects.filter(
        is_later, owner=OuterRef("dataset__owner"), deleted_at=None, created__gt=OuterRef("last")
    )
    return models.annotate(
        last=last,
        review_on=F("oversight__review_on"),
        alarm_since=Subquery(alarms),
        data_since=Subquery(later.order_by("created").values("created")[:1]),
    )


def only_due(models: QuerySet[Any], today: date) -> QuerySet[Any]:
    """Return the approved ones of models `with_triggers` that are due."""
    is_due = Q(review_on__lte=today) | Q(alarm_since__isnull=False) | Q(data_since__isnull=False)
    return models.filter(is_due, state=State.APPROVED)


def reasons_of(model: Any, today: date) -> list[DueReason]:
    """Return why a model of `with_triggers` is due, or []."""
    if model.state != State.APPROVED:
        return []
    reasons = []
    if model.review_on is not None and model.review_on <= today:
        reasons.append(DueReason("date", model.review_on, f"Its review was due on {day_text(model.review_on)}."))
    if model.alarm_since is not None:
        reasons.append(
            DueReason("alarm", model.alarm_since, f"An alarm has been open since {day_text(model.alarm_since)}.")
        )
    if model.data_since is not None:
        day = timezone.localdate(model.data_since)
        reasons.append(DueReason("data", day, f"Its data have had a later version since {day_text(day)}."))
    return reasons


def due_reasons(model: TreeModel, today: date) -> list[DueReason]:
    """Return why a model is due, or []."""
    found = with_triggers(TreeModel.objects.filter(pk=model.pk).defer("document")).first()
    return [] if found is None else reasons_of(found, today)
