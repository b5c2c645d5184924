"""Store challenges, differing answers of challengers, and prices of staying."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from octweb.jobs.models import START_SECONDS, Job
from octweb.registry.models import TreeModel

ABOVE_ALL_RECORDS = 2**62  # a number that no record has


class Challenge(models.Model):
    """A period in which `challenger` also answers each row of `model`, silently."""

    model = models.ForeignKey(TreeModel, on_delete=models.CASCADE, related_name="challenges")
    challenger = models.ForeignKey(TreeModel, on_delete=models.CASCADE, related_name="+")
    since = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    until = models.DateField(null=True, blank=True)  # last day, in UTC
    # an outcome counts once its answer is this many days old
    outcome_days = models.PositiveIntegerField(default=0)
    # number of the last compared record of the chain, or ABOVE_ALL_RECORDS once nothing of an ended challenge is left
    last_number = models.BigIntegerField(default=0)
    ended_at = models.DateTimeField(null=True, blank=True)
    reason = models.TextField(blank=True)  # why the challenge ended

    class Meta:
        ordering = ["-since", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["model"], condition=models.Q(ended_at=None), name="one_running_challenge_a_model"
            ),
            models.UniqueConstraint(
                fields=["challenger"], condition=models.Q(ended_at=None), name="one_running_challenge_a_challenger"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.challenger_id} against {self.model_id}"


class Difference(models.Model):
    """A recorded decision to which the challenger would have given another answer.

    It is deleted when its record is erased.
    """

    challenge = models.ForeignKey(Challenge, on_delete=models.CASCADE, related_name="differences")
    decision = models.UUIDField(db_index=True)
    at = models.BigIntegerField()  # ns since 1970
    leaf = models.IntegerField()  # leaf of the served tree
    answer = models.IntegerField()  # class that the served tree answered
    silent = models.IntegerField()  # class that the challenger would answer, as the served tree numbers classes
    outcome = models.IntegerField(null=True)  # class that came true, by the last outcome on record

    class Meta:
        indexes = [
            # with all columns that the counts read, so that 50,000 differences are counted from the index
            models.Index(
                fields=["challenge", "leaf", "answer", "silent", "outcome", "at"], name="differences_by_outcome"
            ),
        ]
        constraints = [models.UniqueConstraint(fields=["challenge", "decision"], name="one_difference_a_decision")]

    def __str__(self) -> str:
        return f"{self.decision}: {self.answer}, silently {self.silent}"


class StayingPrice(Job):
    """A search for the best tree of a model's size on recorded decisions with a known outcome.

    Its summary is the member `compare` of the JSON of `manage.py convert`, with the counts of the chosen rows.
    """

    TEAM_PATH = "model__team"
    TASK = "octweb.challengers.tasks.find_price"
    TIDY = "octweb.challengers.price.tidy"
    ADVICE = "Ask for fewer days."

    model = models.ForeignKey(TreeModel, on_delete=models.CASCADE, related_name="staying_prices")
    days = models.PositiveIntegerField()
    seconds = models.PositiveIntegerField()  # time limit of the search
    monthly = models.BooleanField(default=False)  # whether a worker starts the next one after PERIOD

    class Meta(Job.Meta):
        abstract = False
        verbose_name = "price of staying"
        verbose_name_plural = "prices of staying"

    def __str__(self) -> str:
        return f"price of staying with {self.model_id}"

    def longest(self) -> float:
        return START_SECONDS + 1.1 * self.seconds
