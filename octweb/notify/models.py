"""Wish: how a user wants to be told about runs that have ended."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models


def new_secret() -> str:
    """What signs the messages to an address."""
    return secrets.token_hex(16)


class Wish(models.Model):
    """One row per user; without one nothing is sent."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    email = models.BooleanField(default=False)
    webhook = models.URLField(max_length=500, blank=True)
    secret = models.CharField(max_length=64, default=new_secret)
    failures = models.PositiveIntegerField(default=0)  # in a row; too many end the messages to the address
    trouble = models.CharField(max_length=300, blank=True)  # why the last message did not arrive

    def __str__(self) -> str:
        return f"{self.user_id}"
