"""The first page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from octweb.datasets.models import Dataset
from octweb.home.start import first_samples
from octweb.jobs.models import RunStatus
from octweb.registry.models import State, TreeModel
from octweb.registry.parsed import model_file
from octweb.runs.models import TrainingRun
from trainer.tree.picture.outline import tree_outline

SHOWN = 5
ACTIVE = (RunStatus.QUEUED, RunStatus.RUNNING)


def home(request: HttpRequest) -> HttpResponse:
    """Signed out: what this is, and a live example. Signed in: what runs, what waits, what was last."""
    user: Any = request.user
    if not user.is_authenticated:
        return render(request, "home/welcome.html", _example())
    models = TreeModel.objects.visible_to(user).defer("document").select_related("family", "owner")
    waiting = models.filter(state=State.IN_REVIEW) if user.is_staff else models.none()
    runs = TrainingRun.objects.visible_to(user).filter(status__in=ACTIVE).select_related("dataset")
    context = {
        "runs": [_running(run) for run in runs[: 4 * SHOWN]],
        "waiting": waiting[: 4 * SHOWN],
        "models": models[:SHOWN],
        "datasets": Dataset.objects.visible_to(user)[:SHOWN],
        "samples": first_samples(),
    }
    context["has_data"] = bool(context["datasets"])
    context["is_new"] = not models.filter(owner=user).exists() and not runs.exists()
    return render(request, "home/home.html", context)


def _running(run: TrainingRun) -> dict[str, Any]:
    limit, progress = run.parameters.get("time_limit"), run.progress or {}
    over = str(progress.get("phase", "")).startswith(("check", "fold", "proof"))  # the limit applies to the search
    spent = None if over else progress.get("t")
    left = max(0.0, limit - spent) if limit and spent is not None else None
    return {"run": run, "gap": (run.progress or {}).get("gap"), "left": left}


def _example() -> dict[str, Any]:
    """The newest approved model: approved models may be seen and called by everyone with an account, this one by all."""
    model = TreeModel.objects.approved().select_related("family").order_by("-created").first()
    if model is None:
        return {"model": None}
    return {"model": model, "outline": tree_outline(model_file(model).tree)}
