"""Django app that records decisions: collected, chained, audited, exported and erased."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from rest_framework.serializers import Serializer

    from octweb.registry.models import TreeModel
    from octweb.registry.page.scene import ModelScene


class DecisionsConfig(AppConfig):
    name = "octweb.decisions"

    def ready(self) -> None:
        from django.db.models.signals import pre_delete

        from octweb.core.unavailable import FACTS
        from octweb.decisions.mode import MODE
        from octweb.jobs.signals import beside
        from octweb.life.parts import LifePart, register_part
        from octweb.life.signals import outcomes_due
        from octweb.registry.page.mode import register_mode

        register_mode(MODE, after="life")
        register_part(
            LifePart(
                name="records",
                place=2,
                template="decisions/_life.html",
                record=_record,
                serializer=_serializer,
                context=_context,
            )
        )
        beside.connect(_on_beside, dispatch_uid="decisions")
        outcomes_due.connect(_on_outcomes_due, dispatch_uid="decisions")
        FACTS["oldest_record_seconds"] = _oldest_record_seconds
        pre_delete.connect(_keep_recorded, sender="registry.TreeModel", dispatch_uid="decisions")


# these functions import when they are called; training processes never call them, and start faster without the imports
def _on_beside(sender: Any, **_: Any) -> None:
    from octweb.decisions.collecting import collect_due
    from octweb.decisions.replaying import replay_daily

    collect_due()
    replay_daily(datetime.now(UTC))


def _on_outcomes_due(sender: Any, model: TreeModel, watching: Any, last: date, **_: Any) -> None:
    from octweb.decisions.due_outcomes import count_due_outcomes

    count_due_outcomes(model, watching, last)


def _record(model: TreeModel, now: datetime) -> Mapping[str, Any] | None:
    from octweb.decisions.standing import standing_record

    return standing_record(model, now)


def _serializer() -> Serializer:
    from octweb.decisions.standing import StandingSerializer

    return StandingSerializer(allow_null=True, help_text="null: no answer is or was recorded")


def _context(scene: ModelScene) -> Mapping[str, Any]:
    from octweb.decisions.standing import standing_context

    return standing_context(scene)


def _oldest_record_seconds() -> float:
    from octweb.decisions.waiting import oldest_record_seconds

    return oldest_record_seconds()


def _keep_recorded(sender: Any, instance: Any, **_: Any) -> None:
    """Raise ProtectedError while a recorded decision needs the file of the model. A purge then skips the model."""
    from django.db.models import ProtectedError

    from octweb.decisions.models import ChainEntry, Kind

    if ChainEntry.objects.filter(model=instance.pk, kind=Kind.DECISION).exclude(payload="").order_by().exists():
        raise ProtectedError("Decisions on record name this model.", {instance})
