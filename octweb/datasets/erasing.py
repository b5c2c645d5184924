"""Erase rows of a data set: store a version without them, and remove files that contain them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from django.db import transaction

from octweb.audit import actions as audit
from octweb.core import files
from octweb.core.ownership import may_delete
from octweb.core.problems import Conflict
from octweb.datasets import actions, intake, reader
from octweb.datasets.choice import choice_of
from octweb.datasets.models import Dataset
from octweb.datasets.stored import GONE, path_of, refuse_changed
from octweb.datasets.versions import next_number, version_name, without_counts
from octweb.demo.visits import refuse_more
from octweb.jobs.models import RunStatus
from trainer.data.formats.raw import RawTable
from trainer.data.formats.staged import lines_in, write_raw
from trainer.errors import DataError

REASONS = ("request", "retention", "mistake")
MAX_FOUND = 50  # a search that matches more rows must be narrower
MAX_ERASED = 1_000  # rows of one call
BATCH_ROWS = 50_000
UNFINISHED = (RunStatus.QUEUED, RunStatus.RUNNING)
# members of a profile without values of cells, except the classes
AGGREGATES = (
    "classes", "class_counts", "baseline", "majority", "duplicate_rows", "conflicting_rows", "error_floor",
    "floor_sentence", "rows_read", "rows_dropped", "read_bytes",
)  # fmt: skip


class FoundRow(NamedTuple):
    """A stored row: number from 1, line of the uploaded file (or the number), and cells."""

    number: int
    shown: int
    cells: tuple[Any, ...]


def find_rows(dataset: Dataset, column: str, value: str) -> list[FoundRow]:
    """Return the rows whose cell in a column is this text, or this number. Raises DataError.

    It also raises DataError if more than MAX_FOUND rows match.
    """
    path = path_of(dataset.file)
    if column not in [c["name"] for c in dataset.columns]:
        raise DataError(f"There is no column '{column[:80]}'. Take a column of this data set.")
    numbers = [n for start, part in _batches(path, [column]) for n in start + np.flatnonzero(_equals(part[0], value))]
    if len(numbers) > MAX_FOUND:
        raise DataError(
            f"{len(numbers):,} rows have '{value[:40]}' in column '{column}'; at most {MAX_FOUND} are shown. "
            "Take a column that names one person, such as a number of the case."
        )
    return rows_at(dataset, [int(n) + 1 for n in numbers])


def rows_at(dataset: Dataset, numbers: Collection[int]) -> list[FoundRow]:
    """Return stored rows by their numbers from 1. Raises DataError for a number that the file does not have."""
    path = path_of(dataset.file)
    size = _count_rows(path)
    wanted = sorted(set(numbers))
    if wanted and not 1 <= wanted[0] <= wanted[-1] <= size:
        wrong = next(n for n in wanted if not 1 <= n <= size)
        raise DataError(f"There is no row {wrong}. The rows of this version are 1 to {size:,}.")
    lines = lines_in(path, size)
    found = []
    for start, columns in _batches(path, None):
        inside = [n for n in wanted if start < n <= start + len(columns[0])]
        for n in inside:
            cells = tuple(column[n - start - 1].as_py() for column in columns)
            found.append(FoundRow(n, n if lines is None else int(lines[n - 1]), cells))
    return found


def versions_with(dataset: Dataset, numbers: Collection[int], *, by: Any) -> dict[Dataset, list[int]]:
    """Return the versions that have one of these rows, each with the numbers of its rows that equal one of them.

    This version is the first. Deleted versions are included, because they can be restored; those that `by` may not see,
    and those without a stored file, are left out. Raises DataError.
    """
    wanted = {row.cells for row in rows_at(dataset, numbers)}
    names = _names_in(path_of(dataset.file))
    found = {dataset: sorted(set(numbers))}
    for relative in _relatives(dataset, by):
        same = _numbers_of(relative, names, wanted)
        if same:
            found[relative] = same
    return found


def without_rows(
    dataset: Dataset, numbers: Collection[int], *, by: Any, why: str, remove: Collection[Dataset] = ()
) -> Dataset:
    """Store the next version without some rows, and return it. The rest is read in the same way.

    The stored files of the versions `remove` are removed in the same transaction. Raises DataError for unknown rows or
    reasons, for too many rows, and if the rest cannot be used, and Conflict like `remove_rows`. Then nothing is changed.
    """
    if why not in REASONS:
        raise DataError(f"'{why[:40]}' is not a reason. Reasons are {', '.join(REASONS)}.")
    chosen = sorted(set(numbers))
    if not 1 <= len(chosen) <= MAX_ERASED:
        raise DataError(f"{len(chosen):,} rows were chosen. Choose 1 to {MAX_ERASED:,} rows.")
    rows_at(dataset, chosen)
    refuse_more(dataset.owner)
    path = path_of(dataset.file)
    refuse_changed(dataset, path)
    number = next_number(dataset, dataset.owner)
    version = Dataset(
        owner=dataset.owner,
        team_id=dataset.team_id,
        name=version_name(dataset, number),
        source_name=dataset.source_name,
        source_bytes=dataset.source_bytes,
        previous=dataset,
        version=number,
    )
    with reader.scratch() as folder:
        rest = folder / intake.ROWS
        write_raw(_without(intake.read_stored_rows(path), chosen), rest)
        size = dataset.profile.get("read_bytes")
        choice = choice_of(dataset.columns, dataset.target)
        actions.fill(version, reader.describe(rest, choice, size, without_counts(dataset.reading)))
        actions.store(version, rest)
    with actions.removing_file_on_error(version), transaction.atomic():
        audit.hold()
        actions.insert(version)
        audit.record("rows erased", dataset, by=by, rows=len(chosen), why=why, version=str(version.pk))
        for one in remove:
            remove_rows(one, by=by, why=why)
    return version


def remove_rows(dataset: Dataset, *, by: Any, why: str) -> None:
    """Remove the stored file of a version for good, and all examples of cells. Name, counts and hash stay.

    Raises Conflict while runs, experiments or workbenches on it have not ended.
    """
    stored = (dataset.file.storage, dataset.file.name)
    with transaction.atomic():
        audit.hold()
        refuse_unfinished(dataset)
        dataset.file = ""
        dataset.columns = [column | {"examples": [], "reason": ""} for column in dataset.columns]
        dataset.reading = _without_reasons(dataset.reading)
        profile = {name: dataset.profile[name] for name in AGGREGATES if name in dataset.profile}
        dataset.profile = profile | {"columns": [], "findings": [], "notes": []}
        dataset.save(update_fields=["file", "columns", "profile", "reading"])
        audit.record("file erased", dataset, by=by, why=why)
        transaction.on_commit(partial(files.remove, *stored))


def refuse_unfinished(dataset: Dataset) -> None:
    """Raise Conflict while runs, experiments or workbenches on the data set have not ended."""
    jobs = {
        "Runs": dataset.runs.filter(status__in=UNFINISHED),
        "Experiments": dataset.experiments.filter(candidates__status__in=UNFINISHED),
        "Workbenches": dataset.workbenches.filter(status__in=UNFINISHED),
    }
    for words, waiting in jobs.items():
        if waiting.exists():
            raise Conflict(f"{words} on {dataset} have not ended. Stop them, or wait, and erase again.")


def _without_reasons(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the column parsing without the reasons, because they quote cells."""
    columns = {
        name: {key: value for key, value in column.items() if key != "reason"}
        for name, column in reading.get("columns", {}).items()
    }
    return {**reading, "columns": columns} if reading else {}


def _relatives(dataset: Dataset, user: Any) -> Iterator[Dataset]:
    """Yield earlier and later versions that the user may see, and deleted ones that the user may restore."""
    seen = {dataset.pk}
    waiting = [dataset]
    while waiting:
        version = waiting.pop()
        near = list(Dataset.objects.filter(previous=version)) + ([version.previous] if version.previous else [])
        for relative in near:
            if relative.pk not in seen and may_delete(user, relative):
                seen.add(relative.pk)
                waiting.append(relative)
                yield relative


def _numbers_of(dataset: Dataset, names: Sequence[str], wanted: set[tuple[Any, ...]]) -> list[int]:
    """Return the numbers of the rows of a version that are equal to one of these, with cells in the order of `names`.

    [] if its file is gone, or has other columns.
    """
    try:
        path = path_of(dataset.file)
    except DataError:
        return []
    order = _names_in(path)
    if sorted(order) != sorted(names):
        return []
    places = [order.index(name) for name in names]
    found: list[int] = []
    for start, columns in _batches(path, None):
        mask = np.zeros(len(columns[0]), bool)
        for cells in wanted:
            mask |= np.logical_and.reduce([_is(columns[p], v) for p, v in zip(places, cells, strict=True)])
        found += [int(n) + 1 for n in start + np.flatnonzero(mask)]
    return found


def _is(column: pa.Array, value: Any) -> np.ndarray:
    """Return which cells are this stored value, bool (n,)."""
    if value is None:
        return column.is_null().to_numpy(zero_copy_only=False)
    if isinstance(value, float) and math.isnan(value):
        is_float = pa.types.is_floating(column.type)
        return _true(pc.is_nan(column)) if is_float else np.zeros(len(column), bool)
    try:
        scalar = pa.scalar(value, column.type)
    except (pa.ArrowException, TypeError, ValueError):  # the column has another type in this version
        return np.zeros(len(column), bool)
    return _true(pc.equal(column, scalar))


def _equals(column: pa.Array, text: str) -> np.ndarray:
    """Return which cells are this text without outer spaces, or this number, bool (n,)."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _true(pc.equal(pc.utf8_trim_whitespace(column), text.strip()))
    try:
        return _true(pc.equal(column.cast(pa.float64()), float(text)))
    except (pa.ArrowException, ValueError):
        return _true(pc.equal(column.cast(pa.string()), text.strip()))


def _true(mask: Any) -> np.ndarray:
    return pc.fill_null(mask, False).to_numpy(zero_copy_only=False)


def _batches(path: Any, names: Sequence[str] | None) -> Iterator[tuple[int, list[pa.Array]]]:
    """Yield the number of rows before each batch, and its columns. Raises DataError."""
    start = 0
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=names, use_threads=False):
                columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
                yield start, columns
                start += len(batch)
    except (OSError, pa.ArrowException) as error:
        raise DataError(GONE) from error


def _names_in(path: Any) -> list[str]:
    try:
        return list(pq.read_schema(path).names)
    except (OSError, pa.ArrowException) as error:
        raise DataError(GONE) from error


def _count_rows(path: Any) -> int:
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise DataError(GONE) from error


def _without(raw: RawTable, numbers: Sequence[int]) -> RawTable:
    """Return the table without the rows of these numbers from 1."""
    keep = np.ones(len(raw.line_numbers), bool)
    keep[np.array(numbers) - 1] = False
    mask = pa.array(keep)
    return RawTable(
        names=raw.names,
        columns=tuple(column.filter(mask) for column in raw.columns),
        line_numbers=raw.line_numbers[keep],
        detected=raw.detected,
    )
