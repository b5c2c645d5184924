"""Train on a sample with one click, for new users."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from octweb.core.limits import server_limits
from octweb.core.problems import Conflict
from octweb.datasets import samples
from octweb.demo.views import begin
from octweb.runs import actions
from trainer.data.samples import SAMPLES, Sample
from trainer.methods.capabilities import Role
from trainer.registry import method_for

FIRST_SAMPLES = ("breast-cancer", "iris", "monks-1")
FIRST_RUN: dict[str, Any] = {
    "method": method_for(Role.ONE_PROVED).id,
    "parameters": {"depth": 3, "time_limit": 120},
    "test_share": 0.25,
}


def first_samples() -> list[Sample]:
    """Return the samples that the home page offers."""
    by_slug = {s.slug: s for s in SAMPLES}
    return [by_slug[slug] for slug in FIRST_SAMPLES]


def first_run() -> dict[str, Any]:
    """Return the settings of the first run, within the limits of this server."""
    limit = min(FIRST_RUN["parameters"]["time_limit"], server_limits()["time_limit"])
    return FIRST_RUN | {"parameters": FIRST_RUN["parameters"] | {"time_limit": limit}}


@require_http_methods(["GET", "HEAD", "POST"])
def start_sample(request: HttpRequest, slug: str) -> HttpResponse:
    """Train on a sample. A GET asks for confirmation, a POST trains. 404 for an unknown sample.

    On a demo server, a POST without an account begins a demo.
    """
    if slug not in FIRST_SAMPLES:
        raise Http404("There is no such sample.")
    if request.method == "POST" and settings.DEMO and not request.user.is_authenticated:
        begun = begin(request)
        if not request.user.is_authenticated:
            return begun
    if not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    if request.method != "POST":
        return render(request, "home/start.html", {"sample": next(s for s in first_samples() if s.slug == slug)})
    return _train(request, slug)


def _train(request: HttpRequest, slug: str) -> HttpResponse:
    """Store the sample as a data set of the user, train a small optimal tree on it, and open the run."""
    dataset = None
    try:
        dataset = samples.load(owner=request.user, slug=slug)
        run = actions.enqueue(owner=request.user, dataset=dataset, **first_run())
    except Conflict as error:
        messages.warning(request, str(error.detail))
        return redirect("home") if dataset is None else redirect("datasets:detail", dataset.pk)
    return redirect("runs:detail", run.pk)
