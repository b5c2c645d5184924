"""Django app of oversight: purpose, tier and review dates of models, reminders, and the inventory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from rest_framework.serializers import Serializer

    from octweb.registry.models import TreeModel
    from octweb.registry.page.scene import ModelScene


class OversightConfig(AppConfig):
    name = "octweb.oversight"

    def ready(self) -> None:
        from octweb.jobs.signals import beside
        from octweb.life.parts import LifePart, register_part

        beside.connect(_on_beside, dispatch_uid="oversight")
        register_part(
            LifePart(
                name="oversight",
                place=4,
                template="oversight/_oversight.html",
                record=_record,
                serializer=_serializer,
                context=_context,
            )
        )


# These functions import when they are called. Training processes never call them, and start faster without the imports.
def _on_beside(sender: Any, **_: Any) -> None:
    from octweb.oversight.reminding import look_for_due

    look_for_due()


def _record(model: TreeModel, now: datetime) -> Mapping[str, Any]:
    from octweb.oversight.record import oversight_record

    return oversight_record(model, now)


def _serializer() -> Serializer:
    from octweb.oversight.serializers import OversightSerializer

    return OversightSerializer()


def _context(scene: ModelScene) -> Mapping[str, Any]:
    from octweb.oversight.models import Degree

    return {"degrees": Degree.choices}
