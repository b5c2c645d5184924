"""Create, change and delete data sets, for pages, API and commands.

The rows are stored as the text of the file (Parquet), so a kind can be changed later without loss: `00123` stays
`00123`. Files are read and tables described before a transaction begins, so that others can write meanwhile.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from django.core.files import File
from django.db import transaction
from django.http import FileResponse, Http404
from django.utils import timezone

from octweb.audit import actions as audit
from octweb.core import deleting, files
from octweb.core.deleting import hide
from octweb.core.names import checked_name, file_name, name_of_file
from octweb.core.problems import Conflict, Unprocessable
from octweb.datasets import intake, reader
from octweb.datasets.choice import ColumnChoice, Outlook, ReadOptions, StagedFile, merge, outlook_of
from octweb.datasets.models import Dataset, Upload
from octweb.datasets.sources import SourceRows, chosen_rows
from octweb.datasets.stored import (
    CHANGED,
    csv_lines,
    digest,
    first_lines,
    first_of,
    first_rows,
    load,
    load_with_report,
    path_of,
)
from octweb.demo.visits import refuse_more
from trainer.data.column_statistics import describe_schema
from trainer.data.parsing.column import RANKS
from trainer.data.table_contract import table_contract
from trainer.errors import DataError
from trainer.table import ColumnKind

__all__ = [
    "ColumnChoice", "Outlook", "ReadOptions", "confirm", "contract", "counts_file", "create", "csv_lines", "delete", "describe_with_choice", "digest", "discard", "fill", "findings", "first_lines", "first_rows", "load",
    "load_with_report", "outlook", "preview", "prune", "stage", "stage_sample", "staged_rows", "update",
]  # fmt: skip

UPLOAD_LIFE = timedelta(days=1)
SUFFIXES = (".csv.gz", ".csv", ".parquet", ".arrow", ".feather", ".xlsx", ".tsv", ".txt", ".gz", ".data")


class MovableFile(File):
    """A temporary file that the file store may move instead of copy."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        super().__init__(stream, name=path.name)
        self._path = path

    def temporary_file_path(self) -> str:
        return str(self._path)


def stage(*, owner: Any, file: BinaryIO, source_name: str, reading: ReadOptions | None = None) -> Upload:
    """Store an uploaded file and its rows until the user confirms the upload. Return the upload.

    Raises DataError, and stores nothing, if the file cannot be read.
    """
    refuse_more(owner)
    prune()
    reading = reading or ReadOptions()
    with reader.scratch() as folder, reader.on_disk(file, folder) as source:
        upload = Upload(owner=owner, source_name=file_name(source_name), source_bytes=source.stat().st_size)
        record = reader.stage(source, reading, folder)
        try:
            with source.open("rb") as stream:
                upload.file.save(uuid.uuid4().hex + suffix(source_name), File(stream), save=False)
            _attach_rows(upload, reading, record, folder)
            with transaction.atomic():
                refuse_more(owner)
                upload.save(force_insert=True)
        except BaseException:
            _remove_files(upload)
            raise
    return upload


def stage_sample(*, owner: Any, rows: SourceRows, reading: ReadOptions | None = None) -> Upload:
    """Store a sample of a source for the preview, like `stage`. Raises DataError if it cannot be read."""
    refuse_more(owner)
    prune()
    reading = reading or ReadOptions()
    upload = Upload(owner=owner, source_name=file_name(rows.words), origin=rows.to_json())
    with reader.scratch() as folder:
        record = reader.sample(rows, reading, folder)
        try:
            _attach_rows(upload, reading, record, folder)
            upload.save(force_insert=True)
        except BaseException:
            _remove_files(upload)
            raise
    return upload


def preview(upload: Upload, reading: ReadOptions) -> StagedFile:
    """Return the description of a staged file. Parse the file again only if the options have changed."""
    if not (upload.rows and upload.options == reading.to_json()):
        _read_again(upload, reading)
    return StagedFile.from_json(upload.found)


def staged_rows(upload: Upload, count: int) -> list[tuple[Any, ...]]:
    """Return the first rows of a staged file."""
    return first_of(path_of(upload.rows), count)[1]


def outlook(upload: Upload, choice: ColumnChoice) -> Outlook:
    """Return what `confirm` would store with this choice. Nothing is stored."""
    staged = StagedFile.from_json(upload.found)
    if choice == ColumnChoice(target=choice.target) and choice.target in (None, upload.found["target"]):
        return staged.outlook
    return outlook_of(
        reader.preview_outcome(path_of(upload.rows), choice, upload.found["bytes"], upload.found.get("reading") or {})
    )


def create(
    *,
    owner: Any,
    file: BinaryIO,
    source_name: str,
    name: str = "",
    target: str | None = None,
    reading: ReadOptions | None = None,
    choice: ColumnChoice | None = None,
    before_store: Callable[[Dataset], None] | None = None,
) -> Dataset:
    """Create a data set from a file in one step. Raises DataError, and stores nothing, if the file cannot be used.

    `before_store` is called with the data set before it is stored. It may change the data set, or raise to prevent
    storing.
    """
    refuse_more(owner)
    with reader.scratch() as folder, reader.on_disk(file, folder) as source:
        dataset = _new(owner, source_name, source.stat().st_size, name)
        described = reader.create(source, reading or ReadOptions(), choice or ColumnChoice(target=target), folder)
        fill(dataset, described)
        if before_store is not None:
            before_store(dataset)
        store(dataset, folder / intake.ROWS)
    return _save_or_remove_file(dataset)


def confirm(upload: Upload, *, name: str, reading: ReadOptions, choice: ColumnChoice) -> Dataset:
    """Store the staged rows as a data set, and remove the staged file, both or neither.

    Raises DataError if the file cannot be used, and Conflict if another request has confirmed or discarded it.
    """
    _refuse_gone(Upload.objects.filter(pk=upload.pk).exists())
    preview(upload, reading)
    rows = path_of(upload.rows)
    dataset = _new(upload.owner, upload.source_name, upload.source_bytes, name)
    fill(dataset, reader.describe(rows, choice, upload.found["bytes"], upload.found.get("reading") or {}))
    store(dataset, rows, expected=upload.found["sha256"])
    with removing_file_on_error(dataset), transaction.atomic():
        # with the row locked, only one of two simultaneous confirmations stores the data set; the other finds it gone
        _refuse_gone(Upload.objects.select_for_update().filter(pk=upload.pk).exists())
        insert(dataset)
        discard(upload)
    return dataset


def discard(upload: Upload) -> None:
    """Delete an upload. Its files are removed when the transaction commits."""
    stored_files = [(field.storage, field.name) for field in (upload.file, upload.rows) if field]
    with transaction.atomic():
        upload.delete()
        for storage, name in stored_files:
            transaction.on_commit(partial(files.remove, storage, name))


def prune() -> int:
    """Remove staged files that were not confirmed within a day, and folders of interrupted reads.

    Return the number of files.
    """
    old = Upload.objects.filter(created__lt=timezone.now() - UPLOAD_LIFE)
    for upload in old:
        discard(upload)
    reader.tidy(time.time() - UPLOAD_LIFE.total_seconds())
    return len(old)


def update(
    dataset: Dataset,
    *,
    name: str | None = None,
    choice: ColumnChoice | None = None,
    said: Mapping[str, Any] | None = None,
) -> Dataset:
    """Change name, target, kinds, units or roles of a data set, and return it.

    Raises DataError, and stores nothing, if the choice does not fit. `said` are new choices about cells, as
    `ParsingChoices` writes them. They apply only together with `choice`. The stored rows are not changed. Models
    trained on them stay valid, because a model file says how its rows were parsed.
    """
    if name is not None:
        dataset.name = checked_name(name, most=200) or dataset.name
    if choice is not None:
        fill(dataset, describe_with_choice(dataset, choice, said))
    dataset.save()
    return dataset


def describe_with_choice(
    dataset: Dataset, choice: ColumnChoice, said: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return target, columns and profile under another choice. Stores nothing. Raises DataError."""
    merged = merge(dataset.columns, dataset.target, choice)
    size = dataset.profile.get("read_bytes")
    return reader.describe(path_of(dataset.file), merged, size, dataset.reading, dict(said) if said else None)


def apply_remedy(dataset: Dataset, mend: Mapping[str, Any]) -> Dataset:
    """Apply the remedy of a finding of the intake report. Raises DataError if the report has no such remedy."""
    if mend not in [finding["mend"] for finding in findings(dataset)] or not mend:
        raise DataError("The check of the table no longer proposes this change. Look at the data set again.")
    name = str(mend.get("column", ""))
    if mend.get("header") is False:
        raise DataError(
            "Whether the first line holds names or data is decided at the upload. Upload the file again, with its first line as data."
        )
    if "merge" in mend or "missing" in mend:
        key = "merge" if "merge" in mend else "missing"
        return update(dataset, choice=ColumnChoice(), said={key: {name: mend[key]}})
    if mend.get("role") == "ignored":
        ignored = {c["name"] for c in dataset.columns if c["role"] == "ignored"} | {*mend.get("columns", ()), name}
        return update(dataset, choice=ColumnChoice(ignore=sorted(ignored & {c["name"] for c in dataset.columns})))
    if mend.get("kind") == RANKS:
        choice = ColumnChoice(kinds={name: ColumnKind.NUMERIC})
        return update(dataset, choice=choice, said={"kinds": {name: RANKS}})
    if str(mend.get("kind", "")).startswith("date:"):
        raise DataError(
            "Whether numbers are dates is decided at the upload. Upload the file again, and choose dates there."
        )
    kind = ColumnKind.CATEGORICAL if mend.get("kind") == "text" else ColumnKind(mend["kind"])
    still_ignored = [c["name"] for c in dataset.columns if c["role"] == "ignored" and c["name"] != name]
    return update(dataset, choice=ColumnChoice(kinds={name: kind}, ignore=still_ignored))


def findings(dataset: Dataset) -> list[dict[str, Any]]:
    """Return the intake report of a data set. If none is stored, parse the rows again. Raises DataError."""
    if "findings" not in dataset.profile:
        return describe_with_choice(dataset, ColumnChoice())["profile"]["findings"]
    return dataset.profile["findings"]


def counts_file(dataset: Dataset) -> FileResponse:
    """Return the folder of counts of a data set as a zip file.

    Raises Unprocessable if it has rows instead, and Http404 if the file is gone.
    """
    if not dataset.counts:
        raise Unprocessable("This data set has rows and no counts. Download its rows.")
    try:
        stream = files.local_path(dataset.counts).open("rb")
    except FileNotFoundError as error:
        raise Http404("The file of the counts is gone. Count the source again.") from error
    return FileResponse(stream, as_attachment=True, filename=f"{dataset.pk}-counts.zip", content_type="application/zip")


def contract(dataset: Dataset) -> dict[str, Any]:
    """Return the contract of the table that runs train on. Raises DataError."""
    table, labels = load(dataset)
    schema = describe_schema(table.schema, table.matrix())
    return table_contract(schema, table.reading, target=labels.name, classes=labels.classes, class_type=labels.type)


def delete(dataset: Dataset) -> None:
    """Soft-delete a data set.

    It can be restored for some weeks, and its models stay. Raises Conflict if runs need it.
    """
    hide(dataset)


def purge(now: datetime) -> int:
    """Purge data sets whose time to restore them is over, with their files. Return how many."""
    old = Dataset.objects.filter(deleted_at__lt=now - Dataset.back_within())
    stored = {d.pk: ((d.file or d.counts).storage, (d.file or d.counts).name) for d in old if d.file or d.counts}
    removed = deleting.purge(Dataset, now)
    for pk in set(stored) - set(Dataset.objects.filter(pk__in=stored).values_list("pk", flat=True)):
        files.remove(*stored[pk])
    return removed


def suffix(name: str) -> str:
    """Return the known extension of a file name, or ".csv"."""
    lower = name.lower()
    return next((ending for ending in SUFFIXES if lower.endswith(ending)), ".csv")


def _read_again(upload: Upload, reading: ReadOptions) -> None:
    """Parse a staged file with other options. If that fails, raise DataError and keep the earlier rows."""
    before = (upload.rows.storage, upload.rows.name) if upload.rows else None
    with reader.scratch() as folder:
        if upload.origin:
            record = reader.sample(chosen_rows(upload.owner, upload.origin), reading, folder)
        else:
            record = reader.stage(path_of(upload.file), reading, folder)
        _attach_rows(upload, reading, record, folder)
    if not Upload.objects.filter(pk=upload.pk).update(
        rows=upload.rows.name, options=upload.options, found=upload.found
    ):
        files.remove(upload.rows.storage, upload.rows.name)
        _refuse_gone(False)
    if before is not None:
        files.remove(*before)


def _attach_rows(upload: Upload, reading: ReadOptions, record: dict[str, Any], folder: Path) -> None:
    path = folder / intake.ROWS
    upload.options = reading.to_json()
    upload.found = record | {"sha256": digest(path)}
    with path.open("rb") as stream:
        upload.rows.save(uuid.uuid4().hex + ".parquet", MovableFile(path, stream), save=False)


def _remove_files(upload: Upload) -> None:
    for field in (upload.file, upload.rows):
        if field:
            files.remove(field.storage, field.name)


def _refuse_gone(there: bool) -> None:
    if not there:
        raise Conflict("This file was stored or removed already. Look at your data sets, or upload it again.")


def _new(owner: Any, source_name: str, size: int, name: str) -> Dataset:
    return Dataset(
        owner=owner,
        name=checked_name(name, most=200) or name_of_file(source_name, most=200) or "data",
        source_name=file_name(source_name),
        source_bytes=size,
    )


def fill(dataset: Dataset, described: dict[str, Any]) -> None:
    """Set target, columns and profile of a data set from the result of `intake.describe`."""
    for name, value in described.items():
        setattr(dataset, name, value)


def store(dataset: Dataset, rows: Path, expected: str = "") -> None:
    """Copy the rows into the file store. Raises DataError if their hash is not the expected one."""
    dataset.sha256 = digest(rows)
    if expected and dataset.sha256 != expected:
        raise DataError(CHANGED)
    with rows.open("rb") as stream:
        dataset.file.save(uuid.uuid4().hex + ".parquet", File(stream), save=False)


def _save_or_remove_file(dataset: Dataset) -> Dataset:
    with removing_file_on_error(dataset), transaction.atomic():
        insert(dataset)
    return dataset


@contextmanager
def removing_file_on_error(dataset: Dataset) -> Iterator[None]:
    """Remove the stored file of a new data set if the block fails."""
    try:
        yield
    except BaseException:
        stored_file = dataset.file or dataset.counts
        files.remove(stored_file.storage, stored_file.name)
        raise


def insert(dataset: Dataset) -> None:
    """Insert a data set whose file is stored, with its record in the chain. Raises Conflict for a visitor at the limit."""
    refuse_more(dataset.owner)
    dataset.save(force_insert=True)
    team = {} if dataset.team_id is None else {"team": str(dataset.team_id)}
    audit.record(
        "uploaded",
        dataset,
        by=dataset.owner,
        file=dataset.source_name,
        sha256=dataset.sha256,
        rows=dataset.rows,
        **team,
    )
