"""Models of workbenches (editing sessions) and of their steps.

The rows hold the whole state. The process and its worker may die at any moment. The next process then continues from
the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import models

from octweb.core.ownership import Deletable, list_indexes
from octweb.jobs.models import Job
from trainer.methods.capabilities import Role
from trainer.registry import get, method_for
from trainer.workbench.requests import counts_good_trees


class StepKind(models.TextChoices):
    """The kind of request of a step."""

    COMPLETE = "complete", "Best tree with the wishes"
    PRICES = "prices", "Prices of the questions at a place"
    GOOD = "good", "All good trees"
    PROOF = "proof", "Proof of a saved version"


class StepState(models.TextChoices):
    """The status of a step."""

    WAITING = "waiting", "Waiting"
    WORKING = "working", "Searching"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


def countable(dataset: Any, method: str, parameters: Mapping[str, Any]) -> bool:
    """Return whether good trees can be counted with these settings; counts of a source do not show those of costs."""
    of_costs = dataset is not None and bool(dataset.counts) and bool(parameters.get("costs"))
    return counts_good_trees(method, parameters) and not of_costs


class Workbench(Job, Deletable):
    """An editing session on a data set, with a process while a user works on it.

    `position` is the number of the current step, 0 before the first.
    """

    TEAM_PATH = "dataset__team"
    TASK = "octweb.workbench.tasks.edit"
    TIDY = "octweb.workbench.actions.tidy"
    ADVICE = "Ask for less memory or a smaller depth."

    dataset = models.ForeignKey("datasets.Dataset", on_delete=models.PROTECT, related_name="workbenches")
    base = models.ForeignKey(  # editing began with this model
        "registry.TreeModel", null=True, blank=True, on_delete=models.SET_NULL, related_name="workbenches"
    )
    name = models.CharField(max_length=200, blank=True)
    method = models.CharField(max_length=40, default=method_for(Role.ONE_PROVED).id)  # one of `editable_ids()`
    parameters = models.JSONField(default=dict)
    test_share = models.FloatField(default=0.0)
    # Columns with the group, the time and the weight of each row; empty if the file has no such column.
    group = models.CharField(max_length=1000, blank=True)
    time = models.CharField(max_length=1000, blank=True)
    weight = models.CharField(max_length=1000, blank=True)
    position = models.PositiveIntegerField(default=0)
    unseen_looks = models.PositiveIntegerField(default=0)  # how often the user looked at the accuracy on unseen rows
    used = models.DateTimeField(auto_now_add=True)  # time of the last request

    class Meta(Job.Meta):
        abstract = False
        indexes = [*Job.Meta.indexes, *list_indexes("dataset")]
        verbose_name = "workbench"
        verbose_name_plural = "workbenches"

    def longest(self) -> None:
        """Return None: a session has no time limit."""

    @property
    def counts_good_trees(self) -> bool:
        """Whether all good trees can be counted with its method and settings."""
        return countable(self.dataset, self.method, self.parameters)

    @property
    def groups_categories(self) -> bool:
        """Whether a split may keep several categories together."""
        support = get(self.method).workbench
        return support is not None and support.groups_categories

    @property
    def title(self) -> str:
        """Name for pages: the title of its model, unless the user named the workbench."""
        return self.base.title if self.base is not None and self.name == self.base.family.name else str(self)

    def __str__(self) -> str:
        return self.name or f"workbench of {self.dataset}"


class Step(models.Model):
    """Request to a workbench: its constraints, its other parameters, and the answer."""

    workbench = models.ForeignKey(Workbench, on_delete=models.CASCADE, related_name="steps")
    number = models.PositiveIntegerField()
    parent = models.PositiveIntegerField(default=0)  # number of the step from which this one was edited
    kind = models.CharField(max_length=10, choices=StepKind)
    wishes = models.JSONField(default=list)
    request = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=StepState, default=StepState.WAITING)
    tries = models.PositiveIntegerField(default=0)
    stop_requested = models.BooleanField(default=False)
    result = models.JSONField(default=dict)
    document = models.TextField(blank=True)  # the model file that the search produced
    error = models.TextField(blank=True)
    created = models.DateTimeField(auto_now_add=True)
    finished = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["workbench", "number"], name="one_step_a_number")]
        indexes = [models.Index(fields=["workbench", "state"])]

    def __str__(self) -> str:
        return f"{self.workbench_id} {self.number}"

    @property
    def is_finished(self) -> bool:
        return self.state in (StepState.DONE, StepState.FAILED)
