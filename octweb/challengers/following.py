"""Compare challengers with the recorded decisions, each decision exactly once."""

from __future__ import annotations

import json
import logging
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from octweb.challengers.actions import end_challenge, ended_challenges, reason_to_end, running_challenges
from octweb.challengers.models import ABOVE_ALL_RECORDS, Challenge, Difference
from octweb.core.tally import SECONDS_OF_DAY, Key
from octweb.decisions.adding import hold
from octweb.decisions.models import ChainEntry, DecisionHead, Kind
from octweb.decisions.reading import CHUNK_KEYS, later_by_decision, nanoseconds_of, standing_of
from octweb.decisions.replaying import row_of
from octweb.life.counting import EPOCH, add_counts
from octweb.registry.document.model_files import model_file
from octweb.registry.models import Recording
from octweb.registry.prediction.recording import APIS, is_recorded
from octweb.registry.prediction.silent import NO_ANSWER, SILENT, SilentTree, count_names

log = logging.getLogger(__name__)

BATCH_RECORDS = 4096
LATE = timedelta(minutes=10)  # records reach the chain sooner, unless their host was down
NANOSECONDS_OF_DAY = SECONDS_OF_DAY * 10**9


def follow_due() -> int:
    """Compare new recorded decisions with challengers, and end challenges that cannot go on.

    Return the number of compared rows.
    """
    now = timezone.now()
    rows = 0
    for challenge in running_challenges():
        try:
            reason = reason_to_end(challenge, now)
            try:
                rows += _follow(challenge)
            finally:  # also if a model is damaged
                if reason:
                    end_challenge(challenge, by=None, reason=reason)
        except Exception:  # an unreadable model must not stop the other challenges
            log.exception("the challenge of %s was not followed", challenge.model)
    rows += sum(_follow_ended(challenge, now) for challenge in ended_challenges())
    return rows


def _follow_ended(challenge: Challenge, now: datetime) -> int:
    """Compare the records from before the end of a challenge that were not compared yet. Return the number of rows.

    Records may reach the chain after the end, so only LATE later the challenge counts as compared.
    """
    assert challenge.ended_at is not None
    compared = Challenge.objects.filter(pk=challenge.pk)
    try:
        rows = _follow(challenge)
    except Exception:  # a model that is unreadable today stays so
        log.exception("the rest of the challenge of %s was not compared", challenge.model)
        compared.update(last_number=ABOVE_ALL_RECORDS)
        return 0
    if now - challenge.ended_at >= LATE:
        # another worker that has compared further may still be behind
        compared.filter(last_number=challenge.last_number).update(last_number=ABOVE_ALL_RECORDS)
    return rows


def delete_erased(decisions: Any) -> None:
    """Delete the differences of decisions whose content was erased. `decisions` are ids, or a queryset of them."""
    if not isinstance(decisions, list):
        Difference.objects.filter(decision__in=decisions).delete()
        return
    for start in range(0, len(decisions), CHUNK_KEYS):
        Difference.objects.filter(decision__in=decisions[start : start + CHUNK_KEYS]).delete()


def keep_outcomes(labels: Mapping[uuid.UUID, int]) -> None:
    """Store the last outcomes of decisions, by their ids, with the differences of these decisions."""
    by_label: dict[int, list[uuid.UUID]] = {}
    for decision, label in labels.items():
        by_label.setdefault(label, []).append(decision)
    for label, decisions in by_label.items():
        for start in range(0, len(decisions), CHUNK_KEYS):
            part = decisions[start : start + CHUNK_KEYS]
            Difference.objects.filter(decision__in=part).update(outcome=label)


def _follow(challenge: Challenge) -> int:
    """Compare all new records of a challenge, and return the number of rows."""
    if not (is_recorded(challenge.model) if challenge.ended_at is None else _was_recorded(challenge)):
        return 0
    served = model_file(challenge.model)
    silent = SilentTree(served, model_file(challenge.challenger))
    if not silent.reads_tested_columns:  # the web processes compare these rows themselves
        return 0
    rows = 0
    while True:
        added, is_behind = _follow_batch(challenge, silent)
        rows += added
        if not is_behind:
            return rows


def _was_recorded(challenge: Challenge) -> bool:
    """Return whether the answers of the model were recorded, even if it is no longer approved."""
    return Recording.FULL in (settings.RECORD, challenge.model.recording)


def _follow_batch(challenge: Challenge, silent: SilentTree) -> tuple[int, bool]:
    """Compare one batch in one transaction. Return the number of rows, and whether more records wait.

    If another worker has compared the same records first, it has moved `last_number`, and this call adds nothing.
    """
    head = DecisionHead.objects.first()
    before = challenge.last_number
    end = before if head is None else head.records
    if end <= before:
        return 0, False
    last = min(end, before + BATCH_RECORDS)
    with transaction.atomic():
        hold()  # an outcome that is recorded meanwhile must find the new differences
        if not Challenge.objects.filter(pk=challenge.pk, last_number=before).update(last_number=last):
            return 0, False
        challenge.last_number = last
        # by number alone: with the model, SQLite would read the index of all its decisions at each look
        entries = ChainEntry.objects.filter(number__gt=before, number__lte=last).order_by("number")
        known = [entry for entry in entries if _is_compared(challenge, entry)]
        if known:
            _add(challenge, silent, known)
    return len(known), last < end


def _is_compared(challenge: Challenge, entry: ChainEntry) -> bool:
    """Return whether an entry is an answer of the served tree, not erased, in the time of the challenge."""
    is_answer = entry.kind == Kind.DECISION and entry.model == challenge.model_id and entry.leaf is not None
    return is_answer and entry.payload != "" and _is_in_time(challenge, entry.at)


def _is_in_time(challenge: Challenge, at: int) -> bool:
    """Return whether a moment (ns since 1970) is after the naming, and not after the last day or the end."""
    if at < nanoseconds_of(challenge.since):
        return False
    if challenge.ended_at is not None and at > nanoseconds_of(challenge.ended_at):
        return False
    return challenge.until is None or at // NANOSECONDS_OF_DAY <= (challenge.until - EPOCH).days


def _add(challenge: Challenge, silent: SilentTree, entries: Sequence[ChainEntry]) -> None:
    tree = model_file(challenge.model).tree
    payloads = [json.loads(entry.payload) for entry in entries]
    matrix = np.stack([row_of(tree, payload["values"]) for payload in payloads])
    answers = silent.answers(matrix[:, silent.columns])
    leaves = np.array([entry.leaf for entry in entries], np.int32)
    add_counts(_counts(challenge, entries, payloads, leaves, answers))
    given = tree.labels[leaves]
    different = np.flatnonzero((answers != given) & (answers != NO_ANSWER)).tolist()
    known = later_by_decision(entries[i].key for i in different)
    outcomes = {key: standing_of(later).get(str(Kind.OUTCOME), {}).get("label") for key, later in known.items()}
    Difference.objects.bulk_create(
        Difference(
            challenge=challenge,
            decision=entries[i].key,
            at=entries[i].at,
            leaf=int(leaves[i]),
            answer=int(given[i]),
            silent=int(answers[i]),
            outcome=outcomes.get(entries[i].key),
        )
        for i in different
    )


def _counts(
    challenge: Challenge,
    entries: Sequence[ChainEntry],
    payloads: Sequence[dict[str, Any]],
    leaves: np.ndarray,
    answers: np.ndarray,
) -> Counter[Key]:
    """Count the rows by API, day, leaf and challenger's answer."""
    places: dict[tuple[str, int], list[int]] = {}
    for i, (entry, payload) in enumerate(zip(entries, payloads, strict=True)):
        places.setdefault((APIS[payload["api"]], entry.at // NANOSECONDS_OF_DAY), []).append(i)
    counts: Counter[Key] = Counter()
    for (api, day), at in places.items():
        for name, number in count_names(str(challenge.pk), leaves[at], answers[at]).items():
            counts[Key(str(challenge.model_id), api, day, SILENT, name)] += number
    return counts
