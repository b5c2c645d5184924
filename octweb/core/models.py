"""Store teams, answers for repeated calls, counts of calls, and users of a sign-on service."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models


class TeamRole(models.TextChoices):
    """What a member may do with the objects of a team."""

    OWNER = "owner", "Owner"
    EDITOR = "editor", "Editor"
    READER = "reader", "Reader"
    REVIEWER = "reviewer", "Reviewer"


class Team(models.Model):
    """Users who share data sets and models, and everything made from them."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100, unique=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """The role of a user in a team."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=TeamRole)

    class Meta:
        ordering = ["user__username"]
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="one_role_a_member")]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"


class StoredAnswer(models.Model):
    """The answer to a call with an Idempotency-Key. `status` is null while the call is running."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)  # keyed SHA-256 of the call
    created = models.DateTimeField()
    status = models.PositiveSmallIntegerField(null=True)
    # JSON: the answer, or the id alone of a record about a decision; empty if the answer contains a secret
    body = models.TextField(blank=True)
    location = models.CharField(max_length=400, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "key"], name="one_answer_a_key")]

    def __str__(self) -> str:
        return self.key


class SignOnIdentity(models.Model):
    """A user of an OpenID provider, by issuer and subject, which never change. Names at a provider may."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_on")
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)
    # until then the user's API tokens work without a new sign-in; null: always
    tokens_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="one_user_a_subject")]

    def __str__(self) -> str:
        return self.subject


class RateCount(models.Model):
    """The calls of a caller within a window, over all processes and hosts. Kept until the next window has ended."""

    caller = models.CharField(max_length=64)  # keyed SHA-256
    ends = models.BigIntegerField(db_index=True)  # seconds since 1970
    calls = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["caller", "ends"], name="one_count_a_window")]

    def __str__(self) -> str:
        return f"{self.calls} until {self.ends}"
