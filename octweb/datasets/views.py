"""Show data sets: list, upload, preview, one data set, its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, OuterRef, Q, Subquery
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from octweb.core.lists import narrowed, page_of
from octweb.core.parsers import BodyTooLarge
from octweb.core.problems import Busy, Conflict, Unprocessable
from octweb.core.refusals import refusals_said
from octweb.datasets import actions, empty_cells, samples, versions
from octweb.datasets.choice import ColumnChoice, ReadOptions, StagedFile
from octweb.datasets.forms import (
    DECIMALS,
    DELIMITERS,
    ENCODINGS,
    THOUSANDS_SIGNS,
    as_query,
    choice_of,
    column_records,
    findings_card,
    moved_choices,
    reading_of,
    remedy_of,
    seen_mark,
    with_remedy,
)  # fmt: skip
from octweb.datasets.intake import FIRST_LINES
from octweb.datasets.models import Dataset, Upload
from octweb.datasets.sources import sources_of
from trainer.data.build import useless_columns
from trainer.data.parsing import around_notes
from trainer.data.parsing.codes import parse_codes, write_codes
from trainer.data.parsing.infer import guess_target
from trainer.data.samples import SAMPLES
from trainer.errors import DataError
from trainer.table import ColumnKind, MissingPolicy
from trainer.tree.numbers import decimal_text
from trainer.tree.render.palette import swatch

SIGNS = {"delimiters": DELIMITERS, "encodings": ENCODINGS, "decimals": DECIMALS, "thousands_signs": THOUSANDS_SIGNS}
PREVIEW_ROWS = FIRST_LINES
SHOWN_ROWS = 10  # the preview shows few rows, so that the form below stays visible
KIND_WORDS = {ColumnKind.NUMERIC: "number", ColumnKind.CATEGORICAL: "category", ColumnKind.BINARY: "0 or 1"}
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
SORTS = {"cut": "best single cut", "file": "order in the file", "name": "name", "missing": "missing"}


def _dataset(request: HttpRequest, pk: Any) -> Dataset:
    return Dataset.objects.select_related("owner").get_visible(request.user, pk)


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
def dataset_new(request: HttpRequest) -> HttpResponse:
    """Upload a file, the first step. A request by script gets JSON with the URL of the second step."""
    reading = reading_of(request.POST)
    context: dict[str, Any] = {"samples": SAMPLES, "limit": settings.MAX_UPLOAD_BYTES // 10**6}
    context |= {"reading": reading, **SIGNS}
    if request.method != "POST":
        return render(request, "datasets/new.html", context)
    by_script = request.headers.get("X-Requested-With") == "XMLHttpRequest"
    file = request.FILES.get("file")
    status = 200
    try:
        if file is None:
            raise DataError("Choose a file first.")
        upload = actions.stage(owner=request.user, file=file, source_name=file.name or "file.csv", reading=reading)
        url = reverse("datasets:preview", args=[upload.pk]) + as_query(reading)
        return JsonResponse({"url": url}, status=201) if by_script else redirect(url)
    except DataError as error:
        context |= {"error": str(error), "problems": error.problems}
    except (BodyTooLarge, Busy) as error:
        context |= {"error": str(error.detail), "problems": ()}
        status = 503 if isinstance(error, Busy) else 200
    if by_script:
        return JsonResponse({"error": context["error"], "problems": list(context["problems"])}, status=status)
    return render(request, "datasets/new.html", context, status=status)


@login_required
def dataset_preview(request: HttpRequest, pk: Any) -> HttpResponse:
    """Choose read options, kinds, roles and target, the second step. Only `confirm` stores a data set."""
    upload = Upload.objects.get_visible(request.user, pk)
    if upload.origin:
        return redirect("sources:preview", upload.pk)
    return preview_page(request, upload, _store_or_explain)


def preview_page(
    request: HttpRequest,
    upload: Upload,
    confirm: Callable[[HttpRequest, Upload, ReadOptions, ColumnChoice], HttpResponse | dict[str, Any]],
    *,
    template: str = "datasets/preview.html",
    more: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """Render the preview of an upload or a sample.

    A confirmed choice goes to `confirm`, which returns a response, or the context of an error. `more` is added to the
    context.
    """
    post = request.POST
    shown_names = [guess["schema"]["name"] for guess in upload.found["guesses"]]
    if "mend" in post:
        post = with_remedy(post, shown_names)
    data = post if request.method == "POST" else request.GET
    reading = reading_of(data)
    context: dict[str, Any] = {"upload": upload, "reading": reading, "words": data.get("missing_words", ""), **SIGNS}
    context |= more or {}
    try:
        staged = actions.preview(upload, reading)
        first = actions.staged_rows(upload, PREVIEW_ROWS)
    except DataError as error:
        context |= {"error": str(error), "problems": error.problems}
        return render(request, template, context)
    guesses = staged.guesses
    names = [guess.name for guess in guesses]
    seen = seen_mark(reading, names)
    # choices refer to columns by position, which may mean another column after other read options
    same = post.get("seen", seen) == seen
    if "mend" in post and post.get("seen") == seen_mark(reading_of(request.POST), shown_names):
        post = moved_choices(post, shown_names, names)
        same = True
    choice, unread = _parse_choices(post if request.method == "POST" and same else None, data, staged, names)
    policy = request.POST.get("missing_all", "")
    if policy in list(MissingPolicy):
        choice = empty_cells.set_policy_everywhere(choice, guesses, MissingPolicy(policy))
    if "confirm" in request.POST and not same:
        context |= {"error": "The file is now read in another way. Look at its columns, then store it.", "problems": ()}
    elif unread is not None:
        context |= {"error": unread, "problems": ()}
    elif "confirm" in request.POST:
        answer = confirm(request, upload, reading, choice)
        if isinstance(answer, HttpResponse):
            return answer
        context |= answer
    context |= _file_context(upload, staged, reading, choice)
    context |= {
        "rows": list(zip(staged.lines, first, strict=True))[:SHOWN_ROWS],
        "name": request.POST.get("name") or upload.source_name.split(".")[0],
        "seen": seen,
        "missing_all": policy,
    }
    return render(request, template, context)


def _file_context(upload: Upload, staged: StagedFile, reading: ReadOptions, choice: ColumnChoice) -> dict[str, Any]:
    """Return the part of the context of a preview that describes the columns and classes of the file."""
    names = [guess.name for guess in staged.guesses]
    guessed = guess_target(staged.guesses)[0]
    guessed = guessed if guessed in staged.names else upload.found["target"]
    outlook = actions.outlook(upload, choice)
    chosen_kinds = dict(reading.given.get("kinds", {}))
    records = column_records(staged.reading.columns.values(), staged.names, chosen_kinds)
    columns = _choices(
        staged.guesses, choice, choice.target or guessed, staged.reading.units(), reading.given.get("missing", {})
    )
    kind_words = {column["name"]: _kind_words(column, choice.target or guessed) for column in columns}
    record_of = {record["name"]: record for record in records}  # the list itself begins with what needs a decision
    return {
        "raw": staged,
        "heads": [
            {"name": name, "words": kind_words.get(name, record_of[name]["words"]), "open": record_of[name]["open"]}
            for name in staged.names
        ],
        "classes": _classes([label for label, _ in outlook.class_rows], [rows for _, rows in outlook.class_rows]),
        "target_names": staged.names,
        "taken_told": [t for t in records if not t["plain"] or t["said"]],
        "taken_plain": [t for t in records if t["plain"] and not t["said"]],
        "asks": any(t["open"] for t in records),
        "around": [*around_notes(staged.detected.top, staged.detected.bottom), *staged.detected.remarks],
        "called": "line" if staged.detected.format == "csv" else "row",
        "columns": columns,
        "has_column_problems": any(column["problems"] for column in columns),
        "target": choice.target or guessed,
        "kinds": list(ColumnKind),
        "policies": list(MissingPolicy),
        "total": staged.rows,
        "outlook": outlook,
        "empty_card": empty_cells.card(outlook.empty),
        "findings": findings_card(outlook.findings),
        "merged": [name for name in staged.names if name in reading.given.get("merge", {})],
        "chosen_out": sorted(set(choice.ignore or ()) - {choice.target or guessed}, key=names.index),
    }


def _parse_choices(
    post: QueryDict | None, data: QueryDict, staged: StagedFile, names: list[str]
) -> tuple[ColumnChoice, str | None]:
    """Return the choices about columns, and the error message if they are invalid. The query may name the target."""
    choice = ColumnChoice()
    unread = None
    if post is not None:
        try:
            choice = choice_of(post, names)
        except DataError as error:
            unread = str(error)
    still_open = {column.name for column in staged.reading.columns.values() if column.taken_for == "ask"}
    # the form preselects a kind for a column with an open question, which is not a choice of the user
    kinds = {name: kind for name, kind in (choice.kinds or {}).items() if name not in still_open}
    choice = replace(choice, kinds=kinds or None)
    if choice.ignore:
        # the page ignores these columns by default, which is not a choice of the user; parts of dates stay ignored
        features = [guess for guess in staged.guesses if guess.name != choice.target]
        proposed = set(useless_columns(features, choice.kinds or {})) & set(staged.names)
        choice = replace(choice, ignore=[name for name in choice.ignore if name not in proposed])
    if choice.target is None or choice.target not in staged.names:
        choice = replace(choice, target=data.get("target") if data.get("target") in staged.names else None)
    return choice, unread


def _store_or_explain(
    request: HttpRequest, upload: Upload, reading: ReadOptions, choice: ColumnChoice
) -> HttpResponse | dict[str, Any]:
    """Store the data set and redirect to its page, or return the error for the preview."""
    try:
        dataset = actions.confirm(upload, name=request.POST.get("name", ""), reading=reading, choice=choice)
    except DataError as error:
        return {"error": str(error), "problems": error.problems}
    except (Busy, Unprocessable) as error:
        return {"error": str(error.detail), "problems": ()}
    except Conflict as error:
        messages.warning(request, str(error.detail))
        return redirect("datasets:list")
    messages.success(request, f"{dataset.name} is stored: {dataset.rows:,} rows.")
    return redirect("datasets:detail", dataset.pk)


@login_required
@require_POST
def upload_discard(request: HttpRequest, pk: Any) -> HttpResponse:
    actions.discard(Upload.objects.get_visible(request.user, pk))
    messages.info(request, "The file was removed; nothing was stored.")
    return redirect("datasets:new")


@login_required
@require_POST
def dataset_sample(request: HttpRequest, slug: str) -> HttpResponse:
    try:
        dataset = samples.load(owner=request.user, slug=slug)
    except KeyError as error:
        raise Http404("There is no such sample.") from error
    return redirect("datasets:detail", dataset.pk)


@login_required
@require_GET
def dataset_detail(request: HttpRequest, pk: Any) -> HttpResponse:
    dataset = _dataset(request, pk)
    if dataset.counts:
        return _counted_detail(request, dataset)
    rows: list[tuple[Any, ...]]
    lines: list[int] | None
    try:
        names, rows = actions.first_rows(dataset, PREVIEW_ROWS)
        lines = actions.first_lines(dataset, len(rows))
        damage = ""
    except DataError as error:
        names = ()
        rows = []
        lines = None
        damage = str(error)
    sort = request.GET.get("sort") if request.GET.get("sort") in SORTS else "cut"
    columns = _profile_columns(dataset, sort)
    everything = "all" in request.GET
    in_file = dataset.rows + int(dataset.profile.get("rows_dropped") or 0)
    context = {
        "dataset": dataset,
        "profile": dataset.profile,
        "classes": _classes(dataset.profile.get("classes", ()), dataset.profile.get("class_counts", ())),
        "columns": columns if everything else columns[:COLUMNS_SHOWN],
        "more": 0 if everything else max(0, len(columns) - COLUMNS_SHOWN),
        "sorts": SORTS,
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
        "same_again": dataset.previous.runs.kept().filter(owner=request.user, status="succeeded")[:8]
        if dataset.previous
        else [],
    }
    return render(request, "datasets/detail.html", context)


def _counted_detail(request: HttpRequest, dataset: Dataset) -> HttpResponse:
    """Show a data set with counts of a source. Nothing on its page needs rows."""
    context = {
        "dataset": dataset,
        "profile": dataset.profile,
        "origin": dataset.origin,
        "classes": _classes(dataset.profile["classes"], dataset.profile["class_counts"]),
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
    if request.method == "POST":
        file = request.FILES.get("file")
        try:
            if file is None:
                raise DataError("Choose a file first.")
            version = versions.new_version(
                dataset,
                owner=request.user,
                file=file,
                source_name=file.name or "file.csv",
                as_it_is="as_it_is" in request.POST,
            )
            messages.success(request, f"{version.name} is stored: {version.rows:,} rows.")
            return redirect("datasets:detail", version.pk)
        except DataError as error:
            changed = isinstance(error, versions.ChangedForms)
            context |= {"error": str(error), "problems": error.problems, "changed_forms": changed}
        except BodyTooLarge as error:
            context |= {"error": str(error.detail), "problems": ()}
    return render(request, "datasets/version.html", context)


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


def _choices(
    guesses: Any, choice: ColumnChoice, target: str, units: dict[str, str], empty_words: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return a record per column for the preview table: the guess, or the choice that replaces it."""
    features = [guess for guess in guesses if guess.name != target]
    left_out = {*(choice.ignore or ()), *useless_columns(features, choice.kinds or {})}
    return [
        {
            "name": guess.name,
            "kind": str((choice.kinds or {}).get(guess.name, guess.schema.kind)),
            "missing": str((choice.missing or {}).get(guess.name, guess.schema.missing)),
            "unknown": str((choice.unknown or {}).get(guess.name, guess.schema.unknown)),
            "unit": (choice.units or {}).get(guess.name, units.get(guess.name, "")),
            "special": [decimal_text(v) for v in (choice.special or {}).get(guess.name, guess.special)],
            "codes": write_codes(
                (choice.special or {}).get(guess.name, guess.special), (choice.meanings or {}).get(guess.name, {})
            ),
            "empty_codes": empty_words.get(guess.name, ()),
            "role": "ignored" if guess.name in left_out else "feature",
            "reason": guess.reason,
            "empty": guess.missing,
            "distinct": guess.distinct,
            "examples": guess.examples,
            "problems": guess.problems,
        }
        for guess in guesses
    ]


def _kind_words(column: Mapping[str, Any], target: str) -> str:
    """Return the words above a column in the preview: its kind, "to predict" or "left out"."""
    if column["name"] == target:
        return "to predict"
    return "left out" if column["role"] == "ignored" else KIND_WORDS[ColumnKind(column["kind"])]


def _classes(classes: Sequence[str], counts: Sequence[int]) -> list[dict[str, Any]]:
    """Return the classes by size, with start and width of each in the bar."""
    pairs = sorted(zip(counts, classes, range(1000), strict=False), key=lambda p: -p[0])
    total = max(1, sum(count for count, _, _ in pairs))
    out = []
    start = 0.0
    for count, label, k in pairs:
        percent = 100 * count / total
        out.append(
            {
                "label": label,
                "rows": count,
                "share": count / total,
                "start": start,
                "percent": percent,
                "colour": swatch(k, len(classes)),
            }
        )
        start += percent
    return out


def _profile_columns(dataset: Dataset, sort: str) -> list[dict[str, Any]]:
    """Return the columns of the profile, sorted. Their histograms are rectangles, stacked by class."""
    records = {c["name"]: c for c in dataset.columns}
    columns = []
    classes = len(dataset.profile.get("classes", ()))
    for column in dataset.profile.get("columns", ()):
        histogram = column["histogram"]
        top = max((sum(bin_) for bin_ in histogram), default=0) or 1
        width = 100 / max(1, len(histogram))
        bars = []
        for b, bin_ in enumerate(histogram):
            base = 24.0
            for k, count in enumerate(bin_):
                if count:
                    height = 24 * count / top
                    base -= height
                    bars.append(
                        {
                            "x": round(b * width, 2),
                            "y": round(base, 2),
                            "w": round(width * 0.9, 2),
                            "h": round(height, 2),
                            "colour": (look := swatch(k, classes)),
                            "hatch": look[-1] if " h" in look else "",
                        }
                    )
        columns.append(column | {"bars_drawn": bars, "record": records.get(column["name"], {})})
    keys = {
        "cut": lambda c: -c["cut_accuracy"],
        "file": lambda c: 0,
        "name": lambda c: c["name"].lower(),
        "missing": lambda c: -c["record"].get("empty", 0),
    }
    return sorted(columns, key=keys[sort])
