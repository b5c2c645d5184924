"""Store the owner's guidance on decisions: permitted changes, texts for reasons, and public page."""

from __future__ import annotations

import uuid

from django.db import models


class Guidance(models.Model):
    """Guidance of a model's owner, at most one per model. Without it, every column may change and nothing is public."""

    model = models.OneToOneField(
        "registry.TreeModel", on_delete=models.CASCADE, related_name="guidance", primary_key=True
    )
    # column → permitted change, in the words of trainer.explain.permission
    change = models.JSONField(default=dict, blank=True)
    # split, as JSON of the model file → texts for its answers "yes" and "no"
    wording = models.JSONField(default=dict, blank=True)
    public = models.BooleanField(default=False)
    # part of the public page's address; random, so that nobody can guess it or infer anything from it
    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    purpose = models.TextField(blank=True)
    contact = models.CharField(max_length=300, blank=True)
    # whether the page shows counts and shares of training rows, and the units of changes
    show_training = models.BooleanField(default=False)
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "guidance"

    def __str__(self) -> str:
        return f"guidance of {self.model_id}"
