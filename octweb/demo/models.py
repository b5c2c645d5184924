"""Visit: an account for a day, which began without a name or a password."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Visit(models.Model):
    """One visitor's day. The row stays until the day is over, also where the account was deleted before: it counts."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="visit"
    )
    begun = models.DateTimeField(db_index=True)
    until = models.DateTimeField(db_index=True)
    origin = models.CharField(max_length=64, db_index=True)  # a keyed hash of the address; the address is not kept
    session = models.CharField(max_length=40, blank=True)

    def __str__(self) -> str:
        return f"visit until {self.until:%Y-%m-%d %H:%M}"
