"""Show the steps from a file to a data set: upload, preview, discard, sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from octweb.core.parsers import BodyTooLarge
from octweb.core.problems import Busy, Conflict, Unprocessable
from octweb.datasets import actions, empty_cells, samples
from octweb.datasets.choice import ColumnChoice, ReadOptions, StagedFile
from octweb.datasets.figures import class_bars
from octweb.datasets.forms import (
    DECIMALS,
    DELIMITERS,
    ENCODINGS,
    THOUSANDS_SIGNS,
    as_query,
    choice_of,
    column_records,
    findings_card,
    join_words,
    moved_choices,
    reading_of,
    seen_mark,
    with_remedy,
)
from octweb.datasets.intake import FIRST_LINES
from octweb.datasets.models import Upload
from trainer.data.build import useless_columns
from trainer.data.parsing import around_notes
from trainer.data.parsing.codes import write_codes
from trainer.data.parsing.infer import guess_target
from trainer.data.samples import SAMPLES
from trainer.errors import DataError
from trainer.table import ColumnKind, MissingPolicy
from trainer.tree.numbers import decimal_text

SIGNS = {"delimiters": DELIMITERS, "encodings": ENCODINGS, "decimals": DECIMALS, "thousands_signs": THOUSANDS_SIGNS}
SHOWN_ROWS = 10  # the preview shows few rows, so that the form below stays visible
KIND_WORDS = {ColumnKind.NUMERIC: "number", ColumnKind.CATEGORICAL: "category", ColumnKind.BINARY: "0 or 1"}


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
    upload = Upload.objects.get_for(request, pk)
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
        first = actions.staged_rows(upload, FIRST_LINES)
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
    undecided = [record for record in records if record["open"]]
    kind_words |= {record["name"]: record["words"] for record in undecided}
    return {
        "raw": staged,
        "heads": [
            {"name": name, "words": kind_words.get(name, record_of[name]["words"]), "open": record_of[name]["open"]}
            for name in staged.names
        ],
        "classes": class_bars([label for label, _ in outlook.class_rows], [rows for _, rows in outlook.class_rows]),
        "target_names": staged.names,
        "taken_told": [t for t in records if not t["plain"] or t["said"]],
        "taken_plain": [t for t in records if t["plain"] and not t["said"]],
        "asks": any(t["open"] for t in records),
        # the refusal itself names the switches of the command line
        "asked": undecided if any(t["reason"] in outlook.refusal for t in undecided) else [],
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
        "findings": findings_card(own for own in outlook.findings if not record_of.get(own["column"], {}).get("open")),
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
    actions.discard(Upload.objects.get_for(request, pk))
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


def _choices(
    guesses: Any, choice: ColumnChoice, target: str, units: dict[str, str], empty_words: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return a record per column for the preview table: the guess, or the choice that replaces it."""
    features = [guess for guess in guesses if guess.name != target]
    left_out = {*(choice.ignore or ()), *useless_columns(features, choice.kinds or {})}
    special = {
        guess.name: [decimal_text(v) for v in (choice.special or {}).get(guess.name, guess.special)]
        for guess in guesses
    }
    return [
        {
            "name": guess.name,
            "kind": str((choice.kinds or {}).get(guess.name, guess.schema.kind)),
            "missing": str((choice.missing or {}).get(guess.name, guess.schema.missing)),
            "unknown": str((choice.unknown or {}).get(guess.name, guess.schema.unknown)),
            "unit": (choice.units or {}).get(guess.name, units.get(guess.name, "")),
            "special": special[guess.name],
            "code_list": join_words(empty_words.get(guess.name) or special[guess.name]),
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
