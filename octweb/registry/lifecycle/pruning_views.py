"""Prune a model on its page."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST
from rest_framework.exceptions import APIException

from octweb.core.problems import flatten
from octweb.registry.lifecycle.pruning import prune
from octweb.registry.models import TreeModel


@login_required
@require_POST
def prune_page(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Prune the model and redirect to the new version.

    If nothing can be pruned, redirect to the model's page with a message.
    """
    model = TreeModel.objects.select_related("family", "owner", "dataset").get_for(request, pk)
    try:
        pruned_model = prune(model, by=request.user)
    except APIException as error:
        messages.error(request, " ".join(e["detail"] for e in flatten(error.detail)))
        return redirect("registry:detail", pk=model.pk)
    leaves_before, leaves_after = (f"{n} {'leaf' if n == 1 else 'leaves'}" for n in (model.leaves, pruned_model.leaves))
    messages.success(
        request,
        f"This is version {pruned_model.version}, with {leaves_after} instead of {leaves_before}. Every row gets the class that it got before.",
    )
    return redirect("registry:detail", pk=pruned_model.pk)
