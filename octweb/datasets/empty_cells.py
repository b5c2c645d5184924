"""Empty cells: which rows they cost, and the one switch that keeps them as a category of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from octweb.datasets import actions
from octweb.datasets.choice import Choice
from octweb.datasets.models import Dataset
from trainer.data.infer import GuessedColumn
from trainer.table import Kind, MissingPolicy

TWO = 2


@dataclass(frozen=True, kw_only=True)
class Empties:
    """Rows that empty cells leave out, of all that were read, and the columns that could keep them as a category."""

    dropped: int
    read: int
    columns: tuple[str, ...]
    numbers: tuple[str, ...]  # columns of numbers with empty cells, which have no category for them


def of(dataset: Dataset) -> Empties | None:
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
    found = of(dataset)
    if found is None or not found.columns:
        return dataset
    kinds = dict.fromkeys(found.columns, Kind.CATEGORICAL)
    return actions.update(
        dataset, choice=Choice(kinds=kinds, missing=dict.fromkeys(found.columns, MissingPolicy.CATEGORY))
    )


def everywhere(choice: Choice, guesses: Iterable[GuessedColumn]) -> Choice:
    """The choice with empty as a category in every column with empty cells that can have one."""
    kinds, missing = dict(choice.kinds or {}), dict(choice.missing or {})
    for guess in guesses:
        record = {"kind": kinds.get(guess.name, guess.schema.kind), "distinct": guess.distinct}
        if guess.missing and guess.name not in (choice.ignore or ()) and _has_categories(record):
            kinds[guess.name], missing[guess.name] = Kind.CATEGORICAL, MissingPolicy.CATEGORY
    return replace(choice, kinds=kinds, missing=missing)


def _has_categories(record: Mapping[str, Any]) -> bool:
    """Columns of categories and columns of two values: as categories these ask the same question."""
    return record["kind"] == Kind.CATEGORICAL or int(record.get("distinct") or 0) <= TWO
