"""Predict recorded rows again with the version that answered."""

from __future__ import annotations

import json
import logging
import math
import random
import struct
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

import numpy as np
from django.core.management.base import CommandError
from django.db.models import QuerySet

from octweb.decisions.adding import add_later
from octweb.decisions.models import ChainEntry, Kind
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from trainer.dtypes import FloatArray
from trainer.tree.nodes import Tree

log = logging.getLogger(__name__)

CHUNK = 4096
SAMPLE = 1000  # records that are replayed each day
DRAWS_PER_RECORD = 4  # numbers drawn per record of a sample, because some are refused, erased, or no decisions


class _Daily:
    """Last day on which this process knows that a sample was replayed."""

    done: date | None = None


class Replayed(NamedTuple):
    """Number of equal answers, and ids of decisions that differ or whose model version is gone."""

    same: int
    different: list[str]


def replay(name: str, since: str, sample: int | None) -> Replayed:
    """Predict recorded decisions again and compare. Record and return the result. Raises CommandError.

    `name` and `since` (a day) filter the decisions unless empty. `sample` limits their number; None replays all. Erased
    decisions and refused rows are left out.
    """
    entries = ChainEntry.objects.filter(kind=Kind.DECISION, leaf__isnull=False).exclude(payload="")
    if name:
        entries = entries.filter(model__in=versions_by_name(name))
    if since:
        entries = entries.filter(at__gte=beginning_of(since))
    if sample is not None:
        entries = entries.filter(pk__in=_sample(entries, sample, is_filtered=bool(name or since)))
    same = 0
    different: list[str] = []
    for part in _chunks(entries.values_list("payload", flat=True).iterator(chunk_size=CHUNK)):
        wrong = differences(part)
        different += wrong
        same += len(part) - len(wrong)
    if same or different:
        add_later(str(Kind.REPLAYED), "", same=same, different=different[:100])
    return Replayed(same, different)


def replay_daily(now: datetime) -> None:
    """Replay a sample once a day, whichever worker comes first. Log the ids of answers that differ."""
    today = now.astimezone(UTC).date()
    if _Daily.done == today:
        return
    _Daily.done = today
    before = ChainEntry.objects.filter(model=None, kind=Kind.REPLAYED).order_by("-at").first()
    if before is not None and before.at >= beginning_of(today.isoformat()):
        return
    try:
        different = replay("", "", SAMPLE).different
    except Exception:  # records must be collected all the same
        log.exception("a sample of recorded answers could not be given again")
        return
    if different:
        log.error("recorded answers that their version does not give again: %s", ", ".join(different))


def _sample(entries: QuerySet[ChainEntry], sample: int, *, is_filtered: bool) -> list[int]:
    """Return the numbers of records at random.

    Among all records, it draws numbers and looks these up. Sorting a million records at random would take seconds.
    """
    if is_filtered:
        return list(entries.order_by("?").values_list("pk", flat=True)[:sample])
    last = ChainEntry.objects.order_by("-number").values_list("number", flat=True).first() or 0
    drawn = random.SystemRandom().sample(range(1, last + 1), min(last, DRAWS_PER_RECORD * sample))
    found: list[int] = []
    for start in range(0, len(drawn), CHUNK):
        found += entries.filter(pk__in=drawn[start : start + CHUNK]).values_list("pk", flat=True)
        if len(found) >= sample:
            break
    return random.SystemRandom().sample(found, min(len(found), sample))


def versions_by_name(name: str) -> list[uuid.UUID]:
    """Return the ids of all versions of a served name. Raises CommandError."""
    models = list(TreeModel.objects.filter(family__name=name).values_list("pk", flat=True))
    if not models:
        raise CommandError(f"There is no model '{name}'.")
    return models


def beginning_of(day: str) -> int:
    """Return the beginning of a day, UTC, in ns since 1970. Raises CommandError."""
    try:
        moment = datetime.combine(date.fromisoformat(day), time(tzinfo=UTC))
    except ValueError as error:
        raise CommandError(f"'{day}' is not a day. Write it as 2026-03-31.") from error
    return int(moment.timestamp()) * 10**9


def _chunks(payloads: Iterable[str]) -> Iterable[list[dict[str, Any]]]:
    part = []
    for payload in payloads:
        part.append(json.loads(payload))
        if len(part) == CHUNK:
            yield part
            part = []
    if part:
        yield part


def differences(records: list[dict[str, Any]]) -> list[str]:
    """Predict recorded decisions again. Return the ids of those that differ or whose version is gone."""
    by_version: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        by_version.setdefault((record["model"], record["version_sha256"]), []).append(record)
    wrong = []
    for (model, sha256), decisions in by_version.items():
        stored_model = TreeModel.objects.filter(pk=uuid.UUID(model), sha256=sha256).first()
        if stored_model is None:
            wrong += [record["id"] for record in decisions]
            continue
        tree = model_file(stored_model).tree
        matrix = np.stack([row_of(tree, record["values"]) for record in decisions])
        for record, leaf in zip(decisions, tree.apply(matrix).tolist(), strict=True):
            bits = tree.probabilities[leaf].astype(">f8").tobytes().hex()
            if (leaf, int(tree.labels[leaf]), bits) != (
                record["leaf"],
                record["label"],
                "".join(record["probability"]),
            ):
                wrong.append(record["id"])
    return wrong


def row_of(tree: Tree, values: Mapping[str, Any]) -> FloatArray:
    """Return the recorded row as the kernel received it, float64 (columns,).

    Columns that the tree does not test are NaN.
    """
    row = np.full(len(tree.schema), math.nan)
    for j in tree.used_columns:
        row[j] = _value(tree, j, values[tree.schema[j].name])
    return row


def _value(tree: Tree, column: int, cell: Any) -> float:
    """Return the number that the model received."""
    if isinstance(cell, str):
        return float(tree.schema[column].categories.index(cell))
    return float(struct.unpack(">d", bytes.fromhex(cell["bits"]))[0])
