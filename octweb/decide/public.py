"""Show the public page of a model, and the owner's form for it."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe
from rest_framework.exceptions import ValidationError

from octweb.core.problems import Conflict, flatten
from octweb.decide import actions
from octweb.decide.models import Guidance
from octweb.decide.payload import payload
from octweb.registry.models import State, TreeModel


@require_safe
def public_page(request: HttpRequest, key: uuid.UUID) -> HttpResponse:
    """Show purpose, questionnaire, explanation and contact to everyone with the address.

    404 unless open and approved.
    """
    guidance = (
        Guidance.objects.select_related("model__family")
        .filter(key=key, public=True, model__state=State.APPROVED, model__deleted_at=None)
        .first()
    )
    if guidance is None:
        raise Http404("There is no public page at this address, or it was closed.")
    context = {
        "model": guidance.model,
        "guidance": guidance,
        "payload": payload(guidance.model, inside=False, rows=guidance.show_training, heading="h2", key=str(key)),
    }
    answer = render(request, "decide/public.html", context)
    answer["X-Robots-Tag"] = "noindex"
    return answer


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def settings(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Show, open, change or close the public page of a model. 404 unless the user owns it or is an administrator."""
    model = _own_model(request, pk)
    trouble: dict[str, str] = {}
    if request.method == "POST":
        try:
            _change(request, model)
            return redirect("decide:public-settings", model.pk)
        except (ValidationError, Conflict) as error:
            trouble = {e["attr"] or "": e["detail"] for e in flatten(error.detail)}
    guidance = actions.guidance_of(model)
    context = {
        "model": model,
        "guidance": guidance,
        "trouble": trouble,
        "purpose": request.POST.get("purpose", guidance.purpose),
        "contact": request.POST.get("contact", guidance.contact),
        "show_training": "show_training" in request.POST if request.method == "POST" else guidance.show_training,
        "approved": model.state == State.APPROVED,
        "address": request.build_absolute_uri(reverse("public-page", args=[guidance.key])),
    }
    return render(request, "decide/public_settings.html", context)


def _change(request: HttpRequest, model: TreeModel) -> None:
    if "close" in request.POST:
        actions.unpublish(model, by=request.user)
        messages.success(request, "The public page is closed.")
        return
    actions.publish(
        model,
        by=request.user,
        purpose=request.POST.get("purpose", ""),
        contact=request.POST.get("contact", ""),
        show_training="show_training" in request.POST,
    )
    messages.success(request, "The public page is open.")


def _own_model(request: HttpRequest, pk: uuid.UUID) -> TreeModel:
    model: TreeModel = TreeModel.objects.select_related("family", "owner").get_for(request, pk)
    return model
