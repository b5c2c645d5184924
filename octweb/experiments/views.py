"""Show experiments: form, live leaderboard, and actions on candidates."""

from __future__ import annotations

import hashlib
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from octweb.core.problems import Conflict, Unprocessable
from octweb.core.refusals import refusals_said
from octweb.datasets.models import Dataset
from octweb.experiments import actions
from octweb.experiments.board import Board, board, elapsed, points, tree_of
from octweb.experiments.forms import ExperimentForm
from octweb.experiments.models import Candidate, Experiment
from octweb.experiments.plan import plan
from octweb.experiments.wording import honest_words, reasons, reasons_against
from octweb.figures.experiment import experiment_figure
from octweb.jobs.models import RunStatus
from octweb.jobs.queue import worker_seen
from trainer.errors import ParameterError


def _experiment(request: HttpRequest, pk: Any) -> Experiment:
    return Experiment.objects.select_related("dataset", "owner", "chosen").get_for(request, pk)


def _candidate(request: HttpRequest, pk: Any) -> Candidate:
    return Candidate.objects.select_related("experiment__dataset", "owner").get_for(request, pk)


@login_required
def experiment_new(request: HttpRequest) -> HttpResponse:
    """Show the form of a new experiment with a preview of the plan. A POST starts the experiment."""
    datasets = Dataset.objects.changeable_by(request.user)
    chosen = request.POST.get("dataset") or request.GET.get("dataset")
    dataset = datasets.get_for(request, chosen) if chosen else datasets.first()
    if dataset is None:
        messages.info(request, "An experiment needs a data set. Upload one, or take a sample.")
        return redirect("datasets:new")
    form = ExperimentForm(request.POST if request.method == "POST" else None, dataset=dataset)
    if request.method == "POST" and "show" not in request.POST and form.is_valid():
        try:
            experiment = actions.start(owner=request.user, dataset=dataset, **form.request())
            return redirect("experiments:detail", experiment.pk)
        except ParameterError as error:
            field_errors = {name: text for name, text in error.errors.items() if name in form.fields}
            for name, text in field_errors.items():
                form.add_error(name, text)
            if not field_errors:
                form.add_error(None, str(error))
        except (Conflict, Unprocessable) as error:
            form.add_error(None, str(error.detail))
    options = form.plan_options()
    fits = form.fits()
    planned = plan(dataset, kinds=options["kinds"], time_limit=options["time_limit"])
    context = {
        "form": form,
        "dataset": dataset,
        "datasets": datasets[:200],
        "planned": planned,
        "fits": fits,
        "longest": len(planned.trials) * fits * options["time_limit"],
        "check": form.check_words(),
        "workers_seen": worker_seen(),
    }
    if request.headers.get("HX-Request"):
        return render(request, "experiments/_plan.html", context)
    return render(request, "experiments/new.html", context)


@login_required
@require_GET
def experiment_detail(request: HttpRequest, pk: Any) -> HttpResponse:
    return render(request, "experiments/detail.html", _context(request, _experiment(request, pk)))


@login_required
@require_GET
def experiment_live(request: HttpRequest, pk: Any) -> HttpResponse:
    """Return the live part of the page, or status 204 if nothing has changed."""
    context = _context(request, _experiment(request, pk))
    if request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    return render(request, "experiments/_live.html", context)


@login_required
@require_GET
def experiment_chart(request: HttpRequest, pk: Any) -> HttpResponse:
    """Return the Plotly figure of accuracy, or cost per row, against leaves."""
    leaderboard = board(_experiment(request, pk))
    return JsonResponse(experiment_figure(points(leaderboard), leaderboard.base, leaderboard.measure))


@login_required
@require_POST
def experiment_stop(request: HttpRequest, pk: Any) -> HttpResponse:
    return _do(request, _experiment(request, pk), actions.stop, "It stops; the results so far are kept.")


@login_required
@require_POST
def experiment_go_on(request: HttpRequest, pk: Any) -> HttpResponse:
    return _do(request, _experiment(request, pk), actions.go_on, "It continues where it was stopped.")


@login_required
@require_POST
def candidate_open(request: HttpRequest, pk: Any) -> HttpResponse:
    candidate = _candidate(request, pk)
    with refusals_said(request):
        return redirect("registry:detail", actions.open_candidate(candidate).pk)
    return redirect("experiments:detail", candidate.experiment_id)


@login_required
@require_POST
def candidate_retrain(request: HttpRequest, pk: Any) -> HttpResponse:
    candidate = _candidate(request, pk)
    with refusals_said(request, "This cannot be trained"):
        return redirect("runs:detail", actions.retrain(candidate, owner=request.user).pk)
    return redirect("experiments:detail", candidate.experiment_id)


def _do(request: HttpRequest, experiment: Experiment, action: Any, words: str) -> HttpResponse:
    with refusals_said(request):
        action(experiment)
        messages.info(request, words)
    return redirect("experiments:detail", experiment.pk)


def _context(request: HttpRequest, experiment: Experiment) -> dict[str, Any]:
    leaderboard = board(experiment)
    sort = request.GET.get("sort", "accuracy")
    lines = leaderboard.sorted(sort)
    changing = [
        (x.label, x.candidate.status, x.done, x.candidate.cancel_requested, x.candidate.model_id)
        for x in leaderboard.lines
    ]
    seen = hashlib.sha256(repr([changing, sort, experiment.chosen_id]).encode()).hexdigest()[:16]
    scale = _scale(leaderboard)
    return {
        "experiment": experiment,
        "board": leaderboard,
        "lines": [{"line": line, "bar": _bar(line, scale)} for line in lines],
        "band": _band(leaderboard, scale),
        "scale_words": [leaderboard.measure.text(end) for end in scale],
        "sort": sort,
        "sorts": leaderboard.sorts,
        "reasons": reasons(leaderboard),
        "others": reasons_against(leaderboard),
        "honest": honest_words(leaderboard),
        "outline": tree_of(leaderboard.chosen) if leaderboard.chosen else None,
        "elapsed": elapsed(experiment, leaderboard.lines),
        "stopping": any(
            c.cancel_requested and c.status == RunStatus.RUNNING for c in (x.candidate for x in leaderboard.lines)
        ),
        "can_go_on": leaderboard.finished
        and any(x.candidate.status in (RunStatus.CANCELLED, RunStatus.FAILED) for x in leaderboard.lines),
        "training_rows": experiment.dataset.rows - experiment.held_out_rows,
        "worker_seen": worker_seen() if leaderboard.status == RunStatus.QUEUED else True,
        "lease": settings.WORKER_LEASE_SECONDS,
        "seen": seen,
    }


def _scale(leaderboard: Board) -> tuple[float, float]:
    """Return the ends of the small axis beside the accuracies or costs."""
    scores = [line.score for line in leaderboard.lines if line.score is not None]
    low = min((s.mean - s.error for s in scores), default=0.0)
    high = max((s.mean + s.error for s in scores), default=1.0)
    if leaderboard.measure.by_cost:
        margin = 0.1 * (high - low) or 0.1 * high or 1.0
        return max(0.0, low - margin), high + margin
    margin = max(0.005, 0.1 * (high - low))
    return max(0.0, low - margin), min(1.0, high + margin)


def _bar(line: Any, scale: tuple[float, float]) -> dict[str, float] | None:
    if line.score is None:
        return None
    return {
        "low": _place(line.score.mean - line.score.error, scale),
        "high": _place(line.score.mean + line.score.error, scale),
        "mean": _place(line.score.mean, scale),
    }


def _band(leaderboard: Board, scale: tuple[float, float]) -> dict[str, float] | None:
    if leaderboard.choice is None:
        return None
    low, high = sorted(_place(end, scale) for end in (leaderboard.choice.floor, leaderboard.choice.highest.mean))
    return {"start": low, "width": round(high - low, 2)}


def _place(value: float, scale: tuple[float, float]) -> float:
    """Map a mean to a position from 0 to 120 on the axis of the bars."""
    return round(120 * (value - scale[0]) / (scale[1] - scale[0]), 2)
