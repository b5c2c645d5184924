"""Show the home page."""

from __future__ import annotations

from typing import Any

from django.db.models import F, OuterRef, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from octweb.datasets.models import Dataset
from octweb.home.example import example_tree
from octweb.home.start import first_samples
from octweb.jobs.models import RunStatus
from octweb.registry.document.model_files import model_file
from octweb.registry.models import ReviewEvent, State, TreeModel, TreeModelQuerySet
from octweb.runs.models import TrainingRun
from trainer.tree.render.outline import tree_outline

SHOWN = 5
ACTIVE = (RunStatus.QUEUED, RunStatus.RUNNING)


def home(request: HttpRequest) -> HttpResponse:
    """Show an introduction with a live example or, to signed-in users, running and recent work."""
    user: Any = request.user
    if not user.is_authenticated:
        return render(request, "home/welcome.html", {"live": example_tree(), **_approved_model()})
    models = TreeModel.objects.visible_to(user).defer("document").select_related("family", "owner")
    waiting = models.filter(state=State.IN_REVIEW) if user.is_staff else models.none()
    runs = TrainingRun.objects.visible_to(user).filter(status__in=ACTIVE).select_related("dataset")
    context = {
        "runs": [_running(run) for run in runs[: 4 * SHOWN]],
        "waiting": waiting[: 4 * SHOWN],
        "back": _returned_steps(models.filter(owner=user))[: 4 * SHOWN],
        "models": models[:SHOWN],
        "datasets": Dataset.objects.visible_to(user)[:SHOWN],
        "samples": first_samples(),
    }
    context["has_data"] = bool(context["datasets"])
    context["is_new"] = not models.filter(owner=user).exists() and not runs.exists()
    # next to a user's model, the example's claim could be mistaken for that of the model
    if context["is_new"] and not models.exists():
        context["live"] = example_tree()
    return render(request, "home/home.html", context)


def _returned_steps(models: TreeModelQuerySet) -> list[ReviewEvent]:
    """Return the last review steps that returned or rejected one of these models with another user's reason."""
    last = ReviewEvent.objects.filter(model=OuterRef("model")).order_by("-at", "-id").values("pk")[:1]
    events = ReviewEvent.objects.filter(model__in=models, before=State.IN_REVIEW, pk=Subquery(last)).exclude(reason="")
    answered = events.exclude(by=F("model__owner")).select_related("model__family", "by").defer("model__document")
    return list(answered.filter(after__in=(State.DRAFT, State.REJECTED)).order_by("-at"))


def _running(run: TrainingRun) -> dict[str, Any]:
    limit = run.parameters.get("time_limit")
    progress = run.progress or {}
    # the time limit applies only to the search, which has ended in these phases
    over = str(progress.get("phase", "")).startswith(("check", "fold", "proof"))
    spent = None if over else progress.get("t")
    left = max(0.0, limit - spent) if limit and spent is not None else None
    return {"run": run, "gap": (run.progress or {}).get("gap"), "left": left}


def _approved_model() -> dict[str, Any]:
    """Return the newest approved model, which visitors without an account also see."""
    model = TreeModel.objects.approved().select_related("family").order_by("-created").first()
    if model is None:
        return {"model": None}
    return {"model": model, "outline": tree_outline(model_file(model).tree)}
