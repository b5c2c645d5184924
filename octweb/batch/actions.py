"""Queue, cancel, delete and restore batch predictions. Nothing else writes them."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone
from rest_framework.exceptions import AuthenticationFailed, ValidationError

from octweb.batch.explained import check
from octweb.batch.models import FOLDER, BatchPrediction, Format
from octweb.core import deleting, files
from octweb.core.faults import StoreUnavailable
from octweb.core.names import file_name
from octweb.core.parsers import BodyTooLarge
from octweb.core.problems import Conflict
from octweb.datasets.actions import suffix
from octweb.jobs import queue
from octweb.jobs.models import FINISHED, RunStatus
from octweb.registry.models import TreeModel
from trainer.data.formats.file_bytes import ARROW_MAGIC, GZIP_MAGIC, PARQUET_MAGIC, ZIP_MAGIC, refuse_other_formats
from trainer.data.formats.workbook import holds_workbook
from trainer.errors import DataError
from trainer.explain.least import COLUMNS

MAGIC_BYTES = 64


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """How to read a file of rows, and which columns to write. The fields are columns of BatchPrediction."""

    format: str = Format.CSV
    sheet: str = ""  # of a workbook
    header: bool = True  # whether the first line has names
    keep_columns: bool = False  # copies the file's columns to the left of the answers
    explain: bool = False  # adds columns with the path and the smallest change
    change: Mapping[str, Any] = field(default_factory=dict)  # the permitted changes
    cost: Mapping[str, Any] = field(default_factory=dict)  # the cost of a change of 1, by column
    least: str = COLUMNS  # defines the smallest change


def enqueue(
    *,
    owner: Any,
    model: TreeModel,
    file: File,
    source_name: str,
    options: BatchOptions | None = None,
    made_by: Any = None,
) -> BatchPrediction:
    """Queue a batch prediction of a file, and return the job.

    `made_by` is the API token of the call, or None for a session.

    Raises BodyTooLarge, ValidationError, Conflict, DataError if the file is not a table, and AuthenticationFailed if
    the token was revoked.
    """
    options = options or BatchOptions()
    if options.format not in Format.values:
        raise ValidationError({"format": f"'{options.format[:40]}' is not one of {', '.join(Format.values)}."})
    check(model, options.explain, options.change, options.cost, options.least)
    limit = settings.MAX_UPLOAD_BYTES
    size = int(file.size)
    if size > limit:
        raise BodyTooLarge(
            f"The file is larger than {limit // 10**6} MB, the limit of this server. {BatchPrediction.ADVICE}"
        )
    _look_at(file)
    queue.check_waiting(BatchPrediction, owner)
    job = BatchPrediction(
        id=uuid.uuid4(),
        owner=owner,
        model=model,
        source_name=file_name(source_name),
        source_bytes=size,
        made_by=made_by,
        **asdict(options),
    )
    job.source.name = default_storage.save(f"{job.folder}/source{suffix(source_name)}", file)
    try:
        with transaction.atomic():
            _refuse_revoked(made_by)
            queue.check_waiting(BatchPrediction, owner)
            job.save(force_insert=True)
            transaction.on_commit(lambda: queue.send(job))
    except BaseException:
        remove_files(job.folder)
        raise
    return job


def _refuse_revoked(token: Any) -> None:
    """Raise AuthenticationFailed if the token was revoked. This process may still have it cached."""
    if token is not None and not type(token).objects.filter(pk=token.pk).exists():
        raise AuthenticationFailed("This token is not known; it may have been revoked. Make a new one.")


def cancel(job: BatchPrediction) -> BatchPrediction:
    """Cancel a queued job, or ask a running one to stop without a result. Raises Conflict for a finished one."""
    job = queue.cancel(job)
    if job.is_finished:
        files.remove(default_storage, job.source.name)
    return job


def delete(job: BatchPrediction) -> None:
    """Soft-delete a job; it can be restored for some weeks. A queued or running one is stopped and keeps its file."""
    with transaction.atomic():
        deleting.hide(job)
        under_way = BatchPrediction.objects.filter(pk=job.pk, cancel_requested=False).exclude(status__in=FINISHED)
        under_way.update(goes_on=True)
        with contextlib.suppress(Conflict):  # the job may have ended meanwhile
            queue.cancel(job)


def bring_back(job: BatchPrediction) -> None:
    """Restore a deleted job with its answers. If its deletion stopped it, queue it again."""
    with transaction.atomic():
        deleting.bring_back(job)
        BatchPrediction.objects.filter(pk=job.pk).update(kept_from=timezone.now())
        go_on(job)


def go_on(job: BatchPrediction) -> None:
    """Queue a restored job again if its deletion had stopped it."""
    stopped = BatchPrediction.objects.filter(pk=job.pk, status=RunStatus.CANCELLED, goes_on=True, deleted_at=None)
    with transaction.atomic():
        if stopped.update(
            status=RunStatus.QUEUED,
            goes_on=False,
            cancel_requested=False,
            attempt=0,
            worker="",
            finished=None,
            error="",
        ):
            transaction.on_commit(lambda: queue.send(job))


def _remove(job: BatchPrediction) -> None:
    """Purge a job. Its files are removed when the transaction commits."""
    folder = job.folder
    with transaction.atomic():
        job.delete()
        transaction.on_commit(lambda: remove_files(folder))


def result_name(job: BatchPrediction) -> str:
    """Return the file name of the downloaded answers."""
    stem = job.source_name[: -len(suffix(job.source_name))] if "." in job.source_name else job.source_name
    return f"{stem or 'rows'}-predicted.{job.format}"


def remove_files(folder: str) -> None:
    """Remove a job's folder from the file store."""
    try:
        _, names = default_storage.listdir(folder)
    except (FileNotFoundError, StoreUnavailable):
        return  # the store does not respond now, so `tidy` removes the orphaned files later
    for name in names:
        files.remove(default_storage, f"{folder}/{name}")
    files.remove(default_storage, folder)


def tidy(now: datetime) -> int:
    """Purge expired jobs and orphaned files, and return how many.

    Killed processes and removed accounts leave such files. Restored jobs are queued again if their worker died while it
    stopped them.
    """
    for job in BatchPrediction.objects.kept().filter(status=RunStatus.CANCELLED, goes_on=True):
        go_on(job)  # the worker that stopped the job died before it could queue the job again
    jobs = [*BatchPrediction.objects.filter(deleted_at__lt=now - BatchPrediction.back_within()), *_expired_jobs(now)]
    for job in jobs:
        _remove(job)
    return len(jobs) + _remove_orphans(now)


def _expired_jobs(now: datetime) -> list[BatchPrediction]:
    """Return finished jobs whose answers have expired. Soft-deleted jobs are left out."""
    before = now - timedelta(days=settings.KEEP_PREDICTIONS_DAYS)
    ended = BatchPrediction.objects.kept().filter(status__in=FINISHED, finished__lt=before)
    return list(ended.exclude(kept_from__gte=before))


def _remove_orphans(now: datetime) -> int:
    try:
        folders, _ = default_storage.listdir(FOLDER)
    except FileNotFoundError:
        return 0
    known = {str(pk) for pk in BatchPrediction.objects.values_list("pk", flat=True)}
    orphans = [f"{FOLDER}/{name}" for name in folders if name not in known]
    removed = 0
    for folder in orphans:
        _, names = default_storage.listdir(folder)
        if all(files.age(f"{folder}/{name}", now) > files.ORPHAN_LIFE for name in names):
            remove_files(folder)
            removed += 1
    return removed


def _look_at(file: File) -> None:
    """Raise DataError if the first bytes of the file do not look like a table. The job checks the rest."""
    head = file.read(MAGIC_BYTES)
    file.seek(0)
    if not head:
        raise DataError("The file is empty. Choose a file with a header line and rows.")
    if head.startswith(ZIP_MAGIC) and holds_workbook(file.file):
        file.seek(0)
    elif not head.startswith((PARQUET_MAGIC, ARROW_MAGIC, GZIP_MAGIC)):
        refuse_other_formats(head)
