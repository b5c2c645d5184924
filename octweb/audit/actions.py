"""Append to the chain and verify it. Nothing else writes a Record."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from octweb.audit import chain
from octweb.audit.models import Head, Record
from octweb.demo.visits import visit_of

ONLY = 1  # primary key of the only row of Head
CHOSEN_NAMES = {"file", "title"}  # details whose values users choose, so they may hold any text
SUBJECTS = {
    "treemodel": "model",
    "trainingrun": "run",
    "batchprediction": "prediction",
}  # class name → subject, where the two differ


def hold() -> Head:
    """Lock the head of the chain until the transaction ends, and return it.

    Call this before locking other rows. Otherwise two transactions that add records could deadlock.
    """
    return Head.objects.select_for_update().get_or_create(pk=ONLY)[0]


def record(what: str, thing: Any, *, by: Any, name: str = "", **details: Any) -> Record:
    """Append a record about an object, such as a model, in the current transaction, and return it.

    `by` is a user, or None for the system. Details are texts, integers, booleans and None. The chain outlives accounts
    of the demo, so names that their users chose are left out.
    """
    if visit_of(by) is not None:
        name = f"{thing._meta.verbose_name} of a visitor"
        details = {key: value for key, value in details.items() if key not in CHOSEN_NAMES}
    with transaction.atomic():
        head = hold()
        entry = Record(
            number=head.records + 1,
            at=timezone.now(),
            by=_storable_text(by.get_username() if by is not None else "")[:150],
            what=what,
            subject=SUBJECTS.get(thing._meta.model_name, thing._meta.model_name),
            subject_id=thing.pk,
            name=_storable_text(name or str(thing))[:320],
            details={key: _storable_text(value) if isinstance(value, str) else value for key, value in details.items()},
            before=head.digest,
        )
        entry.digest = chain.digest(entry.to_json())
        entry.save(force_insert=True)
        Head.objects.filter(pk=head.pk).update(records=entry.number, digest=entry.digest)
    return entry


def end() -> dict[str, Any]:
    """Return the length of the chain and the hash of its last record, for a dossier."""
    head = Head.objects.filter(pk=ONLY).first() or Head()
    return {"records": head.records, "head": head.digest}


def broken() -> list[str]:
    """Verify the chain of this installation, and return its problems in words."""
    records = [r.to_json() for r in Record.objects.all()]
    problems = chain.problems(records)
    head = Head.objects.filter(pk=ONLY).first() or Head()
    last = records[-1] if records else {"number": 0, "digest": chain.START}
    if (head.records, head.digest) != (last["number"], last["digest"]):
        problems.append(
            f"record {last['number']}: the chain ended with record {head.records}, so records after it were removed or added."
        )
    return problems


def _storable_text(text: str) -> str:
    """Remove characters that not every database stores unchanged."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
