"""List runs, merged with other kinds such as experiments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, F, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Concat, Lower
from django.urls import reverse

from octweb.core.methods import method_has, title_of
from octweb.jobs.models import RunStatus
from octweb.runs.models import TrainingRun

SORTS = {
    "newest": "newest first",
    "oldest": "oldest first",
    "name": "name",
    "dataset": "data set",
    "status": "status",
}


# sort → keys that are compared before the date
COMPARED = {"name": ["name"], "dataset": ["dataset", "name"], "status": ["status"]}


@dataclass(frozen=True, kw_only=True)
class ListEntry:
    """A row of the list: a run or an experiment."""

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
    method_id: str = ""  # id of a run's method, as in commands and in the API
    tried: str = ""  # number of candidates that an experiment has tried, in words

    @property
    def unreachable(self) -> bool:
        return self.badge == "unreachable"


@dataclass(frozen=True, kw_only=True)
class EntrySource:
    """One kind of rows in the list. Other apps append theirs to SOURCES."""

    # returns the rows that a user may see, filtered by search words and status
    rows: Callable[[Any, str, str], QuerySet]
    name: Combinable  # the database computes these three sort keys
    dataset: Combinable
    status: Combinable
    read: Callable[[Collection[Any]], list[ListEntry]]  # returns the entries with these keys, in any order


class MergedEntries:
    """Rows of several sources in one order, for a Paginator. A slice reads only the rows that it returns."""

    ordered = True

    def __init__(
        self, sources: Sequence[EntrySource], user: Any, *, words: str = "", status: str = "", sort: str = "newest"
    ) -> None:
        self.sources = sources
        self.sort = sort
        self.rows = [source.rows(user, words, status) for source in sources]

    def count(self) -> int:
        """Return the number of all rows."""
        return sum(rows.count() for rows in self.rows)

    def __getitem__(self, places: slice) -> list[ListEntry]:
        keys = list(self._keys()[places])
        read: dict[tuple[int, Any], ListEntry] = {}
        for number, source in enumerate(self.sources):
            ids = [key["id"] for key in keys if key["number"] == number]
            read |= {(number, entry.pk): entry for entry in source.read(ids)}
        ordered = [read.get((key["number"], key["id"])) for key in keys]
        return [entry for entry in ordered if entry is not None]

    def _keys(self) -> QuerySet:
        """Return source and id of all rows in the order of the list. An index yields the newest rows."""
        parts = [self._keys_of(number, source) for number, source in enumerate(self.sources)]
        united = parts[0].union(*parts[1:], all=True) if len(parts) > 1 else parts[0]
        compared = [f"key_{name}" for name in COMPARED.get(self.sort, ())]
        date = ("created", "id") if self.sort == "oldest" else ("-created", "-id")
        return united.order_by(*compared, *date)

    def _keys_of(self, number: int, source: EntrySource) -> QuerySet:
        compared = {f"key_{name}": getattr(source, name) for name in COMPARED.get(self.sort, ())}
        rows = self.rows[number].order_by().annotate(number=Value(number), **compared)
        return rows.values("number", "id", "created", *compared)


def _runs(user: Any, words: str, status: str) -> QuerySet:
    runs = TrainingRun.objects.visible_to(user)
    unreachable = TrainingRun.UNREACHABLE
    if status == "unreachable":
        runs = runs.filter(unreachable)
    elif status in RunStatus.values:
        runs = runs.filter(status=status)
        if status == RunStatus.FAILED:
            runs = runs.exclude(pk__in=TrainingRun.objects.filter(unreachable).values("pk"))
    for word in words.split():
        runs = runs.filter(Q(name__icontains=word) | Q(dataset__name__icontains=word) | method_has(word))
    return runs


def _read_entries(keys: Collection[Any]) -> list[ListEntry]:
    runs = TrainingRun.objects.select_related("dataset", "owner").only(
        "name", "method", "status", "created", "started", "summary", "progress", "dataset__name", "owner__username"
    )
    return [_entry(run) for run in runs.filter(pk__in=keys).order_by()]


def _entry(run: TrainingRun) -> ListEntry:
    summary = run.summary
    progress = run.progress
    objective = summary.get("objective")
    gap = summary.get("gap")
    return ListEntry(
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


RUNS = EntrySource(
    rows=_runs,
    name=Lower(Case(When(name="", then=Concat("method", Value(" on "), "dataset__name")), default=F("name"))),
    dataset=Lower("dataset__name"),
    status=Case(When(TrainingRun.UNREACHABLE, then=Value("unreachable")), default=F("status")),
    read=_read_entries,
)
SOURCES = [RUNS]  # other apps append their sources
