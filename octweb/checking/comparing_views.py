"""Show the panel that compares an imported tree with the best of its size."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST
from rest_framework.exceptions import ValidationError

from octweb.checking import comparing
from octweb.checking.views import model_of
from octweb.core.problems import Conflict, flatten
from octweb.jobs import queue
from octweb.jobs.waiting import wait_of
from octweb.registry.models import TreeModel
from trainer.convert.rival import DEEPEST


def _panel(request: HttpRequest, model: TreeModel, refusal: str = "", seconds: str = "") -> HttpResponse:
    job = comparing.latest(model)
    context: dict[str, Any] = {
        "model": model,
        "brought": comparing.is_brought(model),
        "job": job,
        "found": job.found if job is not None else {},
        "refusal": refusal,
        "has_rows": comparing.has_rows(model),
        "no_rows": comparing.NO_ROWS,
        "is_deep": comparing.is_deep(model),
        "deepest": DEEPEST,
        "seconds": seconds or (job.seconds if job is not None else comparing.time_limit(None)),
        "longest": comparing.longest(),
        "wait": wait_of(job),
    }
    return render(request, "registry/proof/_comparison.html", context)


@login_required
@require_GET
def panel(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Show the last comparison and the form for the next one."""
    return _panel(request, model_of(request, pk, inside=True))


@login_required
@require_POST
def start(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Queue a comparison. The panel shows its progress."""
    model = model_of(request, pk, inside=True)
    text = request.POST.get("seconds", "").strip()
    refusal = ""
    try:
        comparing.start(owner=request.user, model=model, seconds=_seconds(text))
    except (ValidationError, Conflict) as error:
        refusal = "; ".join(e["detail"] for e in flatten(error.detail))
    return _answer(request, model, refusal, text)


@login_required
@require_POST
def stop(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Stop the search. Its best tree so far is kept."""
    model = model_of(request, pk, inside=True)
    refusal = ""
    job = comparing.latest(model)
    try:
        if job is not None:
            queue.cancel(job)
    except Conflict as error:
        refusal = "; ".join(e["detail"] for e in flatten(error.detail))
    return _answer(request, model, refusal)


def _answer(request: HttpRequest, model: TreeModel, refusal: str, seconds: str = "") -> HttpResponse:
    if not request.headers.get("HX-Request"):
        if refusal:
            messages.error(request, refusal)
        return redirect(f"{reverse('registry:detail', args=[model.pk])}?mode=proof#comparison")
    return _panel(request, model, refusal, seconds if refusal else "")


def _seconds(text: str) -> int | None:
    """Parse the seconds from the form. Return None for an empty field. Raises ValidationError for bad input."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValidationError({"seconds": f"'{text[:20]}' is not a whole number of seconds. Write for example 60."})
    return int(text)
