"""Add records to the chain of decisions, and seal them in blocks.

Nothing else creates a ChainEntry or a Block.
"""

from __future__ import annotations

import os
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from django.db import connection, transaction

from octweb.decisions import hashing
from octweb.decisions.models import Block, ChainEntry, DecisionHead, Kind
from octweb.registry.prediction.recording import new_id
from trainer.version import VERSION

ONLY = 1  # primary key of the single DecisionHead
BLOCK_RECORDS = 4096
BLOCK_SECONDS = 60
FIELDS = (
    "number", "key", "kind", "about", "model", "at", "stream", "seq", "leaf", "label", "subject", "payload", "salt", "commitment",
)  # fmt: skip
SEALED_FIELDS = ("number", "commitment", "at", "stream", "seq", "kind", "payload")


class EntryDraft(NamedTuple):
    """A record to be added. `payload` has the members of its JSON, `values` further columns."""

    kind: str
    key: uuid.UUID
    at: int
    payload: dict[str, Any]
    values: Mapping[str, Any]


def hold() -> DecisionHead:
    """Lock the head of the chain until the transaction ends, and return it."""
    return DecisionHead.objects.select_for_update().get_or_create(pk=ONLY)[0]


def add(head: DecisionHead, drafts: Iterable[EntryDraft]) -> list[int]:
    """Add records, and return their numbers. The transaction must hold the head."""
    rows = []
    numbers = []
    has_uuids = connection.features.has_native_uuid_field
    for draft in drafts:
        head.records += 1
        payload = hashing.canonical(draft.payload)
        salt = os.urandom(16).hex()
        head_values = {
            "number": head.records,
            "key": draft.key,
            "kind": draft.kind,
            "at": draft.at,
            "subject": "",
            "payload": payload,
            "salt": salt,
            "commitment": hashing.commitment(salt, payload),
        }
        rows.append(_values(head_values | dict(draft.values), has_uuids))
        numbers.append(head.records)
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(_statement(), rows)
        head.save()
    return numbers


def add_later(kind: str, by: str, *, about: ChainEntry | None = None, **members: Any) -> int:
    """Add a record about a decision, or about the chain, in its own transaction. Return its number."""
    with transaction.atomic():
        return add(hold(), [later_draft(kind, by, about, members)])[0]


def later_draft(kind: str, by: str, about: ChainEntry | None, members: Mapping[str, Any]) -> EntryDraft:
    """Return a record with the current time about a decision, or about the chain.

    The member `label` also gets a column.
    """
    now = time.time_ns()
    key = uuid.UUID(bytes=new_id(now))
    payload = {"kind": str(kind), "id": str(key), "at": now, "by": by} | dict(members)
    values: dict[str, Any] = {"label": members.get("label")}
    if about is not None:
        payload["decision"] = str(about.key)
        values |= {"about": about.key, "model": about.model}
    return EntryDraft(kind, key, now, payload, values)


def seal(head: DecisionHead, now: int) -> list[Block]:
    """Seal full blocks. If the oldest unsealed record is BLOCK_SECONDS old, seal all records. Return the blocks.

    `now` is in ns. The transaction must hold the head.
    """
    blocks = []
    while head.records > head.sealed:
        waiting = ChainEntry.objects.filter(number__gt=head.sealed)
        entries: list[Any] = list(waiting.values_list(*SEALED_FIELDS, named=True)[:BLOCK_RECORDS])
        old = now - min(entry.at for entry in entries) >= BLOCK_SECONDS * 10**9
        if len(entries) < BLOCK_RECORDS and not old:
            break
        blocks.append(_seal(head, entries))
    return blocks


def _seal(head: DecisionHead, entries: Sequence[Any]) -> Block:
    header = hashing.canonical(
        {
            "number": head.blocks + 1,
            "before": head.digest,
            "root": hashing.merkle_root([entry.commitment for entry in entries]),
            "first": entries[0].number,
            "records": len(entries),
            "first_at": min(entry.at for entry in entries),
            "last_at": max(entry.at for entry in entries),
            "streams": stream_ranges(entries),
            "counts": dict(Counter(filter(None, map(count_key, entries)))),
            "made": VERSION,
        }
    )
    block = Block.objects.create(
        number=head.blocks + 1,
        first=entries[0].number,
        records=len(entries),
        last_at=max(entry.at for entry in entries),
        header=header,
        digest=hashing.header_digest(header),
    )
    head.blocks = block.number
    head.digest = block.digest
    head.sealed = entries[-1].number
    head.save()
    return block


def stream_ranges(entries: Iterable[Any]) -> dict[str, list[int]]:
    """Return the smallest and the largest `seq` of each stream."""
    ranges: dict[str, list[int]] = {}
    for entry in entries:
        if entry.stream is not None and entry.seq is not None:
            ends = ranges.setdefault(str(entry.stream), [entry.seq, entry.seq])
            ends[0] = min(ends[0], entry.seq)
            ends[1] = max(ends[1], entry.seq)
    return ranges


def count_key(entry: Any) -> str:
    """Return the name of a decision's count. "" for other or erased records."""
    if entry.kind != Kind.DECISION or not entry.payload:
        return ""
    return count_name(orjson.loads(entry.payload))


def count_name(payload: Mapping[str, Any]) -> str:
    """Return version, leaf and class of a decision as text."""
    return f"{payload['version_sha256']} {payload.get('leaf', 'refused')} {payload.get('label', '')}".strip()


def _values(payload: Mapping[str, Any], has_uuids: bool) -> list[Any]:
    """Return the values of a row. Databases without a type for UUIDs (`has_uuids`) get them as hexadecimal texts."""
    values = [payload.get(name) for name in FIELDS]
    if has_uuids:
        return values
    return [value.hex if isinstance(value, uuid.UUID) else value for value in values]


def _statement() -> str:
    quote = connection.ops.quote_name
    names = ", ".join(map(quote, FIELDS))
    places = ", ".join(["%s"] * len(FIELDS))
    return f"INSERT INTO {quote(ChainEntry._meta.db_table)} ({names}) VALUES ({places})"  # noqa: S608  (our own names)
