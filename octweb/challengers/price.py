"""Search the price of staying: the accuracy that the best tree of the same size would have gained on recent decisions."""

from __future__ import annotations

import json
import logging
import math
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from django.utils import timezone
from rest_framework.exceptions import APIException, ValidationError

from octweb.challengers import words
from octweb.challengers.actions import require_approved
from octweb.challengers.models import StayingPrice
from octweb.checking.comparing import time_limit
from octweb.core.ownership import may_change
from octweb.core.problems import Conflict
from octweb.core.templatetags.octweb import whole
from octweb.decisions.models import ChainEntry, Kind
from octweb.decisions.reading import nanoseconds_of
from octweb.decisions.replaying import row_of
from octweb.jobs import queue
from octweb.jobs.models import FINISHED, RunStatus
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from trainer.convert.rival import DEEPEST
from trainer.table import ColumnKind
from trainer.tree.file import ModelFile

log = logging.getLogger(__name__)

KEPT = timedelta(days=400)
PERIOD = timedelta(days=30)  # time between two searches of a model with a monthly price
LOOK_SECONDS = 3600.0  # minimum time between two checks of a process for due searches
USUAL_DAYS = 90
MAX_DAYS = 1_826
MAX_ROWS = 100_000  # the newest rows are taken if there are more
SEARCHED_QUESTIONS = "whose questions are one threshold or one category of the same columns"
UNKNOWN_WORD = "(unknown)"  # replaces a category that the model does not know
FEW_OUTCOMES = (
    "Outcomes of at least two classes are needed, and {where} has fewer on record. Record each answer (the choice at the approval), and send "
    "the outcomes."
)


@dataclass(frozen=True)
class KnownRows:
    """Rows of recorded decisions with a known outcome, newest first and at most MAX_ROWS, and their outcomes.

    `matrix` has the rows for the served tree. `unknown` counts the decisions of the same time without a known outcome.
    `answers_without_outcome` are the answers for which no decision has a known outcome.
    """

    matrix: np.ndarray
    outcomes: np.ndarray
    unknown: int
    answers_without_outcome: tuple[str, ...]

    @property
    def has_two_classes(self) -> bool:
        return len(np.unique(self.outcomes)) > 1


def start(
    *, owner: Any, model: TreeModel, days: int = USUAL_DAYS, seconds: int | None = None, monthly: bool = False
) -> StayingPrice:
    """Queue a search, or return a waiting one with the same settings. Raises Conflict and ValidationError.

    With `monthly`, workers repeat the search until a later one is not monthly or is stopped.
    """
    require_approved(model)
    if model.depth > DEEPEST:
        raise ValidationError(
            {"model": f"The tree has depth {model.depth}; the search can only prove trees up to depth {DEEPEST}."}
        )
    if not 1 <= days <= MAX_DAYS:
        raise ValidationError({"days": f"{days:,} is not from 1 to {MAX_DAYS:,}."})
    most = time_limit(seconds)
    outcomes = ChainEntry.objects.filter(model=model.pk, kind=Kind.OUTCOME).exclude(payload="")
    if outcomes.order_by().values("label").distinct().count() < 2:
        raise Conflict(FEW_OUTCOMES.format(where=str(model)))
    job = queue.only_one(StayingPrice, owner=owner, model=model, days=days, seconds=most, monthly=monthly)
    if (job.days, job.seconds, job.monthly) != (days, most, monthly):
        raise Conflict(
            f"A search over {job.days} days for at most {job.seconds} seconds, {'monthly' if job.monthly else 'once'}, is waiting or running. "
            "Stop it first, or wait for its end."
        )
    return job


class _LastLook:
    """Time of the last check for due searches in this process, in seconds of `time.monotonic`."""

    at = -LOOK_SECONDS


def look_for_due() -> int:
    """Start due searches at most once per LOOK_SECONDS, and return how many."""
    if time.monotonic() - _LastLook.at < LOOK_SECONDS:
        return 0
    _LastLook.at = time.monotonic()
    return repeat_due(timezone.now())


def repeat_due(now: datetime) -> int:
    """Start the next monthly search of each approved model whose last one is older than PERIOD. Return how many."""
    started = 0
    models = TreeModel.objects.kept().approved().filter(staying_prices__monthly=True).distinct()
    for model in models.select_related("family", "owner"):
        last = latest(model)
        if last is None or not _is_due(last, now) or not may_change(last.owner, model):
            continue
        try:
            start(owner=last.owner, model=model, days=last.days, seconds=last.seconds, monthly=True)
            started += 1
        except APIException as error:  # such as too many waiting jobs: the next look tries again
            log.warning("the price of staying with %s was not searched again: %s", model, error)
    return started


def _is_due(last: StayingPrice, now: datetime) -> bool:
    has_ended = last.status in (RunStatus.SUCCEEDED, RunStatus.FAILED)  # a cancelled search is not repeated
    return last.monthly and has_ended and last.created < now - PERIOD


def known_rows(model: TreeModel, days: int, now: datetime) -> KnownRows:
    """Read the decisions of the last `days` days that have a known outcome, and count the others.

    Of a corrected outcome, the last record counts.
    """
    tree = model_file(model).tree
    outcomes = _outcomes(model)
    since = nanoseconds_of(now - timedelta(days=days))
    entries = ChainEntry.objects.filter(model=model.pk, kind=Kind.DECISION, at__gte=since, leaf__isnull=False)
    rows: list[np.ndarray] = []
    given: set[int] = set()
    without: set[int] = set()
    codes: list[int] = []
    unknown = 0
    newest = entries.exclude(payload="").order_by("-number").values_list("key", "leaf", "payload")
    for key, leaf, payload in newest.iterator(chunk_size=2000):
        if len(rows) == MAX_ROWS:
            break
        answer = int(tree.labels[leaf])
        if key not in outcomes:
            unknown += 1
            without.add(answer)
        else:
            rows.append(row_of(tree, json.loads(payload)["values"]))
            given.add(answer)
            codes.append(outcomes[key])
    matrix = np.stack(rows) if rows else np.zeros((0, len(tree.schema)))
    unheard = tuple(tree.classes[code] for code in sorted(without - given))
    return KnownRows(matrix, np.array(codes, np.int32), unknown, unheard)


def _outcomes(model: TreeModel) -> dict[uuid.UUID, int]:
    entries = ChainEntry.objects.filter(model=model.pk, kind=Kind.OUTCOME, about__isnull=False, label__isnull=False)
    return {
        about: label
        for about, label in entries.exclude(payload="").order_by("number").values_list("about", "label")
        if about is not None and label is not None
    }


def write_rows(file: ModelFile, rows: KnownRows, path: Path) -> None:
    """Write a Parquet file of the columns that the tree tests, with the outcomes as target."""
    columns: dict[str, pa.Array] = {}
    for j in file.tree.used_columns:
        column = file.tree.schema[j]
        values = rows.matrix[:, j]
        if column.kind is ColumnKind.CATEGORICAL:
            columns[column.name] = pa.array(
                [_word(column.categories, column.missing_code, v) for v in values], pa.string()
            )
        else:
            columns[column.name] = pa.array(values, pa.float64(), mask=np.isnan(values))
    columns[file.target] = pa.array([file.tree.classes[code] for code in rows.outcomes.tolist()], pa.string())
    pq.write_table(pa.table(columns), path)


def _word(categories: tuple[str, ...], missing_code: int | None, value: float) -> str | None:
    """Return the category of a code, or None for an empty cell."""
    if value != value or value == missing_code:
        return None
    return categories[int(value)] if value >= 0 else UNKNOWN_WORD


def reading_of_rows(file: ModelFile) -> dict[str, Any]:
    """Return parse settings for the file of `write_rows`: take every cell unchanged."""
    names = [file.tree.schema[j].name for j in file.tree.used_columns]
    return {"columns": {name: {"taken_for": "plain"} for name in [*names, file.target]}}


def latest(model: TreeModel) -> StayingPrice | None:
    """Return the last search of a model, whatever its status, or None."""
    return StayingPrice.objects.filter(model=model).order_by("-created").first()


def price_record(model: TreeModel) -> dict[str, Any] | None:
    """Return the last price of staying of a model, and the status of the last search. None if there was no search."""
    job = latest(model)
    if job is None:
        return None
    finished = StayingPrice.objects.filter(model=model, status=RunStatus.SUCCEEDED).order_by("-finished").first()
    return {
        "status": job.status,
        "monthly": job.monthly,
        "queue_position": queue.queue_position(job),
        "error": job.error,
        "found": None if finished is None else found_record(finished),
    }


def found_record(job: StayingPrice) -> dict[str, Any]:
    """Return the result of a succeeded search, for the API and the page."""
    found = job.summary
    least = found["least_mistakes"]
    return {
        "finished": job.finished,
        "days": job.days,
        "rows": found["n"],
        "unknown": found["unknown"],
        "answers_without_outcome": found["answers_without_outcome"],
        "mistakes": found["mistakes"],
        "best_mistakes": found["best_mistakes"],
        "least_mistakes": least,
        "points_at_most": None if least is None else points_at_most(found["mistakes"] - least, found["n"]),
        "leaves": found["leaves"],
        "depth": found["depth"],
        "columns": found["columns"],
        "rules": found["rules"],
        "sentence": price_words(found, job.days) + words.unheard_words(found["answers_without_outcome"]),
    }


def points_at_most(fewer: int, rows: int) -> float:
    """Return `fewer` as percentage points of `rows`, rounded up to a tenth."""
    return math.ceil(1000 * fewer / rows) / 10


def price_words(found: Mapping[str, Any], days: int) -> str:
    """State in a sentence how much more often the best tree of the size would have been right."""
    leaves = f"{found['leaves']} {'leaf' if found['leaves'] == 1 else 'leaves'}"
    size = f"with at most {leaves} and depth {found['depth']}, {SEARCHED_QUESTIONS},"
    newest = "newest " if found["n"] >= MAX_ROWS else ""
    where = f"On the {newest}{whole(found['n'])} decisions of the last {days} days with a known outcome"
    least = found["least_mistakes"]
    if least is None:
        return f"{where}, the search ended before it proved anything about trees {size.rstrip(',')}."
    points = points_at_most(found["mistakes"] - least, found["n"])
    if points <= 0:
        return f"{where}, no tree {size} would have been right more often than this version (proved)."
    return f"{where}, the best tree {size} would have been right at most {points:.1f} points more often than this version (proved)."


def tidy(now: datetime) -> int:
    """Remove old searches, and return the number of removed rows."""
    removed, _ = StayingPrice.objects.filter(status__in=FINISHED, finished__lt=now - KEPT).delete()
    return removed
