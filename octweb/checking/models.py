"""Store proof files of models, checks and comparisons."""

from __future__ import annotations

from typing import Any

from django.db import models

from octweb.jobs.models import START_SECONDS, Job

FOLDER = "proofs"  # in the file store


class Proof(models.Model):
    """Proof file of a model's bound, in the file store."""

    model = models.OneToOneField("registry.TreeModel", on_delete=models.CASCADE, related_name="proof")
    file = models.FileField(max_length=200)
    bytes = models.BigIntegerField(default=0)
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return str(self.file.name)


class ModelCheck(Job):
    """A run of the independent checker on a model. Its summary is the JSON of `manage.py verify`."""

    TEAM_PATH = "model__team"
    TASK = "octweb.checking.tasks.check_model"
    TIDY = "octweb.checking.actions.tidy"
    ADVICE = "Check the model on a machine with more memory: download its files."

    model = models.ForeignKey("registry.TreeModel", on_delete=models.CASCADE, related_name="checks")

    class Meta(Job.Meta):
        abstract = False
        verbose_name = "check"

    def __str__(self) -> str:
        return f"check of {self.model_id}"

    @property
    def verdict(self) -> str:
        """Verdict on the whole file, or "" before the check ends."""
        return str(self.summary.get("verdict", ""))

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Lines of the report, each with claim, verdict and detail."""
        return list(self.summary.get("claims", []))


class Comparison(Job):
    """A search for a tree that is better than an imported one of the same size.

    Its summary is the member `compare` of the JSON of `manage.py convert`.
    """

    TEAM_PATH = "model__team"
    TASK = "octweb.checking.tasks.compare_model"
    TIDY = "octweb.checking.comparing.tidy"
    ADVICE = "Compare the tree on a machine with more memory: manage.py convert --compare."

    model = models.ForeignKey("registry.TreeModel", on_delete=models.CASCADE, related_name="comparisons")
    seconds = models.PositiveIntegerField()  # time limit of the search

    class Meta(Job.Meta):
        abstract = False
        verbose_name = "comparison"

    def __str__(self) -> str:
        return f"comparison of {self.model_id}"

    def longest(self) -> float:
        return START_SECONDS + 1.1 * self.seconds

    @property
    def found(self) -> dict[str, Any]:
        """Verdict and numbers as in `trainer.convert.rival.Rival.to_json`. Empty before the search has ended."""
        return dict(self.summary) if "verdict" in self.summary else {}
