"""Decide who may see, change and delete an object. Others get 404.

An object without a team belongs to its owner. In a team, the roles of its members decide, and the owner is only the
user who made the object. Staff may do everything.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection
from datetime import timedelta
from itertools import count
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models, transaction
from django.http import Http404

from octweb.core.models import Membership, TeamRole

SEEING_ROLES = frozenset(TeamRole)
CHANGING_ROLES = frozenset({TeamRole.OWNER, TeamRole.EDITOR})
DELETING_ROLES = frozenset({TeamRole.OWNER})  # editors also delete what they made
REVIEWING_ROLES = frozenset({TeamRole.REVIEWER})
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
CACHE_SECONDS = 2.0  # a change of members holds at once in its own process, and after this time in others

_generations = count(1)
_generation = 0


def forget_roles() -> None:
    """Read the roles of all users again, now and when the current transaction commits."""
    _count_generation()
    transaction.on_commit(_count_generation)


def _count_generation() -> None:
    global _generation
    _generation = next(_generations)


def team_roles(user: Any) -> dict[uuid.UUID, str]:
    """Return the role of a user in each team, by the id of the team. It is kept on the instance for a moment."""
    if user is None or not user.is_authenticated:
        return {}
    generation, until, roles = getattr(user, "_team_roles", (None, 0.0, {}))
    if generation != _generation or until < time.monotonic():
        generation = _generation
        roles = dict(Membership.objects.filter(user=user).order_by().values_list("team", "role"))
        user._team_roles = (generation, time.monotonic() + CACHE_SECONDS, roles)
    return roles


def teams_of(user: Any, roles: Collection[Any] = SEEING_ROLES) -> list[uuid.UUID]:
    """Return the ids of the teams in which a user has one of the roles."""
    return [team for team, role in team_roles(user).items() if role in roles]


def has_team_role(user: Any, team: Any, roles: Collection[Any]) -> bool:
    """Return whether a user has one of the roles in the team with this id."""
    return team_roles(user).get(team) in roles


def has_role(user: Any, thing: Any, roles: Collection[Any]) -> bool:
    """Return whether a user has one of the roles for an object. Its owner has all of them if it has no team."""
    if not user.is_authenticated:
        return False
    if user.is_staff:
        return True
    team = thing.team_key
    return bool(thing.owner_id == user.pk) if team is None else has_team_role(user, team, roles)


def may_see(user: Any, thing: Any) -> bool:
    """Return whether a user may see an object: its owner, all members of its team, and staff."""
    return has_role(user, thing, SEEING_ROLES)


def may_change(user: Any, thing: Any) -> bool:
    """Return whether a user may change an object: its owner, owners and editors of its team, and staff."""
    return has_role(user, thing, CHANGING_ROLES)


def may_delete(user: Any, thing: Any) -> bool:
    """Return whether a user may delete an object: its owner, owners of its team, staff, and an editor who made it."""
    return has_role(user, thing, CHANGING_ROLES if thing.owner_id == user.pk else DELETING_ROLES)


class OwnedQuerySet(models.QuerySet):
    """Queryset of objects with an `owner`, which may belong to a team."""

    def visible_to(self, user: Any) -> OwnedQuerySet:
        """Return the objects that `user` may see, without soft-deleted ones."""
        return self.kept().open_to(user, SEEING_ROLES)

    def changeable_by(self, user: Any) -> OwnedQuerySet:
        """Return the objects that `user` may change, without soft-deleted ones."""
        return self.kept().open_to(user, CHANGING_ROLES)

    def deletable_by(self, user: Any) -> OwnedQuerySet:
        """Return the objects that `user` may delete. Soft-deleted ones are included."""
        if not user.is_authenticated or user.is_staff:
            return self.open_to(user, DELETING_ROLES)
        made = self._in_teams(teams_of(user, CHANGING_ROLES))
        return self.filter(self.condition_of(user, DELETING_ROLES) | (made & models.Q(owner=user)))

    def open_to(self, user: Any, roles: Collection[Any]) -> OwnedQuerySet:
        """Return the objects of `user` and of teams in which `user` has one of the roles, or all for staff.

        Soft-deleted ones are included.
        """
        if not user.is_authenticated:
            return self.none()
        return self.all() if user.is_staff else self.filter(self.condition_of(user, roles))

    def condition_of(self, user: Any, roles: Collection[Any]) -> models.Q:
        """Return the condition of `open_to` for a user who is not staff."""
        own = models.Q(owner=user) & self._without_team()
        teams = teams_of(user, roles)  # as a list: with a subquery, SQLite leaves the index
        return own | self._in_teams(teams) if teams else own

    def _without_team(self) -> models.Q:
        path = self.model.TEAM_PATH
        if "__" not in path:
            return models.Q(**{path: None}) if path else models.Q()
        # a subquery and no join, so that lists are read from the index of the owner
        return ~self._parents(isnull=False)

    def _in_teams(self, teams: list[uuid.UUID]) -> models.Q:
        path = self.model.TEAM_PATH
        if "__" not in path:
            return models.Q(**{f"{path}__in": teams}) if path else models.Q(pk__in=[])
        return self._parents(**{"in": teams})

    def _parents(self, **lookup: Any) -> models.Q:
        """Return the condition that the object on which these hang has a team with this property."""
        field, _, rest = self.model.TEAM_PATH.partition("__")
        parent: Any = self.model._meta.get_field(field).related_model
        ((name, value),) = lookup.items()
        return models.Q(
            **{f"{field}__in": parent._base_manager.filter(**{f"{rest}__{name}": value}).order_by().values("pk")}
        )

    def kept(self) -> OwnedQuerySet:
        """Return the objects that are not soft-deleted."""
        return self.filter(deleted_at=None) if issubclass(self.model, Deletable) else self.all()

    def deleted_by(self, user: Any) -> OwnedQuerySet:
        """Return the soft-deleted objects that `user` may restore."""
        return self.filter(deleted_at__isnull=False).deletable_by(user)

    def get_visible(self, user: Any, pk: Any) -> Any:
        """Return an object that `user` may see, or raise Http404.

        The error is the same if it does not exist and if `user` may not see it.
        """
        try:
            return self.visible_to(user).get(pk=pk)
        except (self.model.DoesNotExist, ValidationError, ValueError, TypeError) as error:
            raise Http404(
                f"There is no {self.model._meta.verbose_name} with this id, or it is not yours. Check the id."
            ) from error

    def get_changeable(self, user: Any, pk: Any) -> Any:
        """Return an object that `user` may change.

        Raise Http404 like `get_visible`, and PermissionDenied for a member of its team who may only see it.
        """
        thing = self.get_visible(user, pk)
        if not may_change(user, thing):
            raise PermissionDenied(refusal(user, thing, "change"))
        return thing

    def get_deletable(self, user: Any, pk: Any) -> Any:
        """Return an object that `user` may delete. Raise like `get_changeable`."""
        thing = self.get_visible(user, pk)
        check_deletable(user, thing)
        return thing

    def get_for(self, request: Any, pk: Any) -> Any:
        """Return the object that a request reads or changes, by its method. Raise like `get_changeable`."""
        find = self.get_visible if request.method in SAFE_METHODS else self.get_changeable
        return find(request.user, pk)


def check_deletable(user: Any, thing: Any) -> None:
    """Raise PermissionDenied unless `user`, who may see an object, may delete it."""
    if not may_delete(user, thing):
        raise PermissionDenied(refusal(user, thing, "delete"))


def refusal(user: Any, thing: Any, verb: str) -> str:
    """Return why a member of a team may not change or delete an object, and whom to ask."""
    role = team_roles(user).get(thing.team_key, "none")
    return f"Your role in the team of this {thing._meta.verbose_name} is {role}, so you may not {verb} it. Ask an owner of the team."


class Owned(models.Model):
    """Base class of objects that belong to a user or a team. The random id cannot be guessed.

    `TEAM_PATH` leads to the team in a query. It is "" for objects that never belong to a team.
    """

    TEAM_PATH = ""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created = models.DateTimeField(auto_now_add=True)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        abstract = True
        ordering = ["-created", "-id"]

    @property
    def team_key(self) -> uuid.UUID | None:
        """Id of the team of the object, or None."""
        thing: Any = self
        *path, last = self.TEAM_PATH.split("__")
        for name in path:
            thing = getattr(thing, name)
        return getattr(thing, f"{last}_id") if last else None


def list_indexes(*columns: str) -> list[models.Index]:
    """Return the indexes of lists, which show undeleted rows, newest first: those of one owner or of all.

    `columns` are what the conditions of teams and states compare. From these indexes, they need not read the rows.
    """
    order = ["deleted_at", "-created", "-id"]
    first = ["owner", "team"] if "team" in columns else ["owner"]
    return [
        models.Index(fields=[*first, *order, *(c for c in columns if c not in first)], name="%(class)s_of_owner"),
        models.Index(fields=[*order, "owner", *columns] if columns else order, name="%(class)s_of_all"),
    ]


class Deletable(Owned):
    """Base class of objects with soft deletion. They can be restored for some weeks and are then purged."""

    deleted_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta(Owned.Meta):
        abstract = True
        indexes = list_indexes()

    @classmethod
    def back_within(cls) -> timedelta:
        """Return how long an object can be restored after its deletion."""
        return timedelta(days=30)
