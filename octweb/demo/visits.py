"""Enforce the restrictions on demo visitors."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import PermissionDenied

from octweb.core.locks import hold_lock
from octweb.core.ownership import Owned
from octweb.core.problems import Conflict
from octweb.demo.models import Visit


def visit_of(user: Any) -> Visit | None:
    """Return the visit of a visitor, or None for other accounts.

    Accounts with a usable password are not visitors, so they need no query.
    """
    if user is None or not user.is_authenticated or user.has_usable_password():
        return None
    return Visit.objects.filter(user=user).first()


def refuse(user: Any, what: str) -> None:
    """Raise PermissionDenied for a visitor. `what` begins the message, for example "Sharing a model"."""
    if visit_of(user) is not None:
        raise PermissionDenied(no_part_of_the_demo(what))


def no_part_of_the_demo(what: str) -> str:
    return f"{what} is not part of the demo, because the account is deleted within a day. Use an octweb of your own for it."


def refuse_more(user: Any) -> None:
    """Raise Conflict if a visitor has reached the limit of objects.

    Call it in the transaction that adds an object. It holds a lock until that transaction ends.
    """
    if visit_of(user) is None:
        return
    hold_lock(f"things of user {user.pk}")
    count = count_objects(user)
    if count >= settings.DEMO_ITEMS:
        raise Conflict(
            f"You have {count} data sets, runs, models and other things in this demo; {settings.DEMO_ITEMS} is the limit. "
            "What was deleted counts until the demo ends. You can end the demo and begin another one."
        )


def owned_models() -> list[type[Owned]]:
    """Return every model with an owner."""
    return [model for model in apps.get_models() if issubclass(model, Owned)]


def count_objects(user: Any) -> int:
    """Return the number of a user's objects of all kinds, including soft-deleted ones."""
    return sum(model._default_manager.filter(owner=user).count() for model in owned_models())
