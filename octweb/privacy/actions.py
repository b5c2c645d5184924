"""Erase rows of a data set on behalf of a user, for pages and API."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from octweb.datasets import erasing
from octweb.datasets.models import Dataset
from octweb.privacy.training_rows import RowUse, trained_models, uses_of


@dataclass(frozen=True, kw_only=True)
class Erasure:
    """Result of an erasure: the version without the rows, models that trained on them, and versions without their file."""

    version: Dataset
    models: list[RowUse]
    removed: list[Dataset]
    remaining: list[Dataset]


def erase_rows(dataset: Dataset, numbers: Collection[int], *, by: Any, why: str, remove: bool) -> Erasure:
    """Store a version without some rows.

    With `remove`, remove the stored files of all versions that `by` may see and that have one of the rows. Raises DataError, and
    Conflict if jobs that train on one of these versions have not ended. Then nothing is changed.
    """
    having = erasing.versions_with(dataset, numbers, by=by)
    versions = list(having)
    removed = versions if remove else []
    for one in removed:
        erasing.refuse_unfinished(one)  # before the rest is read, which can take long
    models = trained_models(uses_of(having))
    version = erasing.without_rows(dataset, numbers, by=by, why=why, remove=removed)
    return Erasure(version=version, models=models, removed=removed, remaining=[] if remove else versions)
