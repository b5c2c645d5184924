"""Change teams: their members and roles, and what belongs to them. Each change is a record of the audit chain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import Http404
from rest_framework import exceptions

from octweb.audit import actions as audit
from octweb.core.models import Membership, Team, TeamRole
from octweb.core.names import checked_name, is_storable
from octweb.core.ownership import CHANGING_ROLES, forget_roles, may_delete, refusal
from octweb.core.problems import Conflict
from octweb.datasets.models import Dataset
from octweb.demo.visits import refuse, visit_of
from octweb.registry.lifecycle.model_cache import clear_now_and_on_commit
from octweb.registry.models import TreeModel

MOST_MEMBERS = 500
MOST_TEAMS = 100  # of one user


def visible_teams(user: Any) -> Any:
    """Return the teams of a user, or all for staff."""
    if not user.is_authenticated:
        return Team.objects.none()
    return Team.objects.all() if user.is_staff else Team.objects.filter(members__user=user)


def find_team(user: Any, pk: Any) -> Team:
    """Return a team that the user may see, or raise Http404: the same whether it exists or not."""
    try:
        team: Team = visible_teams(user).get(pk=pk)
    except (Team.DoesNotExist, ValidationError, ValueError, TypeError) as error:
        raise Http404("There is no team with this id, or you are not a member. Check the id.") from error
    return team


def create(*, by: Any, name: str) -> Team:
    """Create a team with `by` as its first owner. Raises Conflict and ValidationError."""
    refuse(by, "A team")
    with transaction.atomic():
        audit.hold()
        if Membership.objects.filter(user=by).count() >= MOST_TEAMS:
            raise Conflict(f"You are in {MOST_TEAMS} teams, which is the limit. Leave one of them first.")
        team = Team.objects.create(name=_free_name(name))
        member = Membership.objects.create(team=team, user=by, role=TeamRole.OWNER)
        audit.record("team created", team, by=by)
        _record_member("member added", member, by)
        forget_roles()
    return team


def rename(team: Team, *, by: Any, name: str) -> Team:
    """Give a team another name. Raises PermissionDenied, Conflict and ValidationError."""
    with _managed(team, by) as locked:
        if name.strip() != locked.name:
            before = locked.name
            locked.name = _free_name(name)
            locked.save(update_fields=["name"])
            audit.record("team renamed", locked, by=by, name_before=before)
    return locked


def set_member(team: Team, *, by: Any, username: str, role: str) -> Membership:
    """Add a user to a team, or change the role. Raises PermissionDenied, Conflict and ValidationError."""
    if role not in TeamRole.values:
        raise exceptions.ValidationError({"role": f"'{role[:20]}' is not one of {', '.join(TeamRole.values)}."})
    with _managed(team, by) as locked:
        user = _active_user(username)
        member = locked.members.filter(user=user).first()
        if member is None:
            if locked.members.count() >= MOST_MEMBERS:
                raise Conflict(f"The team has {MOST_MEMBERS} members, which is the limit.")
            member = Membership.objects.create(team=locked, user=user, role=role)
            _record_member("member added", member, by)
        elif member.role != role:
            _refuse_last_owner(member, "get another role")
            member.role = role
            member.save(update_fields=["role"])
            _record_member("member role", member, by)
        forget_roles()
    return member


def remove_member(team: Team, *, by: Any, username: str) -> None:
    """Remove a user from a team; without a right to manage it, only oneself. What the user made stays with the team.

    Raises PermissionDenied, and Conflict for the last owner.
    """
    with _managed(team, by, leaves=username == by.get_username()) as locked:
        member = locked.members.filter(user__username=username).first() if is_storable(username) else None
        if member is None:
            raise Http404(f"'{username[:150]}' is not a member of this team. Check the spelling.")
        _refuse_last_owner(member, "leave")
        _record_member("member removed", member, by)
        member.delete()
        forget_roles()


def delete(team: Team, *, by: Any) -> None:
    """Delete a team. Raises PermissionDenied, and Conflict if anything belongs to it."""
    with _managed(team, by) as locked:
        counts = [Dataset.objects.filter(team=locked).count(), TreeModel.objects.filter(team=locked).count()]
        if any(counts):
            raise Conflict(
                f"{counts[0]} data sets and {counts[1]} models belong to this team, deleted ones included. "
                "Give them to another team first, or wait until the deleted ones are removed for good."
            )
        audit.record("team deleted", locked, by=by)
        locked.delete()
        forget_roles()


def give(thing: Dataset | TreeModel, *, by: Any, team: Team | None) -> None:
    """Move a data set with its models, or a model without a data set, to a team. None: back to the user who made it.

    Raises PermissionDenied unless `by` may delete it and may change what belongs to the new team, and Conflict.
    """
    refuse(by, "A team")
    with transaction.atomic():
        audit.hold()
        locked: Any = type(thing)._default_manager.select_for_update().get(pk=thing.pk)
        if not may_delete(by, locked):
            raise PermissionDenied(refusal(by, locked, "give it away, and not delete"))
        if team is not None and not (by.is_staff or _current_role(team, by) in CHANGING_ROLES):
            raise PermissionDenied(f"Only owners and editors of {team} may give something to it. Ask one of them.")
        if locked.team_id != (None if team is None else team.pk):
            _refuse_to_split(locked, by, team)
            for item in (locked, *_models_along(locked, team)):
                type(item)._default_manager.filter(pk=item.pk).update(team=team)
                words = (
                    {"team": "", "team_name": ""} if team is None else {"team": str(team.pk), "team_name": team.name}
                )
                audit.record("team", item, by=by, **words)
            clear_now_and_on_commit()
    thing.team = team


def _refuse_to_split(thing: Any, by: Any, team: Team | None) -> None:
    """Raise Conflict if the move would part a model from its data set, or give away what others made."""
    if isinstance(thing, TreeModel) and thing.dataset_id is not None:
        raise Conflict("A model belongs to the team of its data set. Give the data set to the team; its models follow.")
    if team is not None:
        return
    if thing.owner_id != by.pk and not by.is_staff:
        raise PermissionDenied(
            "Only the user who made it can take it out of the team. Give it to another team instead."
        )
    if isinstance(thing, Dataset) and any(
        related.exclude(owner=thing.owner_id).exists()
        for related in (thing.runs, thing.experiments, thing.workbenches, thing.models)
    ):
        raise Conflict("Other members made runs or models from this data set, so it cannot leave the team.")


def _models_along(thing: Any, team: Team | None) -> list[TreeModel]:
    """Return the models that move with a data set: all of its team, or else those that its owner made."""
    if not isinstance(thing, Dataset):
        return []
    models = TreeModel.objects.filter(dataset=thing, team=thing.team_id).defer("document").select_related("family")
    return list(models if thing.team_id is not None else models.filter(owner=thing.owner_id))


@contextmanager
def _managed(team: Team, by: Any, *, leaves: bool = False) -> Iterator[Team]:
    """Lock a team whose members change. Raises PermissionDenied unless `by` is an owner or staff, or `leaves`."""
    with transaction.atomic():
        audit.hold()
        locked = Team.objects.select_for_update().filter(pk=team.pk).first()
        if locked is None:
            raise Http404("This team was deleted.")
        if not (leaves or by.is_staff or _current_role(locked, by) == TeamRole.OWNER):
            raise PermissionDenied("Only owners of the team may do this. Ask one of them.")
        yield locked


def _current_role(team: Team, user: Any) -> str | None:
    """Return the role as the database has it now, without the cache."""
    return team.members.filter(user=user).values_list("role", flat=True).first()


def _refuse_last_owner(member: Membership, verb: str) -> None:
    others = Membership.objects.filter(team=member.team_id, role=TeamRole.OWNER, user__is_active=True)
    if member.role == TeamRole.OWNER and not others.exclude(pk=member.pk).exists():
        raise Conflict(
            f"{member.user} is the last owner, so {member.user} cannot {verb}. Make another member an owner first."
        )


def _active_user(username: str) -> Any:
    user = None
    if is_storable(username):
        user = get_user_model().objects.filter(username=username.strip(), is_active=True).first()
    if user is None or visit_of(user) is not None:
        raise exceptions.ValidationError(
            {"username": f"There is no active account '{username.strip()[:150]}'. Check the spelling."}
        )
    return user


def _free_name(text: str) -> str:
    name = checked_name(text, most=100)
    if not (name and is_storable(name)):
        raise exceptions.ValidationError(
            {"name": "This is empty or has characters that cannot be stored. Give the team a name."}
        )
    if Team.objects.filter(name__iexact=name).exists():
        raise Conflict("There is a team of this name. Choose another name.")
    return name


def _record_member(what: str, member: Membership, by: Any) -> None:
    user = member.user
    audit.record(what, member.team, by=by, user=user.get_username(), user_id=user.pk, role=str(member.role))
