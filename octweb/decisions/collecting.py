"""Move frames from spool files into the chain, exactly once."""

from __future__ import annotations

import base64
import logging
import os
import time
import uuid
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from django.db import transaction

from octweb.audit import actions as audit
from octweb.audit.models import SEALED
from octweb.batch.recorded import reveal_finished
from octweb.core import spool
from octweb.core.spool import SUFFIX, Frame, FrameKind
from octweb.decisions import adding
from octweb.decisions.adding import EntryDraft, hold
from octweb.decisions.erasing import erase_old
from octweb.decisions.models import Block, DecisionHead, Kind, RecordStream, SpoolPart
from octweb.decisions.silently import RecordedRows, add_silent_answers
from octweb.dossier.keys import signing_key
from octweb.registry.prediction.recording import ID_DIGITS, ROWS_HEAD, new_id

log = logging.getLogger(__name__)

BATCH_ROWS = 4096  # a transaction ends with the frame that reaches this number of rows
READ_BYTES = 16_000_000  # maximum bytes per read of a file
ANCHORED = "decisions anchored"  # kind of the record of a sealed block that somebody else has seen
SCHEMAS: dict[tuple[str, bytes], Any] = {}  # (file, SHA-256 and id of the model) → schema


class _Retention:
    """Last day on which this process erased old records."""

    done: date | None = None


class Read(NamedTuple):
    """Frames of a file for one transaction, and the position behind them."""

    drafts: list[EntryDraft]
    offset: int
    seq: int
    last: int
    has_more: bool


def collect_due(now: datetime | None = None) -> int:
    """Collect frames, seal blocks, sign the last block of past days, and erase old records once a day.

    Return how many records were collected.
    """
    now = now or datetime.now(UTC)
    added = collect()
    with transaction.atomic():
        audit.hold()  # always take the lock of the audit chain before our own; this excludes deadlocks
        head = hold()
        adding.seal(head, int(now.timestamp() * 1e9))
        sign_day(head, now)
    if _Retention.done != now.date():
        erase_old(now)
        _Retention.done = now.date()
    return added


def collect() -> int:
    """Collect all spool files of this host. Return how many records were added."""
    reveal_finished()
    added = 0
    for path in sorted(spool.folder().glob(f"*{SUFFIX}")):
        while (number := collect_part(path)) is not None:
            added += number
    return added


def collect_part(path: Path) -> int | None:
    """Add the next records of a file, and store its offset, in one transaction.

    Return how many records were added, or None if nothing is left to do. A finished file is deleted.
    """
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        with transaction.atomic():
            head = hold()
            part, _ = SpoolPart.objects.get_or_create(name=path.name)
            if part.is_done:
                is_done = True
                added = 0
            else:
                added, is_done, is_idle = _advance(head, part, fd)
                if is_idle:
                    return None
    finally:
        os.close(fd)
    if is_done:  # delete the file first: a file without its row would be collected again
        path.unlink(missing_ok=True)
        SpoolPart.objects.filter(pk=path.name).delete()
        for key in [key for key in SCHEMAS if key[0] == path.name]:
            del SCHEMAS[key]
    return added


def _advance(head: DecisionHead, part: SpoolPart, fd: int) -> tuple[int, bool, bool]:
    """Add the next records. Return their number, whether the file is finished, and whether it had no new frame."""
    is_ended = spool.is_free(fd)  # check before reading, so that no frame is added after the read
    stream, _ = RecordStream.objects.get_or_create(pk=uuid.UUID(part.name.partition("-")[0]))
    size = os.fstat(fd).st_size
    read = _read(part, stream, fd)
    if read.offset == part.offset and not is_ended:
        return 0, False, True
    adding.add(head, read.drafts)
    part.offset = read.offset
    part.last = read.last
    stream.seq = max(stream.seq, read.seq)
    is_done = is_ended and not read.has_more
    if is_done:
        _end(head, stream, read, size)
    stream.save()
    part.is_done = is_done
    part.save()
    return len(read.drafts), is_done, False


def _end(head: DecisionHead, stream: RecordStream, read: Read, size: int) -> None:
    """Store how a stream ended. If its file was cut off, record the number of lost bytes."""
    lost_bytes = size - read.offset
    if read.last == FrameKind.CONTINUED and not lost_bytes:
        return
    if read.last == FrameKind.CLOSED and not lost_bytes:
        stream.end = "closed"
        return
    stream.end = "cut"
    now = time.time_ns()
    key = uuid.UUID(bytes=new_id(now))
    payload = {
        "kind": str(Kind.ENDED),
        "id": str(key),
        "at": now,
        "stream": str(stream.pk),
        "next_seq": stream.seq,
        "cut_bytes": lost_bytes,
        "note": "the process did not close its file; rows of the last second may be missing after a power failure",
    }
    adding.add(head, [EntryDraft(str(Kind.ENDED), key, now, payload, {})])


def _read(part: SpoolPart, stream: RecordStream, fd: int) -> Read:
    """Read frames until there are enough rows for one transaction. Skip rows that were collected before."""
    drafts: list[EntryDraft] = []
    frames: list[RecordedRows] = []
    end = part.offset
    seq = stream.seq
    last = part.last
    content = spool.read_from(fd, part.offset, READ_BYTES)
    for frame in spool.read_frames(content, 0):
        end = part.offset + frame.end
        last = frame.kind
        if frame.kind == FrameKind.SCHEMA:
            _keep_schema(part.name, frame.body)
        elif frame.rows and frame.seq >= seq:
            rows = _drafts(part.name, fd, stream.pk, frame)
            drafts.extend(rows.drafts)
            frames.append(rows)
            seq = frame.seq + frame.rows
        if len(drafts) >= BATCH_ROWS:
            add_silent_answers(frames)
            return Read(drafts, end, seq, last, True)
    add_silent_answers(frames)
    has_more = len(content) >= READ_BYTES and end > part.offset
    return Read(drafts, end, seq, last, has_more)


def _keep_schema(name: str, body: bytes) -> None:
    schema = orjson.loads(body)
    SCHEMAS[name, bytes.fromhex(schema["sha256"] + schema["model"])] = schema


def _schema(name: str, fd: int, key: bytes) -> Any:
    """Return the schema of a model. After a restart, read it from the collected part of the file."""
    if (name, key) not in SCHEMAS:
        for body in spool.schemas_in(fd):
            _keep_schema(name, body)
    return SCHEMAS[name, key]


def _drafts(name: str, fd: int, stream: uuid.UUID, frame: Frame) -> RecordedRows:
    """Return the records of a frame. A refused row has no cells, so no challenger answers it."""
    if frame.kind == FrameKind.UNRECORDED:
        draft = _unrecorded_draft(stream, frame)
        return RecordedRows(uuid.UUID(draft.payload["model"]), b"", [draft], np.empty((0, 0)))
    if frame.kind == FrameKind.REFUSED:
        draft = _refused_draft(stream, frame)
        return RecordedRows(draft.values["model"], b"", [draft], np.empty((0, 0)))
    drafts = []
    sha256, model, first, at, api, length = ROWS_HEAD.unpack_from(frame.body)
    start = ROWS_HEAD.size
    by, asked_at, request, subject = orjson.loads(frame.body[start : start + length])
    schema = _schema(name, fd, sha256 + model)
    columns = schema["columns"]
    start += length
    values = np.frombuffer(frame.body, "<f8", frame.rows * len(columns), start).reshape(frame.rows, len(columns))
    leaves = np.frombuffer(frame.body, "<i4", frame.rows, start + values.nbytes).tolist()
    bits = values.astype(">f8").tobytes().hex()
    base = int.from_bytes(first, "big")
    first_row = base % 16**ID_DIGITS
    call = request or str(uuid.UUID(bytes=first))
    for i, (row, leaf) in enumerate(zip(values.tolist(), leaves, strict=True)):
        label, probability = schema["leaves"][str(leaf)]
        key = uuid.UUID(int=base + i)
        place = i * len(columns)
        cells = [bits[16 * (place + j) : 16 * (place + j + 1)] for j in range(len(columns))]
        payload = {
            "kind": "decision",
            "id": str(key),
            "at": at,
            "stream": str(stream),
            "seq": frame.seq + i,
            "call": call,
            "row": first_row + i,
            "model": str(uuid.UUID(bytes=model)),
            "version_sha256": sha256.hex(),
            "name": asked_at,
            "api": api,
            "by": by,
            "subject": subject,
            "values": {column["name"]: _cell(column, v, b) for column, v, b in zip(columns, row, cells, strict=True)},
            "noted": [
                [column["name"], kind] for column, v in zip(columns, row, strict=True) if (kind := _unusual(column, v))
            ],
            "leaf": leaf,
            "label": label,
            "probability": [probability[k : k + 16] for k in range(0, len(probability), 16)],
            "refused": "",
        }
        columns_of_list = {
            "model": uuid.UUID(bytes=model), "stream": stream, "seq": frame.seq + i, "leaf": leaf, "label": label, "subject": subject,
        }  # fmt: skip
        drafts.append(EntryDraft(str(Kind.DECISION), key, at, payload, columns_of_list))
    return RecordedRows(uuid.UUID(bytes=model), sha256, drafts, values)


def _cell(column: dict[str, Any], value: float, bits: str) -> Any:
    """Return the text of a known category, or else the bits of the number that the model received."""
    categories = column["categories"]
    if categories is not None and 0 <= value < len(categories):
        return categories[int(value)]
    return {"bits": bits}


def _unusual(column: dict[str, Any], value: float) -> str:
    """Return in one word how a cell is unusual, by the rules of `Tree.unusual_cells`. "" if it is not."""
    if value != value or value == column["missing"]:
        return "empty"
    if column["categories"] is not None and value < 0:
        return "unknown"
    if column["low"] is not None and value < column["low"]:
        return "below"
    return "above" if column["high"] is not None and value > column["high"] else ""


def _refused_draft(stream: uuid.UUID, frame: Frame) -> EntryDraft:
    """Return the record of a refused row. It has no values, because parsing stopped at the error."""
    body = orjson.loads(frame.body)
    by, asked_at, request, subject = body["caller"]
    key = uuid.UUID(body["id"])
    model = uuid.UUID(body["model"])
    payload = {
        "kind": "decision",
        "id": str(key),
        "at": body["at"],
        "stream": str(stream),
        "seq": frame.seq,
        "call": request or str(key),
        "row": body["row"],
        "model": str(model),
        "version_sha256": body["sha256"],
        "name": asked_at,
        "api": body["api"],
        "by": by,
        "subject": subject,
        "values": {},
        "noted": [[body["column"], body["reason"]]],
        "refused": body["reason"],
    }
    columns = {"model": model, "stream": stream, "seq": frame.seq, "subject": subject}
    return EntryDraft(str(Kind.DECISION), key, body["at"], payload, columns)


def _unrecorded_draft(stream: uuid.UUID, frame: Frame) -> EntryDraft:
    """Return the record of how many rows were answered without a record, and when."""
    sha256 = frame.body[:32]
    model = frame.body[32:48]
    rows, since, until = spool.UNRECORDED.unpack_from(frame.body, 48)
    key = uuid.UUID(bytes=new_id(until))
    payload = {
        "kind": str(Kind.UNRECORDED),
        "id": str(key),
        "at": until,
        "stream": str(stream),
        "seq": frame.seq,
        "model": str(uuid.UUID(bytes=model)),
        "version_sha256": sha256.hex(),
        "rows": rows,
        "since": since,
        "note": "there was no room for records",
    }
    return EntryDraft(str(Kind.UNRECORDED), key, until, payload, {"stream": stream, "seq": frame.seq})


def sign_day(head: DecisionHead, now: datetime) -> None:
    """Sign the last block of past days, and record it in the audit chain. The transaction must hold both heads."""
    today = now.astimezone(UTC).date()
    if head.signed_on == today or head.blocks == head.signed:
        return
    midnight = datetime(today.year, today.month, today.day, tzinfo=UTC)
    block = Block.objects.filter(last_at__lt=int(midnight.timestamp()) * 10**9).last()
    if block is None or block.number <= head.signed:
        return
    sign(head, block, day=(today - timedelta(days=1)).isoformat())
    head.signed_on = today
    head.save()


def sign(head: DecisionHead, block: Block, day: str) -> None:
    """Sign the hash of a block with the dossier key, and record it in the audit chain."""
    key = signing_key()
    signature = base64.b64encode(key.sign(signed_text(block.number, block.digest))).decode()
    public = key.public_key().public_bytes_raw().hex()
    records = block.first + block.records - 1
    audit.record(
        SEALED,
        block,
        by=None,
        day=day,
        block=block.number,
        sha256=block.digest,
        records=records,
        signature=signature,
        key=public,
    )
    head.signed = block.number


def signed_text(number: int, digest: str) -> bytes:
    """Return the text that the signature of a block covers."""
    return f"octweb decisions block {number} sha256 {digest}\n".encode()
