"""Show the panel of a model's check, and serve the files for a check elsewhere."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST
from rest_framework.exceptions import ValidationError

from octweb.audit import actions as audit
from octweb.checking import actions
from octweb.checking.models import ModelCheck
from octweb.core.attachments import as_file
from octweb.core.problems import Conflict, flatten
from octweb.jobs.models import RunStatus
from octweb.jobs.waiting import wait_of
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from trainer.training.claims import read_claim, wishes_in_words
from trainer.tree.describe import is_weighted


def model_of(request: HttpRequest, pk: uuid.UUID, *, inside: bool) -> TreeModel:
    """Return a readable model, or raise Http404. With `inside`, the user must be allowed to see its rows."""
    models = TreeModel.objects.select_related("family", "owner", "dataset")
    if inside:
        model: TreeModel = models.get_for(request, pk)
        return model
    models = models.readable_by(request.user)
    try:
        return models.get(pk=pk)
    except TreeModel.DoesNotExist as error:
        raise Http404("There is no model with this id, or it is not yours.") from error


def _panel(request: HttpRequest, model: TreeModel, refusal: str = "", status: int = 200) -> HttpResponse:
    job = actions.latest(model)
    context = {
        "model": model,
        "job": job,
        "dossier_verdict": _dossier_verdict(model),
        "lines": [] if job is None else _lines(job, model),
        "meaning": "" if job is None else _meaning(job, model),
        "refusal": refusal,
        "wait": wait_of(job),
        "proof": actions.proof_of(model),
    }
    return render(request, "registry/_check.html", context, status=status)


def _dossier_verdict(model: TreeModel) -> str:
    """Return the verdict in the last dossier of the model, or ""."""
    dossiers = model.dossiers.filter(status=RunStatus.SUCCEEDED).exclude(file="")
    dossier = dossiers.order_by("-created").first()
    return str(dossier.summary.get("verdict", "")) if dossier else ""


def _meaning(job: ModelCheck, model: TreeModel) -> str:
    """Return the verdict of a check in plain words, or "" without a verdict."""
    certificate = model_file(model).certificate
    numbers = _wrong_words(certificate) or "every number is right"
    return {
        "proved": f"Counted again: {numbers}. {_proof_words(certificate)}",
        "recounted": f"Counted again: {numbers}. Whether a better tree exists was not proved here.",
        "refuted": "Something in the model file is not true. Do not use this tree before the lines marked refuted are explained.",
        "cannot be judged": "The check could not decide. The lines say what is missing.",
    }.get(job.verdict, "")


def _proof_words(certificate: Mapping[str, Any]) -> str:
    """Return what a checked proof says about better trees."""
    if read_claim(certificate).kind not in ("proved", "wishes"):
        return "The proof of what the file claims was followed step by step."
    wishes = " and that keeps the wishes" if certificate.get("wishes") else ""
    return f"The proof was followed step by step: no tree that was searched{wishes} is better."


def _wrong_words(certificate: Mapping[str, Any]) -> str | None:
    """Return the wrong training rows of a model in words, or None if rows have weights or costs."""
    if is_weighted(certificate) or certificate.get("costs"):
        return None
    n = certificate.get("n")
    correct = certificate.get("correct")
    return None if n is None or correct is None else f"{n - correct:,} of {n:,} training rows are wrong"


def _lines(job: ModelCheck, model: TreeModel) -> list[dict[str, str]]:
    """Return the lines of the report, with constraints put into words."""
    certificate = model_file(model).certificate
    return [{name: wishes_in_words(text, certificate) for name, text in line.items()} for line in job.lines]


@login_required
@require_GET
def panel(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Show the last check of the model, line by line."""
    return _panel(request, model_of(request, pk, inside=True))


@login_required
@require_POST
def start(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Queue a check. The panel shows its progress."""
    model = model_of(request, pk, inside=True)
    refusal = ""
    try:
        actions.start(owner=request.user, model=model)
    except (ValidationError, Conflict) as error:
        refusal = "; ".join(e["detail"] for e in flatten(error.detail))
    if not request.headers.get("HX-Request"):
        return redirect("registry:detail", model.pk)
    return _panel(request, model, refusal)


@login_required
@require_GET
def bundle(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Download model, proof, checkers and instructions as a zip file."""
    model = model_of(request, pk, inside=False)
    audit.record("exported", model, by=request.user, format="files of the check")
    response = HttpResponse(actions.bundle(model), content_type="application/zip")
    return as_file(response, f"{model.family.name}-{model.version}-check.zip")
