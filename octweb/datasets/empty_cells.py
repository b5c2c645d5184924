"""Empty cells: which rows they cost, and the one switch that keeps them as a category of their own."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from octweb.core.problems import Busy
from octweb.datasets import actions
from octweb.datasets.choice import ColumnChoice
from octweb.datasets.models import Dataset
from trainer.data.parsing.infer import GuessedColumn
from trainer.errors import DataError
from trainer.table import ColumnKind, MissingPolicy

TWO = 2


@dataclass(frozen=True, kw_only=True)
class Empties:
    """Rows that empty cells leave out, of all that were read, and the columns that could keep them as a category."""

    dropped: int
    read: int
    columns: tuple[str, ...]
    numbers: tuple[str, ...]  # columns of numbers with empty cells, which have no category for them


def describe_switch(dataset: Dataset) -> Empties | None:
    """What the switch would change, or None if no row is left out."""
    dropped = int(dataset.profile.get("rows_dropped") or 0)
    if not dropped:
        return None
    features = [c for c in dataset.columns if c["role"] == "feature" and c.get("empty") and c["missing"] == "drop"]
    return Empties(
        dropped=dropped,
        read=int(dataset.profile.get("rows_read") or dataset.rows + dropped),
        columns=tuple(c["name"] for c in features if _has_categories(c)),
        numbers=tuple(c["name"] for c in features if not _has_categories(c)),
    )


def as_category(dataset: Dataset) -> Dataset:
    """Treat empty as a category in all columns that have categories; the data set keeps its rows. Raises DataError."""
    found = describe_switch(dataset)
    return actions.update(dataset, choice=_category_choice(found.columns)) if found and found.columns else dataset


def foreseen(dataset: Dataset) -> Dataset:
    """A copy of the data set as `as_category` would leave it, for pages that say what the switch changes; stores nothing."""
    found = describe_switch(dataset)
    if not found or not found.columns:
        return dataset
    try:
        described = _described(str(dataset.pk), dataset.sha256, json.dumps(dataset.columns))
    except (DataError, Busy):
        return dataset  # whoever uses the switch is told why
    other = copy.copy(dataset)
    actions.fill(other, copy.deepcopy(described))
    return other


@lru_cache(maxsize=16)
def _described(pk: str, sha256: str, columns: str) -> dict[str, Any]:
    dataset = Dataset.objects.get(pk=pk)
    found = describe_switch(dataset)
    return actions.described(dataset, _category_choice(found.columns if found else ()))


def _category_choice(columns: Sequence[str]) -> ColumnChoice:
    """The choice that makes empty a category of these columns."""
    return ColumnChoice(
        kinds=dict.fromkeys(columns, ColumnKind.CATEGORICAL), missing=dict.fromkeys(columns, MissingPolicy.CATEGORY)
    )


def everywhere(choice: ColumnChoice, guesses: Iterable[GuessedColumn]) -> ColumnChoice:
    """The choice with empty as a category in every column with empty cells that can have one."""
    kinds = dict(choice.kinds or {})
    missing = dict(choice.missing or {})
    for guess in guesses:
        record = {"kind": kinds.get(guess.name, guess.schema.kind), "distinct": guess.distinct}
        if guess.missing and guess.name not in (choice.ignore or ()) and _has_categories(record):
            kinds[guess.name], missing[guess.name] = ColumnKind.CATEGORICAL, MissingPolicy.CATEGORY
    return replace(choice, kinds=kinds, missing=missing)


def _has_categories(record: Mapping[str, Any]) -> bool:
    """Columns of categories and columns of two values: as categories these ask the same question."""
    return record["kind"] == ColumnKind.CATEGORICAL or int(record.get("distinct") or 0) <= TWO
