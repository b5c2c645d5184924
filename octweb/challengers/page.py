"""Build the challenger parts of a model's Life page, and handle their forms."""

from __future__ import annotations

import uuid
from datetime import date
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST
from rest_framework.exceptions import ValidationError

from octweb.challengers import actions, price
from octweb.challengers.models import Challenge
from octweb.checking import comparing
from octweb.jobs import queue
from octweb.life.page import back_to_life, own_model, refusals_as_messages
from octweb.registry.lifecycle.actions import possible_steps
from octweb.registry.models import State, TreeModel
from octweb.registry.page.scene import ModelScene
from octweb.registry.prediction.recording import is_recorded

MAX_CANDIDATES = 50


def page_context(scene: ModelScene) -> dict[str, Any]:
    """Return the template context: the running challenge, or the models that can be named."""
    challenge = actions.running_challenge(scene.model)
    if challenge is not None:
        may_ask = "ask" in possible_steps(challenge.challenger, scene.user)
        return {"challenge": challenge, "may_ask": may_ask}
    is_approved = scene.model.state == State.APPROVED
    return {"challenge": None, "candidates": candidates(scene.model, scene.user) if is_approved else []}


def price_context(scene: ModelScene) -> dict[str, Any]:
    """Return the template context of the price: whether a search is queued or running, and the form's values."""
    job = price.latest(scene.model)
    return {
        "price_offered": job is not None or is_recorded(scene.model),
        "price_job": job,
        "price_waits": job is not None and not job.is_finished,
        "price_days": price.USUAL_DAYS if job is None else job.days,
        "price_max_days": price.MAX_DAYS,
        "price_longest": comparing.longest(),
        "price_seconds": comparing.time_limit(None) if job is None else job.seconds,
    }


def candidates(model: TreeModel, user: Any) -> list[TreeModel]:
    """Return readable models that may challenge a model, newest first.

    They have the same name or the same data set.
    """
    alike = Q(family=model.family_id)
    if model.dataset_id is not None:
        alike |= Q(dataset=model.dataset_id)
    models = TreeModel.objects.readable_by(user).filter(alike).exclude(pk=model.pk).exclude(state=State.RETIRED)
    return list(models.defer("document").select_related("family").order_by("-created")[:MAX_CANDIDATES])


@login_required
@require_POST
def name_challenger(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Name the model chosen in the form as challenger."""
    model = own_model(request, pk)
    with refusals_as_messages(request):
        challenger = _chosen_model(request)
        actions.name_challenger(
            model, challenger, by=request.user, until=_until(request), outcome_days=_number(request, "outcome_days", 0)
        )
        messages.success(request, f"{challenger} answers silently from now on. Nobody gets its answers.")
    return back_to_life(pk)


@login_required
@require_POST
def end_challenge(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """End the running challenge."""
    model = own_model(request, pk)
    with refusals_as_messages(request):
        challenge = _running(model)
        actions.end_challenge(challenge, by=request.user)
        messages.success(request, f"{challenge.challenger} no longer answers. Its numbers are kept.")
    return back_to_life(pk)


@login_required
@require_POST
def promote(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Request approval of the challenger, with the note from the form."""
    model = own_model(request, pk)
    with refusals_as_messages(request):
        challenge = _running(model)
        try:
            actions.ask_for_promotion(challenge, by=request.user, reason=request.POST.get("reason", ""))
        except PermissionDenied as error:
            raise ValidationError(str(error)) from error
        messages.success(
            request, f"{challenge.challenger} is in review. It answers nobody until it is approved and served."
        )
    return back_to_life(pk)


@login_required
@require_POST
def find_price(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Queue a search for the price of staying."""
    model = own_model(request, pk)
    with refusals_as_messages(request):
        job = price.start(
            owner=request.user,
            model=model,
            days=_number(request, "days", price.USUAL_DAYS),
            seconds=_number(request, "seconds", comparing.time_limit(None)),
            monthly=request.POST.get("monthly") == "on",
        )
        messages.success(request, f"The search takes at most {job.seconds} seconds once a worker has it.")
    return back_to_life(pk)


@login_required
@require_POST
def stop_price(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Stop the queued or running search."""
    job = price.latest(own_model(request, pk))
    with refusals_as_messages(request):
        if job is None:
            raise ValidationError("There is no search to stop.")
        queue.cancel(job)
    return back_to_life(pk)


def _running(model: TreeModel) -> Challenge:
    challenge = actions.running_challenge(model)
    if challenge is None:
        raise ValidationError("This model has no challenger.")
    return challenge


def _chosen_model(request: HttpRequest) -> TreeModel:
    try:
        key = uuid.UUID(request.POST.get("challenger", "").strip())
        return TreeModel.objects.readable_by(request.user).select_related("family", "owner").get(pk=key)
    except (ValueError, TreeModel.DoesNotExist) as error:
        raise ValidationError("Choose a model that you may read.") from error


def _until(request: HttpRequest) -> date | None:
    text = request.POST.get("until", "").strip()
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise ValidationError(f"'{text[:20]}' is not a date. Write it as 2026-03-31.") from error


def _number(request: HttpRequest, name: str, default: int) -> int:
    text = request.POST.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise ValidationError(f"'{text[:20]}' is not a whole number.")
    return int(text)
