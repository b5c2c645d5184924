"""Erase records: payload and salt are removed, commitment and number are kept."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from octweb.decisions import adding, erasure_list
from octweb.decisions.adding import EntryDraft, hold
from octweb.decisions.models import Block, ChainEntry, Kind
from octweb.decisions.signals import decisions_erased
from octweb.registry.models import TreeModel
from octweb.registry.prediction.recording import new_id, subject_digest

KEPT_KINDS = (Kind.ERASED, Kind.ENDED, Kind.REPLAYED, Kind.UNRECORDED)  # these records have no personal data
USER_REASONS = ("request", "mistake")  # reasons that a user may give
REASONS = (*USER_REASONS, "retention")
CHUNK_KEYS = 500  # keys per SQL statement
MAX_RANGES = 10_000  # most ranges of numbers in a record of an erasure
NOTHING: dict[str, Any] = {"payload": "", "salt": "", "subject": "", "leaf": None, "label": None}


def erase_decisions(keys: Collection[uuid.UUID], *, by: str, why: str, is_listed: bool = True) -> list[uuid.UUID]:
    """Erase decisions and the records about them. Return the ids of the decisions that this call has erased.

    They are listed for a restore of an older backup, unless they come from such a list. Raises Busy if the list cannot
    be written.
    """
    with transaction.atomic():
        head = hold()
        erased = []
        numbers: list[int] = []
        for part in _chunks(sorted(keys)):
            decisions = ChainEntry.objects.filter(key__in=part, kind=Kind.DECISION).exclude(payload="")
            erased_keys = list(decisions.values_list("key", flat=True))
            entries = _erasable(ChainEntry.objects.filter(Q(key__in=erased_keys) | Q(about__in=erased_keys)))
            numbers += entries.values_list("number", flat=True)
            erased += erased_keys
            _clear(entries)
        if numbers:
            if is_listed:
                erasure_list.append(erased, why)  # before the commit, so that no erasure is missing in the list
            members = {"numbers": sorted(numbers), "decisions": sorted(map(str, erased))}
            adding.add(head, [_record(by, why, members)])
            decisions_erased.send(sender=None, decisions=erased)
    _clean_files()
    return erased


def erase_subject(
    subject: str, *, by: str, why: str = "request", models: Collection[uuid.UUID] | None = None
) -> list[uuid.UUID]:
    """Erase the decisions about the person that callers call `subject`, and return their ids.

    `models` limits them to some models. None means all.
    """
    entries = ChainEntry.objects.filter(subject=subject_digest(subject), kind=Kind.DECISION)
    if models is not None:
        entries = entries.filter(model__in=models)
    return erase_decisions(list(entries.values_list("key", flat=True)), by=by, why=why)


def erase_old(now: datetime) -> int:
    """Erase records of blocks older than the days of their model, and later records about their decisions.

    Return how many. Models without days of their own have those of OCTWEB_RECORD_KEEP_DAYS.
    """
    with_days = TreeModel.objects.exclude(keep_days=None).order_by().values_list("keep_days", "pk")
    by_days: dict[int, list[uuid.UUID]] = {}
    for days, model in with_days:
        by_days.setdefault(days, []).append(model)
    others = ~Q(model__in=[model for models in by_days.values() for model in models])
    count = _erase_older(now - timedelta(days=settings.RECORD_KEEP_DAYS), others)
    for days, models in by_days.items():
        count += _erase_older(now - timedelta(days=days), Q(model__in=models))
    if count:
        _clean_files()
    return count


def _erase_older(moment: datetime, models: Q) -> int:
    """Erase the records of some models in blocks that ended before a time, and later records about their decisions."""
    before = int(moment.timestamp()) * 10**9
    with transaction.atomic():
        head = hold()
        block = Block.objects.filter(last_at__lt=before).last()
        if block is None:
            return 0
        last = block.first + block.records - 1
        entries = _erasable(ChainEntry.objects.filter(models, number__lte=last))
        first = entries.values_list("number", flat=True).first()
        if first is None:
            return 0
        decisions = ChainEntry.objects.filter(models, number__range=(first, last), kind=Kind.DECISION)
        keys = decisions.order_by().values("key")
        later = _erasable(ChainEntry.objects.filter(number__gt=last, about__in=keys))
        numbers = [n for rows in (entries, later) for n in rows.values_list("number", flat=True).iterator()]
        count = _clear(entries) + _clear(later)
        ranges = runs_of(numbers)
        for start in range(0, len(ranges), MAX_RANGES):
            adding.add(head, [_record("", "retention", {"ranges": ranges[start : start + MAX_RANGES]})])
        decisions_erased.send(sender=None, decisions=keys)
    return count


def runs_of(numbers: Iterable[int]) -> list[list[int]]:
    """Return first and last number of each run of consecutive ascending numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def ranges_of(payload: Mapping[str, Any]) -> list[list[int]]:
    """Return the ranges of numbers in a record of an erasure. Older records have one."""
    return [*payload.get("ranges", ()), *([payload["range"]] if "range" in payload else ())]


def _erasable(entries: QuerySet[ChainEntry]) -> QuerySet[ChainEntry]:
    return entries.exclude(payload="").exclude(kind__in=KEPT_KINDS)


def _clear(entries: QuerySet[ChainEntry]) -> int:
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA secure_delete=ON")  # overwrite deleted content with zeros
    return entries.update(**NOTHING)


def _record(by: str, why: str, members: dict[str, Any]) -> EntryDraft:
    now = time.time_ns()
    key = uuid.UUID(bytes=new_id(now))
    payload = {"kind": str(Kind.ERASED), "id": str(key), "at": now, "by": by, "why": why} | members
    return EntryDraft(str(Kind.ERASED), key, now, payload, {})


def _clean_files() -> None:
    """Truncate SQLite's write-ahead log, which contains earlier pages. PostgreSQL needs VACUUM for this."""
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _chunks(keys: list[uuid.UUID]) -> Iterable[list[uuid.UUID]]:
    for start in range(0, len(keys), CHUNK_KEYS):
        yield keys[start : start + CHUNK_KEYS]
