"""What the application shows beside the chain of records: a step, a state or a model file that was changed past it is found."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from octweb.audit import actions as audit
from octweb.audit.models import Record
from octweb.registry.models import ReviewEvent, TreeModel

SERVES = {"served", "published"}  # the second by earlier versions
ENDS = {"no longer served", "retire"}
REWRITTEN = "digests removed"  # by the migration of the registry that removed digests of training rows


def recorded(what: str, event: ReviewEvent, **details: Any) -> None:
    """Put a step of the history of a model into the chain."""
    audit.record(
        what,
        event.model,
        by=event.by,
        event=event.pk,
        before=event.before,
        after=event.after,
        reason=event.reason,
        **details,
    )


def differences(models: Iterable[TreeModel]) -> list[str]:
    """Where the history, the state or the file of these models is not what the chain says."""
    found = []
    for model in models:
        records = list(Record.objects.filter(subject="model", subject_id=model.pk))
        steps = {r.details["event"]: r for r in records if "event" in r.details}
        events = list(model.events.select_related("by"))
        found += [line for event in events for line in _event(model, event, steps.get(event.pk))]
        there = {event.pk for event in events}
        found += [
            f"record {r.number}: the step is missing in the history of {model}."
            for pk, r in steps.items()
            if pk not in there
        ]
        last = max(steps.values(), key=lambda r: r.number, default=None)
        if last is not None and last.details["after"] != model.state:
            found.append(
                f"record {last.number}: {model} is {model.state}, but its last record says {last.details['after']}."
            )
        found += _name(model, records)
        trained = next((r for r in records if r.what == "trained"), None)
        own = hashlib.sha256(model.document.encode("utf-8", "surrogatepass")).hexdigest()
        if trained is not None and recorded_sha256(records) not in (None, own):
            found.append(f"record {trained.number}: the model file of {model} is not the one that was recorded.")
    return found


def recorded_sha256(records: Iterable[Record]) -> str | None:
    """Return the SHA-256 of a model's file as the chain has it; None if an old chain does not say it."""
    found = None
    for record in records:
        if record.what == "trained":
            found = record.details.get("sha256")
        elif record.what == REWRITTEN and record.details["sha256_before"] == found:
            found = record.details["sha256"]
    return found


def _name(model: TreeModel, records: list[Record]) -> list[str]:
    """Whether the model is served although the last step about its name took it away, or the other way round."""
    last = next((r for r in reversed(records) if r.what in SERVES | ENDS), None)
    now = model.served_since is not None
    if last is None or now == (last.what in SERVES):
        return []
    return [
        f"record {last.number}: {model} is {'' if now else 'not '}served, but its last step about that says otherwise."
    ]


def _event(model: TreeModel, event: ReviewEvent, record: Record | None) -> list[str]:
    if record is None:
        return [f"{model}: step {event.pk} of its history ({event.after}) has no record."]
    kept = {"before": event.before, "after": event.after, "reason": event.reason}
    wrong = [name for name, value in kept.items() if record.details.get(name) != value]
    if event.by is not None and event.by.get_username() != record.by:
        wrong.append("by")
    return (
        [f"record {record.number}: the history of {model} says something else ({', '.join(wrong)})."] if wrong else []
    )
