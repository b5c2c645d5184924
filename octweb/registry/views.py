"""Pages of models: list, detail, compare, download, the steps of a review."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from octweb.figures.frontier import frontier_figure
from octweb.figures.outline import tree_outline
from octweb.figures.split import split_figures
from octweb.registry import actions, page, snippets
from octweb.registry.claims import claims, is_proved
from octweb.registry.compare import compared
from octweb.registry.data import check_again, example_row, record_of
from octweb.registry.downloads import FORMATS, download
from octweb.registry.models import State, TreeModel
from octweb.registry.parsed import model_file
from octweb.registry.predicting import predict_rows
from octweb.registry.reach import reach_of
from trainer.certificate import Status
from trainer.errors import TrainerError
from trainer.goal import Goal

MAX_COMPARED = 40
MAX_DESCRIBED, MAX_DESCRIBED_ROWS = 32, 20_000  # splits and rows up to which the notes of all pictures are worked out


def _models(request: HttpRequest):
    return TreeModel.objects.readable_by(request.user).select_related("family", "owner", "dataset")


def _model(request: HttpRequest, pk: uuid.UUID) -> TreeModel:
    try:
        return _models(request).get(pk=pk)
    except TreeModel.DoesNotExist as error:
        raise Http404("There is no model with this id, or it is not yours and not approved.") from error


def _inside(request: HttpRequest, model: TreeModel) -> bool:
    """Whether the caller may see the rows that the model was trained on."""
    user: Any = request.user
    return user.is_staff or user.pk == model.owner_id


@login_required
@require_GET
def model_list(request: HttpRequest) -> HttpResponse:
    models = _models(request).defer("document")
    chosen = {name: request.GET.get(name, "") for name in ("state", "method", "status")}
    if chosen["state"] in State.values:
        models = models.filter(state=chosen["state"])
    if chosen["status"] in list(Status):
        models = models.filter(status=chosen["status"])
    methods = sorted(set(_models(request).order_by().values_list("method", flat=True).distinct()))
    if chosen["method"] in methods:
        models = models.filter(method=chosen["method"])
    context = {
        "page": Paginator(models, 30).get_page(request.GET.get("page")),
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "states": State.choices,
        "statuses": [str(s) for s in Status],
        "methods": methods,
    }
    return render(request, "registry/list.html", context)


@login_required
@require_GET
def model_detail(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    model = _model(request, pk)
    inside = _inside(request, model)
    tree = model_file(model).tree
    rows = page.data_of(model, inside=inside)
    walk, trouble, record, notes = _walk(request, model, rows, inside)
    url = request.build_absolute_uri(reverse("api-model-predict", args=[model.pk]))
    example = example_row(model, inside=inside)
    certificate = model_file(model).certificate
    context = {
        "model": model,
        "inside": inside,
        "claims": claims(model),
        "proved": is_proved(model),
        "facts": page.facts(model),
        "outline": tree_outline(tree),
        "leaf_only": len(tree.nodes) == 1,
        "tree_figure_url": _tree_figure_url(model, walk),
        "splits": _with_pictures(model, page.splits(model), rows),
        "mistakes": page.mistakes(model),
        "leaf_frontier": page.leaf_frontier(model),
        "unsettled_sizes": page.unsettled_sizes(model),
        "coefficient_frontier": page.coefficient_frontier(model),
        "optimal_trees": page.optimal_trees(model),
        "rules": page.rules(model),
        "walk": walk,
        "trouble": trouble,
        "notes": notes,
        "fields": page.fields(model, record or example),
        "follow": request.GET.get("row", ""),
        "has_rows": rows is not None,
        "certificate": certificate,
        "goal_words": Goal.from_json(certificate["goal"]).words() if certificate.get("goal") else "",
        "reach": reach_of(model),
        "checked": check_again(model) if inside else None,
        "formats": FORMATS,
        "possible": actions.possible(model, request.user),
        "events": list(model.events.select_related("by")) if inside else [],
        "smaller": _smaller(request, model),
        "served": actions.served(model.family),
        "curl": snippets.curl(url, example),
        "python": snippets.python(url, example),
        "run": getattr(model, "run", None) if inside else None,
    }
    return render(request, "registry/detail.html", context, status=422 if trouble and not walk else 200)


def _walk(
    request: HttpRequest, model: TreeModel, rows: Any, inside: bool
) -> tuple[Any, str, dict[str, Any], list[str]]:
    """The row that the page follows: one of the data set, or the one typed in."""
    if number := request.GET.get("row", "").strip():
        walk, trouble = page.followed(model, number, rows)
        place = rows.position(int(number)) if walk else None
        return walk, trouble, record_of(model, rows.matrix[place]) if place is not None else {}, []
    if "try" not in request.GET:
        return None, "", {}, []
    record = page.typed(model, request.GET.dict())
    try:
        found = predict_rows(model, [record])
    except TrainerError as error:
        return None, str(error).removeprefix("rows[0]: "), record, []
    notes = [note.removeprefix("rows[0]: ") for note in found.notes]
    return page.walk(model, found.matrix[0], title="this row", values=record), "", record, notes


def _tree_figure_url(model: TreeModel, walk: Any) -> str:
    url = reverse("api-model-tree-figure", args=[model.pk])
    return f"{url}?leaf={walk.leaf}" if walk else url


def _with_pictures(model: TreeModel, splits: list[dict[str, Any]], rows: Any) -> list[dict[str, Any]]:
    """Each split with the addresses, titles and notes of its pictures; without rows there are none."""
    if rows is None:
        return splits
    tree = model_file(model).tree
    described = len(splits) <= MAX_DESCRIBED and len(rows.matrix) <= MAX_DESCRIBED_ROWS
    for split in splits:
        url = reverse("api-model-node-figure", args=[model.pk, split["id"]])
        found = (
            split_figures(tree, split["id"], rows.matrix[rows.training], rows.codes[rows.training])
            if described
            else [{"title": "", "note": ""}]
        )
        split["pictures"] = [
            {"url": f"{url}?picture={i}", "title": record["title"], "note": record["note"]}
            for i, record in enumerate(found)
        ]
    return splits


def _smaller(request: HttpRequest, model: TreeModel) -> TreeModel | None:
    """A smaller tree of the same data set that does at least as well on unseen rows."""
    if model.dataset_id is None or model.unseen_accuracy is None:
        return None
    others = _models(request).defer("document").filter(dataset_id=model.dataset_id, leaves__lt=model.leaves)
    return others.filter(unseen_accuracy__gte=model.unseen_accuracy).order_by("leaves", "-unseen_accuracy").first()


@login_required
@require_GET
def model_download(request: HttpRequest, pk: uuid.UUID, name: str) -> HttpResponse:
    if name not in FORMATS:
        raise Http404
    return download(_model(request, pk), name)


@login_required
@require_GET
def model_compare(request: HttpRequest) -> HttpResponse:
    """Models of one data set; without a choice, of the data set with the newest model."""
    datasets, dataset, picked = _picked(request)
    url = f"{reverse('registry:frontier')}?dataset={dataset.pk}" if dataset else ""
    context = {"datasets": datasets, "dataset": dataset, "frontier_url": url, **compared(picked)}
    return render(request, "registry/compare.html", context)


@login_required
@require_GET
def model_frontier(request: HttpRequest) -> HttpResponse:
    """Plotly JSON of the comparison."""
    _, _, picked = _picked(request)
    points = [
        {
            "name": f"{row['model'].title} {row['model'].version}",
            "leaves": row["leaves"],
            "accuracy": row["unseen"],
            "sd": row["deviation"],
            "id": str(row["model"].pk),
            "claim": row["claims"][0].kind,
        }
        for row in compared(picked)["rows"]
    ]
    return JsonResponse(frontier_figure(points))


def _picked(request: HttpRequest) -> tuple[list[Any], Any, list[TreeModel]]:
    """The data sets that have models of the caller, the chosen one, and its models."""
    models = _models(request).filter(dataset__isnull=False)
    chosen = _uuid(request.GET.get("dataset", ""))
    datasets: dict[Any, Any] = {}
    visible = models.defer("document") if request.user.is_staff else models.defer("document").filter(owner=request.user)
    for model in visible[:500]:
        datasets.setdefault(model.dataset_id, model.dataset)
    if chosen not in datasets:
        chosen = next(iter(datasets), None)
    picked = list(visible.filter(dataset_id=chosen).defer(None)[:MAX_COMPARED]) if chosen else []
    return list(datasets.values()), datasets.get(chosen), picked


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
