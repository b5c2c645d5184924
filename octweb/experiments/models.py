"""Store experiments and their candidates. A candidate is a job of the queue."""

from __future__ import annotations

from django.db import models

from octweb.core.ownership import Deletable, list_indexes
from octweb.jobs.models import START_SECONDS, Job, RunStatus
from trainer.data.folds import held_out_of


class Experiment(Deletable):
    """Candidates that are evaluated on the same folds of a data set.

    The recommendation is computed from them, never stored.
    """

    TEAM_PATH = "dataset__team"

    name = models.CharField(max_length=200)
    dataset = models.ForeignKey("datasets.Dataset", on_delete=models.PROTECT, related_name="experiments")
    folds = models.PositiveIntegerField(default=5)
    seed = models.PositiveIntegerField(default=0)
    # share of held-out rows; they are used only to evaluate the tree that was chosen
    test_share = models.FloatField(default=0.0)
    # columns of the file with the group and the time of each row; empty if there are none
    group = models.CharField(max_length=1000, blank=True)
    time = models.CharField(max_length=1000, blank=True)
    weight = models.CharField(max_length=1000, blank=True)  # column with the weight of each row; empty if there is none
    # whether every pair of folds is left out as well; for few rows, because then none are held out
    nested = models.BooleanField(default=False)
    time_limit = models.FloatField(default=60.0)  # seconds per fit
    skipped = models.JSONField(default=list)  # excluded methods: {"method", "title", "reason"}
    chosen = models.ForeignKey("Candidate", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    chosen_at = models.DateTimeField(null=True, blank=True)

    class Meta(Deletable.Meta):
        verbose_name = "experiment"
        indexes = list_indexes("dataset")

    def __str__(self) -> str:
        return self.name

    @property
    def fits(self) -> int:
        """Number of trees per candidate, see `fits_of`."""
        return fits_of(self.folds, self.nested)

    @property
    def held_out_rows(self) -> int:
        """Number of held-out rows, stratified by class as in training. Approximate with groups or times."""
        if self.group or self.time:
            return round(self.test_share * self.dataset.rows)
        return sum(held_out_of(rows, self.test_share) for rows in self.dataset.profile.get("class_counts", ()))


def fits_of(folds: int, nested: bool) -> int:
    """Return the number of trees per candidate: one on all training rows, one per fold and, if nested, one per pair."""
    return folds + (folds * (folds - 1) // 2 if nested else 0) + 1


class Candidate(Job):
    """A method with its settings, which a worker evaluates on the folds.

    `records` has a record per finished fold or pair of folds. `document` is the tree on all training rows.
    """

    TEAM_PATH = "experiment__dataset__team"
    TASK = "octweb.experiments.tasks.try_candidate"
    ADVICE = "Try a smaller depth."
    TIDY = "octweb.experiments.actions.tidy"

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="candidates")
    number = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    method = models.CharField(max_length=50)
    parameters = models.JSONField(default=dict)
    records = models.JSONField(default=list)
    trees = models.JSONField(default=dict)  # fold → nodes of its tree; empty once `document` contains the trees
    document = models.TextField(blank=True)
    # how often a user's job preempted this candidate
    gave_way = models.PositiveIntegerField(default=0)
    model = models.ForeignKey("registry.TreeModel", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    retrained = models.ForeignKey(
        "runs.TrainingRun", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta(Job.Meta):
        abstract = False
        ordering = ["number"]
        verbose_name = "candidate"

    def __str__(self) -> str:
        return self.name

    @property
    def urgency(self) -> int:
        """Urgency in the queue. Started candidates precede new ones."""
        return 1 if self.records else 0

    @property
    def deaths(self) -> int:
        return self.attempt - self.gave_way

    @property
    def fit_seconds(self) -> float:
        """Time limit of one fit, in seconds."""
        return float(self.parameters.get("time_limit") or self.experiment.time_limit)

    @property
    def lets_pass(self) -> bool:
        return True

    @classmethod
    def held(cls) -> tuple[str, str]:
        return "fit of an experiment", "fits of experiments"

    def longest(self) -> float:
        """Return the maximum seconds until it can be preempted: start and one fit."""
        return START_SECONDS + 1.1 * self.fit_seconds

    @property
    def was_tried(self) -> bool:
        """Whether the evaluation has ended by itself, with or without a tree."""
        return self.status in (RunStatus.SUCCEEDED, RunStatus.FAILED)

    @property
    def is_done(self) -> bool:
        """Whether all folds are evaluated and the tree exists."""
        return self.status == RunStatus.SUCCEEDED
