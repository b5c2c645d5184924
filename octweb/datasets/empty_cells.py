"""Describe empty cells, and offer to keep the rows that have them."""

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

LISTED = 20  # at most this many columns are in the figure


@dataclass(frozen=True, kw_only=True)
class Empties:
    """Number of rows dropped for empty cells, number of rows read, and columns whose empty cells drop rows."""

    dropped: int
    read: int
    columns: tuple[str, ...]


def describe_switch(dataset: Dataset) -> Empties | None:
    """Return what `learn` would change, or None if no row is dropped for an empty cell of a feature."""
    dropped = int(dataset.profile.get("rows_dropped") or 0)
    dropping = [
        c["name"] for c in dataset.columns if c["role"] == "feature" and c.get("empty") and c["missing"] == "drop"
    ]
    if not dropped or not dropping:
        return None
    read = int(dataset.profile.get("rows_read") or dataset.rows + dropped)
    return Empties(dropped=dropped, read=read, columns=tuple(dropping))


def learn(dataset: Dataset) -> Dataset:
    """Keep the rows with empty cells: let each split learn the side for them. Return the data set. Raises DataError."""
    empties = describe_switch(dataset)
    return actions.update(dataset, choice=_learning(empties.columns)) if empties else dataset


def preview_learn(dataset: Dataset) -> Dataset:
    """Return a copy of the data set, changed as `learn` would do it. Stores nothing."""
    if describe_switch(dataset) is None:
        return dataset
    try:
        described = _describe_learned(str(dataset.pk), dataset.sha256, json.dumps(dataset.columns))
    except (DataError, Busy):
        return dataset  # the switch itself will show the reason
    other = copy.copy(dataset)
    actions.fill(other, copy.deepcopy(described))
    return other


@lru_cache(maxsize=16)
def _describe_learned(pk: str, sha256: str, columns: str) -> dict[str, Any]:
    dataset = Dataset.objects.get(pk=pk)
    empties = describe_switch(dataset)
    return actions.describe_with_choice(dataset, _learning(empties.columns if empties else ()))


def _learning(columns: Sequence[str]) -> ColumnChoice:
    """Return the choice in which splits learn the side for empty cells of these columns."""
    return ColumnChoice(missing=dict.fromkeys(columns, MissingPolicy.LEARN))


def set_policy_everywhere(
    choice: ColumnChoice, guesses: Iterable[GuessedColumn], policy: MissingPolicy
) -> ColumnChoice:
    """Return the choice with this missing policy for all features that have empty cells."""
    kinds = choice.kinds or {}
    features = [guess for guess in guesses if guess.name in kinds or not guess.identifier]
    missing = {own.name: policy for own in features if own.missing and own.name not in (choice.ignore or ())}
    return replace(choice, missing={**(choice.missing or {}), **missing})


def card(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the report on empty cells for a page, or None if there is none."""
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
    """Summarise a column. Add the class whose share differs most between its empty and its other cells."""
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
