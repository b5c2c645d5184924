"""What can be done with data sets; pages, API and commands call these.

The rows are kept as the text that was read (Parquet), so that a kind can be changed later without loss: `00123` stays `00123`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
import tempfile
import uuid
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from django.conf import settings
from django.core.files import File
from django.db import transaction
from django.db.models import ProtectedError
from django.utils import timezone

from octweb.core import files
from octweb.core.parsers import TooLarge
from octweb.core.problems import Conflict
from octweb.datasets.models import Dataset, Upload
from octweb.datasets.record import column_records, profile_record
from trainer.data.build import LoadReport, build
from trainer.data.infer import GuessedColumn, guess_target, infer
from trainer.data.profile import profile
from trainer.data.raw import RawTable, ReadLimits, read
from trainer.errors import DataError
from trainer.table import Kind, Labels, MissingPolicy, Table

UPLOAD_LIFE = timedelta(days=1)
STREAMED_ROWS = 10_000
ROW_GROUP = 50_000  # rows; a page that shows twenty reads one group at most
OWN_FILES = ReadLimits(bytes=10**12, unpacked_bytes=10**12, rows=10**9, columns=10**6, cells=10**12)
GONE = "The stored file is missing or damaged. Upload it again."
SUFFIXES = (".csv.gz", ".csv", ".parquet", ".tsv", ".txt", ".gz", ".data")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How to read a file; None means detected."""

    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True

    def to_json(self) -> dict[str, Any]:
        return {"delimiter": self.delimiter, "encoding": self.encoding, "header": self.header}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What was chosen for the columns, by name; what is not named is guessed.

    `ignore` None says nothing of the columns to leave out (a change keeps them as they are); empty means none.
    """

    target: str | None = None
    kinds: Mapping[str, Kind] | None = None
    missing: Mapping[str, MissingPolicy] | None = None
    units: Mapping[str, str] | None = None
    ignore: Collection[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What storing with a choice would keep: rows, notes on what is left out, or `refusal`, why it cannot be stored."""

    rows_read: int
    rows_kept: int = 0
    classes: int = 0
    features: int = 0
    notes: tuple[str, ...] = ()
    refusal: str = ""


def limits() -> ReadLimits:
    """The limits of this server on a file."""
    return ReadLimits(rows=settings.MAX_ROWS, columns=settings.MAX_COLUMNS, bytes=settings.MAX_UPLOAD_BYTES)


def stage(*, owner, file: BinaryIO, source_name: str, reading: Reading | None = None) -> Upload:
    """Keep a file for its second step, after reading it once; raises DataError, and keeps nothing, where it cannot be read."""
    prune()
    with temporary_copy(file, source_name) as path:
        _read(path, reading or Reading())
        with path.open("rb") as stream:
            return Upload.objects.create(
                owner=owner,
                source_name=clean_name(source_name),
                source_bytes=path.stat().st_size,
                file=File(stream, name=uuid.uuid4().hex + suffix(source_name)),
            )


def preview(upload: Upload, reading: Reading) -> tuple[RawTable, tuple[GuessedColumn, ...]]:
    """The rows of a staged file and the guesses for its columns."""
    raw = _read(_path(upload), reading)
    return raw, infer(raw)


def outlook(raw: RawTable, guesses: tuple[GuessedColumn, ...], choice: Choice) -> Outlook:
    """What `confirm` would store of these rows; stores nothing."""
    try:
        table, labels, report = _build(raw, choice.target or guess_target(guesses)[0], choice)
    except DataError as error:
        return Outlook(rows_read=len(raw), refusal=str(error))
    return Outlook(
        rows_read=report.rows_read,
        rows_kept=len(table),
        classes=len(labels.classes),
        features=len(table.schema),
        notes=report.notes,
    )


def create(
    *,
    owner,
    file: BinaryIO,
    source_name: str,
    name: str = "",
    target: str | None = None,
    reading: Reading | None = None,
    choice: Choice | None = None,
    sample: str = "",
) -> Dataset:
    """A data set from a file in one step; raises DataError, and stores nothing, where it cannot be used."""
    with temporary_copy(file, source_name) as path:
        return _create(
            owner=owner,
            path=path,
            source_name=source_name,
            name=name,
            reading=reading or Reading(),
            choice=choice or Choice(target=target),
            sample=sample,
        )


def confirm(upload: Upload, *, name: str, reading: Reading, choice: Choice) -> Dataset:
    """The second step: the staged file becomes a data set and is removed; both happen, or neither.

    Raises DataError where the file cannot be used, and Conflict where it was confirmed or discarded meanwhile.
    """
    stored: Dataset | None = None
    try:
        with transaction.atomic():
            # the row is locked, so that of two confirmations one finds it gone
            if not Upload.objects.select_for_update().filter(pk=upload.pk).exists():
                raise Conflict("This file was stored or removed already. Look at your data sets, or upload it again.")
            stored = _create(
                owner=upload.owner,
                path=_path(upload),
                source_name=upload.source_name,
                name=name,
                reading=reading,
                choice=choice,
                sample="",
            )
            discard(upload)
    except BaseException:
        if stored is not None:
            files.remove(stored.file.storage, stored.file.name)
        raise
    return stored


def discard(upload: Upload) -> None:
    """Remove a staged file; the file goes once the database agreed."""
    storage, staged = upload.file.storage, upload.file.name
    with transaction.atomic():
        upload.delete()
        transaction.on_commit(lambda: files.remove(storage, staged))


def prune() -> int:
    """Remove staged files that nobody confirmed within a day."""
    old = Upload.objects.filter(created__lt=timezone.now() - UPLOAD_LIFE)
    for upload in old:
        discard(upload)
    return len(old)


def update(dataset: Dataset, *, name: str | None = None, choice: Choice | None = None) -> Dataset:
    """Another name, target, kinds, units or roles; the rows stay as they were read. Raises DataError and changes nothing."""
    if name is not None:
        dataset.name = name.strip()[:200] or dataset.name
    if choice is not None:
        merged = _merge(dataset, choice)
        raw = read(_path(dataset), limits=OWN_FILES)
        _describe(dataset, raw, merged)
    dataset.save()
    return dataset


def delete(dataset: Dataset) -> None:
    """Remove a data set and its file; its runs protect it, its models stay."""
    storage, stored = dataset.file.storage, dataset.file.name
    try:
        with transaction.atomic():
            dataset.delete()
            transaction.on_commit(lambda: files.remove(storage, stored))
    except ProtectedError as error:
        count = len(error.protected_objects)
        raise Conflict(
            "1 run uses this data set. Delete it first; its models stay."
            if count == 1
            else f"{count} runs use this data set. Delete them first; their models stay."
        ) from error


def load(dataset: Dataset) -> tuple[Table, Labels]:
    """The table and labels that a run on this data set trains on."""
    table, labels, _ = load_with_report(dataset)
    return table, labels


def load_with_report(dataset: Dataset) -> tuple[Table, Labels, LoadReport]:
    """As `load`, with what was left out; raises DataError where the stored file is not the one that was stored."""
    return _load(str(_path(dataset)), dataset.sha256, dataset.target, json.dumps(dataset.columns, sort_keys=True))


@lru_cache(maxsize=4)
def _load(path: str, sha256: str, target: str, columns: str) -> tuple[Table, Labels, LoadReport]:
    if _digest(Path(path)) != sha256:
        raise DataError("The stored file of this data set was changed outside of octweb. Upload it again.")
    raw = read(path, limits=OWN_FILES)
    return _build(raw, target, _choice_of(json.loads(columns), target))


def raw_rows(dataset: Dataset) -> RawTable:
    """The rows as they were read."""
    return read(_path(dataset), limits=OWN_FILES)


def first_rows(dataset: Dataset, count: int) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Names and the first `count` rows as they were read; reads no more of the file than the pages that hold them."""
    names, batches = _batches(dataset, max(1, count))
    rows = next(batches, [])
    batches.close()
    return names, rows[:count]


def csv_lines(dataset: Dataset) -> Iterator[str]:
    """The rows as they were read, as pieces of a CSV file; only one piece is in memory at a time."""
    names, batches = _batches(dataset, STREAMED_ROWS)
    yield _csv([names])
    for rows in batches:
        yield _csv(rows)


def _batches(dataset: Dataset, size: int) -> tuple[tuple[str, ...], Generator[list[tuple[Any, ...]]]]:
    """Names, and the rows in lists of `size`; raises DataError where the stored file is gone or damaged."""
    try:
        file = pq.ParquetFile(_path(dataset), pre_buffer=False)
    except (OSError, pa.ArrowException) as error:
        raise DataError(GONE) from error

    def batches() -> Generator[list[tuple[Any, ...]]]:
        with file:
            try:
                for batch in file.iter_batches(batch_size=size, use_threads=False):
                    yield list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
            except (OSError, pa.ArrowException) as error:
                raise DataError(GONE) from error

    return tuple(file.schema_arrow.names), batches()


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def clean_name(name: str) -> str:
    """The last part of a file name, for display only; it is never used as a path."""
    return Path(name.replace("\\", "/")).name[:255] or "file"


def suffix(name: str) -> str:
    """The known ending of a file name, or .csv."""
    lower = name.lower()
    return next((ending for ending in SUFFIXES if lower.endswith(ending)), ".csv")


class temporary_copy:
    """A file on disk for the length of a `with` block; raises TooLarge beyond the server's limit."""

    def __init__(self, file: BinaryIO, source_name: str) -> None:
        self.file, self.source_name = file, source_name

    def __enter__(self) -> Path:
        self.folder = Path(tempfile.mkdtemp(prefix="octweb-upload-"))
        path = self.folder / f"file{suffix(self.source_name)}"
        limit = settings.MAX_UPLOAD_BYTES
        written = 0
        try:
            with path.open("wb") as stream:
                while chunk := self.file.read(1 << 20):
                    written += len(chunk)
                    if written > limit:
                        raise TooLarge(f"The file is larger than {limit // 10**6} MB, the limit of this server.")
                    stream.write(chunk)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        return path

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _create(
    *, owner, path: Path, source_name: str, name: str, reading: Reading, choice: Choice, sample: str
) -> Dataset:
    raw = _read(path, reading)
    dataset = Dataset(
        owner=owner,
        name=name.strip()[:200] or Path(clean_name(source_name)).stem.split(".")[0][:200] or "data",
        source_name=clean_name(source_name),
        source_bytes=path.stat().st_size,
        sample=sample,
    )
    _describe(dataset, raw, choice)
    with tempfile.TemporaryDirectory(prefix="octweb-store-") as folder:
        stored = Path(folder) / "rows.parquet"
        rows = pa.table(list(raw.columns), names=list(raw.names))
        pq.write_table(rows, stored, compression="zstd", row_group_size=ROW_GROUP)
        dataset.sha256 = _digest(stored)
        with stored.open("rb") as stream:
            dataset.file.save(uuid.uuid4().hex + ".parquet", File(stream), save=False)
        try:
            dataset.save()
        except BaseException:
            dataset.file.storage.delete(dataset.file.name)
            raise
    return dataset


def _path(stored: Dataset | Upload) -> Path:
    try:
        return files.local_path(stored.file)
    except FileNotFoundError as error:
        raise DataError(GONE) from error


def _read(path: Path, reading: Reading) -> RawTable:
    return read(path, delimiter=reading.delimiter, encoding=reading.encoding, header=reading.header, limits=limits())


def _describe(dataset: Dataset, raw: RawTable, choice: Choice) -> None:
    """Fill target, columns and profile; raises DataError where the choice does not fit the rows."""
    guesses = infer(raw)
    target = choice.target or guess_target(guesses)[0]
    table, labels, report = _build(raw, target, choice)
    dataset.target = target
    dataset.rows = len(table)
    dataset.columns = column_records(guesses, table, target, choice)
    dataset.profile = profile_record(profile(table, labels), labels, report)


def _build(raw: RawTable, target: str, choice: Choice) -> tuple[Table, Labels, LoadReport]:
    ignore = choice.ignore or ()
    return build(
        raw,
        target=target,
        kinds={k: v for k, v in (choice.kinds or {}).items() if k != target and k not in ignore},
        missing={k: v for k, v in (choice.missing or {}).items() if k != target and k not in ignore},
        units={k: v for k, v in (choice.units or {}).items() if k != target and k not in ignore},
        ignore=[c for c in ignore if c != target],
    )


def _choice_of(columns: list[dict[str, Any]], target: str) -> Choice:
    """The choice that stored column records stand for."""
    features = [c for c in columns if c["role"] == "feature"]
    return Choice(
        target=target,
        kinds={c["name"]: Kind(c["kind"]) for c in features},
        missing={c["name"]: MissingPolicy(c["missing"]) for c in features},
        units={c["name"]: c["unit"] for c in features if c.get("unit")},
        ignore=[c["name"] for c in columns if c["role"] == "ignored"],
    )


def _merge(dataset: Dataset, choice: Choice) -> Choice:
    """`choice` over what is stored: columns that it does not name keep what they have."""
    old = _choice_of(dataset.columns, dataset.target)
    ignore = (
        list(choice.ignore)
        if choice.ignore is not None
        else [c for c in old.ignore or () if c not in (choice.kinds or {})]
    )
    target = choice.target or dataset.target
    known = {c["name"] for c in dataset.columns}
    for name in [target, *ignore, *(choice.kinds or {}), *(choice.missing or {}), *(choice.units or {})]:
        if name not in known:
            raise DataError(f"There is no column '{name}'. The columns are: {', '.join(sorted(known))[:500]}.")
    return Choice(
        target=target,
        kinds={**(old.kinds or {}), **(choice.kinds or {})},
        missing={**(old.missing or {}), **(choice.missing or {})},
        units={**(old.units or {}), **(choice.units or {})},
        ignore=ignore,
    )


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
