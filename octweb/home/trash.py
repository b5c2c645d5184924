"""Deleting asks first and says what depends on it; what was deleted can be brought back for thirty days."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_GET, require_POST

from octweb.audit import actions as audit
from octweb.core.deleting import KEPT_FOR, bring_back, protecting
from octweb.core.ownership import Deletable
from octweb.core.problems import Conflict
from octweb.datasets import actions as datasets
from octweb.datasets.models import Dataset
from octweb.experiments import actions as experiments
from octweb.experiments.models import Experiment
from octweb.registry import actions as registry
from octweb.registry.models import TreeModel
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What can be deleted: how, which page follows, and what happens to what depends on it."""

    model: type[Deletable]
    delete: Callable[[Any], None]
    page: str
    after: str
    depends: Callable[[Any], list[str]]


def _of_dataset(dataset: Dataset) -> list[str]:
    models = dataset.models.kept().count()
    return (
        [
            _count(models, "model")
            + (" was" if models == 1 else " were")
            + " trained on it: they stay, without their rows."
        ]
        if models
        else []
    )


def _of_run(run: TrainingRun) -> list[str]:
    return ["Its progress goes with it."] + ([f"Its model, {run.model}, stays."] if run.model_id else [])


def _of_experiment(experiment: Experiment) -> list[str]:
    opened = experiment.candidates.exclude(model=None).count()
    return ["Its leaderboard goes with it."] + (
        [f"{_count(opened, 'model')} that {'was' if opened == 1 else 'were'} opened stay."] if opened else []
    )


def _of_model(model: TreeModel) -> list[str]:
    shares = model.shares.count()
    return [f"It is shared with {_count(shares, 'person', 'people')}, who can no longer use it."] if shares else []


KINDS = {
    "dataset": Kind(model=Dataset, delete=datasets.delete, page="datasets:detail", after="datasets:list", depends=_of_dataset),
    "run": Kind(model=TrainingRun, delete=runs.delete, page="runs:detail", after="runs:list", depends=_of_run),
    "experiment": Kind(
        model=Experiment, delete=experiments.delete, page="experiments:detail", after="experiments:list", depends=_of_experiment
    ),
    "model": Kind(model=TreeModel, delete=registry.delete, page="registry:detail", after="registry:list", depends=_of_model),
}  # fmt: skip


@login_required
def delete(request: HttpRequest, kind: str, pk: Any) -> HttpResponse:
    """The question, with what depends on it; a POST deletes."""
    known = _kind(kind)
    thing = known.model._default_manager.get_visible(request.user, pk)
    if request.method == "POST":
        try:
            with transaction.atomic():
                known.delete(thing)
                _recorded("deleted", thing, request)
        except Conflict as error:
            messages.warning(request, str(error.detail))
            return redirect(known.page, thing.pk)
        words = "{} was deleted. It can be brought back for {} days under <a href='{}'>Recently deleted</a>."
        messages.info(request, format_html(words, thing, KEPT_FOR.days, reverse("deleted")))
        return redirect(known.after)
    context = {
        "thing": thing,
        "noun": thing._meta.verbose_name,
        "needed": protecting(thing),
        "depends": known.depends(thing),
        "uses": f"{reverse('runs:list')}?{urlencode({'q': thing.name})}" if isinstance(thing, Dataset) else "",
        "back": reverse(known.page, args=[thing.pk]),
        "days": KEPT_FOR.days,
    }
    return render(request, "home/delete.html", context)


@login_required
@require_GET
def deleted(request: HttpRequest) -> HttpResponse:
    """What can be brought back, and until when."""
    rows = [
        {"kind": name, "noun": kind.model._meta.verbose_name, "thing": thing, "until": thing.deleted_at + KEPT_FOR}
        for name, kind in KINDS.items()
        for thing in kind.model._default_manager.deleted_by(request.user).order_by("-deleted_at")[:200]
    ]
    rows.sort(key=lambda row: row["thing"].deleted_at, reverse=True)
    return render(request, "home/deleted.html", {"rows": rows, "days": KEPT_FOR.days})


@login_required
@require_POST
def undelete(request: HttpRequest, kind: str, pk: Any) -> HttpResponse:
    known = _kind(kind)
    thing = known.model._default_manager.deleted_by(request.user).filter(pk=pk).first()
    if thing is None:
        raise Http404("There is no deleted item like this to bring back.")
    try:
        with transaction.atomic():
            bring_back(thing)
            _recorded("brought back", thing, request)
    except Conflict as error:
        messages.warning(request, str(error.detail))
        return redirect("deleted")
    messages.success(request, f"{thing} is back.")
    return redirect(known.page, thing.pk)


def _recorded(what: str, thing: Any, request: HttpRequest) -> None:
    """Models and data sets are what the chain of decisions is about."""
    if isinstance(thing, TreeModel | Dataset):
        audit.record(what, thing, by=request.user)


def _kind(name: str) -> Kind:
    if name not in KINDS:
        raise Http404("There is nothing of this kind.")
    return KINDS[name]


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
