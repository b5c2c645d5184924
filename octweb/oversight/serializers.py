"""Serializers of oversight and inventory."""

from __future__ import annotations

from rest_framework import serializers

from octweb.core.api import BodySerializer, StrictTextField
from octweb.oversight.actions import MAX_DAYS, MAX_TEXT
from octweb.registry.models import State


class DueSerializer(serializers.Serializer):
    """A reason why a model is due for a review."""

    kind = serializers.ChoiceField(["date", "alarm", "data"])
    since = serializers.DateField()
    sentence = serializers.CharField()


class OversightSerializer(serializers.Serializer):
    """Purpose, tier and review dates of a model, and why it is due."""

    purpose = serializers.CharField()
    exposure = serializers.CharField(help_text="how much is decided with it: low, medium, high, or empty")
    consequence = serializers.CharField(help_text="how much a wrong decision costs: low, medium, high, or empty")
    tier = serializers.IntegerField(allow_null=True, help_text="1 (most oversight) to 3; null if not stated")
    review_on = serializers.DateField(allow_null=True)
    review_days = serializers.IntegerField(allow_null=True, help_text="from a review to the next one")
    outcome_days = serializers.IntegerField(allow_null=True, help_text="from an answer until its outcome counts")
    reviewed_at = serializers.DateTimeField(allow_null=True)
    reviewed_by = serializers.CharField(allow_null=True)
    finding = serializers.CharField(help_text="of the last review")
    due = DueSerializer(many=True)


class InventorySerializer(OversightSerializer):
    """A model of the inventory."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    title = serializers.CharField()
    state = serializers.ChoiceField(State.choices)
    served = serializers.BooleanField()
    owner = serializers.CharField()
    decisions = serializers.IntegerField(help_text="in the last 28 days")


class StatedSerializer(BodySerializer):
    """Statements of the owner. Members that are left out stay as they are."""

    purpose = StrictTextField(required=False, allow_blank=True, max_length=MAX_TEXT)
    exposure = StrictTextField(required=False, allow_blank=True, max_length=10)
    consequence = StrictTextField(required=False, allow_blank=True, max_length=10)
    review_on = serializers.DateField(required=False, allow_null=True)
    review_days = serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=MAX_DAYS)
    outcome_days = serializers.IntegerField(required=False, allow_null=True, min_value=0, max_value=MAX_DAYS)


class RepeatedReviewSerializer(BodySerializer):
    """Result of a review, and the day of the next one."""

    finding = StrictTextField(max_length=MAX_TEXT)
    review_on = serializers.DateField(required=False, allow_null=True, default=None)
