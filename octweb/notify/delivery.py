"""Deliver queued messages from worker processes, with retries.

A message is a row. Each worker process sends due rows in a thread of its own, so a slow receiver blocks neither a web
thread nor a job. A worker claims a row with one UPDATE that moves its due time. If the worker dies, the row becomes due
again. A receiver may therefore get a message twice, with the same id.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import F, Min
from django.utils import timezone

from octweb.core.problems import Busy, Conflict
from octweb.notify.models import Delivery, DeliveryState, Way, Wish
from octweb.notify.webhook import Envelope, Undelivered, send

log = logging.getLogger(__name__)

MAX_TRIES = 5
FIRST_DELAY = timedelta(seconds=30)
DELAY_FACTOR = 4  # delays after the tries: 0.5, 2, 8 and 32 minutes
LEASE = timedelta(minutes=3)  # a try by webhook or mail takes less time than this
AT_ONCE = 8  # a worker process sends at most this many messages at once, each to a different user
MAX_FAILURES = 5  # after this many consecutive failed deliveries, a webhook gets no more messages
MAX_WAITING_TESTS = 20  # limit on the waiting tests of all users together
KEEP = timedelta(days=7)  # finished deliveries are removed after this time


def queue_message(user: Any, message: dict[str, str], *, is_test: bool = False) -> list[Delivery]:
    """Queue a message for each channel that the user chose. Return the deliveries."""
    wish = Wish.objects.select_related("user").filter(user=user).first()
    if wish is None or not user.is_active:
        return []
    ways = []
    if uses_mail(wish):
        ways.append(Way.MAIL)
    if wish.webhook and wish.failures < MAX_FAILURES:
        ways.append(Way.WEBHOOK)
    ended = Delivery.objects.filter(owner=user).exclude(state=DeliveryState.WAITING)
    ended.filter(finished__lt=timezone.now() - KEEP).delete()
    return [Delivery.objects.create(owner=user, way=way, message=message, is_test=is_test) for way in ways]


def queue_test(user: Any, message: dict[str, str]) -> list[Delivery]:
    """Queue a test message for each channel. Return the deliveries.

    Raises Conflict while another test of the user waits, and Busy while too many tests of all users wait.
    """
    tests = Delivery.objects.filter(is_test=True, state=DeliveryState.WAITING)
    with transaction.atomic():
        # with the lock, the second of two simultaneous requests finds the test of the first
        Wish.objects.select_for_update().get(user=user)
        if tests.filter(owner=user).exists():
            raise Conflict("Your last test is still on its way. Wait for its result below.")
        if tests.count() >= MAX_WAITING_TESTS:
            raise Busy("Too many tests of other users are on their way. Try again in a minute.")
        return queue_message(user, message, is_test=True)


def uses_mail(wish: Wish) -> bool:
    """Return whether the user wants mail and has an address, and this server sends mail."""
    return bool(wish.email and wish.user.email and settings.EMAIL_HOST)


def on_beside(sender: Any, **_: Any) -> None:
    """Deliver due messages. A receiver of the signal `beside`, which workers send regularly."""
    deliver_due()


def deliver_due() -> int:
    """Try due deliveries, one for each of at most AT_ONCE users. Return how many were tried."""
    claimed = list(_claim_due())
    if not claimed:
        return 0
    wishes = {wish.user_id: wish for wish in Wish.objects.filter(user__in=[delivery.owner_id for delivery in claimed])}
    with ThreadPoolExecutor(len(claimed)) as pool:  # the threads of this pool do not use the database
        errors = pool.map(lambda delivery: _try(delivery, wishes.get(delivery.owner_id)), claimed)
        for delivery, error in zip(claimed, errors, strict=True):
            _record(delivery, error)
    return len(claimed)


def _claim_due() -> Iterable[Delivery]:
    """Claim and yield the oldest due delivery of each of the AT_ONCE users who have waited longest."""
    due = Delivery.objects.filter(state=DeliveryState.WAITING, due__lte=timezone.now())
    owners = due.order_by().values("owner").annotate(first=Min("due")).order_by("first").values_list("owner", flat=True)
    for owner in list(owners[:AT_ONCE]):
        delivery = due.filter(owner=owner).select_related("owner").order_by("due", "id").first()
        if delivery is None:
            continue
        same = Delivery.objects.filter(pk=delivery.pk, state=DeliveryState.WAITING, due=delivery.due)
        if same.update(due=timezone.now() + LEASE, tries=F("tries") + 1):
            delivery.tries += 1
            yield delivery


def _try(delivery: Delivery, wish: Wish | None) -> str:
    """Send a delivery. Return the error message, or "" on success."""
    if delivery.tries > _max_tries(delivery):
        return "The worker died while it sent the message, which may have arrived."
    if not delivery.owner.is_active:
        return "The account is closed."
    if delivery.way == Way.MAIL:
        return _try_mail(delivery)
    if wish is None or not wish.webhook:
        return "The address was removed before the message was sent."
    if wish.failures >= MAX_FAILURES:
        return "The address is switched off after too many failures. Save it again to switch it on."
    try:
        send(wish.webhook, wish.secret, Envelope(id=str(delivery.pk), message=delivery.message))
    except Undelivered as error:
        return str(error)[:300]
    return ""


def _try_mail(delivery: Delivery) -> str:
    message = delivery.message
    words = message["words"]
    body = f"{message['name']}: {words}.\n"
    body += "".join(f"\n{message[part]}\n" for part in ("detail", "url") if part in message)
    subject = " ".join(f"octweb: {message['name']} {words}".split())
    try:
        send_mail(subject, body, settings.DEFAULT_FROM_EMAIL, [delivery.owner.email])
    except OSError as error:
        log.warning("a mail to user %s was not sent: %s", delivery.owner_id, error)
        return "The mail server refused the message. An administrator finds the cause in the log of the server."
    return ""


def _record(delivery: Delivery, error: str) -> None:
    """Store the outcome of a try: delivered, due again later, or given up."""
    now = timezone.now()
    changes: dict[str, Any] = {"error": error}
    gives_up = delivery.tries >= _max_tries(delivery)
    if not error:
        changes |= {"state": DeliveryState.DELIVERED, "finished": now}
    elif gives_up:
        changes |= {"state": DeliveryState.FAILED, "finished": now}
    else:
        changes["due"] = now + FIRST_DELAY * DELAY_FACTOR ** (delivery.tries - 1)
    with transaction.atomic():
        same = Delivery.objects.filter(pk=delivery.pk, state=DeliveryState.WAITING, tries=delivery.tries)
        if not same.update(**changes):
            return  # the lease has expired, and another worker has claimed the delivery
        wish = Wish.objects.filter(user=delivery.owner_id)
        if delivery.way == Way.WEBHOOK and not error:
            wish.update(failures=0, trouble="")
        elif delivery.way == Way.WEBHOOK and gives_up and not delivery.is_test:
            wish.update(failures=F("failures") + 1, trouble=error)
    if error:
        log.info(
            "message %s to user %s did not arrive at try %s: %s", delivery.pk, delivery.owner_id, delivery.tries, error
        )


def _max_tries(delivery: Delivery) -> int:
    return 1 if delivery.is_test else MAX_TRIES
