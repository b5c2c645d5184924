"""Erase rows of a data set on behalf of a user, for pages and API."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from octweb.core.problems import Conflict
from octweb.datasets import erasing
from octweb.datasets.models import Dataset
from octweb.jobs.models import FINISHED
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
    Conflict if runs on one of these versions have not ended.
    """
    having = erasing.versions_with(dataset, numbers, by=by)
    if remove:
        _refuse_unfinished(having)
    models = trained_models(uses_of(having))
    version = erasing.without_rows(dataset, numbers, by=by, why=why)
    versions = list(having)
    if remove:
        for one in versions:
            erasing.remove_rows(one, by=by, why=why)
    return Erasure(
        version=version, models=models, removed=versions if remove else [], remaining=[] if remove else versions
    )


def _refuse_unfinished(versions: Collection[Dataset]) -> None:
    for version in versions:
        if version.runs.exclude(status__in=FINISHED).exists():
            raise Conflict(f"Runs on {version} have not ended. Stop them, or wait, and erase again.")
