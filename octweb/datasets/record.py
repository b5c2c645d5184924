"""What is kept of a table beside its rows: one record per column, and the profile that pages show."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from octweb.datasets.choice import ColumnChoice
from trainer.data.build import LoadReport
from trainer.data.empty_report import EmptyReport
from trainer.data.parsing.infer import GuessedColumn
from trainer.data.profile import Profile
from trainer.table import Labels, Table


def column_records(
    guesses: tuple[GuessedColumn, ...], table: Table, target: str, choice: ColumnChoice
) -> list[dict[str, Any]]:
    """Name, kind, missing policy, unit, role, and why the kind was guessed, for every column of the file."""
    used = {schema.name: schema for schema in table.schema}
    records = []
    for guess in guesses:
        schema = used.get(guess.name, guess.schema)
        role = "target" if guess.name == target else "feature" if guess.name in used else "ignored"
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
        record.pop("categories", None)  # long, and read again from the rows
        records.append(record)
    return records


def empty_record(found: EmptyReport, labels: Labels) -> dict[str, Any]:
    """The report on empty cells as JSON; empty if no cell is."""
    if not found.columns:
        return {}
    return {
        "rows": found.rows,
        "rows_with_empty": found.rows_with_empty,
        "classes": list(labels.classes),
        "columns": [asdict(column) for column in found.columns],
        "patterns": [{"columns": list(columns), "rows": rows} for columns, rows in found.patterns],
        "other_rows": found.other_rows,
    }


def profile_record(found: Profile, labels: Labels, report: LoadReport) -> dict[str, Any]:
    """The profile as JSON; `classes` in the order of the labels."""
    counts = labels.counts()
    return {
        "classes": list(labels.classes),
        "class_counts": [int(c) for c in counts],
        "baseline": found.baseline,
        "majority": labels.classes[int(counts.argmax())],
        "duplicate_rows": int(found.duplicate_rows),
        "conflicting_rows": int(found.conflicting_rows),
        "error_floor": float(found.error_floor),
        "floor_sentence": found.floor_sentence,
        "constant_columns": list(found.constant_columns),
        "duplicate_columns": [list(pair) for pair in found.duplicate_columns],
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
            for c in found.columns
        ],
    }
