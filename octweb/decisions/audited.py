"""Verify the chain of decisions: hashes, streams, erasures, signatures, model versions."""

from __future__ import annotations

import base64
import json
import math
import uuid
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db.models import F, OuterRef, Q, Subquery, TextField
from django.db.models.functions import Cast

from octweb.audit.models import SEALED, Record
from octweb.decisions import hashing
from octweb.decisions.adding import ONLY, count_name, stream_ranges
from octweb.decisions.collecting import ANCHORED, signed_text
from octweb.decisions.erasing import ranges_of
from octweb.decisions.models import Block, ChainEntry, DecisionHead, Kind
from octweb.decisions.timestamps import read_timestamp
from octweb.dossier import signing
from octweb.dossier.keys import known_fingerprints
from octweb.registry.models import TreeModel

# these columns repeat parts of the payload
COPIES = ("kind", "at", "model", "stream", "seq", "leaf", "label", "subject")
IDS = ("key", "about", "model", "stream")  # columns of UUIDs
DECISION = str(Kind.DECISION)  # comparing with the member itself takes five times as long
MAX_PROBLEMS = 50


class DecisionAudit:
    """Result of an audit of the chain of decisions."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.records = 0
        self.checked = 0  # records whose content was compared with their commitments
        self.erased: Counter[str] = Counter()
        self.cut_streams = 0
        self.unrecorded = 0  # rows that were answered without a record
        self.anchored = ""  # the last anchor in words

    def add(self, text: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(text)


class _Entry(NamedTuple):
    """Columns of a ChainEntry. UUIDs are texts, because a million objects take seconds."""

    number: int
    key: str
    kind: str
    about: str | None
    model: str | None
    at: int
    stream: str | None
    seq: int | None
    leaf: int | None
    label: int | None
    subject: str
    payload: str
    salt: str
    commitment: str


class _Checked(NamedTuple):
    """What the check of a block needs from a record. `count` is the name of its count, or ""."""

    commitment: str
    stream: uuid.UUID | None
    seq: int | None
    count: str


class _ChainWalk:
    """State of one pass over the records in order.

    `models` has the ids of the models whose records are compared with their commitments, or None for all. While
    `is_skipping`, those of no model are.
    """

    def __init__(self, report: DecisionAudit, models: Collection[uuid.UUID] | None) -> None:
        self.found = report
        self.is_skipping = False
        self._models = None if models is None else {model.hex for model in models}
        self.places: dict[Any, int] = {}  # stream → `seq` that its next record must have
        self.empty: list[int] = []
        self.numbers: dict[int, str] = {}  # number of an erased record → reason
        self.ranges: list[tuple[int, int]] = []
        self.versions: set[tuple[str, str]] = set()

    def look_at(self, entry: _Entry) -> _Checked:
        """Check one record, and its position in its stream."""
        stream = None if entry.stream is None else _uuid(entry.stream)
        if entry.seq is not None:
            expected = self.places.get(stream, 0)
            if entry.seq != expected:
                self._add(entry, f"place {expected} of stream {stream} is missing before it.")
            self.places[stream] = entry.seq + 1
        return _Checked(entry.commitment, stream, entry.seq, self._count_of(entry))

    def _count_of(self, entry: _Entry) -> str:
        """Check the content of a record, and return the name of its count, or ""."""
        if not entry.payload:
            self.empty.append(entry.number)
            return ""
        if entry.model is not None and self._is_skipped(entry.model):
            return ""
        self.found.checked += 1
        if not _is_committed(entry):
            self._add(entry, "its content or its salt was changed.")
            return ""
        payload = _parse(entry.payload)
        if wrong := _wrong_copies(entry, payload):
            self._add(entry, f"its columns differ from its content ({', '.join(wrong)}).")
        if entry.kind == DECISION:
            self.versions.add((payload["model"], payload["version_sha256"]))
            return count_name(payload)
        if entry.kind == Kind.ERASED:
            self.numbers |= dict.fromkeys(payload.get("numbers", ()), payload["why"])
            self.ranges += [(first, last) for first, last in ranges_of(payload)]
        elif entry.kind == Kind.ENDED:
            self.found.cut_streams += 1
        elif entry.kind == Kind.UNRECORDED:
            self.found.unrecorded += payload["rows"]
        return ""

    def _is_skipped(self, model: str) -> bool:
        return self.is_skipping or (self._models is not None and _hex(model) not in self._models)

    def _add(self, entry: _Entry, words: str) -> None:
        self.found.add(f"decision record {entry.number}: {words}")

    def end(self) -> None:
        """Check that each empty record was erased by a record, and that each model version is registered."""
        ranges = sorted(self.ranges)
        ends = list(accumulate((last for _, last in ranges), max))
        for number in self.empty:
            why = self.numbers.get(number)
            place = bisect_right(ranges, (number, math.inf)) - 1
            if why is None and place >= 0 and number <= ends[place]:
                why = "retention"
            if why is None:
                self.found.add(f"decision record {number}: its content is gone, and no record says that it was erased.")
            else:
                self.found.erased[why] += 1
        known = {(str(pk), sha256) for pk, sha256 in TreeModel.objects.values_list("pk", "sha256")}
        for model, sha256 in sorted(self.versions - known):
            self.found.add(f"model {model}: its file is not the one that answered (SHA-256 {sha256}).")


def audit_decisions(*, models: Collection[uuid.UUID] | None = None, since: int = 0) -> DecisionAudit:
    """Check the chain of decisions and return the report.

    Blocks, sequences and erasures are always checked. `models` and `since` (ns since 1970) limit whose content is
    compared: records of these models, in blocks that end at that time or later.
    """
    report = DecisionAudit()
    walk = _ChainWalk(report, models)
    columns = [Cast(name, TextField()) if name in IDS else name for name in _Entry._fields]
    rows = ChainEntry.objects.order_by("number").values_list(*columns).iterator(chunk_size=4096)
    entries = map(_Entry._make, rows)
    before = DecisionHead._meta.get_field("digest").default
    sealed = 0
    number = 0
    digests: dict[int, str] = {}
    for number, block in enumerate(Block.objects.order_by("number").iterator(), 1):
        walk.is_skipping = block.last_at < since
        block_entries = list(_take(entries, block.records, walk, sealed))
        _block(block, block_entries, number, before, sealed, report)
        sealed += block.records
        before = block.digest
        digests[block.number] = block.digest
    walk.is_skipping = False
    rest = sum(1 for _ in _take(entries, None, walk, sealed))
    walk.end()
    _models_of_later(report)
    report.records = sealed + rest
    head = DecisionHead.objects.filter(pk=ONLY).first() or DecisionHead()
    if (head.records, head.sealed, head.blocks, head.digest) != (report.records, sealed, number, before):
        report.add(
            f"decision record {report.records}: the chain ended with {head}, so records or blocks were removed or added."
        )
    _signatures(digests, report)
    _anchors(digests, report)
    return report


def _take(entries: Iterator[_Entry], most: int | None, walk: _ChainWalk, before: int) -> Iterator[_Checked]:
    """Check and yield the next `most` records, or all if it is None. `before` counts the earlier records."""
    count = 0
    while most is None or count < most:
        entry = next(entries, None)
        if entry is None:
            return
        count += 1
        if entry.number != before + count:
            walk.found.add(f"decision record {entry.number}: it stands in place {before + count}.")
        yield walk.look_at(entry)


def _is_committed(entry: _Entry) -> bool:
    try:
        return hashing.commitment(entry.salt, entry.payload) == entry.commitment
    except ValueError:  # the salt is not hexadecimal
        return False


def _parse(payload: str) -> dict[str, Any]:
    record: dict[str, Any]
    try:
        record = orjson.loads(payload)
    except orjson.JSONDecodeError:  # half of a surrogate pair
        record = json.loads(payload)
    return record


@lru_cache(maxsize=1024)
def _uuid(text: str) -> uuid.UUID:
    return uuid.UUID(text)


def _wrong_copies(entry: _Entry, payload: dict[str, Any]) -> list[str]:
    """Return the columns that differ from the payload."""
    get = payload.get
    is_decision = entry.kind == DECISION
    if (
        is_decision
        and (entry.key.replace("-", ""), entry.at, entry.seq) == (get("id", "").replace("-", ""), get("at"), get("seq"))
        and (entry.leaf, entry.label, entry.subject) == (get("leaf"), get("label"), get("subject"))
        and entry.about is None
        and entry.kind == get("kind")
        and (_hex(entry.model), _hex(entry.stream)) == (_hex(get("model")), _hex(get("stream")))
    ):
        return []  # the usual case, in a quarter of the time
    names = {"key": "id", "about": "decision"} | {name: name for name in COPIES}
    if not is_decision:
        del names["model"]
    texts = {column: (getattr(entry, column), get(member)) for column, member in names.items()}
    return [column for column, (value, copy) in texts.items() if _text(column, value) != _text(column, copy)]


def _text(column: str, value: Any) -> str:
    if value is None:
        return ""
    return _hex(str(value)) if column in IDS else str(value)


@lru_cache(maxsize=1024)
def _hex(text: str | None) -> str:
    """Return a UUID without hyphens, as one of the two databases stores it."""
    return "" if text is None else text.replace("-", "")


def _models_of_later(report: DecisionAudit) -> None:
    """Check that each record about a decision has the decision's model, and that other records have none."""
    model = ChainEntry.objects.filter(key=OuterRef("about")).order_by().values("model")
    later = ChainEntry.objects.exclude(kind=Kind.DECISION).annotate(expected=Subquery(model[:1]))
    is_missing = Q(model=None, expected__isnull=False) | Q(model__isnull=False, expected=None)
    is_other = Q(model__lt=F("expected")) | Q(model__gt=F("expected"))
    for number in later.filter(is_missing | is_other).values_list("number", flat=True)[:MAX_PROBLEMS]:
        report.add(f"decision record {number}: its model is not the one of its decision.")


def _block(block: Block, records: list[_Checked], number: int, before: str, sealed: int, report: DecisionAudit) -> None:
    place = f"block {block.number}"
    if hashing.header_digest(block.header) != block.digest:
        report.add(f"{place}: its header was changed.")
    try:
        wrong = _wrong_members(block, records, {"number": number, "before": before, "first": sealed + 1})
    except (ValueError, KeyError, TypeError):
        report.add(f"{place}: its header cannot be read.")
        return
    if wrong:
        report.add(f"{place}: it does not fit its records and the block before it ({', '.join(wrong)}).")


def _wrong_members(block: Block, records: list[_Checked], expected: dict[str, Any]) -> list[str]:
    """Return the members of a block's header that differ from its place, its columns or its records."""
    header = json.loads(block.header)
    expected |= {"records": len(records), "streams": stream_ranges(records)}
    wrong = [name for name, value in expected.items() if header[name] != value]
    if (block.number, block.first, block.records, block.last_at) != (
        header["number"],
        header["first"],
        header["records"],
        header["last_at"],
    ):
        wrong.append("columns")
    if records and header["root"] != _root(records):
        wrong.append("root")
    counts = Counter([record.count for record in records if record.count])
    if any(number > header["counts"].get(name, 0) for name, number in counts.items()):
        wrong.append("counts")
    return wrong


def _root(records: list[_Checked]) -> str:
    """Return the Merkle root of the records. "" if a commitment is not hexadecimal."""
    try:
        return hashing.merkle_root([record.commitment for record in records])
    except ValueError:
        return ""


def _anchors(digests: dict[int, str], report: DecisionAudit) -> None:
    """Check the anchored hashes, and the time stamps of them, against the blocks. Store the last one."""
    for record in Record.objects.filter(what=ANCHORED):
        details = record.details
        if digests.get(details["block"]) != details["sha256"]:
            report.add(
                f"record {record.number}: block {details['block']} is not the one that {details['host']} has seen."
            )
        if details["kind"] == "timestamp":
            try:
                stamp = read_timestamp(base64.b64decode(details["receipt"]))
            except ValueError:
                report.add(f"record {record.number}: its time stamp cannot be read.")
                continue
            if stamp.sha256 != details["sha256"]:
                report.add(f"record {record.number}: its time stamp is one of another hash.")
        report.anchored = f"block {details['block']:,} at {details['host']}"


def _signatures(digests: dict[int, str], report: DecisionAudit) -> None:
    """Check the signed hashes in the audit chain against the blocks and the known keys."""
    known = known_fingerprints()
    for record in Record.objects.filter(what=SEALED):
        details = record.details
        if digests.get(details["block"]) != details["sha256"]:
            report.add(
                f"record {record.number}: block {details['block']} of the decisions is not the one that was signed."
            )
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(details["key"]))
        try:
            key.verify(base64.b64decode(details["signature"]), signed_text(details["block"], details["sha256"]))
        except InvalidSignature:
            report.add(f"record {record.number}: the signature of block {details['block']} does not hold.")
        if signing.fingerprint(key) not in known:
            report.add(
                f"record {record.number}: block {details['block']} is signed with a key that is not of this installation."
            )
