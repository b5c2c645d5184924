"""Show the list of models, and download one."""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from octweb.core.lists import narrowed, page_of
from octweb.registry.document.model_files import read_documents
from octweb.registry.lifecycle.actions import ids_of_served_versions
from octweb.registry.models import State, TreeModel
from octweb.registry.page.downloads import FORMATS, download
from trainer.certificate import Status
from trainer.errors import DataError

LIST_SORTS = {
    "newest": ("newest first", "-created"),
    "name": ("name", "title"),
    "unseen": ("accuracy on unseen rows", "-unseen_accuracy"),
    "leaves": ("fewest leaves", "leaves"),
    "gap": ("smallest gap", "gap"),
}
ENDED = {
    Status.OPTIMAL: "with a proof",
    Status.TIME_LIMIT: "at its time limit",
    Status.MEMORY_LIMIT: "at its memory limit",
    Status.CANCELLED: "stopped by request",
    Status.INTERVALS: "with small numbers kept secret",
    Status.HEURISTIC: "heuristic, without a proof",
}


def _models(request: HttpRequest) -> QuerySet:
    return TreeModel.objects.readable_by(request.user).select_related("family", "owner", "dataset")


def _model(request: HttpRequest, pk: uuid.UUID) -> TreeModel:
    try:
        return _models(request).get(pk=pk)
    except TreeModel.DoesNotExist as error:
        raise Http404("There is no model with this id, or it is not yours and not approved.") from error


@login_required
@require_GET
def model_list(request: HttpRequest) -> HttpResponse:
    """List the models that the user may read, with filters."""
    models = _models(request).defer("document")
    filters = {name: request.GET.get(name, "") for name in ("state", "method", "status")}
    if filters["state"] in State.values:
        models = models.filter(state=filters["state"])
    if filters["status"] in list(Status):
        models = models.filter(status=filters["status"])
    methods = sorted(set(_models(request).order_by().values_list("method", flat=True).distinct()))
    if filters["method"] in methods:
        models = models.filter(method=filters["method"])
    fields = ("title", "family__name", "method", "owner__username")
    models, list_context = narrowed(models, request.GET, fields=fields, sorts=LIST_SORTS)
    page = page_of(models, request.GET)
    read_documents(page)
    context = list_context | {
        "page": page,
        "served": ids_of_served_versions({model.family_id for model in page}),
        "chosen": filters,
        "filtered": any(filters.values()) or bool(list_context["words"]),
        "states": State.choices,
        "statuses": [(str(s), ENDED[s]) for s in Status],
        "methods": methods,
    }
    return render(request, "registry/list.html", context)


@login_required
@require_GET
def model_download(request: HttpRequest, pk: uuid.UUID, name: str) -> HttpResponse:
    if name not in FORMATS:
        raise Http404
    address = request.build_absolute_uri(reverse("registry:detail", args=[pk]))
    try:
        return download(_model(request, pk), name, address, by=request.user)
    except DataError as error:  # the format cannot represent some name or number of this model
        words = {"heading": "This form cannot hold the model", "detail": str(error), "status": 422}
        return render(request, "error.html", words, status=422)
