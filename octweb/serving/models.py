"""Store API tokens: their digests, names, scopes and expiry."""

from __future__ import annotations

from django.db import models
from knox.models import AbstractAuthToken


class Scope(models.TextChoices):
    """Scope of a token."""

    FULL = "full", "Everything that you may do"
    PREDICT = "predict", "Predictions only"


class ApiToken(AbstractAuthToken):
    """API token. Only its digest and its first characters are stored."""

    name = models.CharField(max_length=100, blank=True)
    scope = models.CharField(max_length=10, choices=Scope, default=Scope.FULL)

    class Meta:
        ordering = ["-created"]

    def __str__(self) -> str:
        return f"{self.name or 'token'} {self.token_key}…"
