"""Who may call a model: one answer for the quick path, the views of `/api/v1/`, `/v2/` and `/invocations`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.utils import timezone

from octweb.registry.models import Share, ShareLevel, State, TreeModel


def is_token_valid(token: Any) -> bool:
    """Whether a token (None: a session) counts: not expired, its user active."""
    return token is None or (token.user.is_active and (token.expiry is None or token.expiry > timezone.now()))


def may_call(user: Any, token: Any, model: TreeModel, *, public: bool = False) -> bool:
    """Whether this user, with this token or without one, may call this model.

    Approved models are for everyone who is known; owners, staff and those with whom it was shared call others, too, but not at a `public` address, which serves
    approved ones only. `TreeModelQuerySet.callable_by` is the same rule for lists. Tokens of every scope may predict.
    """
    return _is_allowed(user, token, model, public=public, levels=(ShareLevel.CALL,))


def may_read(user: Any, token: Any, model: TreeModel) -> bool:
    """As `may_call`, for looking at the model: those with whom it was shared for reading alone may, too."""
    return _is_allowed(user, token, model, public=False, levels=(ShareLevel.READ, ShareLevel.CALL))


def is_owner_or_staff(user: Any, model: TreeModel) -> bool:
    """Whether this user may see the rows of a model and change it: its owner, and administrators."""
    return bool(user.is_staff or user.pk == model.owner_id)


def _is_allowed(user: Any, token: Any, model: TreeModel, *, public: bool, levels: Collection[Any]) -> bool:
    if not (user.is_authenticated and user.is_active and is_token_valid(token)) or model.deleted_at is not None:
        return False
    if model.state == State.APPROVED:
        return True
    if public:
        return False
    return user.is_staff or model.owner_id == user.pk or _is_shared_with(user, model, levels)


def _is_shared_with(user: Any, model: TreeModel, levels: Collection[Any]) -> bool:
    return Share.objects.filter(model=model, user=user, level__in=levels).exists()
