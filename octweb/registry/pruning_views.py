"""A model without the questions that change no answer: the button of its page, and the call."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core.api import PROBLEMS
from octweb.core.problems import flatten
from octweb.registry.api import readable_model
from octweb.registry.models import TreeModel
from octweb.registry.pruning import prune
from octweb.registry.serializers import ModelDetailSerializer


@login_required
@require_POST
def prune_page(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Make the new version and show it; where there is nothing to prune, say so on the page of the model."""
    model = TreeModel.objects.select_related("family", "owner", "dataset").get_visible(request.user, pk)
    try:
        made = prune(model, by=request.user)
    except APIException as error:
        messages.error(request, " ".join(e["detail"] for e in flatten(error.detail)))
        return redirect("registry:detail", pk=model.pk)
    left, right = (f"{n} {'leaf' if n == 1 else 'leaves'}" for n in (model.leaves, made.leaves))
    messages.success(
        request,
        f"This is version {made.version}, with {right} instead of {left}. Every row gets the class that it got before.",
    )
    return redirect("registry:detail", pk=made.pk)


class ModelPrune(APIView):
    """A new version without the questions that change no answer: every row gets the class that it got before."""

    @extend_schema(request=None, responses={201: ModelDetailSerializer} | PROBLEMS(401, 403, 404, 409, 422, 429))
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        made = prune(readable_model(request, pk), by=request.user)
        return Response(ModelDetailSerializer(made, context={"request": request}).data, status=201)
