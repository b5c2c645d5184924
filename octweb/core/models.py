"""Store answers for repeated calls, counts of calls, and who the users of a sign-on service are."""

from __future__ import annotations

from django.conf import settings
from django.db import models


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
