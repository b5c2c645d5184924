"""Show the inventory of models, and handle the forms of oversight on the page Life."""

from __future__ import annotations

import uuid
from datetime import date
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.views.decorators.http import require_POST, require_safe
from rest_framework.exceptions import ValidationError

from octweb.core.lists import page_of
from octweb.life.page import back_to_life, own_model, refusals_as_messages
from octweb.oversight import actions
from octweb.oversight.record import inventory_models, inventory_rows


@login_required
@require_safe
def inventory(request: HttpRequest) -> HttpResponse:
    """List approved and retired models, or only those that are due for a review."""
    today = timezone.localdate()
    due = "due" in request.GET
    page = page_of(inventory_models(request.user, due=due, today=today), request.GET)
    context = {
        "page": page,
        "rows": inventory_rows(list(page), today),
        "due": due,
        "count_due": inventory_models(request.user, due=True, today=today).count(),
    }
    return render(request, "oversight/inventory.html", context)


@login_required
@require_POST
def state(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Store purpose, tier and review dates from the form."""
    model = own_model(request, pk)
    with refusals_as_messages(request):
        values: dict[str, Any] = {
            name: request.POST.get(name, "").replace("\x00", "").strip()
            for name in ("purpose", "exposure", "consequence")
        }
        values["review_on"] = _day(request.POST.get("review_on", ""))
        for name in ("review_days", "outcome_days"):
            values[name] = _days(name, request.POST.get(name, ""))
        actions.state_oversight(model, by=request.user, values=values)
        messages.success(request, "Purpose, tier and review date are stored.")
    return back_to_life(pk)


@login_required
@require_POST
def review(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Record the result of a review from the form."""
    model = own_model(request, pk)
    with refusals_as_messages(request):
        day = _day(request.POST.get("review_on", ""))
        actions.finish_review(model, by=request.user, finding=request.POST.get("finding", ""), review_on=day)
        messages.success(request, "The review is a record.")
    return back_to_life(pk)


def _day(text: str) -> date | None:
    """Return the day of a form field, or None if it is empty. Raises ValidationError."""
    try:
        day = parse_date(text.strip()) if text.strip() else None
    except ValueError:
        day = None
    if day is None and text.strip():
        raise ValidationError({"review_on": f"'{text[:20]}' is not a day. Write it as 2027-02-27."})
    return day


def _days(name: str, text: str) -> int | None:
    """Return the number of days of a form field, or None if it is empty. Raises ValidationError."""
    text = text.strip()
    if text and not (text.isascii() and text.isdigit() and len(text) < 6):
        raise ValidationError({name: f"'{text[:20]}' is not a whole number of days."})
    return int(text) if text else None
