"""Experiments as rows of the list of runs: one row each, whatever number of candidates they have."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch, Q
from django.urls import reverse

from octweb.experiments.board import status_of
from octweb.experiments.models import Candidate, Experiment
from octweb.runs.listing import MOST, Entry


def entries(user: Any, words: str, status: str) -> list[Entry]:
    """The experiments that the user may see."""
    found = Experiment.objects.visible_to(user).select_related("dataset", "owner").defer("dataset__profile")
    for word in words.split():
        found = found.filter(Q(name__icontains=word) | Q(dataset__name__icontains=word))
    states = Candidate.objects.only("experiment_id", "status", "started", "number")
    rows = [_entry(e) for e in found.prefetch_related(Prefetch("candidates", queryset=states))[:MOST]]
    return [row for row in rows if not status or row.badge == status]


def _entry(experiment: Experiment) -> Entry:
    candidates = list(experiment.candidates.all())
    done = sum(c.was_tried for c in candidates)
    return Entry(
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
        tried=f"{done} of {len(candidates)}",
    )
