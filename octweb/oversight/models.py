"""Store purpose, tier and review dates of models."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from octweb.registry.models import TreeModel


class Degree(models.TextChoices):
    """Degree of exposure to a model, or of the consequence of its errors."""

    LOW = "low", "Low"
    MEDIUM = "medium", "Medium"
    HIGH = "high", "High"


POINTS = {Degree.LOW: 0, Degree.MEDIUM: 1, Degree.HIGH: 2}


class Oversight(models.Model):
    """Purpose, tier and review dates of a model, as its owner states them, and the last review."""

    model = models.OneToOneField(TreeModel, on_delete=models.CASCADE, related_name="oversight")
    purpose = models.TextField(blank=True)
    # how much is decided with the model, and how much a wrong decision costs
    exposure = models.CharField(max_length=10, choices=Degree, blank=True)
    consequence = models.CharField(max_length=10, choices=Degree, blank=True)
    review_on = models.DateField(null=True, blank=True, db_index=True)
    review_days = models.PositiveIntegerField(null=True, blank=True)  # days from a review to the next one
    outcome_days = models.PositiveIntegerField(null=True, blank=True)  # days from an answer until its outcome counts
    reviewed_at = models.DateTimeField(null=True, blank=True)
    reviewed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    finding = models.TextField(blank=True)  # result of the last review
    reminded_on = models.DateField(null=True, blank=True)

    def __str__(self) -> str:
        return f"oversight of {self.model_id}"

    @property
    def tier(self) -> int | None:
        """Tier from 1 (most oversight) to 3, by exposure and consequence. None if one of them is not stated."""
        if not (self.exposure and self.consequence):
            return None
        points = POINTS[Degree(self.exposure)] + POINTS[Degree(self.consequence)]
        return max(1, 4 - max(1, points))
