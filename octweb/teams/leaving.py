"""Keep what belongs to teams when an account is deleted."""

from __future__ import annotations

from itertools import count
from typing import Any

from django.db import transaction
from django.db.models import Model, ProtectedError

from octweb.audit import actions as audit
from octweb.core.models import Membership, Team, TeamRole
from octweb.core.problems import Conflict
from octweb.demo.visits import owned_models
from octweb.registry.models import Family


def teams_without_heir(user: Any) -> list[Team]:
    """Return the teams that have no other active owner to whom the objects of the user could go."""
    return [team for team in _teams_of(user) if _heir(team, user) is None]


def hand_over(user: Any) -> None:
    """Make other owners of the teams the owners of what a user made there. Call it before the account is deleted.

    Raises Conflict if a team has no other owner.
    """
    with transaction.atomic():
        audit.hold()
        for team in _teams_of(user):
            heir = _heir(team, user)
            if heir is None:
                raise Conflict(f"{user} is the last owner of the team {team}. Make another member an owner first.")
            moved = sum(
                rows._base_manager.filter(owner=user, **{rows.TEAM_PATH: team}).update(owner=heir)
                for rows in owned_models()
                if rows.TEAM_PATH
            )
            for family in Family.objects.filter(owner=user, versions__team=team).distinct():
                _move_family(family, heir)
            audit.record(
                "handed over",
                team,
                by=None,
                user=user.get_username(),
                user_id=user.pk,
                to=heir.get_username(),
                to_id=heir.pk,
                objects=moved,
            )


def refuse_loss(user: Any) -> None:
    """Raise ProtectedError if the deletion of an account would delete objects of a team."""
    kept: set[Model] = {
        row
        for rows in owned_models()
        if rows.TEAM_PATH
        for row in rows._base_manager.filter(owner=user, **{f"{rows.TEAM_PATH}__isnull": False})[:10]
    }
    if kept:
        raise ProtectedError(f"Objects of teams belong to {user}. Delete the account in the administration.", kept)


def _teams_of(user: Any) -> list[Team]:
    """Return the teams in which a user is a member or made something."""
    ids = set(Membership.objects.filter(user=user).values_list("team", flat=True))
    for rows in owned_models():
        if rows.TEAM_PATH:
            own = rows._base_manager.filter(owner=user, **{f"{rows.TEAM_PATH}__isnull": False}).order_by()
            ids.update(own.values_list(rows.TEAM_PATH, flat=True).distinct())
    return list(Team.objects.filter(pk__in=ids))


def _heir(team: Team, user: Any) -> Any:
    owners = Membership.objects.filter(team=team, role=TeamRole.OWNER, user__is_active=True).exclude(user=user)
    member = owners.select_related("user").order_by("user__date_joined", "user_id").first()
    return None if member is None else member.user


def _move_family(family: Family, heir: Any) -> None:
    """Give the name of models to another user. Of two equal names, the one that is not public gets a suffix."""
    other = Family.objects.filter(owner=heir, name=family.name).first()
    if other is not None:
        renamed = other if family.public else family
        names = (f"{renamed.name[:90]}-{suffix}" for suffix in count(2))
        renamed.name = next(
            n for n in names if not Family.objects.filter(owner__in=(heir, family.owner_id), name=n).exists()
        )
        renamed.save(update_fields=["name"])
    family.owner = heir
    family.save(update_fields=["owner"])
