"""Who may call a model: one answer for the quick path, the views of `/api/v1/`, `/v2/` and `/invocations`."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from octweb.registry.models import State, TreeModel


def alive(token: Any) -> bool:
    """Whether a token (None: a session) counts: not expired, its user active."""
    return token is None or (token.user.is_active and (token.expiry is None or token.expiry > timezone.now()))


def may_call(user: Any, token: Any, model: TreeModel, *, public: bool = False) -> bool:
    """Whether this user, with this token or without one, may call this model.

    Approved models are for everyone who is known; owners and staff call others, too, but not at a `public` address, which serves
    approved ones only. `TreeModelQuerySet.callable_by` is the same rule for lists. Tokens of every scope may predict.
    """
    if not (user.is_authenticated and user.is_active and alive(token)):
        return False
    if model.state == State.APPROVED:
        return True
    return not public and (user.is_staff or model.owner_id == user.pk)
