"""Decide who may read or call a model."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.utils import timezone

from octweb.core.ownership import REVIEWING_ROLES, has_team_role, may_see
from octweb.core.sign_in import may_use_tokens
from octweb.registry.models import Share, ShareLevel, State, TreeModel


def is_token_valid(token: Any) -> bool:
    """Return whether a token has not expired and its user may use it. True for a session (None)."""
    if token is None:
        return True
    is_current = token.expiry is None or token.expiry > timezone.now()
    user = token.user  # read once, because each prediction asks
    # the setting is read here, too, because most installations need no call
    return is_current and user.is_active and (not settings.OIDC_ISSUER or may_use_tokens(user))


def may_call(user: Any, token: Any, model: TreeModel, *, public: bool = False) -> bool:
    """Return whether a user with this token, or with a session (None), may call the model.

    All active users may call approved models. The owner or team, staff, and users with a share for calls may also call
    others, except at a `public` address. `TreeModelQuerySet.callable_by` is the same rule for lists. Tokens of every
    scope may predict.
    """
    return _is_allowed(user, token, model, public=public, levels=(ShareLevel.CALL,))


def may_read(user: Any, token: Any, model: TreeModel) -> bool:
    """Return whether a user may read the model. Like `may_call`, but shares for reading count as well."""
    return _is_allowed(user, token, model, public=False, levels=(ShareLevel.READ, ShareLevel.CALL))


def may_see_rows(user: Any, model: TreeModel) -> bool:
    """Return whether a user may see the training rows of a model. In a team, the user must see its data set as well."""
    if not may_see(user, model):
        return False
    dataset = model.dataset
    is_private = dataset is None or (model.team_id is None and dataset.team_id is None)
    return is_private or may_see(user, dataset)


def may_review(user: Any, model: TreeModel) -> bool:
    """Return whether a user may take the steps of a reviewer: staff, and reviewers of its team where this is allowed."""
    return bool(user.is_staff or (settings.TEAM_REVIEW and has_team_role(user, model.team_id, REVIEWING_ROLES)))


def _is_allowed(user: Any, token: Any, model: TreeModel, *, public: bool, levels: Collection[Any]) -> bool:
    if not (user.is_authenticated and user.is_active and is_token_valid(token)) or model.deleted_at is not None:
        return False
    if model.state == State.APPROVED:
        return True
    if public:
        return False
    return may_see(user, model) or _is_shared_with(user, model, levels)


def _is_shared_with(user: Any, model: TreeModel, levels: Collection[Any]) -> bool:
    return Share.objects.filter(model=model, user=user, level__in=levels).exists()
