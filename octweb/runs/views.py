"""Show pages of runs and of the sizes of a model."""

from __future__ import annotations

import hashlib
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from octweb.core.badges import STATES
from octweb.core.lists import PAGE_SIZE
from octweb.core.refusals import refusals_said
from octweb.datasets.models import Dataset
from octweb.jobs.models import RunStatus
from octweb.jobs.waiting import Wait, wait_of
from octweb.registry.models import TreeModel
from octweb.runs import actions, listing
from octweb.runs.chart import CHECK, chart, compile_seconds_of, records_of, search_end, search_seconds
from octweb.runs.incumbents import incumbents, outline
from octweb.runs.models import TrainingRun
from octweb.runs.reachable import reachable
from octweb.runs.sizes import open_size, size_options
from octweb.runs.standing import count_unit, standing
from octweb.runs.words import objective_words, setting_words
from trainer.methods.monitor import COMPILING
from trainer.registry import get

MAX_LEAF_DIGITS = 7  # maximum digits of a number of leaves


def _run(request: HttpRequest, pk: Any) -> TrainingRun:
    return TrainingRun.objects.select_related("dataset", "model", "owner").get_for(request, pk)


@login_required
@require_GET
def run_list(request: HttpRequest) -> HttpResponse:
    status = request.GET.get("status", "")
    words = request.GET.get("q", "").strip()[:200]
    sort = request.GET.get("sort", "newest")
    entries = listing.MergedEntries(listing.SOURCES, request.user, words=words, status=status, sort=sort)
    context = {
        "page": Paginator(entries, PAGE_SIZE).get_page(request.GET.get("page")),
        "status": status,
        "statuses": [(value, STATES[value].words) for value in (*RunStatus.values, "unreachable")],
        "sort": sort,
        "sorts": listing.SORTS,
        "words": words,
    }
    return render(request, "runs/list.html", context)


@login_required
@require_GET
def run_detail(request: HttpRequest, pk: Any) -> HttpResponse:
    run = _run(request, pk)
    return render(request, "runs/detail.html", _context(request, run, wait_of(run)))


@login_required
@require_GET
def run_live(request: HttpRequest, pk: Any) -> HttpResponse:
    """Render the changing part of the page, or return 204 if nothing has changed.

    That check loads no progress records.
    """
    run = TrainingRun.objects.get_for(request, pk)
    wait = wait_of(run)
    if request.GET.get("seen") == _page_version(run, _newest(run), wait):
        return HttpResponse(status=204)
    return render(request, "runs/_live.html", _context(request, _run(request, pk), wait))


@login_required
@require_GET
def run_chart(request: HttpRequest, pk: Any) -> HttpResponse:
    """Return the chart of the progress as Plotly JSON."""
    return JsonResponse(chart(_run(request, pk), at=_line(request)))


@login_required
@require_GET
def run_tree(request: HttpRequest, pk: Any, line: int) -> HttpResponse:
    """Show the tree of one progress line as an outline. 404 if there is none."""
    run = _run(request, pk)
    record = run.records.filter(attempt=run.attempt, line=line).values_list("record", flat=True).first()
    if not record or "tree" not in record:
        return HttpResponse("The tree of this line was not stored. Choose another line.", status=404)
    return render(
        request,
        "runs/_incumbent.html",
        {"run": run, "shown": record | {"line": line}, "outline": outline(run, record), "picked": True},
    )


@login_required
@require_POST
def run_cancel(request: HttpRequest, pk: Any) -> HttpResponse:
    run = _run(request, pk)
    with refusals_said(request):
        run = actions.cancel(run)
        stopped = run.status == RunStatus.CANCELLED
        messages.info(request, "Stopped before it began." if stopped else "Stopping; the best tree so far is kept.")
    return redirect("runs:detail", run.pk)


@login_required
@require_POST
def run_again(request: HttpRequest, pk: Any) -> HttpResponse:
    run = _run(request, pk)
    with refusals_said(request, "This run cannot be repeated as it was"):
        return redirect("runs:detail", actions.run_again(run, owner=request.user).pk)
    return redirect("runs:detail", run.pk)


@login_required
@require_http_methods(["GET", "POST"])
def model_sizes(request: HttpRequest, pk: Any) -> HttpResponse:
    """Show the owner the sizes that training compared. A POST opens the tree of a size, or trains it.

    The response is empty for others, and if no sizes were compared.
    """
    model = TreeModel.objects.get_for(request, pk)
    is_owner = model.owner_id == request.user.pk
    if request.method == "POST":
        return _open_size(request, model, own=is_owner)
    sizes = size_options(model) if is_owner else None
    return HttpResponse("") if sizes is None else render(request, "runs/_sizes.html", {"model": model, "sizes": sizes})


def _open_size(request: HttpRequest, model: TreeModel, *, own: bool) -> HttpResponse:
    leaves = request.POST.get("leaves", "")
    if not own or not leaves.isdecimal() or len(leaves) > MAX_LEAF_DIGITS:
        raise Http404
    with refusals_said(request, "This size cannot be trained"):
        run = open_size(model, int(leaves), owner=request.user)
        return redirect("registry:detail", run.model_id) if run.model_id else redirect("runs:detail", run.pk)
    return redirect("registry:detail", model.pk)


@login_required
@require_POST
def run_on(request: HttpRequest, pk: Any, other: Any) -> HttpResponse:
    """Queue a run with the same settings on another data set."""
    run = _run(request, pk)
    dataset = Dataset.objects.get_for(request, other)
    with refusals_said(request, "This run cannot be repeated as it was"):
        return redirect("runs:detail", actions.run_again(run, owner=request.user, dataset=dataset).pk)
    return redirect("datasets:detail", dataset.pk)


@login_required
@require_POST
def run_reachable(request: HttpRequest, pk: Any) -> HttpResponse:
    """Queue the same run with its constraint at a reachable value."""
    run = _run(request, pk)
    with refusals_said(request, "This run cannot be repeated"):
        return redirect("runs:detail", actions.run_reachable(run, owner=request.user).pk)
    return redirect("runs:detail", run.pk)


def _line(request: HttpRequest) -> int | None:
    """Return the progress line of the selected tree, or None."""
    text = request.GET.get("at", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _clock(run: TrainingRun) -> float | None:
    """Return the seconds of the search, as in chart and table. None before it began."""
    if run.summary.get("seconds") is not None:
        return float(run.summary["seconds"])
    return search_seconds(run) or search_end(run) or run.progress.get("t")


def _seconds_elapsed(run: TrainingRun) -> float | None:
    """Return the seconds from the start of the run to its end, or to now. None before its start."""
    return ((run.finished or timezone.now()) - run.started).total_seconds() if run.started else None


def _newest(run: TrainingRun) -> int | None:
    """Return the number of this attempt's newest progress line, or None."""
    return run.records.filter(attempt=run.attempt).order_by("-line").values_list("line", flat=True).first()


def _page_version(run: TrainingRun, newest: int | None, wait: Wait | None) -> str:
    """Return a key that changes whenever the page of a run changes."""
    queue = wait and (wait.position, wait.workers, wait.words)
    changing = [run.status, run.attempt, newest, run.cancel_requested, len(run.log), run.model_id, queue]
    return hashlib.sha256(repr(changing).encode()).hexdigest()[:16]


def _context(request: HttpRequest, run: TrainingRun, wait: Wait | None) -> dict[str, Any]:
    """Return the template context. The caller passes `wait`, because computing it reads the whole queue."""
    newest = _newest(run)  # read before the records, so that the next refresh shows a record that arrives in between
    records = [] if newest is None else records_of(run)
    method = get(run.method)
    trees = incumbents(records, count_unit(run))
    at = _line(request)
    latest = next((r for r in reversed(records) if "tree" in r), None)
    shown_record = next((r for r in records if at is not None and r["line"] == at and "tree" in r), None)
    best = standing(run, method, latest)
    latest = shown_record or latest
    picked = shown_record is not None
    clock = _clock(run)
    elapsed = _seconds_elapsed(run)
    compile_seconds = compile_seconds_of(run)
    is_compiling = run.status == RunStatus.RUNNING and run.progress.get("phase") == COMPILING
    return {
        "at": at if picked else None,
        "picked": picked,
        "clock": clock,
        "ticking": run.status == RunStatus.RUNNING
        and not is_compiling
        and not any(r.get("phase") == CHECK for r in records),
        "compile_seconds": compile_seconds,
        "is_compiling": is_compiling,
        "beside": max(0.0, elapsed - clock - compile_seconds) if clock is not None and elapsed is not None else None,
        "run": run,
        "method": method,
        "records": records,
        "standing": best,
        "trees": trees,
        "latest": latest,
        "outline": outline(run, latest) if latest else None,
        "elapsed": elapsed,
        "objective_words": objective_words(run.parameters, method),
        "reachable": reachable(run),
        "finished": run.status not in (RunStatus.QUEUED, RunStatus.RUNNING),
        "wait": wait,
        "settings": [
            (p.label, setting_words(p, run.parameters[p.name]))
            for p in method.parameters
            if run.parameters.get(p.name) is not None
        ],
        "log_lines": run.log.strip().splitlines()[-20:],
        "seen": _page_version(run, newest, wait),
        "lease": settings.WORKER_LEASE_SECONDS,
    }
