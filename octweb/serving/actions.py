"""Create and revoke tokens, and end sessions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone
from rest_framework.exceptions import ValidationError

from octweb.core.locks import hold_lock
from octweb.core.names import checked_name
from octweb.core.problems import Conflict
from octweb.demo.visits import visit_of
from octweb.serving.authentication import forget
from octweb.serving.models import ApiToken, Scope

MAX_DAYS = 3650


def create_token(
    *, owner: Any, name: str = "", scope: str = Scope.FULL, days: int | None = None, made_by: ApiToken | None = None
) -> tuple[ApiToken, str]:
    """Create a token. Return it with its secret, which is not stored. It expires after `days`, or never if None.

    A token that another token creates (`made_by`) gets no wider scope and no later expiry. A demo visitor's token
    expires with the visit. Raises ValidationError, Unprocessable for an unsuitable name, and Conflict at the limit of
    tokens.
    """
    if scope not in Scope.values:
        raise ValidationError({"scope": f"'{scope}' is not one of {', '.join(Scope.values)}."})
    if days is not None and not 1 <= days <= MAX_DAYS:
        raise ValidationError(
            {"days": f"{days} is not between 1 and {MAX_DAYS}. Leave it out for a token that does not expire."}
        )
    name = checked_name(name, most=100)
    expiry = None if days is None else timedelta(days=days)
    if made_by is not None and made_by.expiry is not None:
        # some time passes until the token is stored, and it must not expire later than this one
        left = made_by.expiry - timezone.now() - timedelta(seconds=1)
        if expiry is not None and expiry > left:
            raise ValidationError(
                {
                    "days": "A token cannot make a token that expires later than itself. Ask for fewer days, or sign in to make it."
                }
            )
        expiry = left
    if (visit := visit_of(owner)) is not None:  # the token is deleted together with the account
        left = visit.until - timezone.now()
        expiry = left if expiry is None else min(expiry, left)
    if made_by is not None and made_by.scope == Scope.PREDICT and scope != Scope.PREDICT:
        raise ValidationError(
            {"scope": "A token for predictions cannot make a token that may do more. Sign in to make it."}
        )
    with transaction.atomic():
        _refuse_more_tokens(owner)
        return ApiToken.objects.create(user=owner, expiry=expiry, name=name, scope=scope)


def _refuse_more_tokens(owner: Any) -> None:
    """Delete expired tokens. Raise Conflict at the limit of tokens.

    The owner's count is locked until the transaction ends.
    """
    limit = settings.REST_KNOX["TOKEN_LIMIT_PER_USER"]
    hold_lock(f"tokens of user {owner.pk}")
    ApiToken.objects.filter(user=owner, expiry__lte=timezone.now()).delete()
    if ApiToken.objects.filter(user=owner).count() >= limit:
        raise Conflict(f"You have {limit} tokens, which is the limit. Revoke one that you do not need.")


def revoke_all_tokens(owner: Any) -> int:
    """Delete all tokens of a user, and return how many."""
    with transaction.atomic():
        digests = list(ApiToken.objects.select_for_update().filter(user=owner).values_list("digest", flat=True))
        ApiToken.objects.filter(digest__in=digests).delete()
    for digest in digests:
        forget(digest)
    return len(digests)


def end_other_sessions(owner: Any, *, kept: str | None) -> int:
    """End the sessions of a user except the one with the key `kept`. Return how many."""
    keys = [
        session.session_key
        for session in Session.objects.exclude(session_key=kept).filter(expire_date__gt=timezone.now()).iterator()
        if session.get_decoded().get(SESSION_KEY) == str(owner.pk)
    ]
    Session.objects.filter(session_key__in=keys).delete()
    return len(keys)


def revoke_token(token: ApiToken) -> None:
    """Delete a token, and remove it from this process's cache."""
    digest = token.digest
    token.delete()
    forget(digest)
