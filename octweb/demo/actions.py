"""Begin and end visits of the demo."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network
from typing import Any

from axes.models import AccessLog
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.crypto import get_random_string, salted_hmac

from octweb.core.locks import hold_lock
from octweb.demo.deleting import delete_all
from octweb.demo.models import Visit

log = logging.getLogger(__name__)

LIFE = timedelta(days=1)
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # without characters that look alike


class DemoFull(Exception):
    """The daily limit of visitors is reached, for this address or in total. The message is shown to the visitor."""


def begin(*, address: str | None) -> Visit:
    """Create a one-day account without a password, and return its visit. Raises DemoFull."""
    now = timezone.now()
    origin = _origin(address)
    with transaction.atomic():
        hold_lock("demo visits")
        _refuse_many(now, origin)
        user = get_user_model()(username=f"visitor-{get_random_string(12, LETTERS)}", first_name="Visitor")
        user.set_unusable_password()
        user.save(force_insert=True)
        return Visit.objects.create(user=user, begun=now, until=now + LIFE, origin=origin)


def end(visit: Visit) -> bool:
    """Disable and delete the account with all its objects. Return whether it is gone.

    Workers stop jobs whose rows are gone. If the deletion fails, or an object of another account needs one of the
    visitor's, log it. These objects and the disabled account then stay.
    """
    user = visit.user
    if user is None:
        return True
    # disable the account first, so that no call begins during the deletion
    get_user_model().objects.filter(pk=user.pk).update(is_active=False)
    Session.objects.filter(session_key=visit.session).delete()
    AccessLog.objects.filter(username=user.get_username()).delete()
    try:
        undeleted = delete_all(user)
    except IntegrityError as error:  # a call or a worker wrote rows meanwhile
        undeleted = [str(error)]
    if undeleted:
        log.warning(
            "the demo account %s is not deleted yet, and a worker will try again: %s",
            user.get_username(),
            "; ".join(undeleted),
        )
    return not undeleted


def end_due(now: datetime) -> int:
    """End expired visits and delete their rows, even after OCTWEB_DEMO was switched off. Return how many."""
    ended = 0
    for visit in Visit.objects.filter(until__lte=now).select_related("user"):
        if end(visit):
            visit.delete()
            ended += 1
    return ended


def _refuse_many(now: datetime, origin: str) -> None:
    today = Visit.objects.filter(begun__gt=now - LIFE)
    if today.filter(origin=origin).count() >= settings.DEMO_VISITORS_PER_ADDRESS:
        raise DemoFull(
            f"{settings.DEMO_VISITORS_PER_ADDRESS} demos were begun from your network within a day, which is the limit. "
            "Continue with one of them, or come back tomorrow."
        )
    if today.count() >= settings.DEMO_VISITORS:
        raise DemoFull(
            f"{settings.DEMO_VISITORS} demos were begun within a day, which is the limit of this server. Come back tomorrow."
        )


def _origin(address: str | None) -> str:
    """Return a keyed hash of the client's network: the IPv4 address, or the first half of an IPv6 address."""
    network: Any = "unknown"
    if address is not None:
        ip = ip_address(address)
        ip = getattr(ip, "ipv4_mapped", None) or ip
        network = ip if ip.version == 4 else ip_network((ip, 64), strict=False)
    return salted_hmac("octweb.demo", str(network), algorithm="sha256").hexdigest()
