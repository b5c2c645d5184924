"""Show recorded decisions: the list of a model, one decision, and the letter for the person."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request

from octweb.core.attachments import as_file
from octweb.core.ownership import may_change
from octweb.core.pagination import Pages
from octweb.core.problems import flatten
from octweb.decisions import collecting
from octweb.decisions.bulk import MEMBERS, members_of
from octweb.decisions.erasing import USER_REASONS, erase_decisions, erase_subject
from octweb.decisions.later import LaterRow, add_later_rows
from octweb.decisions.letter import letter_context, letter_file, record_context
from octweb.decisions.listing import ALL, OBJECTION, OBJECTIONS, OUTCOME, OVERRIDE, decisions_of, summaries, versions_of
from octweb.decisions.models import ChainEntry, Kind
from octweb.decisions.reading import (
    DecisionRecord,
    chain_facts,
    completable_models_of,
    find_decision,
    find_model,
    record_look,
    refuse_to_complete,
    unrecorded_of,
)
from octweb.dossier import pdf
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle.actions import MAX_KEEP_DAYS, set_recording
from octweb.registry.models import Recording, TreeModel
from octweb.registry.prediction.recording import by_text, is_recorded
from trainer.tree.numbers import count_words
from trainer.tree.render.palette import swatch

PAGE_ROWS = 50
MAX_COUNT = 10_000  # a page counts at most this many rows, because counting a million takes seconds
PERSON_ROWS = 500  # maximum decisions about one person on a page
MAX_CHANGES = 4  # maximum number of smallest changes in a letter
REFUSED_WORDS = {  # reasons why a row got no answer
    "empty": "a cell was empty",
    "unknown": "a value that training did not have",
    "value": "a value of the wrong kind",
    "column": "a column that the model does not have",
    "row": "no column names",
}
FILTER_NAMES = ("since", "until", "answer", "refused", "leaf", "version", "outcome", "overridden", "objection")


class _RowsOfPage(Pages):
    """Pagination of a list by cursor only."""

    cursor_key = "number"
    cursor_time = "at"

    def paginate_queryset(self, queryset: QuerySet, request: Request, view: Any = None) -> list[Any]:
        """Return the rows of the page. Raises ValidationError for a page number."""
        if self.page_query_param in request.query_params:
            raise ValidationError({self.page_query_param: "This list has no page numbers. Use Newer and Older."})
        return super().paginate_queryset(queryset, request, view)

    def count_rows(self, queryset: QuerySet) -> int:
        """Return the number of rows, at most MAX_COUNT + 1."""
        return _count(queryset)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def decision_list(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """List the decisions of a model. A search by person uses POST, so that no URL or log contains the reference."""
    model = find_model(request.user, pk)
    query = {name: request.GET[name] for name in FILTER_NAMES if request.GET.get(name)}
    subject = request.POST.get("subject", "").strip() if request.method == "POST" else ""
    pages = _RowsOfPage()
    pages.page_size = PERSON_ROWS if subject else PAGE_ROWS
    context: dict[str, Any] = {"trouble": "", "rows": [], "count": 0, "counted": "0", "newer": None, "older": None}
    try:
        models = {m.pk: m for m in versions_of(request.user, model, query.get("version", ""))}
        entries = decisions_of(request.user, model, query, subject)
        rows = pages.paginate_queryset(entries, Request(request), pages)
        context |= {
            "rows": [
                row | {"look": _look(model, row["label"]), "why": REFUSED_WORDS.get(row["refused"], row["refused"])}
                for row in summaries(rows, models)
            ],
            "count": pages.count,
            "counted": _count_text(pages.count),
            "newer": None if subject else pages.previous_cursor,
            "older": None if subject else pages.next_cursor,
        }
    except APIException as error:
        context["trouble"] = "; ".join(e["detail"] for e in flatten(error.detail))
    return render(request, "decisions/list.html", context | _list_context(request, model, query, subject))


def _list_context(request: HttpRequest, model: TreeModel, query: Mapping[str, str], subject: str) -> dict[str, Any]:
    own = ChainEntry.objects.filter(model=model.pk).order_by()
    objected = own.filter(kind=Kind.OBJECTION).exclude(payload="")
    return {
        "model": model,
        "query": query,
        "subject": subject,
        "is_recorded": is_recorded(model),
        "can_complete": may_change(request.user, model),
        "can_keep": may_change(request.user, model) and model.deleted_at is None,
        "recordings": Recording.choices,
        "site_days": settings.RECORD_KEEP_DAYS,
        "max_days": MAX_KEEP_DAYS,
        "site_demands": bool(settings.RECORD),
        "unrecorded": unrecorded_of(model),
        "chain": chain_facts(),
        "classes": model_file(model).tree.classes,
        "leaves": [leaf.id for leaf in model_file(model).tree.leaves],
        "versions": [m.version for m in versions_of(request.user, model, ALL)],
        "objections": OBJECTIONS,
        "erasure_reasons": USER_REASONS,
        "is_empty": not own.filter(kind=Kind.DECISION).exists(),
        "total": _count_text(_count(own.filter(kind=Kind.DECISION))),
        "with_outcome": _count_text(_about(own, OUTCOME)),
        "overridden": _count_text(_about(own, OVERRIDE)),
        "objected": _count_text(_count(objected.values("about").distinct())),
    }


def _about(own: Any, kind: str) -> int:
    """Count the decisions with a record of this kind that is not erased."""
    return _count(own.filter(kind=kind, label__isnull=False).values("about").distinct())


def _count(rows: Any) -> int:
    """Count at most MAX_COUNT + 1 rows."""
    return int(rows.order_by()[: MAX_COUNT + 1].count())


def _count_text(count: int) -> str:
    return f"more than {MAX_COUNT:,}" if count > MAX_COUNT else f"{count:,}"


def _look(model: TreeModel, label: str | None) -> str | None:
    classes = model_file(model).tree.classes
    return swatch(classes.index(label), len(classes)) if label in classes else None


@login_required
@require_POST
def keep(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Change what is kept of the model's answers, and for how long."""
    model: TreeModel = TreeModel.objects.select_related("family").get_changeable(request.user, pk)
    days = request.POST.get("keep_days", "").strip()
    try:
        if days and not (days.isascii() and days.isdecimal() and len(days) < 8):
            raise ValidationError({"keep_days": f"'{days[:20]}' is not a number of days."})
        recording = request.POST.get("recording", model.recording)
        reason = request.POST.get("reason", "")
        set_recording(model, by=request.user, recording=recording, keep_days=int(days) if days else None, reason=reason)
    except ValidationError as error:
        messages.error(request, "; ".join(e["detail"] for e in flatten(error.detail)))
    else:
        words = "the record of each answer" if is_recorded(model) else "counts only"
        messages.success(
            request, f"Kept: {words}. Records are erased after {count_words(model.days_of_records, 'day')}."
        )
    return redirect("records:list", pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def recorded_decision(request: HttpRequest, pk: uuid.UUID, decision: uuid.UUID) -> HttpResponse:
    """Show a decision as it was given. POST records an outcome, an override or an objection."""
    record = _own_record(request, pk, decision)
    typed: Mapping[str, str] = {}
    if request.method == "POST":
        kind = request.POST.get("kind", "")
        typed = {name: request.POST.get(name, "") for name in MEMBERS.get(kind, ())} | {"kind": kind}
        if _add(request, record, kind):
            return redirect("records:decision", pk, decision)
    context = record_context(record, request.user) | {"can_complete": may_change(request.user, record.model)}
    record_look(record, by_text(request.user, None), "page")
    last = context["facts"]["objection"] or {}
    objection = typed if typed.get("kind") == OBJECTION else {name: last.get(name, "") for name in MEMBERS[OBJECTION]}
    return render(request, "decisions/decision.html", context | {"typed": typed, "objection": objection})


def _add(request: HttpRequest, record: DecisionRecord, kind: str) -> bool:
    """Record what the form says, and return True. If it is refused, say why in a message and return False."""
    if kind not in MEMBERS:
        messages.error(request, f"'{kind[:20]}' is none of {', '.join(MEMBERS)}.")
        return False
    try:
        members = members_of(kind, {name: request.POST[name] for name in MEMBERS[kind] if request.POST.get(name)})
        rows = [LaterRow(record.entry.key, members)]
        added = add_later_rows(kind, rows, user=request.user, by=by_text(request.user, None), single=True).added
    except APIException as error:
        messages.error(request, "; ".join(e["detail"] for e in flatten(error.detail)))
        return False
    messages.success(request, f"The {kind} is on record." if added else f"This {kind} was on record already.")
    return True


@login_required
@require_POST
def erase(request: HttpRequest, pk: uuid.UUID, decision: uuid.UUID) -> HttpResponse:
    """Erase the content of a decision if the form confirms it."""
    record = _own_record(request, pk, decision)
    refuse_to_complete(request.user, record.model)
    why = _erasure_reason(request)
    if why is not None and erase_decisions([record.entry.key], by=by_text(request.user, None), why=why):
        messages.success(request, "The content of this decision was erased.")
    return redirect("records:decision", pk, decision)


@login_required
@require_POST
def erase_person(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Erase all decisions about a person if the form confirms it.

    It covers the user's models, or all models for administrators.
    """
    model = find_model(request.user, pk)
    refuse_to_complete(request.user, model)
    why = _erasure_reason(request)
    if why is not None:
        collecting.collect()
        models = list(completable_models_of(request.user).values_list("pk", flat=True))
        by = by_text(request.user, None)
        try:
            count = len(erase_subject(request.POST.get("subject", ""), by=by, why=why, models=models))
        except ValidationError as error:
            messages.error(request, "; ".join(e["detail"] for e in flatten(error.detail)))
        else:
            messages.success(request, f"Erased of this person: {count_words(count, 'decision')}.")
    return redirect("records:list", model.pk)


def _erasure_reason(request: HttpRequest) -> str | None:
    """Return the reason in the form.

    If the form is not confirmed or has no known reason, add a message and return None.
    """
    why = request.POST.get("why", "")
    if why in USER_REASONS and "sure" in request.POST:
        return why
    messages.error(request, "Nothing was erased. Choose the reason, and confirm that it cannot be undone.")
    return None


@login_required
@require_safe
@never_cache
def letter(request: HttpRequest, pk: uuid.UUID, decision: uuid.UUID) -> HttpResponse:
    """Show the letter that tells the person the answer, its reasons, and how to object."""
    context = letter_context(_own_record(request, pk, decision), request.user, by_text(request.user, None))
    return render(request, "decisions/letter.html", context | {"has_pdf": pdf.can_print()})


@login_required
@require_safe
@never_cache
def letter_pdf(request: HttpRequest, pk: uuid.UUID, decision: uuid.UUID) -> HttpResponse:
    """Return the letter as PDF. 404 for an erased decision, and if this server has no PDF library."""
    if not pdf.can_print():
        raise Http404("This server has no library for PDF. Open the letter and print it.")
    record = _own_record(request, pk, decision)
    if record.is_erased:
        raise Http404("The content of this decision was erased, so there is no letter.")
    content = letter_file(record, "pdf", user=request.user, by=by_text(request.user, None))
    return as_file(HttpResponse(content, content_type="application/pdf"), f"decision-{decision}.pdf")


def _own_record(request: HttpRequest, pk: uuid.UUID, decision: uuid.UUID) -> DecisionRecord:
    record = find_decision(request.user, decision)
    if record.model.pk != pk:
        raise Http404("This decision was given by another model.")
    return record
