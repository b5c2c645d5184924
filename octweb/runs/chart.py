"""Draw the progress of a run, and compute its search time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone

from octweb.figures.growth import growth_figure
from octweb.figures.progress import OBJECTIVE, progress_figure
from octweb.jobs.models import RunStatus
from octweb.runs.models import TrainingRun
from octweb.runs.words import objective_words
from trainer.certificate import Guarantee
from trainer.methods.base import AUTO
from trainer.methods.monitor import COMPILING
from trainer.registry import get

MAX_RECORDS = 5000
PLAIN = "share of training rows correct"
CHECK = "check"  # a run reports this phase after its search


def chart(run: TrainingRun, *, at: int | None = None) -> dict[str, Any]:
    """Return the Plotly figure. `at` is the progress line of the marked tree."""
    records = _of_search(records_of(run))
    now = search_seconds(run)
    if get(run.method).guarantee is not Guarantee.TREE and not any(r.get("bound") is not None for r in records):
        rows = int(run.summary.get("n") or round(run.dataset.rows * (1 - run.test_share)))
        return growth_figure(records, rows=rows, now=now, at=at)
    return progress_figure(records, now=now, at=at, measure=_measure(run))


def _measure(run: TrainingRun) -> str:
    """Return the objective of a run in plain words."""
    words = objective_words(run.parameters, get(run.method))
    if words not in (PLAIN, f"{PLAIN}, less the leaf penalty"):
        return OBJECTIVE
    priced = words != PLAIN or run.parameters.get("leaf_penalty") == AUTO
    return f"share of rows right{', less the price of leaves' if priced else ''}"


def records_of(run: TrainingRun) -> list[dict[str, Any]]:
    """Return the progress records of the last attempt.

    Above MAX_RECORDS, they are thinned evenly, except for those with a tree.
    """
    records = [
        record | {"line": line}
        for line, record in run.records.filter(attempt=run.attempt).order_by("line").values_list("line", "record")
    ]
    if len(records) > MAX_RECORDS:
        step = len(records) // MAX_RECORDS + 1
        records = [r for i, r in enumerate(records) if i % step == 0 or "tree" in r or i == len(records) - 1]
    return records


def search_end(run: TrainingRun) -> float | None:
    """Return the search seconds at the end of the search, before steps such as folds. None if it has not ended."""
    if not run.progress:
        return None
    checks = run.records.filter(attempt=run.attempt, record__phase=CHECK).order_by("line")
    record = checks.values_list("record", flat=True).first()
    return float(record["t"]) if record else None


def _of_search(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records up to and including the first one after the search."""
    end = next((i for i, record in enumerate(records) if record.get("phase") == CHECK), len(records))
    return records[: end + 1]


def search_seconds(run: TrainingRun) -> float:
    """Return the search seconds so far, from the last record and the time since it arrived. 0 unless the run is running."""
    if run.status != RunStatus.RUNNING or "received" not in run.progress:
        return 0.0
    if (end := search_end(run)) is not None:
        return end
    if run.progress.get("phase") == COMPILING:
        return float(run.progress.get("t") or 0)
    since = timezone.now() - datetime.fromisoformat(run.progress["received"])
    return float(run.progress.get("t") or 0) + max(0.0, since.total_seconds())


def compile_seconds_of(run: TrainingRun) -> float:
    """Return the seconds of compilation, which the clock excludes. 0 if they are not recorded."""
    return float(run.summary.get("compile_seconds") or run.progress.get("compile_seconds") or 0.0)
