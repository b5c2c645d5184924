"""Export the chain of decisions as JSON lines, for checks without octweb."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TextIO

from django.db import transaction

from octweb.audit import actions as audit
from octweb.audit.models import SEALED, Record
from octweb.decisions import adding, collecting
from octweb.decisions.adding import BLOCK_SECONDS, hold
from octweb.decisions.models import Block, ChainEntry


def export_chain(stream: TextIO) -> int:
    """Seal and sign all records, write them, and return how many. Erased records have no content."""
    with transaction.atomic():
        audit.hold()  # always take the lock of the audit chain before our own; this excludes deadlocks
        head = hold()
        adding.seal(head, time.time_ns() + BLOCK_SECONDS * 10**9)
        last = Block.objects.last()
        if last is not None and last.number > head.signed:
            collecting.sign(head, last, datetime.now(UTC).date().isoformat())
            head.save()
    records = 0
    for line in _lines():
        stream.write(json.dumps(line, ensure_ascii=False) + "\n")
        records += line["type"] == "entry"
    return records


def _lines() -> Iterator[dict[str, Any]]:
    for block in Block.objects.iterator():
        for entry in ChainEntry.objects.filter(number__gte=block.first, number__lt=block.first + block.records):
            yield {
                "type": "entry",
                "number": entry.number,
                "key": str(entry.key),
                "kind": entry.kind,
                "stream": None if entry.stream is None else str(entry.stream),
                "seq": entry.seq,
                "payload": entry.payload or None,
                "salt": entry.salt or None,
                "commitment": entry.commitment,
            }
        yield {"type": "block", "header": block.header}
    for record in Record.objects.filter(what=SEALED):
        details = record.details
        yield {"type": "signature"} | {name: details[name] for name in ("block", "sha256", "signature", "key")}
