"""List experiments together with runs, one row each."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Case, Exists, OuterRef, Prefetch, Q, QuerySet, Value, When
from django.db.models.functions import Lower
from django.urls import reverse

from octweb.experiments.board import status_of
from octweb.experiments.models import Candidate, Experiment
from octweb.jobs.models import FINISHED, RunStatus
from octweb.runs.listing import EntrySource, ListEntry


def _has(*states: Any) -> Exists:
    return Exists(Candidate.objects.filter(experiment=OuterRef("pk"), status__in=states))


# computes `status_of` in the database
STATUS = Case(
    When(_has(RunStatus.RUNNING), then=Value(RunStatus.RUNNING)),
    When(_has(RunStatus.QUEUED) & _has(*FINISHED), then=Value(RunStatus.RUNNING)),
    *[When(_has(state), then=Value(state)) for state in (RunStatus.QUEUED, RunStatus.CANCELLED, RunStatus.SUCCEEDED)],
    default=Value(RunStatus.FAILED),
)


def _rows(user: Any, words: str, status: str) -> QuerySet:
    experiments = Experiment.objects.visible_to(user)
    for word in words.split():
        experiments = experiments.filter(Q(name__icontains=word) | Q(dataset__name__icontains=word))
    return experiments.alias(status=STATUS).filter(status=status) if status else experiments


def _read_entries(keys: Collection[Any]) -> list[ListEntry]:
    states = Candidate.objects.only("experiment_id", "status", "started", "number")
    experiments = Experiment.objects.select_related("dataset", "owner").only(
        "name", "created", "dataset__name", "owner__username"
    )
    experiments = experiments.prefetch_related(Prefetch("candidates", queryset=states))
    return [_entry(experiment) for experiment in experiments.filter(pk__in=keys).order_by()]


def _entry(experiment: Experiment) -> ListEntry:
    candidates = list(experiment.candidates.all())
    tried = sum(c.was_tried for c in candidates)
    return ListEntry(
        kind="experiment",
        pk=experiment.pk,
        url=reverse("experiments:detail", args=[experiment.pk]),
        name=experiment.name,
        dataset=experiment.dataset.name,
        method=f"{len(candidates)} candidates",
        badge=status_of(candidates),
        owner=experiment.owner,
        created=experiment.created,
        started=min((c.started for c in candidates if c.started), default=None),
        tried=f"{tried} of {len(candidates)}",
    )


EXPERIMENTS = EntrySource(
    rows=_rows, name=Lower("name"), dataset=Lower("dataset__name"), status=STATUS, read=_read_entries
)
