"""Queue, stop and remove counts of sources. Nothing else writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from octweb.core.names import checked_name
from octweb.core.problems import Conflict
from octweb.datasets import actions as datasets
from octweb.datasets.choice import ColumnChoice, ReadOptions, StagedFile
from octweb.datasets.intake import build_options
from octweb.datasets.models import Upload
from octweb.datasets.sources import SourceRows, chosen_rows
from octweb.jobs.models import FINISHED
from octweb.jobs.queue import cancel, check_waiting, send
from octweb.sources.models import SourceCount
from trainer.counts.collect import CountRequest, check_request
from trainer.data.encoding import Scheme
from trainer.data.parsing import ColumnParsing
from trainer.errors import ParameterError

__all__ = ["CountSettings", "cancel", "check_settings", "start", "start_from_preview", "tidy"]

MAX_TARGET_CHARACTERS = 200  # characters that the data set of a finished count can store
KEPT = timedelta(days=30)  # the data set of a finished count stays
SCHEMES = {
    str(Scheme.QUANTILE_THRESHOLDS): "thresholds: is the number at most x?",
    str(Scheme.QUANTILE_BUCKETS): "bins: does the number lie between x and y?",
    str(Scheme.NONE): "none: columns of 0 and 1, and categories",
}


@dataclass(frozen=True, kw_only=True)
class CountSettings:
    """How deep trees may be, and how questions and folds are made."""

    depth: int = 3
    bins: int = 5
    scheme: str = str(Scheme.QUANTILE_THRESHOLDS)
    folds: int = 0
    key: str = ""


def start_from_preview(
    upload: Upload, *, name: str, reading: ReadOptions, choice: ColumnChoice, settings: CountSettings
) -> SourceCount:
    """Queue the count of a source whose sample was previewed, and remove the sample, both or neither.

    Raises like `start`.
    """
    staged = datasets.preview(upload, reading)
    with transaction.atomic():
        if not Upload.objects.select_for_update().filter(pk=upload.pk).exists():
            raise Conflict("This sample was counted or removed already. Look at your counts, or choose the rows again.")
        job = start(
            owner=upload.owner,
            rows=chosen_rows(upload.owner, upload.origin),
            staged=staged,
            target=choice.target or str(upload.found["target"]),
            name=name,
            reading=reading,
            choice=choice,
            settings=settings,
        )
        datasets.discard(upload)
    return job


def start(
    *,
    owner: Any,
    rows: SourceRows,
    staged: StagedFile,
    target: str,
    settings: CountSettings,
    name: str = "",
    reading: ReadOptions | None = None,
    choice: ColumnChoice | None = None,
) -> SourceCount:
    """Queue the count of rows whose sample is `staged`, and return the job.

    Raises ParameterError for settings that cannot be counted or do not fit the sample, and Conflict.
    """
    reading = reading or ReadOptions()
    choice = choice or ColumnChoice()
    check_settings(rows, target, settings)
    if len(target) > MAX_TARGET_CHARACTERS:
        raise ParameterError(
            {"target": f"its name has {len(target)} characters. Choose a column with at most {MAX_TARGET_CHARACTERS}."}
        )
    for field, column in (("target", target), ("key", settings.key)):
        if column and column not in staged.names:
            raise ParameterError({field: f"there is no column '{column[:80]}'. Choose one of the table."})
    job = SourceCount(
        owner=owner,
        source=rows.source.name,
        table=rows.table,
        query=rows.query,
        name=checked_name(name, most=200) or rows.words[:200],
        target=target,
        depth=settings.depth,
        bins=settings.bins,
        scheme=settings.scheme,
        folds=settings.folds,
        key=settings.key,
        reading=reading.said().to_json(),
        options=_options(staged.names, target, choice, staged.reading),
    )
    with transaction.atomic():
        check_waiting(SourceCount, owner)
        job.save(force_insert=True)
        transaction.on_commit(lambda: send(job))
    return job


def check_settings(rows: SourceRows, target: str, settings: CountSettings) -> None:
    """Raise ParameterError if the settings cannot be counted."""
    if settings.scheme not in SCHEMES:
        raise ParameterError({"scheme": f"'{settings.scheme[:40]}' is not one of {', '.join(SCHEMES)}."})
    check_request(
        CountRequest(
            source=rows.source.name,
            target=target,
            depth=settings.depth,
            bins=settings.bins,
            scheme=Scheme(settings.scheme),
            folds=settings.folds,
            key=settings.key or None,
        )
    )


def _options(columns: tuple[str, ...], target: str, choice: ColumnChoice, reading: ColumnParsing) -> Mapping[str, Any]:
    """Return the choices about columns as JSON."""
    options = build_options(columns, target, choice, reading)
    for name in ("kinds", "missing", "unknown"):
        options[name] = {column: str(value) for column, value in options[name].items()}
    return options


def tidy(now: datetime) -> int:
    """Remove old finished counts. Their data sets stay. Return how many."""
    removed, _ = SourceCount.objects.filter(status__in=FINISHED, finished__lt=now - KEPT).delete()
    return removed
