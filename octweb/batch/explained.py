"""How the rows of a file are explained for its owner: in the units that this person may see, with what the model's owner allows to change."""

from __future__ import annotations

from django.conf import settings

from octweb.batch.models import BatchPrediction
from octweb.registry import units
from octweb.registry.explaining import may_see_rows
from trainer.explain.columns import Wishes

SHARE = (
    0.6  # of the time of the job; the rest is for reading, for rows that are not explained any more, and for storing
)


def wishes_of(job: BatchPrediction) -> Wishes:
    """What the process that predicts is told; units are rounded for who may not see the training rows."""
    known, source = units.statistics_of(job.model, inside=may_see_rows(job.owner, job.model))
    change = dict(units.MARKS(job.model))
    return Wishes(statistics=known, source=source, change=change, seconds=SHARE * settings.MAX_BATCH_SECONDS)
