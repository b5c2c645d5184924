"""Deleting in two steps: what is deleted is hidden at once, can be brought back for some weeks, and is removed after them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import CASCADE, PROTECT, ProtectedError
from django.utils import timezone

from octweb.core.ownership import Deletable
from octweb.core.problems import Conflict


def protecting(thing: Deletable) -> dict[str, int]:
    """What must be deleted before: the number of kept objects that cannot do without this one, by what they are called."""
    counts = {}
    for relation in thing._meta.related_objects:
        model: Any = relation.related_model
        if getattr(relation, "on_delete", None) is not PROTECT or not issubclass(model, Deletable):
            continue
        if count := model._default_manager.kept().filter(**{relation.field.name: thing}).count():
            names = model._meta.verbose_name if count == 1 else model._meta.verbose_name_plural
            counts[str(names)] = count
    return counts


def hide(thing: Deletable) -> None:
    """Delete it for everybody who looks; raises Conflict where something cannot do without it."""
    if dependents := protecting(thing):
        words = " and ".join(f"{count} {names}" for names, count in dependents.items())
        one = sum(dependents.values()) == 1
        raise Conflict(
            f"{words} use{'s' if one else ''} this {thing._meta.verbose_name}. Delete {'it' if one else 'them'} first; "
            f"{'its' if one else 'their'} models stay."
        )
    thing.deleted_at = timezone.now()
    thing.save(update_fields=["deleted_at"])


def bring_back(thing: Deletable) -> None:
    """Show it again; raises Conflict if what it needs is deleted itself."""
    for field in thing._meta.concrete_fields:
        parent = getattr(thing, field.name) if field.is_relation and field.remote_field.on_delete is PROTECT else None
        if isinstance(parent, Deletable) and parent.deleted_at is not None:
            raise Conflict(f"Bring back the {parent._meta.verbose_name} “{parent}” first.")
    thing.deleted_at = None
    thing.save(update_fields=["deleted_at"])


def _takes_along(thing: Deletable) -> bool:
    """Whether removing it would remove something that can be deleted, and brought back, by itself."""
    return any(
        relation.related_model._default_manager.filter(**{relation.field.name: thing}).exists()
        for relation in thing._meta.related_objects
        if relation.on_delete is CASCADE and issubclass(relation.related_model, Deletable)
    )


def purge(model: type[Deletable], now: datetime) -> int:
    """Remove for good what was deleted long enough ago; returns how much was removed.

    What was made with it, and would go with it, is kept in its own right: the thing stays, hidden, until that is gone.
    """
    removed = 0
    for thing in model._default_manager.filter(deleted_at__lt=now - model.back_within()):
        if _takes_along(thing):
            continue
        try:
            thing.delete()
        except ProtectedError:
            continue  # what uses it goes first, at the next time
        removed += 1
    return removed
