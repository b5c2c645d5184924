"""Show data sets: the list, one data set, its versions and its columns."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, OuterRef, Q, Subquery
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from octweb.core.lists import narrowed, page_of
from octweb.core.ownership import may_change, may_delete
from octweb.core.parsers import BodyTooLarge
from octweb.core.problems import Busy, Unprocessable
from octweb.core.refusals import refusals_said
from octweb.datasets import actions, empty_cells, versions
from octweb.datasets.figures import COLUMN_ORDERS, class_bars, column_charts
from octweb.datasets.forms import choice_of, findings_card, remedy_of
from octweb.datasets.intake import FIRST_LINES
from octweb.datasets.models import Dataset
from octweb.datasets.sources import sources_of
from trainer.data.parsing.codes import parse_codes, write_codes
from trainer.errors import DataError
from trainer.table import ColumnKind, MissingPolicy
from trainer.tree.numbers import decimal_text

COLUMNS_SHOWN = 30
LIST_SORTS = {
    "newest": ("newest first", "-created"),
    "name": ("name", "name"),
    "rows": ("rows", "-rows"),
    "target": ("target", "target"),
    "runs": ("runs", "-run_count"),
}
# with a subquery, the database counts runs only for the rows on the page, unless the list is sorted by them
COUNTED = Dataset.objects.filter(pk=OuterRef("pk")).order_by().values("pk")
RUN_COUNT = Subquery(COUNTED.annotate(count=Count("runs", filter=Q(runs__deleted_at=None))).values("count"))


def _dataset(request: HttpRequest, pk: Any) -> Dataset:
    return Dataset.objects.select_related("owner").get_for(request, pk)


@login_required
@require_GET
def dataset_list(request: HttpRequest) -> HttpResponse:
    datasets = Dataset.objects.visible_to(request.user).select_related("owner").defer("reading")
    datasets = datasets.annotate(run_count=RUN_COUNT)
    datasets, list_context = narrowed(datasets, request.GET, fields=("name", "source_name", "target"), sorts=LIST_SORTS)
    page = page_of(datasets, request.GET)
    context = {"page": page, "has_sources": bool(sources_of(request.user)), **list_context}
    return render(request, "datasets/list.html", context)


@login_required
@require_GET
def dataset_detail(request: HttpRequest, pk: Any) -> HttpResponse:
    dataset = _dataset(request, pk)
    if dataset.counts:
        return _counted_detail(request, dataset)
    rows: list[tuple[Any, ...]]
    lines: list[int] | None
    try:
        names, rows = actions.first_rows(dataset, FIRST_LINES)
        lines = actions.first_lines(dataset, len(rows))
        damage = ""
    except DataError as error:
        names = ()
        rows = []
        lines = None
        damage = str(error)
    sort = request.GET.get("sort") if request.GET.get("sort") in COLUMN_ORDERS else "cut"
    columns = column_charts(dataset, sort)
    everything = "all" in request.GET
    in_file = dataset.rows + int(dataset.profile.get("rows_dropped") or 0)
    context = _rights(request, dataset) | {
        "profile": dataset.profile,
        "classes": class_bars(dataset.profile.get("classes", ()), dataset.profile.get("class_counts", ())),
        "columns": columns if everything else columns[:COLUMNS_SHOWN],
        "more": 0 if everything else max(0, len(columns) - COLUMNS_SHOWN),
        "sorts": COLUMN_ORDERS,
        "sort": sort,
        "names": names,
        "rows": list(enumerate(rows, 1)) if lines is None else list(zip(lines, rows, strict=True)),
        "called": "row" if lines is None else "line",
        "damage": damage,
        "in_file": in_file,
        "cells": in_file * max(1, len(dataset.columns)),
        "empty_cells": sum(c["empty"] for c in dataset.columns),
        "empty_card": empty_cells.card(dataset.profile.get("empty") or {}),
        "findings": findings_card(dataset.profile.get("findings") or ()),
        "runs": dataset.runs.kept().select_related("model")[:20],
        "models": dataset.models.kept().select_related("family")[:20],
        "experiments": dataset.experiments.kept()[:20],
        "workbenches": dataset.workbenches.kept().order_by("-used")[:20],
        "ignored": [c for c in dataset.columns if c["role"] == "ignored"],
        "previous": versions.visible_previous(dataset, request.user),
        "later": dataset.later.kept().first(),
        "changes": versions.changes(dataset),
        "same_again": dataset.previous.runs.visible_to(request.user).filter(owner=request.user, status="succeeded")[:8]
        if dataset.previous
        else [],
    }
    return render(request, "datasets/detail.html", context)


def _rights(request: HttpRequest, dataset: Dataset) -> dict[str, Any]:
    user: Any = request.user
    return {"dataset": dataset, "can_change": may_change(user, dataset), "can_delete": may_delete(user, dataset)}


def _counted_detail(request: HttpRequest, dataset: Dataset) -> HttpResponse:
    """Show a data set with counts of a source. Nothing on its page needs rows."""
    context = _rights(request, dataset) | {
        "profile": dataset.profile,
        "origin": dataset.origin,
        "classes": class_bars(dataset.profile["classes"], dataset.profile["class_counts"]),
        "runs": dataset.runs.kept().select_related("model")[:20],
        "models": dataset.models.kept().select_related("family")[:20],
    }
    return render(request, "datasets/counted.html", context)


@login_required
@require_GET
def dataset_counts(request: HttpRequest, pk: Any) -> FileResponse | HttpResponse:
    """Return the counts of a data set as a zip file, for `verify` and `train`."""
    dataset = _dataset(request, pk)
    with refusals_said(request):
        return actions.counts_file(dataset)
    return redirect("datasets:detail", dataset.pk)


@login_required
def dataset_version(request: HttpRequest, pk: Any) -> HttpResponse:
    """Upload a new version with the same columns."""
    dataset = _dataset(request, pk)
    context: dict[str, Any] = {"dataset": dataset, "limit": settings.MAX_UPLOAD_BYTES // 10**6}
    context["number"] = versions.next_number(dataset, request.user)
    if request.method == "POST":
        file = request.FILES.get("file")
        try:
            if file is None:
                raise DataError("Choose a file first.")
            name = file.name or "file.csv"
            if "compare" in request.POST:
                context["preview"] = versions.preview(dataset, owner=request.user, file=file, source_name=name)
                return _version_page(request, context)
            version = versions.new_version(
                dataset, owner=request.user, file=file, source_name=name, as_it_is="as_it_is" in request.POST
            )
            messages.success(request, f"{version.name} is stored: {version.rows:,} rows.")
            return redirect("datasets:detail", version.pk)
        except DataError as error:
            changed = isinstance(error, versions.ChangedForms)
            context |= {"error": str(error), "problems": error.problems, "changed_forms": changed}
        except BodyTooLarge as error:
            context |= {"error": str(error.detail), "problems": ()}
    return _version_page(request, context)


def _version_page(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """Render the form, or for htmx only the comparison, so that the chosen file stays in the form."""
    name = "datasets/_version_preview.html" if request.headers.get("HX-Request") else "datasets/version.html"
    return render(request, name, context)


@login_required
def dataset_edit(request: HttpRequest, pk: Any) -> HttpResponse:
    dataset = _dataset(request, pk)
    names = [c["name"] for c in dataset.columns]
    context: dict[str, Any] = {"dataset": dataset}
    if request.method == "POST":
        try:
            if "mend" in request.POST:
                actions.apply_remedy(dataset, remedy_of(request.POST))
            else:
                actions.update(dataset, name=request.POST.get("name"), choice=choice_of(request.POST, names))
            messages.success(request, "The columns were changed. Models trained before keep their columns.")
            return redirect("datasets:detail", dataset.pk)
        except (DataError, Busy, Unprocessable) as error:
            context |= {"error": getattr(error, "detail", str(error)), "problems": getattr(error, "problems", ())}
            dataset.refresh_from_db()
    suggested, codes = _suggested_codes(request, dataset)
    context |= {
        "columns": [
            c
            | {
                "codes": write_codes(
                    codes if c["name"] == suggested else c.get("special", ()), c.get("meanings") or {}
                ),
                "special": [decimal_text(v) for v in c.get("special", ())],
            }
            for c in dataset.columns
        ],
        "wanted": suggested,
        "target": dataset.target,
        "kinds": list(ColumnKind),
        "policies": list(MissingPolicy),
        "name": dataset.name,
    }
    return render(request, "datasets/edit.html", context)


def _suggested_codes(request: HttpRequest, dataset: Dataset) -> tuple[str, tuple[float, ...]]:
    """Return the numeric column and its codes that the query proposes, or ("", ())."""
    name = request.GET.get("column", "")
    is_numeric = any(c["name"] == name and c["kind"] == ColumnKind.NUMERIC for c in dataset.columns)
    try:
        codes = parse_codes(request.GET.get("codes", ""), name)
    except DataError:
        codes = ()
    return (name, codes) if is_numeric and codes and request.method == "GET" else ("", ())
