"""Queue, return and remove dossiers, for pages, API and worker."""

from __future__ import annotations

import hashlib
import io
import uuid
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.urls import reverse
from rest_framework.exceptions import ValidationError

from octweb.audit import actions as audit
from octweb.audit.models import SEALED, Record
from octweb.core import files
from octweb.core.faults import StoreUnavailable
from octweb.core.ownership import may_change
from octweb.decide.actions import guidance_of
from octweb.decide.wording import questions_of
from octweb.dossier import signing
from octweb.dossier.folder import HTML, JSON, MODEL, PDF
from octweb.dossier.history import change_log, risk_log, versions_until
from octweb.dossier.keys import signing_key
from octweb.dossier.models import FOLDER, ModelDossier
from octweb.dossier.texts import TEXTS
from octweb.jobs import queue
from octweb.jobs.models import FINISHED, RunStatus
from octweb.registry import hooks
from octweb.registry.document.selection import selection_of
from octweb.registry.lifecycle import actions as registry
from octweb.registry.lifecycle.access import may_see_rows
from octweb.registry.lifecycle.audit_trail import AuditFindings
from octweb.registry.models import Recording, ReviewEvent, State, TreeModel
from trainer.errors import DataError, list_names
from trainer.tree.document import publishable

ENDS = "ends"
NO_ROWS = "The rows of this model are gone, so there can be no dossier. Train it again on a data set that you keep."
MAX_TEXT = 4_000
MAX_GROUPS = 20
KEPT = timedelta(days=30)  # the last dossier of a model is kept, however old it is
# format → file inside the zip, and media type; the zip itself has no inner file
FORMATS = {
    "json": (JSON, "application/json"),
    "html": (HTML, "text/html; charset=utf-8"),
    "pdf": (PDF, "application/pdf"),
    "zip": ("", "application/zip"),
}


def start(
    *,
    by: Any,
    model: TreeModel,
    said: Mapping[str, str] | None = None,
    groups: Sequence[str] | None = None,
    site: str = "",
) -> ModelDossier:
    """Queue a dossier, or return the one that is already queued.

    Missing texts and groups are copied from the last dossier. Raises PermissionDenied, ValidationError and Conflict.
    """
    if not may_change(by, model):
        raise PermissionDenied(
            "Only the owner or an administrator can make a dossier, because it holds counts of the rows. Ask one of them."
        )
    if reason := absence_words(model):
        raise ValidationError({"model": reason})
    texts = _check_texts(said) if said is not None else {}
    return queue.only_one(
        ModelDossier,
        owner=by,
        model=model,
        said=texts_of(model) | texts,
        groups=_groups(model, groups),
        site=site[:500],
        approval=_approval_without_dossier(model),
    )


def start_for_approval(event: ReviewEvent) -> None:
    """Queue the dossier that belongs to an approval, in its transaction. Without rows or counts, there can be none.

    The limit on the owner's jobs does not apply, because each approval has one dossier.
    """
    model = event.model
    if absence_words(model):
        return
    job = ModelDossier.objects.create(
        owner=model.owner,
        model=model,
        said=texts_of(model),
        groups=_groups(model, None),
        site=settings.ADDRESS,
        approval=event,
    )
    transaction.on_commit(lambda: queue.send(job))


def _approval_without_dossier(model: TreeModel) -> ReviewEvent | None:
    """Return the approval whose dossier could not be made. The next dossier belongs to it."""
    last = ModelDossier.objects.filter(model=model, approval__isnull=False).order_by("-created").first()
    return last.approval if last is not None and last.status in (RunStatus.FAILED, RunStatus.CANCELLED) else None


def absence_words(model: TreeModel) -> str:
    """Return why there can be no dossier: the model has neither rows nor counts here. "" if there can be one."""
    return "" if model.dataset is not None and (model.dataset.file or model.dataset.counts) else NO_ROWS


def _check_texts(texts: Mapping[str, str]) -> dict[str, str]:
    known = {*TEXTS, ENDS}
    wrong = {
        name: f"A dossier has no such text. Its texts are {', '.join((*TEXTS, ENDS))}."
        for name in texts
        if name not in known
    }
    wrong |= {
        name: f"This has {len(str(text)):,} characters; the limit is {MAX_TEXT:,}. Shorten it."
        for name, text in texts.items()
        if len(str(text)) > MAX_TEXT
    }
    if wrong:
        raise ValidationError(wrong)
    return {name: str(text).replace("\x00", "").strip() for name, text in texts.items()}


def _groups(model: TreeModel, groups: Sequence[str] | None) -> list[str]:
    if model.dataset is not None and model.dataset.counts:
        if groups:
            raise ValidationError({"groups": "Counts do not show the rows of groups. Leave the groups out."})
        return []
    if groups is None:
        last = ModelDossier.objects.filter(model=model).order_by("-created").first()
        return list(last.groups) if last else []
    target = model.dataset.target if model.dataset else ""
    known = {c["name"] for c in model.dataset.columns if c["name"] != target} if model.dataset else set()
    columns = list(dict.fromkeys(name.strip() for name in groups if name.strip()))
    if unknown := [name for name in columns if name not in known]:
        message = f"There is no column '{unknown[0][:80]}' to group the rows by. There are {list_names(sorted(known))}."
        raise ValidationError({"groups": message})
    if len(columns) > MAX_GROUPS:
        raise ValidationError({"groups": f"{len(columns)} columns are too many; the limit is {MAX_GROUPS}."})
    return columns


def texts_of(model: TreeModel) -> dict[str, str]:
    """Return the texts of the last dossier. For the first dossier, return those of the public page."""
    last = ModelDossier.objects.filter(model=model).order_by("-created").first()
    if last is not None:
        return dict(last.said)
    guidance = guidance_of(model)
    return {"meant_for": guidance.purpose, "contact": guidance.contact}


def latest(model: TreeModel) -> ModelDossier | None:
    """Return the last dossier job, whatever its status, or None."""
    return ModelDossier.objects.filter(model=model).order_by("-created").first()


def latest_dossier(model: TreeModel) -> ModelDossier | None:
    """Return the last finished dossier, or None."""
    finished = ModelDossier.objects.filter(model=model, status=RunStatus.SUCCEEDED).exclude(file="")
    return finished.order_by("-created").first()


def approval_dossier(model: TreeModel) -> ModelDossier | None:
    """Return the finished dossier that belongs to the approval, or None."""
    finished = ModelDossier.objects.filter(model=model, status=RunStatus.SUCCEEDED, approval__isnull=False)
    return finished.exclude(file="").order_by("-created").first()


def approval_absence_words(model: TreeModel) -> str:
    """Return why the approval of a model has no finished dossier, and what to do."""
    last = ModelDossier.objects.filter(model=model, approval__isnull=False).order_by("-created").first()
    if last is not None and last.status not in FINISHED:
        return "The dossier of the approval is not finished. Call again in half a minute."
    if last is not None:
        return "The dossier of the approval could not be made. The next dossier that the owner makes belongs to it."
    if model.events.filter(after=State.APPROVED).exists():
        return "The approval of this model made no dossier; those of older releases made none. Leave 'of' out to get the latest dossier."
    return "This model was never approved. Leave 'of' out to get the latest dossier."


def content(job: ModelDossier, form: str, *, by: Any) -> bytes:
    """Return a dossier in one of FORMATS, and record the export.

    Raises DataError if it does not contain this format.
    """
    name, _ = FORMATS[form]
    try:
        with job.file.open("rb") as stream:
            if not name:
                body = stream.read()
                _refuse_row_digests(body, job.model, by)
            else:
                with zipfile.ZipFile(stream) as packed:
                    body = packed.read(name)
    except FileNotFoundError as error:
        raise DataError("The stored file of the dossier is gone. Make it again.") from error
    except KeyError as error:
        raise DataError(
            f"This dossier has no {name}: the worker that made it has no library for PDF. Take the HTML and print it."
        ) from error
    audit.record("exported", job.model, by=by, format=f"dossier as {form}")
    return body


def _refuse_row_digests(content: bytes, model: TreeModel, by: Any) -> None:
    """Raise DataError if the model file reveals training rows and the user is neither owner nor staff.

    The model files in dossiers of earlier versions reveal them.
    """
    if may_see_rows(by, model):
        return
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        signed = packed.read(MODEL)
    if publishable(signed) != signed:
        raise DataError(
            "An earlier version made this dossier: its model file shows which rows were in the training. "
            "Ask the owner of the model to make the dossier again."
        )


def about(job: ModelDossier) -> dict[str, Any]:
    """Return the installation's part of the record: names, texts, review steps, end of the chain, signing key."""
    model = job.model
    texts = job.said
    events = list(model.events.select_related("by"))
    served = registry.served_version(model.family)
    chosen = selection_of(model)
    versions = versions_until(model)
    steps = [
        {
            "at": event.at.isoformat(timespec="minutes"),
            "by": event.by.get_username() if event.by else "a removed account",
            "step": event.step,
            "note": event.reason,
        }
        for event in events
    ]
    # later steps about the served name keep the state "approved", but their authors did not approve the model
    approval = (
        step["by"] for step, event in zip(steps, events, strict=True) if event.before != event.after == State.APPROVED
    )
    approved = [*approval][-1:]
    first = [event.by.get_username() for event in registry.approvals(model) if event.by]
    return {
        "title": model.title,
        "version": model.version,
        "state": model.get_state_display().lower(),
        "served_as": f"{model.family.name}/{model.version}" if served is not None and served.pk == model.pk else "",
        "purpose": {label: texts.get(name, "") for name, label in TEXTS.items()},
        ENDS: texts.get(ENDS, ""),
        "wording": [question for question in questions_of(model) if question["yes"] or question["no"]],
        "selection": "" if chosen is None else chosen.words,
        "recording": Recording.FULL if settings.RECORD else model.recording,
        "record_keep_days": model.days_of_records,
        "approval": _approval_record(job),
        "versions": change_log(versions),
        "risk_log": risk_log(versions, job),
        "good_trees": (hooks.agreement(model) or {}).get("sentence", ""),
        "review": steps,
        "four_eyes": registry.needs_four_eyes(),
        "audit": audit.end(),
        "decisions": _signed_decisions(),
        "signatures": {
            "Trained by": model.owner.get_username(),
            "Approved by": ", ".join([*first, *approved]) if approved else "not approved",
        },
        "address": _absolute(job, reverse("registry:detail", args=[model.pk])),
        "key_address": _absolute(job, reverse("dossier-key")),
        "signing": signing.public_record(signing_key().public_key()),
    }


def _approval_record(job: ModelDossier) -> dict[str, Any] | None:
    """Return time and record number of the approval that this dossier belongs to, or None."""
    if job.approval is None:
        return None
    records = Record.objects.filter(subject="model", subject_id=job.model_id, what="approve")
    number = next((r.number for r in records if r.details.get("event") == job.approval_id), None)
    return {"at": job.approval.at.isoformat(timespec="minutes"), "record": number}


def _absolute(job: ModelDossier, path: str) -> str:
    return f"{job.site.rstrip('/')}{path}" if job.site else path


def _recorded_digests(model_id: uuid.UUID) -> set[str]:
    """Return the SHA-256 of the dossiers that records of approvals name."""
    records = Record.objects.filter(subject="model", subject_id=model_id, what="approve")
    return {digest for record in records if (digest := record.details.get("dossier"))}


def _signed_decisions() -> dict[str, Any] | None:
    """Return day, number and hash of the last signed block of decisions of this installation, or None."""
    last = Record.objects.filter(what=SEALED).last()
    return None if last is None else {name: last.details[name] for name in ("day", "block", "sha256")}


def audit_dossiers(models: Iterable[TreeModel]) -> AuditFindings:
    """Compare the stored dossiers of approvals with the audit chain."""
    report = AuditFindings([], [])
    for model in models:
        records = Record.objects.filter(subject="model", subject_id=model.pk, what__in=("approve", "dossier made"))
        for record in records:
            digest = record.details.get("dossier") if record.what == "approve" else record.details.get("approved")
            try:
                if digest and (problem := _dossier_problem(model, digest)):
                    report.problems.append(f"record {record.number}: {problem}")
            except StoreUnavailable as error:
                report.unchecked.append(f"the stored file of the dossier of {model}: {error}")
    return report


def _dossier_problem(model: TreeModel, digest: str) -> str:
    """Return what is wrong with the stored dossier of this SHA-256, or ""."""
    job = ModelDossier.objects.filter(model=model, sha256=digest).exclude(file="").first()
    if job is None:
        return f"the dossier of {model} with the SHA-256 {digest} was removed."
    try:
        with job.file.open("rb") as stream:
            stored = hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return f"the stored file of the dossier of {model} is gone."
    return "" if stored == digest else f"the stored file of the dossier of {model} was changed."


def tidy(now: datetime) -> int:
    """Remove old dossiers and files without a dossier. Return how many.

    Keep the latest dossier of each model, and dossiers that belong to an approval.
    """
    removed = 0
    old = ModelDossier.objects.filter(status__in=FINISHED, finished__lt=now - KEPT, approval__isnull=True)
    for job in old.select_related("model"):
        last = latest_dossier(job.model)
        if (last is None or last.pk != job.pk) and job.sha256 not in _recorded_digests(job.model_id):
            job.delete()
            removed += 1
    return removed + files.remove_unknown(FOLDER, ModelDossier.objects.values_list("file", flat=True), now)
