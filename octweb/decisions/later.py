"""Record outcomes, overrides and objections, one or many in one transaction.

A correction is a further record; the last record of a kind counts. Content that equals the last record adds nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import time, timedelta
from typing import Any, NamedTuple

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404
from django.utils import timezone
from rest_framework.exceptions import ValidationError

from octweb.core.filters import moment_in
from octweb.core.problems import Conflict, Gone
from octweb.decisions import adding
from octweb.decisions.adding import EntryDraft, hold
from octweb.decisions.listing import OBJECTIONS
from octweb.decisions.models import ChainEntry, Kind
from octweb.decisions.reading import (
    ABSENT,
    CHUNK_KEYS,
    later_by_decision,
    models_of,
    refuse_to_complete,
    standing_of,
)
from octweb.decisions.signals import outcomes_recorded
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel

MAX_ROWS = 10_000  # maximum rows per call
MAX_ERRORS = 20
MAX_SOURCE_CHARACTERS = 80  # maximum characters
MAX_REFERENCE = 80
MAX_REASON = 5_000
MAX_MOMENT = 40
OPEN = OBJECTIONS[0]
CLOCK_SKEW = timedelta(minutes=5)  # the caller's clock may be ahead of ours by this much


class LaterRow(NamedTuple):
    """A record about a decision, as a caller sends it. `members` are those of the API."""

    decision: uuid.UUID
    members: Mapping[str, Any]


class Added(NamedTuple):
    """Number of new records, and number of rows that repeat the content of the last record."""

    added: int
    unchanged: int


def add_later_rows(kind: str, rows: Sequence[LaterRow], *, user: Any, by: str, single: bool = False) -> Added:
    """Add records about decisions of the user's models, all or none.

    Raises ValidationError, which names the rows. With `single`, raises the error of the only row instead: Http404,
    PermissionDenied, Gone, or ValidationError, which names the member.
    """
    with transaction.atomic():
        head = hold()
        batch = _Batch(kind, rows, user, by, single)
        drafts = [draft for place, row in enumerate(rows) if (draft := batch.draft(place, row)) is not None]
        if batch.errors:
            raise ValidationError(batch.errors)
        adding.add(head, drafts)
        if batch.kind == Kind.OUTCOME and drafts:
            labels = {draft.values["about"]: draft.values["label"] for draft in drafts}
            outcomes_recorded.send(sender=None, labels=labels)
    return Added(len(drafts), len(rows) - len(drafts))


class _Batch:
    """The rows of a call, with the decisions, models and last records that they concern."""

    def __init__(self, kind: str, rows: Sequence[LaterRow], user: Any, by: str, single: bool) -> None:
        self.kind = str(kind)
        self.by = by
        self.errors: dict[str, str] = {}
        self._is_single = single
        keys = sorted({row.decision for row in rows})
        self._entries: dict[uuid.UUID, ChainEntry] = {}
        for start in range(0, len(keys), CHUNK_KEYS):
            found = ChainEntry.objects.filter(key__in=keys[start : start + CHUNK_KEYS], kind=Kind.DECISION)
            self._entries |= {entry.key: entry for entry in found}
        ids = {entry.model for entry in self._entries.values()}
        self._user = user
        self._models: dict[uuid.UUID, TreeModel] = {model.pk: model for model in models_of(user).filter(pk__in=ids)}
        self._standing = {key: standing_of(later) for key, later in later_by_decision(keys).items()}

    def draft(self, place: int, row: LaterRow) -> EntryDraft | None:
        """Return the record of a row. None if it changes nothing or is invalid.

        The error of an invalid row is stored in `errors`.
        """
        try:
            entry, model = self._find(row.decision)
            standing = self._standing.setdefault(row.decision, {}).get(self.kind, {})
            members = CONTENTS[self.kind](row.members, model, standing)
        except (Http404, Conflict, Gone, PermissionDenied, ValidationError) as error:
            if self._is_single:
                raise
            self._refuse(place, error)
            return None
        if standing and members == {name: standing.get(name) for name in members}:
            return None
        draft = adding.later_draft(self.kind, self.by, entry, members)
        self._standing[row.decision][self.kind] = draft.payload
        return draft

    def _find(self, key: uuid.UUID) -> tuple[ChainEntry, TreeModel]:
        entry = self._entries.get(key)
        model = None if entry is None or entry.model is None else self._models.get(entry.model)
        if entry is None or model is None:
            raise Http404(ABSENT)
        refuse_to_complete(self._user, model)
        if not entry.payload:
            raise Gone("The content of this decision was erased, so nothing more is recorded about it.")
        return entry, model

    def _refuse(self, place: int, error: Exception) -> None:
        if len(self.errors) >= MAX_ERRORS:
            return
        detail = getattr(error, "detail", str(error))
        if not isinstance(detail, dict):
            detail = {"decision": str(detail)}
        self.errors |= {f"rows[{place}].{name}": str(text) for name, text in detail.items()}


def _outcome(members: Mapping[str, Any], model: TreeModel, standing: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "label": _class_code("value", members.get("value", ""), model),
        "known_at": _past_moment("known_at", members.get("known_at", "")),
        "source": _text("source", members.get("source", ""), MAX_SOURCE_CHARACTERS),
    }


def _override(members: Mapping[str, Any], model: TreeModel, standing: Mapping[str, Any]) -> dict[str, Any]:
    reason = _text("reason", members.get("reason", ""), MAX_REASON)
    if not reason:
        raise ValidationError({"reason": "Say why a person decides otherwise: the reason becomes a record."})
    return {"label": _class_code("label", members.get("label", ""), model), "reason": reason}


def _objection(members: Mapping[str, Any], model: TreeModel, standing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of an objection. Members that are left out are copied from the last record."""
    state = members.get("state") or OPEN
    if state not in OBJECTIONS:
        raise ValidationError({"state": f"'{state[:20]}' is not one of {', '.join(OBJECTIONS)}."})
    reason = _text("reason", members.get("reason") or standing.get("reason", ""), MAX_REASON)
    if not reason:
        raise ValidationError({"reason": "Say what the person objects to."})
    answer = _text("answer", members.get("answer") or "", MAX_REASON)
    if state != OPEN and not answer:
        raise ValidationError({"answer": f"Say what the person is answered: the objection is {state}."})
    today = timezone.localdate().isoformat()
    received = _past_moment("received", members.get("received") or standing.get("received", today))
    return {
        "received": received,
        "reason": reason,
        "text_ref": _text("text_ref", members.get("text_ref") or standing.get("text_ref", ""), MAX_REFERENCE),
        "state": state,
        "answer": answer,
    }


CONTENTS: dict[str, Callable[[Mapping[str, Any], TreeModel, Mapping[str, Any]], dict[str, Any]]] = {
    str(Kind.OUTCOME): _outcome,
    str(Kind.OVERRIDE): _override,
    str(Kind.OBJECTION): _objection,
}


def _class_code(name: str, value: str, model: TreeModel) -> int:
    classes = model_file(model).tree.classes
    if value not in classes:
        words = f"'{value[:60]}' is not a class of the model. It has {', '.join(classes)}."
        raise ValidationError({name: words})
    return classes.index(value)


def _text(name: str, value: str, most: int) -> str:
    text = value.strip()
    if len(text) > most:
        raise ValidationError({name: f"At most {most:,} characters; these are {len(text):,}."})
    return text


def _past_moment(name: str, value: str) -> str:
    """Return a date or time as written, or "" if it is missing. Raises ValidationError for other texts and future times."""
    text = value.strip()
    if not text:
        return ""
    moment = moment_in(text, time.min) if len(text) <= MAX_MOMENT else None
    if moment is None:
        raise ValidationError({name: f"'{text[:40]}' is neither a date nor a time. Use 2026-03-31."})
    if moment > timezone.now() + CLOCK_SKEW:
        raise ValidationError({name: f"'{text[:40]}' is in the future. Give a date or time that has passed."})
    return text
