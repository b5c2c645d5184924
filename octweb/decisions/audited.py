"""Verify the chain of decisions: hashes, streams, erasures, signatures, model versions."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db.models import F, OuterRef, Q, Subquery

from octweb.audit.models import Record
from octweb.decisions import hashing
from octweb.decisions.adding import ONLY, count_key, stream_ranges
from octweb.decisions.collecting import SEALED, signed_text
from octweb.decisions.models import Block, ChainEntry, DecisionHead, Kind
from octweb.dossier import signing
from octweb.dossier.keys import known_fingerprints
from octweb.registry.models import TreeModel

# these columns repeat parts of the payload
COPIES = ("number", "kind", "at", "model", "stream", "seq", "leaf", "label", "subject")
MAX_PROBLEMS = 50


class DecisionAudit:
    """Result of an audit of the chain of decisions."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.records = 0
        self.erased: Counter[str] = Counter()
        self.cut_streams = 0

    def add(self, text: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(text)


class _ChainWalk:
    """State of one pass over the records in order."""

    def __init__(self, report: DecisionAudit) -> None:
        self.found = report
        self.places: dict[Any, int] = {}  # stream → `seq` that its next record must have
        self.empty: list[int] = []
        self.numbers: dict[int, str] = {}  # number of an erased record → reason
        self.ranges: list[tuple[int, int]] = []
        self.versions: set[tuple[str, str]] = set()

    def look_at(self, entry: ChainEntry) -> None:
        """Check one record, and its position in its stream."""
        place = f"decision record {entry.number}"
        if entry.seq is not None:
            expected = self.places.get(entry.stream, 0)
            if entry.seq != expected:
                self.found.add(f"{place}: place {expected} of stream {entry.stream} is missing before it.")
            self.places[entry.stream] = entry.seq + 1
        if not entry.payload:
            self.empty.append(entry.number)
            return
        if hashing.commitment(entry.salt, entry.payload) != entry.commitment:
            self.found.add(f"{place}: its content or its salt was changed.")
            return
        payload = json.loads(entry.payload)
        if wrong := _wrong_copies(entry, payload):
            self.found.add(f"{place}: its columns differ from its content ({', '.join(wrong)}).")
        if entry.kind == Kind.DECISION:
            self.versions.add((payload["model"], payload["version_sha256"]))
        elif entry.kind == Kind.ERASED:
            self.numbers |= dict.fromkeys(payload.get("numbers", ()), payload["why"])
            if "range" in payload:
                self.ranges.append(tuple(payload["range"]))
        elif entry.kind == Kind.ENDED:
            self.found.cut_streams += 1

    def end(self) -> None:
        """Check that each empty record was erased by a record, and that each model version is registered."""
        for number in self.empty:
            why = self.numbers.get(number)
            if why is None and any(first <= number <= last for first, last in self.ranges):
                why = "retention"
            if why is None:
                self.found.add(f"decision record {number}: its content is gone, and no record says that it was erased.")
            else:
                self.found.erased[why] += 1
        known = {(str(pk), sha256) for pk, sha256 in TreeModel.objects.values_list("pk", "sha256")}
        for model, sha256 in sorted(self.versions - known):
            self.found.add(f"model {model}: its file is not the one that answered (SHA-256 {sha256}).")


def audit_decisions() -> DecisionAudit:
    """Check the whole chain of decisions and return the report."""
    report = DecisionAudit()
    walk = _ChainWalk(report)
    entries = ChainEntry.objects.order_by("number").iterator(chunk_size=4096)
    before = DecisionHead._meta.get_field("digest").default
    sealed = 0
    number = 0
    digests: dict[int, str] = {}
    for number, block in enumerate(Block.objects.order_by("number").iterator(), 1):
        block_entries = list(_take(entries, block.records, walk, sealed))
        _block(block, block_entries, number, before, sealed, report)
        sealed += block.records
        before = block.digest
        digests[block.number] = block.digest
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
    return report


def _take(entries: Iterator[ChainEntry], most: int | None, walk: _ChainWalk, before: int) -> Iterator[ChainEntry]:
    """Check and yield the next `most` records, or all if it is None. `before` counts the earlier records."""
    count = 0
    while most is None or count < most:
        entry = next(entries, None)
        if entry is None:
            return
        count += 1
        if entry.number != before + count:
            walk.found.add(f"decision record {entry.number}: it stands in place {before + count}.")
        walk.look_at(entry)
        yield entry


def _wrong_copies(entry: ChainEntry, payload: dict[str, Any]) -> list[str]:
    texts = {"key": "id", "about": "decision"} | {name: name for name in COPIES if name != "number"}
    wrong = []
    for column, member in texts.items():
        value = getattr(entry, column)
        if column == "model" and entry.kind != Kind.DECISION:
            continue
        if ("" if value is None else str(value)) != ("" if payload.get(member) is None else str(payload[member])):
            wrong.append(column)
    return wrong


def _models_of_later(report: DecisionAudit) -> None:
    """Check that each record about a decision has the decision's model, and that other records have none."""
    model = ChainEntry.objects.filter(key=OuterRef("about")).order_by().values("model")
    later = ChainEntry.objects.exclude(kind=Kind.DECISION).annotate(expected=Subquery(model[:1]))
    is_missing = Q(model=None, expected__isnull=False) | Q(model__isnull=False, expected=None)
    is_other = Q(model__lt=F("expected")) | Q(model__gt=F("expected"))
    for number in later.filter(is_missing | is_other).values_list("number", flat=True)[:MAX_PROBLEMS]:
        report.add(f"decision record {number}: its model is not the one of its decision.")


def _block(
    block: Block, block_entries: list[ChainEntry], number: int, before: str, sealed: int, report: DecisionAudit
) -> None:
    place = f"block {block.number}"
    header = json.loads(block.header)
    if hashing.header_digest(block.header) != block.digest:
        report.add(f"{place}: its header was changed.")
    expected = {"number": number, "before": before, "first": sealed + 1, "records": len(block_entries)}
    wrong = [name for name, value in expected.items() if header[name] != value]
    if (block.number, block.first, block.records, block.last_at) != (
        header["number"], header["first"], header["records"], header["last_at"],
    ):  # fmt: skip
        wrong.append("columns")
    if block_entries and header["root"] != hashing.merkle_root([entry.commitment for entry in block_entries]):
        wrong.append("root")
    if header["streams"] != stream_ranges(block_entries):
        wrong.append("streams")
    counts = Counter(filter(None, map(count_key, block_entries)))
    if any(number > header["counts"].get(name, 0) for name, number in counts.items()):
        wrong.append("counts")
    if wrong:
        report.add(f"{place}: it does not fit its records and the block before it ({', '.join(wrong)}).")


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
