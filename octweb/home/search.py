"""Search all kinds of objects, for the search page and the Ctrl K field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from octweb.batch.models import BatchPrediction
from octweb.core.badges import STATES
from octweb.core.lists import with_words
from octweb.datasets.models import Dataset
from octweb.experiments.models import Experiment
from octweb.registry.models import TreeModel
from octweb.runs.models import TrainingRun
from octweb.workbench.models import Workbench

EACH = 6  # maximum hits of one kind below the search field; the page shows more
ON_PAGE = 40
SEARCHED = 500  # a search reads the columns of at most this many data sets


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A search hit: kind, name, description and URL of an object."""

    kind: str
    name: str
    about: str
    url: str


def search(user: Any, text: str, each: int) -> list[Hit]:
    """Return visible objects that match every word of the text, at most `each` of each kind."""
    return [hit for source in SOURCES for hit in source(user, text, each)] if text.split() else []


@login_required
@require_GET
def search_page(request: HttpRequest) -> HttpResponse:
    """Show the search page. With `?format=json`, return the hits for the Ctrl K field."""
    text = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    if request.GET.get("format") == "json":
        hits = search(request.user, text, EACH + 1)
        shown_hits = [hit for i, hit in enumerate(hits) if [h.kind for h in hits[:i]].count(hit.kind) < EACH]
        return JsonResponse({"hits": [asdict(hit) for hit in shown_hits], "all": len(shown_hits) == len(hits)})
    return render(request, "home/search.html", {"text": text, "hits": search(request.user, text, ON_PAGE)})


def _datasets(user: Any, words: str, each: int) -> Iterable[Hit]:
    datasets = Dataset.objects.visible_to(user).defer("profile", "columns")
    for d in with_words(datasets, words, ("name", "source_name", "target"))[:each]:
        about = f"{d.rows:,} rows, predicts {d.target}"
        yield Hit(kind="data set", name=d.name, about=about, url=reverse("datasets:detail", args=[d.pk]))


def _columns(user: Any, words: str, each: int) -> Iterable[Hit]:
    count = 0
    for d in Dataset.objects.visible_to(user).only("pk", "name", "columns")[:SEARCHED]:
        for column in d.columns:
            if count < each and all(word.lower() in column["name"].lower() for word in words.split()):
                count += 1
                about = f"{column['kind']}, in {d.name}"
                yield Hit(
                    kind="column",
                    name=column["name"],
                    about=about,
                    url=reverse("datasets:detail", args=[d.pk]) + "?all#columns",
                )


def _runs(user: Any, words: str, each: int) -> Iterable[Hit]:
    runs = (
        TrainingRun.objects.visible_to(user)
        .only("pk", "name", "status", "summary", "method", "dataset__name")
        .select_related("dataset")
    )
    for run in with_words(runs, words, ("name", "dataset__name", "method"))[:each]:
        yield Hit(
            kind="run", name=str(run), about=STATES[run.badge].words.lower(), url=reverse("runs:detail", args=[run.pk])
        )


def _experiments(user: Any, words: str, each: int) -> Iterable[Hit]:
    experiments = (
        Experiment.objects.visible_to(user).select_related("dataset").defer("dataset__profile", "dataset__columns")
    )
    for e in with_words(experiments, words, ("name", "dataset__name"))[:each]:
        yield Hit(kind="experiment", name=e.name, about=e.dataset.name, url=reverse("experiments:detail", args=[e.pk]))


def _models(user: Any, words: str, each: int) -> Iterable[Hit]:
    models = TreeModel.objects.readable_by(user).defer("document").select_related("family")
    for m in with_words(models, words, ("title", "family__name", "method"))[:each]:
        about = f"{m.family.name} version {m.version}, {m.get_state_display().lower()}"
        yield Hit(kind="model", name=m.title, about=about, url=reverse("registry:detail", args=[m.pk]))


def _workbenches(user: Any, words: str, each: int) -> Iterable[Hit]:
    workbenches = (
        Workbench.objects.visible_to(user).select_related("dataset").defer("dataset__profile", "dataset__columns")
    )
    for b in with_words(workbenches, words, ("name", "dataset__name", "method"))[:each]:
        yield Hit(kind="workbench", name=str(b), about=b.dataset.name, url=reverse("workbench:detail", args=[b.pk]))


def _predictions(user: Any, words: str, each: int) -> Iterable[Hit]:
    predictions = BatchPrediction.objects.visible_to(user).select_related("model__family").defer("model__document")
    for job in with_words(predictions, words, ("source_name", "model__title", "model__family__name"))[:each]:
        about = f"{STATES[job.status].words.lower()}, by {job.model}"
        yield Hit(kind="predicted file", name=job.source_name, about=about, url=reverse("batch:detail", args=[job.pk]))


SOURCES = (_datasets, _columns, _runs, _experiments, _workbenches, _models, _predictions)
