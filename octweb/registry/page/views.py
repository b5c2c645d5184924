"""Show the page of a model, and render the fragments that it loads."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from octweb.audit import actions as audit
from octweb.core.attachments import as_file
from octweb.registry.document.rows import example_row
from octweb.registry.lifecycle.access import may_see_rows
from octweb.registry.models import TreeModel
from octweb.registry.page import costs, groups, performance, rowsets
from octweb.registry.page.modes import workspace
from octweb.registry.page.scene import ModelScene
from octweb.registry.page.tabs import inspector
from octweb.registry.page.try_row import try_context


def scene_of(request: HttpRequest, pk: uuid.UUID) -> ModelScene:
    """Return the model as the user may see it. Raises Http404 if it does not exist or the user may not read it."""
    user: Any = request.user
    models = TreeModel.objects.readable_by(user).select_related("family", "owner", "dataset")
    try:
        model = models.get(pk=pk)
    except TreeModel.DoesNotExist as error:
        raise Http404("There is no model with this id, or it is not yours and not approved.") from error
    call_url = request.build_absolute_uri(reverse("api-model-predict", args=[pk]))
    return ModelScene(
        model=model,
        user=user,
        inside=may_see_rows(user, model),
        query={**request.GET.dict(), "call_url": call_url},
        typed=request.POST.dict() if request.method == "POST" else None,
    )


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@gzip_page  # the tree as a list is long; Django pads the response at random, so its compressed length reveals no secret
def detail(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Show the page in the requested mode. A POST shows the answer for a typed row."""
    return render(request, "registry/detail.html", workspace(scene_of(request, pk)))


@login_required
@require_GET
@gzip_page
def node(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Render the inspector of one node."""
    return render(request, "registry/inspector/_inspector.html", {"inspector": inspector(scene_of(request, pk))})


@login_required
@require_GET
def rows(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Render a table of the rows of a node, or of a cell of the confusion matrix with the leaves of its rows."""
    scene = _with_rows(request, pk)
    query = rowsets.row_query(scene, scene.query)
    context: dict[str, Any] = {"model": scene.model, "table": rowsets.table(scene, query), "tree": scene.tree}
    context["cell"] = rowsets.cell_of(scene)
    return render(request, "registry/rows/_panel.html", context)


@login_required
@require_GET
def rows_csv(request: HttpRequest, pk: uuid.UUID) -> StreamingHttpResponse:
    """Return the rows of `rows` as a CSV file, and record the export."""
    scene = _with_rows(request, pk)
    query = rowsets.row_query(scene, scene.query)
    audit.record("exported", scene.model, by=request.user, format="rows")
    answer = StreamingHttpResponse(rowsets.csv_of(scene, query), content_type="text/csv; charset=utf-8")
    return as_file(answer, f"{scene.model.family.name}-{scene.model.version}-node-{query.node}-{query.part}.csv")


@login_required
@require_GET
def subgroups(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Render the accuracy in groups of rows by a column."""
    scene = _with_rows(request, pk)
    part = performance.chosen_part(scene)
    rows_by_group = groups.groups(scene, scene.query.get("group", ""), part)
    if rows_by_group is None:
        raise Http404("There is no such column, or no rows to group. Choose another column or other rows.")
    return render(
        request, "registry/performance/_groups.html", {"groups": rows_by_group, "classes": scene.tree.classes}
    )


@login_required
@require_GET
def mistake_costs(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Show the expected cost of mistakes under the user's cost matrix."""
    scene = scene_of(request, pk)
    cost_table = costs.cost_context(scene, performance.chosen_part(scene))
    if cost_table is None:
        raise Http404(
            "This model has no error counts for these rows, so its costs cannot be computed. Choose other rows."
        )
    context = {"model": scene.model, "costs": cost_table, "inside": scene.inside}
    return render(request, "registry/performance/_costs_answer.html", context)


@login_required
@require_POST
def trying(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Render the path of a typed row. Values come only by POST, so that no URL, history or log contains them."""
    scene = scene_of(request, pk)
    context = {"model": scene.model, **try_context(scene, example_row(scene.model, inside=scene.inside))}
    return render(request, "registry/use/_answer.html", context)


def _with_rows(request: HttpRequest, pk: uuid.UUID) -> ModelScene:
    scene = scene_of(request, pk)
    if scene.rows is None:
        raise Http404("The rows of this model cannot be shown: they are gone, too many, or not yours.")
    return scene
