"""Store the sample tables as data sets of a user."""

from __future__ import annotations

import io
from typing import Any

from octweb.datasets import actions
from octweb.datasets.choice import ColumnChoice
from octweb.datasets.models import Dataset
from trainer.data.samples import SAMPLES, csv_text
from trainer.table import ColumnKind


def load(*, owner: Any, slug: str) -> Dataset:
    """Return the sample as a data set of `owner`; store it if there is none yet.

    Raises KeyError for an unknown slug.
    """
    sample = {s.slug: s for s in SAMPLES}[slug]
    existing = Dataset.objects.kept().filter(owner=owner, sample=slug).exclude(file="").first()
    if existing is not None:
        return existing
    content = io.BytesIO(csv_text(sample).encode())
    choice = ColumnChoice(target=sample.target, kinds=dict.fromkeys(sample.categorical, ColumnKind.CATEGORICAL))
    return actions.create(
        owner=owner,
        file=content,
        source_name=f"{slug}.csv",
        name=sample.title,
        choice=choice,
        before_store=lambda made: setattr(made, "sample", slug),
    )
