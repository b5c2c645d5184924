"""Store notification preferences of users, and the queue of their messages."""

from __future__ import annotations

import secrets
import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone


def new_secret() -> str:
    """Return a random secret that signs webhook messages."""
    return secrets.token_hex(16)


class Wish(models.Model):
    """Notification preferences of a user. Without a row, nothing is sent."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    email = models.BooleanField(default=False)
    webhook = models.URLField(max_length=500, blank=True)
    secret = models.CharField(max_length=64, default=new_secret)
    # number of consecutive failures; after MAX_FAILURES, the webhook gets no more messages
    failures = models.PositiveIntegerField(default=0)
    trouble = models.CharField(max_length=300, blank=True)  # why the last message that was given up did not arrive

    def __str__(self) -> str:
        return f"{self.user_id}"


class Way(models.TextChoices):
    """Channel of a message."""

    WEBHOOK = "webhook", "to your address"
    MAIL = "mail", "by e-mail"


class DeliveryState(models.TextChoices):
    """State of a delivery."""

    WAITING = "waiting", "Waiting"
    DELIVERED = "delivered", "Delivered"
    FAILED = "failed", "Failed"


class Delivery(models.Model):
    """A message to one user. The table is the queue: a worker claims a row by moving `due` into the future."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    way = models.CharField(max_length=10, choices=Way)
    message = models.JSONField()
    is_test = models.BooleanField(default=False)  # a test is sent once, without retries
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.WAITING)
    tries = models.PositiveIntegerField(default=0)
    due = models.DateTimeField(default=timezone.now)  # a worker may try it from this time on
    error = models.CharField(max_length=300, blank=True)  # why the last try failed
    created = models.DateTimeField(auto_now_add=True)
    finished = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created", "-id"]
        verbose_name_plural = "deliveries"
        indexes = [models.Index(fields=["state", "due"])]

    def __str__(self) -> str:
        return f"{self.way} {self.id}"

    @property
    def is_waiting(self) -> bool:
        return self.state == DeliveryState.WAITING
