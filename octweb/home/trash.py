"""Delete objects after a confirmation, and restore them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from octweb.audit import actions as audit
from octweb.core.deleting import protecting
from octweb.core.problems import Conflict
from octweb.home.kinds import KINDS, DeletableKind, users_of


@login_required
def delete(request: HttpRequest, kind: str, pk: Any) -> HttpResponse:
    """Show the consequences and ask for confirmation. A POST deletes."""
    known = _kind(kind)
    thing = known.model._default_manager.get_deletable(request.user, pk)
    if request.method == "POST":
        return _delete(request, kind, thing)
    context = {
        "thing": thing,
        "noun": known.noun,
        "needed": protecting(thing),
        "depends": known.depends(thing),
        "uses": users_of(thing),
        "back": reverse(known.page, args=[thing.pk]),
        "days": known.model.back_within().days,
    }
    return render(request, "home/delete.html", context)


def _delete(request: HttpRequest, kind: str, thing: Any) -> HttpResponse:
    """Delete an object. The next page offers to undo it."""
    known = _kind(kind)
    try:
        with transaction.atomic():
            known.delete(thing)
            audit.record("deleted", thing, by=request.user)
    except Conflict as error:
        messages.warning(request, str(error.detail))
        return redirect(known.page, thing.pk)
    context = {"kind": kind, "thing": thing, "days": known.model.back_within().days}
    messages.info(request, render_to_string("home/_undo.html", context, request))
    return redirect(known.after)


@login_required
@require_GET
def deleted(request: HttpRequest) -> HttpResponse:
    """List deleted objects with the dates until which they can be restored."""
    rows = [
        {"kind": name, "noun": kind.noun, "thing": thing, "until": thing.deleted_at + kind.model.back_within()}
        for name, kind in KINDS.items()
        for thing in kind.model._default_manager.deleted_by(request.user).order_by("-deleted_at")[:200]
    ]
    rows.sort(key=lambda row: row["thing"].deleted_at, reverse=True)
    return render(request, "home/deleted.html", {"rows": rows})


@login_required
@require_POST
def undelete(request: HttpRequest, kind: str, pk: Any) -> HttpResponse:
    known = _kind(kind)
    thing = known.model._default_manager.deleted_by(request.user).filter(pk=pk).first()
    if thing is None:
        raise Http404(
            "This item is not among the deleted items that you can restore. "
            "It may have been restored or removed for good; see the list of deleted items."
        )
    try:
        with transaction.atomic():
            known.bring_back(thing)
            audit.record("brought back", thing, by=request.user)
    except Conflict as error:
        messages.warning(request, str(error.detail))
        return redirect("deleted")
    messages.success(request, f"{thing} is back.")
    return redirect(known.page, thing.pk)


def _kind(name: str) -> DeletableKind:
    if name not in KINDS:
        raise Http404("There is nothing of this kind.")
    return KINDS[name]
