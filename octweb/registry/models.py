"""Store trained trees: names, versions, review history and shares."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.db import models

from octweb.core.ownership import CHANGING_ROLES, SEEING_ROLES, Deletable, OwnedQuerySet, list_indexes


class State(models.TextChoices):
    """Review state of a model."""

    DRAFT = "draft", "Draft"
    IN_REVIEW = "in_review", "In review"
    APPROVED = "approved", "Approved"
    REJECTED = "rejected", "Rejected"
    RETIRED = "retired", "Retired"


class Family(models.Model):
    """The name under which versions of a model are served.

    Owners choose the names of their drafts freely. A name becomes `public`, and therefore unique, with the first
    approved version.
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
    """Queryset of models, with filters by who may see or call them."""

    def approved(self) -> TreeModelQuerySet:
        """Return the approved models, which all users may call."""
        return self.filter(state=State.APPROVED)

    def served(self) -> TreeModelQuerySet:
        """Return served versions, newest first. The first one of a name is its default version."""
        return self.approved().filter(served_since__isnull=False).order_by("-served_since", "-version")

    def callable_by(self, user: Any) -> TreeModelQuerySet:
        """Return approved models, those of the user and the user's teams, and those shared for calls; all for staff."""
        return self._shared_with(user, (ShareLevel.CALL,))

    def readable_by(self, user: Any) -> TreeModelQuerySet:
        """Return the models that the user may call, and those shared for reading."""
        return self._shared_with(user, (ShareLevel.READ, ShareLevel.CALL))

    def with_records_for(self, user: Any) -> TreeModelQuerySet:
        """Return the models whose records of decisions the user may read: all for staff.

        Deleted ones are included, except those that are only shared.
        """
        if not user.is_authenticated or user.is_staff:
            return self.open_to(user, CHANGING_ROLES)
        shared = Share.objects.filter(user=user, records=True).values("model")
        return self.filter(self.condition_of(user, CHANGING_ROLES) | models.Q(pk__in=shared, deleted_at=None))

    def _shared_with(self, user: Any, levels: Collection[Any]) -> TreeModelQuerySet:
        if not user.is_authenticated:
            return self.none()
        if user.is_staff:
            return self.kept()
        shared = Share.objects.filter(user=user, level__in=levels).values("model")
        own = self.condition_of(user, SEEING_ROLES)
        return self.kept().filter(own | models.Q(state=State.APPROVED) | models.Q(pk__in=shared))


class ShareLevel(models.TextChoices):
    """Permissions that a share grants."""

    READ = "read", "Read"
    CALL = "call", "Read and call"


class Recording(models.TextChoices):
    """Extent to which the answers of an approved model are recorded."""

    COUNTS = "counts", "Counts only"
    FULL = "full", "A record of each answer"


class Doubt(models.TextChoices):
    """Reason why pages do not repeat the claim of a model file."""

    PENDING = "pending", "To be checked again"
    REFUTED = "refuted", "Refuted by a check"
    OPEN = "open", "Not confirmed"


class TreeModel(Deletable):
    """A trained tree: one version of a name. `document` is the model file, verbatim."""

    TEAM_PATH = "team"

    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="versions")
    version = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    dataset = models.ForeignKey(
        "datasets.Dataset", null=True, blank=True, on_delete=models.SET_NULL, related_name="models"
    )
    # at first that of the data set
    team = models.ForeignKey("core.Team", null=True, blank=True, on_delete=models.PROTECT, related_name="models")
    method = models.CharField(max_length=50)
    state = models.CharField(max_length=20, choices=State, default=State.DRAFT)
    # since this time, callers can reach the model by name; the default version of a name is the one served last
    served_since = models.DateTimeField(null=True, blank=True, editable=False)
    # columns of the data set that training did not use; callers may still send them
    ignored = models.JSONField(default=list, blank=True)
    recording = models.CharField(max_length=10, choices=Recording, default=Recording.COUNTS, editable=False)
    # days after which records of its decisions are erased; None: RECORD_KEEP_DAYS
    keep_days = models.PositiveIntegerField(null=True, blank=True, editable=False)
    document = models.TextField()
    sha256 = models.CharField(max_length=64)
    # set if a check refuted the file, or if a bug, now fixed, may have caused its claim
    doubt = models.CharField(max_length=10, choices=Doubt, blank=True, default="", editable=False)
    # copied from the document, so that lists can show and filter them
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
        indexes = list_indexes("team", "state")
        constraints = [models.UniqueConstraint(fields=["family", "version"], name="one_model_a_version")]

    def __str__(self) -> str:
        return f"{self.family.name} version {self.version}"

    @property
    def days_of_records(self) -> int:
        """Days after which records of its decisions are erased."""
        return int(settings.RECORD_KEEP_DAYS if self.keep_days is None else self.keep_days)


class ReviewEvent(models.Model):
    """A step in the history of a model: who, when and why. It never changes.

    If the state stays, the step concerned the served name, and `reason` describes it. In review, it was the first of
    two approvals.
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
        """Name of the step, in one or two words."""
        if self.before == State.IN_REVIEW and self.after == State.DRAFT:
            return "Taken back" if self.by_id == self.model.owner_id else "Asked back"
        if self.before == self.after == State.IN_REVIEW:
            return "First approval"
        return "Served name" if self.before == self.after else self.get_after_display()


class Share(models.Model):
    """Access to a model for another user, independent of the review."""

    model = models.ForeignKey(TreeModel, on_delete=models.CASCADE, related_name="shares")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    level = models.CharField(max_length=10, choices=ShareLevel, default=ShareLevel.READ)
    records = models.BooleanField(default=False)  # the user may also read the records of its decisions
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["user__username"]
        constraints = [models.UniqueConstraint(fields=["model", "user"], name="one_share_a_person")]

    def __str__(self) -> str:
        return f"{self.model_id} for {self.user_id}"
