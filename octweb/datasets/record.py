"""Build the JSON records stored beside the rows: columns, empty cells and profile."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

from octweb.datasets.choice import ColumnChoice
from trainer.data.build import LoadReport
from trainer.data.changed_form import MOST_WORDS
from trainer.data.empty_report import EmptyReport
from trainer.data.parsing.infer import GuessedColumn
from trainer.data.profile import Profile
from trainer.table import Column, ColumnKind, Labels, Table

SKETCH = 64  # a column's categories are represented by this many digests
MOST_CHARACTERS = 20_000  # limit on the characters of a column's categories, because lists of data sets read them


def column_records(
    guesses: tuple[GuessedColumn, ...], table: Table, target: str, choice: ColumnChoice
) -> list[dict[str, Any]]:
    """Return a record for each column of the file: name, kind, missing policy, unit, role, reason for the kind."""
    used = {schema.name: schema for schema in table.schema}
    records = []
    for guess in guesses:
        schema = used.get(guess.name, guess.schema)
        role = "feature" if guess.name in used else "ignored"
        if guess.name == target:
            role = "target"
        chosen = guess.name in (choice.kinds or {}) and (choice.kinds or {})[guess.name] != guess.schema.kind
        record = (
            schema.to_json()
            | schema.contract_json()
            | {
                "unit": schema.unit,
                "role": role,
                "reason": "chosen by you" if chosen else guess.reason,
                "guessed": str(guess.schema.kind),
                "empty": guess.missing,
                "distinct": guess.distinct,
                "examples": list(guess.examples),
                "constant": guess.constant,
                "identifier": guess.identifier,
            }
        )
        record.pop("categories", None)  # the list can be long, and the rows contain it
        records.append(record)
    return records


def empty_record(report: EmptyReport, labels: Labels) -> dict[str, Any]:
    """Return the report on empty cells as JSON, or an empty dict if no cell is empty."""
    if not report.columns:
        return {}
    return {
        "rows": report.rows,
        "rows_with_empty": report.rows_with_empty,
        "classes": list(labels.classes),
        "columns": [asdict(column) for column in report.columns],
        "patterns": [{"columns": list(columns), "rows": rows} for columns, rows in report.patterns],
        "other_rows": report.other_rows,
    }


def word_record(column: Column) -> dict[str, Any]:
    """Return the categories of a column with their row counts, for the comparison with a later version.

    If there are many categories, or long ones, return only their `sketch`. Return {} unless the column is categorical.
    """
    if column.kind is not ColumnKind.CATEGORICAL:
        return {}
    codes = column.values[~column.missing].astype(np.int64)
    counts = np.bincount(codes, minlength=len(column.schema.categories)).tolist()
    words = {word: n for word, n in zip(column.schema.categories, counts, strict=True) if n}
    is_short = len(words) <= MOST_WORDS and sum(map(len, words)) <= MOST_CHARACTERS
    return {"words": words} if is_short else {"sketch": sketch(words)}


def sketch(words: Iterable[str]) -> list[int]:
    """Return the smallest digests of the words (bottom-k sketch). Sets with many common words share some of them."""
    digests = {int.from_bytes(hashlib.blake2b(word.encode(), digest_size=6).digest()) for word in words}
    return sorted(digests)[:SKETCH]


def profile_record(profile: Profile, labels: Labels, report: LoadReport, table: Table) -> dict[str, Any]:
    """Return the profile as JSON, with class counts in the order of the labels."""
    counts = labels.counts()
    return {
        "classes": list(labels.classes),
        "class_counts": [int(c) for c in counts],
        "baseline": profile.baseline,
        "majority": labels.classes[int(counts.argmax())],
        "duplicate_rows": int(profile.duplicate_rows),
        "conflicting_rows": int(profile.conflicting_rows),
        "error_floor": float(profile.error_floor),
        "floor_sentence": profile.floor_sentence,
        "constant_columns": list(profile.constant_columns),
        "duplicate_columns": [list(pair) for pair in profile.duplicate_columns],
        "rows_read": report.rows_read,
        "rows_dropped": report.rows_dropped,
        "notes": list(report.notes),
        "columns": [
            {
                "name": c.name,
                "kind": str(c.kind),
                "missing": int(c.missing),
                "distinct": int(c.distinct),
                "zeros": int(c.zeros),
                "minimum": c.minimum,
                "median": c.median,
                "maximum": c.maximum,
                "bars": list(c.bars),
                "histogram": c.histogram.tolist(),
                "cut_accuracy": c.cut_accuracy,
                "cut": c.cut,
                "cut_category": c.cut_category,
                "cut_empty": c.cut_empty,
                "constant": bool(c.constant),
            }
            | word_record(column)
            for c, column in zip(profile.columns, table.columns, strict=True)
        ],
    }
