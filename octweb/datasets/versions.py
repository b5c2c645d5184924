"""A new version of a data set: another file with the same columns, read in the same way, and what is different in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from octweb.datasets import actions
from octweb.datasets.choice import ReadOptions, choice_of
from octweb.datasets.models import Dataset
from trainer.tree.numbers import points_text

POINTS = 0.01  # shares of classes, and of empty cells, that differ by less are not worth a line
AS_BEFORE = "as in the version before"
PART = 0.05  # a median that moved by less than this part of the range before


@dataclass(frozen=True, kw_only=True)
class ColumnDifference:
    """One difference: where, what it was, what it is."""

    where: str
    before: str
    now: str


def new_version(dataset: Dataset, *, owner, file: BinaryIO, source_name: str) -> Dataset:
    """The next version of `dataset` from a file with the same columns; raises DataError, and stores nothing, for other ones."""
    made = actions.create(
        owner=owner,
        file=file,
        source_name=source_name,
        name=_name(dataset),
        choice=choice_of(dataset.columns, dataset.target),
        reading=ReadOptions(kept=_repeated(dataset.reading), columns=[c["name"] for c in dataset.columns]),
    )
    made.previous = dataset
    made.version = dataset.version + 1
    made.save(update_fields=["previous", "version"])
    return made


def _repeated(reading: Mapping[str, Any]) -> dict[str, Any]:
    """The reading without the counts of the file that it was found in."""
    if not reading:
        return {}
    columns = {name: {**own, "reason": AS_BEFORE} for name, own in reading.get("columns", {}).items()}
    return {**reading, "columns": columns}


def changes(dataset: Dataset) -> list[ColumnDifference]:
    """What is different from the version before, the most important first; empty for a first version."""
    before = dataset.previous
    if before is None:
        return []
    found = []
    for where, numbers in (
        ("rows", [d.rows for d in (before, dataset)]),
        (
            "rows with empty cells",
            [(d.profile.get("empty") or {}).get("rows_with_empty", 0) for d in (before, dataset)],
        ),
        ("rows left out for empty cells", [d.profile.get("rows_dropped") or 0 for d in (before, dataset)]),
        ("rows that repeat another", [d.profile.get("duplicate_rows") or 0 for d in (before, dataset)]),
    ):
        if numbers[0] != numbers[1]:
            found.append(ColumnDifference(where=where, before=f"{numbers[0]:,}", now=f"{numbers[1]:,}"))
    return [*found, *_classes(before, dataset), *_columns(before, dataset)]


def _classes(before: Dataset, now: Dataset) -> list[ColumnDifference]:
    """Classes that came, went, or have another share of the rows."""
    old, new = (_shares(d) for d in (before, now))
    found = []
    for label in dict.fromkeys([*old, *new]):
        was = old.get(label)
        has = new.get(label)
        if was is None or has is None or abs(was - has) >= POINTS:
            found.append(
                ColumnDifference(
                    where=f"share of {label}", before=_percent(was, "not there"), now=_percent(has, "gone")
                )
            )
    return found


def _columns(before: Dataset, now: Dataset) -> list[ColumnDifference]:
    """Columns with values that moved: ranges, medians, empty cells, numbers of categories."""
    old = {c["name"]: c for c in before.profile.get("columns") or ()}
    found = []
    for column in now.profile.get("columns") or ():
        was = old.get(column["name"])
        if was is not None:
            found += _column(column["name"], was, column, before, now)
    return found


def _column(
    name: str, was: dict[str, Any], has: dict[str, Any], before: Dataset, now: Dataset
) -> list[ColumnDifference]:
    found = []
    if was["kind"] != has["kind"]:
        found.append(ColumnDifference(where=name, before=was["kind"], now=has["kind"]))
    empty = [_empty(d, name) for d in (before, now)]
    if abs(empty[0] - empty[1]) >= POINTS:
        words = [f"{points_text(share)} % empty" for share in empty]
        found.append(ColumnDifference(where=name, before=words[0], now=words[1]))
    if was.get("minimum") is None or has.get("minimum") is None:
        if was["distinct"] != has["distinct"]:
            words = [f"{c['distinct']:,} categories" for c in (was, has)]
            found.append(ColumnDifference(where=name, before=words[0], now=words[1]))
        return found
    wide = max(was["maximum"] - was["minimum"], 1e-12)
    outside = has["minimum"] < was["minimum"] or has["maximum"] > was["maximum"]
    if outside or abs(has["median"] - was["median"]) > PART * wide:
        words = [
            f"{c['minimum']:.4g} to {c['maximum']:.4g}, median {c['median']:.4g}".replace("-", "−") for c in (was, has)
        ]
        found.append(ColumnDifference(where=name, before=words[0], now=words[1]))
    return found


def _shares(dataset: Dataset) -> dict[str, float]:
    counts = dict(zip(dataset.profile.get("classes") or (), dataset.profile.get("class_counts") or (), strict=False))
    total = max(1, sum(counts.values()))
    return {label: count / total for label, count in counts.items()}


def _empty(dataset: Dataset, name: str) -> float:
    """The share of the cells of a column that are empty in the file."""
    empty = next((int(c.get("empty") or 0) for c in dataset.columns if c["name"] == name), 0)
    return empty / max(1, int(dataset.profile.get("rows_read") or dataset.rows))


def _percent(share: float | None, otherwise: str) -> str:
    return otherwise if share is None else f"{points_text(share)}\u202f%"


def _name(dataset: Dataset) -> str:
    return f"{dataset.base_name}, version {dataset.version + 1}"
