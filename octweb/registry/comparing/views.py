"""Show pages that compare models, and download rows on which two disagree."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from octweb.core.attachments import as_file
from octweb.registry.comparing.comparison import compare_models
from octweb.registry.comparing.pairs import compare_pair, disagreement_lines
from octweb.registry.document.claims import claim_badges
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle.access import may_see_rows
from octweb.registry.models import TreeModel
from octweb.registry.page import content
from octweb.registry.page.performance import unseen_base_rate, unseen_interval
from octweb.registry.page.scene import ModelScene
from trainer.training.claims import scope_words
from trainer.tree.render.outline import tree_outline

MAX_SIDE_BY_SIDE = 6  # maximum number of trees side by side
MAX_COMPARED = 40


@login_required
@require_GET
def model_compare(request: HttpRequest) -> HttpResponse:
    """Compare the selected models side by side. If fewer than two are selected, compare all models of a data set."""
    ticked = _ticked_models(request)
    if len(ticked) > 1:
        return render(request, "registry/compare/side_by_side.html", _side_by_side(request, ticked))
    datasets, dataset, models = models_of_dataset(request, ticked[0] if ticked else None)
    url = f"{reverse('api-compare-figure')}?dataset={dataset.pk}" if dataset else ""
    context = {
        "datasets": datasets,
        "dataset": dataset,
        "frontier_url": url if any(m.unseen_accuracy is not None for m in models) else "",
        "ticked": {m.pk for m in ticked},
        **compare_models(models),
    }
    return render(request, "registry/compare.html", context)


@login_required
@require_GET
def compare_rows(request: HttpRequest) -> StreamingHttpResponse:
    """Download the rows on which two models disagree as CSV. 404 unless the user may see the rows of both."""
    ticked = _ticked_models(request)
    if len(ticked) != 2 or not all(_may_see_rows(request, m) for m in ticked):
        raise Http404("Choose two models whose rows you may see.")
    answer = StreamingHttpResponse(disagreement_lines(*ticked), content_type="text/csv; charset=utf-8")
    names = "-".join(f"{m.family.name}-{m.version}" for m in ticked)
    return as_file(answer, f"disagree-{names}.csv")


def _side_by_side(request: HttpRequest, models: list[TreeModel]) -> dict[str, Any]:
    columns = [_column(request, model) for model in models]
    reference = models[0]
    others = models[1:]
    pairs = [
        compare_pair(reference, other)
        for other in others
        if _may_see_rows(request, reference) and _may_see_rows(request, other)
    ]
    same = len({m.dataset_id for m in models}) == 1
    return {"columns": columns, "pairs": pairs, "same_data": same, "reference": reference}


def _column(request: HttpRequest, model: TreeModel) -> dict[str, Any]:
    scene = ModelScene(model=model, user=request.user, inside=_may_see_rows(request, model))
    file = model_file(model)
    return {
        "model": model,
        "claims": claim_badges(model),
        "scope": scope_words(file.certificate),
        "base_rate": unseen_base_rate(scene),
        "interval": unseen_interval(scene),
        "facts": content.facts(model),
        "outline": tree_outline(file.tree),
        "used": [file.tree.schema[j].name for j in file.tree.used_columns],
    }


def _ticked_models(request: HttpRequest) -> list[TreeModel]:
    """Return the models in the query that the user may read, in its order, at most MAX_SIDE_BY_SIDE."""
    ids = list(dict.fromkeys(filter(None, map(_uuid, request.GET.getlist("models")))))[:MAX_SIDE_BY_SIDE]
    models = TreeModel.objects.readable_by(request.user).select_related("family", "owner", "dataset").in_bulk(ids)
    return [models[pk] for pk in ids if pk in models]


def _may_see_rows(request: HttpRequest, model: TreeModel) -> bool:
    user: Any = request.user
    return may_see_rows(user, model)


def models_of_dataset(request: HttpRequest, one: TreeModel | None = None) -> tuple[list[Any], Any, list[TreeModel]]:
    """Return the data sets of the user's models, the selected data set, and its models.

    For administrators, these are the data sets of all models. By default, the data set of `one` is selected, or else
    that of the newest model.
    """
    models = TreeModel.objects.readable_by(request.user).select_related("family", "owner", "dataset")
    models = models.filter(dataset__isnull=False)
    dataset_id = _uuid(request.GET.get("dataset", "")) or (one.dataset_id if one else None)
    datasets: dict[Any, Any] = {}
    own = TreeModel.objects.visible_to(request.user).order_by().values("pk")
    visible = models.defer("document") if request.user.is_staff else models.defer("document").filter(pk__in=own)
    for model in visible[:500]:
        datasets.setdefault(model.dataset_id, model.dataset)
    if dataset_id not in datasets:
        dataset_id = next(iter(datasets), None)
    picked = list(visible.filter(dataset_id=dataset_id).defer(None)[:MAX_COMPARED]) if dataset_id else []
    return list(datasets.values()), datasets.get(dataset_id), picked


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
