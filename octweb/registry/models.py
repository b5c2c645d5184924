"""TreeModel: a trained tree with its certificate, as a version of a family; ReviewEvent: its history, never changed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.db import models

from octweb.core.ownership import Deletable, OwnedQuerySet


class State(models.TextChoices):
    """Where a model stands in its review."""

    DRAFT = "draft", "Draft"
    IN_REVIEW = "in_review", "In review"
    APPROVED = "approved", "Approved"
    REJECTED = "rejected", "Rejected"
    RETIRED = "retired", "Retired"


class Family(models.Model):
    """The name under which versions of a model are served.

    Owners name their drafts as they like: a name belongs to one of them only when a version of it was approved (`public`).
    """

    name = models.SlugField(max_length=100)
    public = models.BooleanField(default=False, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    class Meta:
        verbose_name_plural = "families"
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="one_family_a_name_of_an_owner"),
            models.UniqueConstraint(fields=["name"], condition=models.Q(public=True), name="one_public_family_a_name"),
        ]

    def __str__(self) -> str:
        return self.name


class TreeModelQuerySet(OwnedQuerySet):
    """Models by who may see or call them."""

    def approved(self) -> TreeModelQuerySet:
        """Models that everyone with a token may call."""
        return self.filter(state=State.APPROVED)

    def served(self) -> TreeModelQuerySet:
        """Approved versions that were put under their name; of one name the first is the one that answers to it alone."""
        return self.approved().filter(served_since__isnull=False).order_by("-served_since", "-version")

    def callable_by(self, user) -> TreeModelQuerySet:
        """Own models, all approved ones, those shared for calls, and for staff every model."""
        return self._open_to(user, (ShareLevel.CALL,))

    def readable_by(self, user) -> TreeModelQuerySet:
        """Those that the user may call, and those shared for reading alone."""
        return self._open_to(user, (ShareLevel.READ, ShareLevel.CALL))

    def _open_to(self, user, levels: Collection[Any]) -> TreeModelQuerySet:
        if not user.is_authenticated:
            return self.none()
        if user.is_staff:
            return self.kept()
        shared = Share.objects.filter(user=user, level__in=levels).values("model")
        return self.kept().filter(models.Q(owner=user) | models.Q(state=State.APPROVED) | models.Q(pk__in=shared))


class ShareLevel(models.TextChoices):
    """What a person may do with a model that was shared with them."""

    READ = "read", "Read"
    CALL = "call", "Read and call"


class Recording(models.TextChoices):
    """What is kept of the answers of an approved model."""

    COUNTS = "counts", "Counts only"
    FULL = "full", "A record of each answer"


class Doubt(models.TextChoices):
    """Why a claim of a model file is not shown as it stands."""

    PENDING = "pending", "To be checked again"
    REFUTED = "refuted", "Refuted by a check"
    OPEN = "open", "Not confirmed"


class TreeModel(Deletable):
    """One trained tree; `document` is the model file, word for word."""

    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="versions")
    version = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    dataset = models.ForeignKey(
        "datasets.Dataset", null=True, blank=True, on_delete=models.SET_NULL, related_name="models"
    )
    method = models.CharField(max_length=50)
    state = models.CharField(max_length=20, choices=State, default=State.DRAFT)
    # since when callers reach it by name; the version of a name that was served last answers to the name without a number
    served_since = models.DateTimeField(null=True, blank=True, editable=False)
    # columns of the data set that took no part in the training: whoever sends whole rows of the file may send them
    ignored = models.JSONField(default=list, blank=True)
    recording = models.CharField(max_length=10, choices=Recording, default=Recording.COUNTS, editable=False)
    document = models.TextField()
    sha256 = models.CharField(max_length=64)
    # set by a check that refutes the file, or where a mended fault of the search may have made its claim
    doubt = models.CharField(max_length=10, choices=Doubt, blank=True, default="", editable=False)
    # copies from the document for lists and filters
    status = models.CharField(max_length=20)
    guarantee = models.CharField(max_length=20)
    objective = models.FloatField()
    bound = models.FloatField(null=True, blank=True)
    gap = models.FloatField(null=True, blank=True)
    train_accuracy = models.FloatField()
    unseen_accuracy = models.FloatField(null=True, blank=True)
    leaves = models.PositiveIntegerField()
    depth = models.PositiveIntegerField()

    objects = TreeModelQuerySet.as_manager()

    class Meta(Deletable.Meta):
        verbose_name = "model"
        constraints = [models.UniqueConstraint(fields=["family", "version"], name="one_model_a_version")]

    def __str__(self) -> str:
        return f"{self.family.name} version {self.version}"


class ReviewEvent(models.Model):
    """A step: who, when, why. The list of them answers what was approved on any day.

    Where the state stays, the step was about the served name, and the reason says what was done; in review it was the first of two approvals.
    """

    model = models.ForeignKey(TreeModel, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(auto_now_add=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    before = models.CharField(max_length=20, choices=State, blank=True)
    after = models.CharField(max_length=20, choices=State)
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.model_id}: {self.before} → {self.after}"

    @property
    def step(self) -> str:
        """What was done, in a word or two."""
        if self.before == State.IN_REVIEW and self.after == State.DRAFT:
            return "Taken back" if self.by_id == self.model.owner_id else "Asked back"
        if self.before == self.after == State.IN_REVIEW:
            return "First approval"
        return "Served name" if self.before == self.after else self.get_after_display()


class Share(models.Model):
    """A model that is open to one more person, whatever its review says."""

    model = models.ForeignKey(TreeModel, on_delete=models.CASCADE, related_name="shares")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    level = models.CharField(max_length=10, choices=ShareLevel, default=ShareLevel.READ)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["user__username"]
        constraints = [models.UniqueConstraint(fields=["model", "user"], name="one_share_a_person")]

    def __str__(self) -> str:
        return f"{self.model_id} for {self.user_id}"
