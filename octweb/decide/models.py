"""Model of the owner's guidance on decisions: permitted changes, words for reasons, and public page."""

from __future__ import annotations

import uuid

from django.db import models


class Guidance(models.Model):
    """The guidance of a model, at most one. Without it, every column may change and nothing is public."""

    model = models.OneToOneField(
        "registry.TreeModel", on_delete=models.CASCADE, related_name="guidance", primary_key=True
    )
    # column → permitted change, in the words of trainer.explain.permission
    change = models.JSONField(default=dict, blank=True)
    # Split, as JSON of the model file → the words for its answers "yes" and "no".
    wording = models.JSONField(default=dict, blank=True)
    public = models.BooleanField(default=False)
    # Part of the address of the public page. It is random, so that nobody can guess it or learn anything from it.
    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    purpose = models.TextField(blank=True)
    contact = models.CharField(max_length=300, blank=True)
    # whether the page shows the numbers of training rows, their shares, and the units of changes
    show_training = models.BooleanField(default=False)
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "guidance"

    def __str__(self) -> str:
        return f"guidance of {self.model_id}"
