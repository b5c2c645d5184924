"""Pages of teams: members, roles, and the team of a data set or model."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods
from rest_framework.exceptions import APIException

from octweb.core.models import Team, TeamRole
from octweb.core.ownership import CHANGING_ROLES, may_delete, refusal, team_roles
from octweb.core.problems import flatten
from octweb.datasets.models import Dataset
from octweb.registry.models import TreeModel
from octweb.teams import actions

SHOWN = 50  # data sets and models on the page of a team
ABOUT = {
    "owner": "manages members, and deletes",
    "editor": "uploads, trains and edits",
    "reader": "sees everything, and predicts",
    "reviewer": "like a reader; also approves models where the installation allows it",
}
KINDS: dict[str, tuple[Any, str]] = {
    "dataset": (Dataset, "datasets:detail"),
    "model": (TreeModel, "registry:detail"),
}


@contextmanager
def _refusals(request: HttpRequest) -> Iterator[None]:
    """Convert refusals of an action to messages on the next page."""
    try:
        yield
    except APIException as error:
        messages.warning(request, " ".join(e["detail"] for e in flatten(error.detail)))


@login_required
@require_http_methods(["GET", "POST"])
def team_list(request: HttpRequest) -> HttpResponse:
    """List the teams of the user. A POST creates one."""
    if request.method == "POST":
        with _refusals(request):
            return redirect("teams:detail", actions.create(by=request.user, name=request.POST.get("name", "")).pk)
        return redirect("teams:list")
    roles = team_roles(request.user)
    teams = [(team, roles.get(team.pk, "")) for team in actions.visible_teams(request.user)]
    return render(request, "teams/list.html", {"teams": teams, "about": _about()})


@login_required
@require_http_methods(["GET", "POST"])
def team_detail(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Show a team to its members. A POST changes it."""
    team = actions.find_team(request.user, pk)
    if request.method == "POST":
        with _refusals(request):
            return _change(request, team)
        return redirect("teams:detail", team.pk)
    role = team_roles(request.user).get(team.pk, "")
    context = {
        "team": team,
        "role": role,
        "manages": request.user.is_staff or role == TeamRole.OWNER,
        "members": team.members.select_related("user"),
        "roles": _about(),
        "datasets": team.datasets.filter(deleted_at=None).order_by("-created").only("name", "created")[:SHOWN],
        "models": team.models.filter(deleted_at=None)
        .order_by("-created")
        .select_related("family")
        .defer("document")[:SHOWN],
    }
    return render(request, "teams/detail.html", context)


def _about() -> list[tuple[str, str, str]]:
    """Return each role with its label and what it may do."""
    return [(value, label, ABOUT[value]) for value, label in TeamRole.choices]


def _change(request: HttpRequest, team: Team) -> HttpResponse:
    name = request.POST.get("username", "")
    change = request.POST.get("do", "")
    if change == "set":
        actions.set_member(team, by=request.user, username=name, role=request.POST.get("role", ""))
        messages.success(request, f"{name} is a member of {team}.")
    elif change in ("remove", "leave"):
        name = request.user.get_username() if change == "leave" else name
        actions.remove_member(team, by=request.user, username=name)
        messages.success(request, f"{name} is no longer a member of {team}.")
        if change == "leave":
            return redirect("teams:list")
    elif change == "rename":
        actions.rename(team, by=request.user, name=request.POST.get("name", ""))
    elif change == "delete":
        actions.delete(team, by=request.user)
        messages.success(request, f"The team {team} is deleted.")
        return redirect("teams:list")
    else:
        raise Http404
    return redirect("teams:detail", team.pk)


@login_required
@require_http_methods(["GET", "POST"])
def belongs_to(request: HttpRequest, kind: str, pk: uuid.UUID) -> HttpResponse:
    """Show to which team a data set or model belongs. A POST moves it."""
    if kind not in KINDS:
        raise Http404("There is nothing of this kind.")
    model, page = KINDS[kind]
    thing = model._default_manager.get_for(request, pk)
    if request.method == "POST":
        key = request.POST.get("team", "")
        team = actions.find_team(request.user, key) if key else None
        with _refusals(request):
            actions.give(thing, by=request.user, team=team)
            messages.success(request, f"{thing} belongs to {team or thing.owner} now.")
            return redirect(page, thing.pk)
        return redirect("teams:of", kind, thing.pk)
    if not may_delete(request.user, thing):
        raise PermissionDenied(refusal(request.user, thing, "give away"))
    roles = team_roles(request.user)
    teams = [
        t for t in actions.visible_teams(request.user) if request.user.is_staff or roles.get(t.pk) in CHANGING_ROLES
    ]
    return render(request, "teams/of.html", {"thing": thing, "kind": kind, "page": page, "teams": teams})
