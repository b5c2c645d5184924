"""Empty cells: which rows they cost, what they say about the class, and the one switch that keeps their rows."""

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
from trainer.table import MissingPolicy

LISTED = 20  # columns of the picture


@dataclass(frozen=True, kw_only=True)
class Empties:
    """Rows that empty cells leave out, of all that were read, and the columns that drop them."""

    dropped: int
    read: int
    columns: tuple[str, ...]


def describe_switch(dataset: Dataset) -> Empties | None:
    """What the switch would change, or None if no row is left out for an empty cell of a feature."""
    dropped = int(dataset.profile.get("rows_dropped") or 0)
    dropping = [
        c["name"] for c in dataset.columns if c["role"] == "feature" and c.get("empty") and c["missing"] == "drop"
    ]
    if not dropped or not dropping:
        return None
    read = int(dataset.profile.get("rows_read") or dataset.rows + dropped)
    return Empties(dropped=dropped, read=read, columns=tuple(dropping))


def learn(dataset: Dataset) -> Dataset:
    """Keep the rows with empty cells: splits learn where these go. Raises DataError."""
    found = describe_switch(dataset)
    return actions.update(dataset, choice=_learning(found.columns)) if found else dataset


def foreseen(dataset: Dataset) -> Dataset:
    """A copy of the data set as `learn` would leave it, for pages that say what the switch changes; stores nothing."""
    if describe_switch(dataset) is None:
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
    return actions.described(dataset, _learning(found.columns if found else ()))


def _learning(columns: Sequence[str]) -> ColumnChoice:
    """The choice that lets splits learn where the empty cells of these columns go."""
    return ColumnChoice(missing=dict.fromkeys(columns, MissingPolicy.LEARN))


def everywhere(choice: ColumnChoice, guesses: Iterable[GuessedColumn], policy: MissingPolicy) -> ColumnChoice:
    """The choice with one policy in every column with empty cells."""
    kinds = choice.kinds or {}
    used = [own for own in guesses if own.name in kinds or not own.identifier]
    missing = {own.name: policy for own in used if own.missing and own.name not in (choice.ignore or ())}
    return replace(choice, missing={**(choice.missing or {}), **missing})


def card(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a page shows of the report on empty cells; None if no cell is empty."""
    if not record:
        return None
    columns = [_column(column, record["classes"]) for column in record["columns"]]
    most = max(pattern["rows"] for pattern in record["patterns"])
    listed = columns[:LISTED]
    return {
        "rows": record["rows"],
        "rows_with_empty": record["rows_with_empty"],
        "complete": record["rows"] - record["rows_with_empty"],
        "columns": columns,
        "telling": [column for column in columns if column["telling"]],
        "listed": listed,
        "unlisted": len(columns) - len(listed),
        "patterns": [
            {
                "rows": pattern["rows"],
                "width": 100 * pattern["rows"] / most,
                "marks": [at in pattern["columns"] for at in range(len(listed))],
                "words": ", ".join(columns[at]["name"] for at in pattern["columns"]),
            }
            for pattern in record["patterns"]
        ],
        "other_rows": record["other_rows"],
    }


def _column(record: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    """A column with the class whose share differs most between its empty cells and the others."""
    empty = record["classes_empty"]
    present = record["classes_present"]
    shares = [(e / max(1, sum(empty)), p / max(1, sum(present))) for e, p in zip(empty, present, strict=True)]
    at = max(range(len(shares)), key=lambda k: abs(shares[k][0] - shares[k][1]))
    return {
        "name": record["name"],
        "empty": record["empty"],
        "label": classes[at],
        "share_empty": shares[at][0],
        "share_present": shares[at][1],
        "all": not sum(present),
        "telling": record["telling"],
    }
