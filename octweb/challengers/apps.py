"""Challengers: models that answer the rows of an approved model silently."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from rest_framework.serializers import Serializer

    from octweb.registry.hooks import NamedChallenger
    from octweb.registry.models import TreeModel
    from octweb.registry.page.scene import ModelScene


class ChallengersConfig(AppConfig):
    name = "octweb.challengers"

    def ready(self) -> None:
        from octweb.decisions.signals import decisions_erased, outcomes_recorded
        from octweb.jobs.signals import beside
        from octweb.life.parts import LifePart, register_part
        from octweb.registry.hooks import register_challenger

        register_challenger(_challenger_of)
        beside.connect(_on_beside, dispatch_uid="challengers")
        outcomes_recorded.connect(_on_outcomes, dispatch_uid="challengers")
        decisions_erased.connect(_on_erased, dispatch_uid="challengers")
        register_part(
            LifePart(
                name="challenger",
                place=1,
                template="challengers/_challenger.html",
                record=_record,
                serializer=_serializer,
                context=_context,
            )
        )
        register_part(
            LifePart(
                name="price",
                place=3,
                template="challengers/_price.html",
                record=_price_record,
                serializer=_price_serializer,
                context=_price_context,
            )
        )


# These functions import when they are called. Training processes never call them, and start faster without the imports.
def _challenger_of(model: TreeModel) -> NamedChallenger | None:
    from octweb.challengers.actions import named_challenger

    return named_challenger(model)


def _on_beside(sender: Any, **_: Any) -> None:
    from octweb.challengers.following import follow_due
    from octweb.challengers.price import look_for_due

    follow_due()
    look_for_due()


def _on_outcomes(sender: Any, labels: Mapping[Any, int], **_: Any) -> None:
    from octweb.challengers.following import keep_outcomes

    keep_outcomes(labels)


def _on_erased(sender: Any, decisions: Any, **_: Any) -> None:
    from octweb.challengers.following import delete_erased

    delete_erased(decisions)


def _record(model: TreeModel, now: datetime) -> Mapping[str, Any] | None:
    from octweb.challengers.record import challenger_record

    return challenger_record(model, now)


def _serializer() -> Serializer:
    from octweb.challengers.api import ChallengerSerializer

    return ChallengerSerializer(allow_null=True, help_text="the model that answers the same rows silently")


def _context(scene: ModelScene) -> Mapping[str, Any]:
    from octweb.challengers.page import page_context

    return page_context(scene)


def _price_record(model: TreeModel, now: datetime) -> Mapping[str, Any] | None:
    from octweb.challengers.price import price_record

    return price_record(model)


def _price_serializer() -> Serializer:
    from octweb.challengers.price_api import PriceSerializer

    return PriceSerializer(
        allow_null=True, help_text="how much more often the best tree of the size would have been right"
    )


def _price_context(scene: ModelScene) -> Mapping[str, Any]:
    from octweb.challengers.page import price_context

    return price_context(scene)
