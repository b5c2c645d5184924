"""Queue comparisons of imported trees with the best tree of their size."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from rest_framework.exceptions import ValidationError

from octweb.checking.models import Comparison
from octweb.jobs import queue
from octweb.jobs.models import FINISHED
from octweb.registry.models import TreeModel
from trainer.convert.rival import DEEPEST
from trainer.convert.source import METHOD

KEPT = timedelta(days=30)  # results need not last, because anyone can repeat a comparison at any time
USUAL_SECONDS = 60
NO_ROWS = (
    "The data set of this tree was deleted, so there are no rows to compare on. "
    "Bring back the data set, or bring the tree again with another one."
)


def is_brought(model: TreeModel) -> bool:
    """Return whether the tree was imported. A tree trained here has its own claim."""
    return model.method == METHOD


def has_rows(model: TreeModel) -> bool:
    """Return whether the data set of the tree still exists."""
    return model.dataset is not None and model.dataset.deleted_at is None and bool(model.dataset.file)


def is_deep(model: TreeModel) -> bool:
    """Return whether the tree is too deep for proofs. The search may then find a better tree, but proves nothing."""
    return model.depth > DEEPEST


def longest() -> int:
    """Return the longest time limit of a comparison on this server, in seconds."""
    return int(settings.MAX_TRAINING_SECONDS)


def time_limit(seconds: int | None) -> int:
    """Return the time limit of a search in seconds, for None the usual one. Raises ValidationError if out of range."""
    limit = min(USUAL_SECONDS, longest()) if seconds is None else seconds
    if not 1 <= limit <= longest():
        raise ValidationError({"seconds": f"The search may take 1 to {longest():,} seconds; you asked for {limit:,}."})
    return limit


def start(*, owner: Any, model: TreeModel, seconds: int | None = None) -> Comparison:
    """Queue a comparison, or return the queued one.

    `seconds` is the time limit of the search. Raises Conflict, and ValidationError if the tree cannot be compared or
    the limit is out of range.
    """
    if not is_brought(model):
        raise ValidationError(
            {
                "model": "Only a tree that you brought from another program can be compared. This one was trained here: see its own claim."
            }
        )
    if not has_rows(model):
        raise ValidationError({"model": NO_ROWS})
    return queue.only_one(Comparison, owner=owner, model=model, seconds=time_limit(seconds))


def latest(model: TreeModel) -> Comparison | None:
    """Return the last comparison of a model, whatever its status, or None."""
    return Comparison.objects.filter(model=model).order_by("-created").first()


def tidy(now: datetime) -> int:
    """Remove old comparisons, and return how many."""
    removed, _ = Comparison.objects.filter(status__in=FINISHED, finished__lt=now - KEPT).delete()
    return removed
