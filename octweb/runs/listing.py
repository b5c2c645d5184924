"""The list of runs: one row for a run and for whatever else trains, such as an experiment, sorted and searched together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from octweb.core.methods import method_has, title_of
from octweb.jobs.models import RunStatus
from octweb.runs.models import TrainingRun

MOST = 5000  # rows that are sorted; older ones are found by searching
SORTS = {
    "newest": "newest first",
    "oldest": "oldest first",
    "name": "name",
    "dataset": "data set",
    "status": "status",
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A row of the list."""

    kind: str
    pk: Any
    url: str
    name: str
    dataset: str
    method: str
    badge: str
    owner: Any
    created: datetime
    started: datetime | None = None
    objective: float | None = None
    gap: float | None = None
    method_id: str = ""  # of a run: what commands and programs call it
    tried: str = ""  # what an experiment has tried

    @property
    def unreachable(self) -> bool:
        return self.badge == "unreachable"


Source = Callable[[Any, str, str], list[Entry]]
SOURCES: list[Source] = []  # other kinds of rows, by user, words searched for and status; applications above add theirs


def entries(user: Any, *, words: str = "", status: str = "", sort: str = "newest") -> list[Entry]:
    """All rows that the user may see, newest first or as asked for."""
    found = [_entry(run) for run in _runs(user, words, status)]
    for source in SOURCES:
        found += source(user, words, status)
    return ordered(found, sort)


def ordered(found: list[Entry], sort: str) -> list[Entry]:
    """The rows in one of SORTS; newest first for any other word."""
    keys: dict[str, Callable[[Entry], Any]] = {
        "name": lambda e: e.name.lower(),
        "dataset": lambda e: (e.dataset.lower(), e.name.lower()),
        "status": lambda e: e.badge,
    }
    found.sort(key=lambda e: e.created, reverse=sort != "oldest")
    return sorted(found, key=keys[sort]) if sort in keys else found


def _runs(user: Any, words: str, status: str) -> QuerySet:
    runs = TrainingRun.objects.visible_to(user).select_related("dataset", "owner").defer("log", "dataset__profile")
    unreachable = TrainingRun.UNREACHABLE
    if status == "unreachable":
        runs = runs.filter(unreachable)
    elif status in RunStatus.values:
        runs = runs.filter(status=status)
        if status == RunStatus.FAILED:
            runs = runs.exclude(pk__in=TrainingRun.objects.filter(unreachable).values("pk"))
    for word in words.split():
        runs = runs.filter(Q(name__icontains=word) | Q(dataset__name__icontains=word) | method_has(word))
    return runs[:MOST]


def _entry(run: TrainingRun) -> Entry:
    summary = run.summary
    progress = run.progress
    objective = summary.get("objective")
    gap = summary.get("gap")
    return Entry(
        kind="run",
        pk=run.pk,
        url=reverse("runs:detail", args=[run.pk]),
        name=str(run),
        dataset=run.dataset.name,
        method=title_of(run.method),
        method_id=run.method,
        badge=run.badge,
        owner=run.owner,
        created=run.created,
        started=run.started,
        objective=objective if objective is not None else progress.get("incumbent"),
        gap=gap if gap is not None else progress.get("gap"),
    )
