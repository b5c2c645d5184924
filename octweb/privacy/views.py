"""Pages of personal data: what is stored, and the erasure of rows of a data set."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from octweb.core.ownership import check_deletable
from octweb.core.problems import Busy, Conflict, Unprocessable
from octweb.datasets import erasing
from octweb.datasets.models import Dataset
from octweb.privacy import actions
from octweb.privacy.holdings import holdings
from octweb.privacy.training_rows import trained_models, uses_of
from trainer.errors import DataError


@login_required
@require_safe
def privacy(request: HttpRequest) -> HttpResponse:
    """Show what is stored about persons: everything to administrators, and to others what is theirs."""
    whose = chosen_user(request.user, request.GET.get("user", ""))
    context = {"holdings": holdings(whose), "whose": whose, "is_own": whose == request.user}
    return render(request, "privacy/holdings.html", context)


def chosen_user(user: Any, name: str) -> Any | None:
    """Return the user of a list; None means the whole installation. Raises Http404 if `user` may not see that user."""
    if not name:
        return None if user.is_staff else user
    chosen = get_user_model().objects.filter(username=name).first()
    if chosen is None or not (user.is_staff or chosen == user):
        raise Http404(f"There is no user '{name[:150]}', or you may not see this user's data. Check the name.")
    return chosen


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def erase_rows(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Find rows of a data set by a cell, and erase the chosen ones."""
    dataset = Dataset.objects.get_for(request, pk)
    if request.method == "POST":
        check_deletable(request.user, dataset)
    columns = [column["name"] for column in dataset.columns]
    column = request.GET.get("column", "")
    value = request.GET.get("value", "")
    context: dict[str, Any] = {"dataset": dataset, "columns": columns, "column": column, "value": value}
    try:
        if request.method == "POST":
            return _erase(request, dataset)
        if column:
            context |= _search_rows(dataset, column, value, request.user)
    except (DataError, Conflict, Busy, Unprocessable) as error:
        context["error"] = getattr(error, "detail", str(error))
    context["reasons"] = erasing.REASONS
    return render(request, "privacy/erase_rows.html", context)


def _search_rows(dataset: Dataset, column: str, value: str, user: Any) -> dict[str, Any]:
    """Return the rows that match, the versions that have them, and the models that trained on them."""
    rows = erasing.find_rows(dataset, column, value)
    having = erasing.versions_with(dataset, [row.number for row in rows], by=user) if rows else {}
    return {
        "searched": True,
        "rows": rows,
        "versions": list(having),
        "uses": trained_models(uses_of(having)),
    }


def _erase(request: HttpRequest, dataset: Dataset) -> HttpResponse:
    """Erase the rows of the form. Raises DataError and Conflict."""
    texts = request.POST.getlist("row")[: erasing.MAX_ERASED + 1]
    if not all(text.isascii() and text.isdigit() and len(text) <= 9 for text in texts):
        raise DataError("A row is chosen by its number. Choose the rows again.")
    erasure = actions.erase_rows(
        dataset,
        [int(text) for text in texts],
        by=request.user,
        why=request.POST.get("why", ""),
        remove="remove" in request.POST,
    )
    messages.success(request, f"{erasure.version} is stored: {erasure.version.rows:,} rows.")
    for version in erasure.removed:
        messages.info(request, f"The rows of {version} were removed.")
    for use in erasure.models:
        messages.warning(request, f"{use.model} {_use_words(use)}. Train it again on the new version.")
    return redirect("datasets:detail", erasure.version.pk)


def _use_words(use: Any) -> str:
    return f"trained on {use.training} of the erased rows" if use.is_known else "may have trained on the erased rows"
