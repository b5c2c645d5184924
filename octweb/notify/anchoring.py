"""Show the last signed block of decisions to somebody outside: an auditor's webhook, or a time stamp server.

Whoever owns database and key can rewrite the chain, but not what others have received before.
"""

from __future__ import annotations

import base64
import json
import logging
import secrets
import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from octweb.audit import actions as audit
from octweb.audit.models import SEALED, Record
from octweb.decisions.adding import ONLY
from octweb.decisions.collecting import ANCHORED
from octweb.decisions.models import Block, DecisionHead
from octweb.decisions.timestamps import BadTimestamp, read_timestamp, timestamp_request
from octweb.notify.webhook import ID_HEADER, Post, Undelivered, post

log = logging.getLogger(__name__)

TIMESTAMP = "timestamp"  # value of ANCHOR_KIND
LEASE = timedelta(minutes=3)  # a try takes less time than this
FIRST_DELAY = timedelta(seconds=30)
DELAY_FACTOR = 4
MAX_DELAY = timedelta(hours=1)
MAX_RECEIPT_BYTES = 32_768
CLOCK_SKEW = timedelta(minutes=5)


def anchor_due() -> bool:
    """Anchor the last signed block if it is not anchored yet. Return whether an anchor was recorded."""
    sealed = _unanchored() if settings.ANCHOR_URL else None
    if sealed is None or not _claim():
        return False
    try:
        receipt = _send(sealed)
    except Undelivered as error:
        _delay(str(error))
        return False
    with transaction.atomic():
        audit.hold()
        if _unanchored() != sealed:  # another worker's lease ended, and it was faster
            return False
        block = Block.objects.get(number=sealed.details["block"])
        host = urlsplit(settings.ANCHOR_URL).hostname or ""
        details = {
            "block": block.number,
            "sha256": sealed.details["sha256"],
            "kind": settings.ANCHOR_KIND,
            "host": host,
        }
        audit.record(ANCHORED, block, by=None, **details, receipt=base64.b64encode(receipt).decode())
        _heads().update(anchor_due=None, anchor_tries=0, anchor_error="")
    return True


def _heads() -> Any:
    return DecisionHead.objects.filter(pk=ONLY)


def _unanchored() -> Record | None:
    """Return the record of the last signed block, or None if there is none or it is anchored."""
    sealed = Record.objects.filter(what=SEALED).last()
    anchored = Record.objects.filter(what=ANCHORED).last()
    if sealed is None or (anchored is not None and anchored.details["sha256"] == sealed.details["sha256"]):
        return None
    return sealed


def _claim() -> bool:
    """Claim the next try for this worker, with one UPDATE. Return whether it is due and was claimed."""
    now = timezone.now()
    due = _heads().filter(Q(anchor_due=None) | Q(anchor_due__lte=now))
    return bool(due.update(anchor_due=now + LEASE))


def _delay(error: str) -> None:
    """Make the next try due later, after each failure four times as late, at most after an hour."""
    tries = _heads().values_list("anchor_tries", flat=True).first() or 0
    delay = min(MAX_DELAY, FIRST_DELAY * DELAY_FACTOR ** min(tries, 5))
    log.warning("the decisions are not anchored: %s", error)
    _heads().update(anchor_due=timezone.now() + delay, anchor_tries=F("anchor_tries") + 1, anchor_error=error[:300])


def _send(sealed: Record) -> bytes:
    """Send the hash of a signed block, and return the receipt: a time stamp, or nothing. Raises Undelivered."""
    if settings.ANCHOR_KIND == TIMESTAMP:
        return _stamp(sealed.details["sha256"])
    names = ("day", "block", "records", "sha256", "signature", "key")
    message = {name: sealed.details[name] for name in names}
    message |= {"event": "decisions.sealed", "record": sealed.number, "record_sha256": sealed.digest}
    # repeated tries have the same id
    headers = {"Content-Type": "application/json", ID_HEADER: str(uuid.uuid5(uuid.NAMESPACE_OID, sealed.digest))}
    post(settings.ANCHOR_URL, Post(body=json.dumps(message).encode(), headers=headers))
    return b""


def _stamp(sha256: str) -> bytes:
    """Return the time stamp of a hash. Raises Undelivered if the answer is none, or one of something else."""
    nonce = secrets.randbits(63)
    headers = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}
    body = timestamp_request(sha256, nonce)
    answer = post(settings.ANCHOR_URL, Post(body=body, headers=headers, most=MAX_RECEIPT_BYTES))
    host = urlsplit(settings.ANCHOR_URL).hostname
    try:
        stamp = read_timestamp(answer)
    except BadTimestamp as error:
        raise Undelivered(f"{host}: {error}.") from error
    if stamp.sha256 != sha256 or stamp.nonce != nonce:
        raise Undelivered(f"{host} answered with a time stamp of another hash or another request.")
    if abs(stamp.at - timezone.now()) > CLOCK_SKEW:
        raise Undelivered(f"{host} answered with the time {stamp.at.isoformat()}, which is not that of this server.")
    return answer
