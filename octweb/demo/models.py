"""Store visits: one-day accounts without a password."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Visit(models.Model):
    """A visit to the demo.

    Its row outlives a deleted account until the day ends, because it counts against the limits.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="visit"
    )
    begun = models.DateTimeField(db_index=True)
    until = models.DateTimeField(db_index=True)
    # keyed hash of the visitor's address; the address itself is not stored
    origin = models.CharField(max_length=64, db_index=True)
    session = models.CharField(max_length=40, blank=True)

    def __str__(self) -> str:
        return f"visit until {self.until:%Y-%m-%d %H:%M}"
