"""What visitors may do: who is one, until when, and what is refused; all parts of the application ask here."""

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
    """The visit of a visitor, None for any other account.

    Only an account without a usable password can be a visitor's, so that nothing is asked of the database for all others.
    """
    if user is None or not user.is_authenticated or user.has_usable_password():
        return None
    return Visit.objects.filter(user=user).first()


def refuse(user: Any, what: str) -> None:
    """Raise PermissionDenied for a visitor; `what` begins the sentence, as in "Sharing a model"."""
    if visit_of(user) is not None:
        raise PermissionDenied(no_part_of_the_demo(what))


def no_part_of_the_demo(what: str) -> str:
    return f"{what} is not part of the demo: this account and all that it holds are deleted within a day."


def refuse_more(user: Any) -> None:
    """Raise Conflict for a visitor who has as many things as a visitor may have.

    Call it in the transaction that adds a thing: it locks the visitor's count until that transaction ends.
    """
    if visit_of(user) is None:
        return
    hold_lock(f"things of user {user.pk}")
    count = count_objects(user)
    if count >= settings.DEMO_ITEMS:
        raise Conflict(
            f"You have {count} data sets, runs, models and other things in this demo; {settings.DEMO_ITEMS} is the limit, "
            "and what was deleted counts until the demo ends. You can end the demo and begin another one."
        )


def owned_models() -> list[type[Owned]]:
    """Every kind of thing that belongs to a user."""
    return [model for model in apps.get_models() if issubclass(model, Owned)]


def count_objects(user: Any) -> int:
    """How many things of all kinds a user has, with those that were deleted and can be brought back."""
    return sum(model._default_manager.filter(owner=user).count() for model in owned_models())
