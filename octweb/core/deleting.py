"""Soft-delete, restore and purge objects."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import CASCADE, PROTECT, ProtectedError
from django.utils import timezone

from octweb.core.ownership import Deletable
from octweb.core.problems import Conflict


def protecting(thing: Deletable) -> dict[str, int]:
    """Count the undeleted objects that depend on this one, by their plural names."""
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
    """Soft-delete an object. Raises Conflict if undeleted objects need it."""
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
    """Restore an object. Raises Conflict if an object that it needs is deleted."""
    for field in thing._meta.concrete_fields:
        parent = getattr(thing, field.name) if field.is_relation and field.remote_field.on_delete is PROTECT else None
        if isinstance(parent, Deletable) and parent.deleted_at is not None:
            name = parent._meta.verbose_name
            raise Conflict(f"This needs the {name} “{parent}”, which is deleted. Bring back the {name} first.")
    thing.deleted_at = None
    thing.save(update_fields=["deleted_at"])


def _takes_along(thing: Deletable) -> bool:
    """Return whether purging this object would cascade to a soft-deletable object."""
    return any(
        relation.related_model._default_manager.filter(**{relation.field.name: thing}).exists()
        for relation in thing._meta.related_objects
        if relation.on_delete is CASCADE and issubclass(relation.related_model, Deletable)
    )


def purge(model: type[Deletable], now: datetime) -> int:
    """Purge objects whose time to restore them is over, and return how many.

    An object stays, hidden, while soft-deletable objects depend on it.
    """
    removed = 0
    for thing in model._default_manager.filter(deleted_at__lt=now - model.back_within()):
        if _takes_along(thing):
            continue
        try:
            with transaction.atomic():
                thing.delete()
        except ProtectedError:
            continue  # other objects still depend on this one; a later call removes it after them
        removed += 1
    return removed
