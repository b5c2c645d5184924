"""Making and revoking tokens; pages, API and the command call these."""

from __future__ import annotations

from datetime import timedelta

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
    *, owner, name: str = "", scope: str = Scope.FULL, days: int | None = None, made_by: ApiToken | None = None
) -> tuple[ApiToken, str]:
    """Create a token; return it and its secret, which is not stored. It expires after `days`; None: never.

    One that is `made_by` another token may do no more than that one, and lives no longer. That of a visitor of the demo ends with
    the visit.
    """
    if scope not in Scope.values:
        raise ValidationError({"scope": f"'{scope}' is not one of {', '.join(Scope.values)}."})
    if days is not None and not 1 <= days <= MAX_DAYS:
        raise ValidationError(
            {"days": f"Must be between 1 and {MAX_DAYS}; leave it out for a token that does not expire."}
        )
    name = checked_name(name, most=100)
    expiry = None if days is None else timedelta(days=days)
    if made_by is not None and made_by.expiry is not None:
        left = made_by.expiry - timezone.now() - timedelta(seconds=1)  # a moment passes until it is written
        if expiry is not None and expiry > left:
            raise ValidationError(
                {"days": "A token cannot make another token that expires later than itself; sign in to make it."}
            )
        expiry = left
    if (visit := visit_of(owner)) is not None:  # it goes with the account
        left = visit.until - timezone.now()
        expiry = left if expiry is None else min(expiry, left)
    if made_by is not None and made_by.scope == Scope.PREDICT and scope != Scope.PREDICT:
        raise ValidationError(
            {"scope": "A token for predictions cannot make a token that may do more; sign in to make it."}
        )
    with transaction.atomic():
        _refuse_more_tokens(owner)
        return ApiToken.objects.create(user=owner, expiry=expiry, name=name, scope=scope)


def _refuse_more_tokens(owner) -> None:
    """Raise Conflict where the owner has as many tokens as one may have; the count is locked until the transaction ends."""
    limit = settings.REST_KNOX["TOKEN_LIMIT_PER_USER"]
    hold_lock(f"tokens of user {owner.pk}")
    ApiToken.objects.filter(user=owner, expiry__lte=timezone.now()).delete()
    if ApiToken.objects.filter(user=owner).count() >= limit:
        raise Conflict(f"You have {limit} tokens, which is the limit. Revoke one that you do not need.")


def revoke_all_tokens(owner) -> int:
    """End every token of a user and return how many there were."""
    with transaction.atomic():
        digests = list(ApiToken.objects.select_for_update().filter(user=owner).values_list("digest", flat=True))
        ApiToken.objects.filter(digest__in=digests).delete()
    for digest in digests:
        forget(digest)
    return len(digests)


def end_other_sessions(owner, *, kept: str | None) -> int:
    """End the sessions of a user except the one with the key `kept`; return how many were ended."""
    keys = [
        session.session_key
        for session in Session.objects.exclude(session_key=kept).filter(expire_date__gt=timezone.now()).iterator()
        if session.get_decoded().get(SESSION_KEY) == str(owner.pk)
    ]
    Session.objects.filter(session_key__in=keys).delete()
    return len(keys)


def revoke_token(token: ApiToken) -> None:
    """End a token."""
    digest = token.digest
    token.delete()
    forget(digest)
