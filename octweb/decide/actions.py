"""Change the guidance of a model. Nothing else writes a Guidance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from rest_framework.exceptions import ValidationError

from octweb.audit import actions as audit
from octweb.audit.models import Record
from octweb.core.names import is_storable
from octweb.core.ownership import may_change
from octweb.core.problems import Conflict
from octweb.decide.models import Guidance
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle.audit_trail import AuditFindings
from octweb.registry.models import State, TreeModel
from trainer.errors import ParameterError
from trainer.explain.permission import permissions

MAX_PURPOSE = 4_000
MAX_CONTACT = 300
STEPS = ("marked columns", "worded reasons", "set the contact", "opened to the public", "closed to the public")


def guidance_of(model: TreeModel) -> Guidance:
    """Return the guidance of the model, or a new, unsaved one."""
    return Guidance.objects.filter(model=model).first() or Guidance(model=model)


def marks_of(model: TreeModel) -> dict[str, Any]:
    """Return the permitted changes that the owner set, by column. Other columns may change freely."""
    return dict(guidance_of(model).change)


def mark(model: TreeModel, *, by: Any, change: Mapping[str, Any]) -> Guidance:
    """Store the permitted changes as the default for all users of the model.

    Raises ValidationError and PermissionDenied.
    """
    require_owner(model, by)
    try:
        permissions(model_file(model).tree.schema, change)
    except ParameterError as error:
        raise ValidationError({"change": str(error)}) from error
    return store_guidance(model, by, "marked columns", change=dict(change))


def publish(model: TreeModel, *, by: Any, purpose: str, contact: str, show_training: bool) -> Guidance:
    """Open the public page of an approved model, or change it.

    Raises ValidationError, Conflict and PermissionDenied.
    """
    require_owner(model, by)
    if model.state != State.APPROVED:
        raise Conflict(
            f"{model} is {model.get_state_display().lower()}; only an approved model can have a public page. Have it approved first."
        )
    purpose = purpose.strip()
    contact = contact.strip()
    missing = {
        name: "This is empty. Fill it in: everyone who opens the page reads it."
        for name, text in (("purpose", purpose), ("contact", contact))
        if not text
    }
    if missing:
        raise ValidationError(missing)
    _check_text("purpose", purpose, MAX_PURPOSE)
    _check_text("contact", contact, MAX_CONTACT)
    changes = {"public": True, "purpose": purpose, "contact": contact, "show_training": show_training}
    return store_guidance(model, by, "opened to the public", **changes)


def unpublish(model: TreeModel, *, by: Any) -> Guidance:
    """Close the public page. Its address then returns 404. Raises PermissionDenied."""
    require_owner(model, by)
    return store_guidance(model, by, "closed to the public", public=False)


def set_contact(model: TreeModel, *, by: Any, contact: str) -> Guidance:
    """Set the contact named in letters and on the public page. Raises ValidationError and PermissionDenied."""
    require_owner(model, by)
    guidance = guidance_of(model)
    contact = contact.strip()
    if contact == guidance.contact:
        return guidance
    _check_text("contact", contact, MAX_CONTACT)
    if guidance.public and not contact:
        raise ValidationError({"contact": "This is empty. The public page of the model needs a contact."})
    return store_guidance(model, by, "set the contact", contact=contact)


def text_problem(text: str, limit: int) -> str:
    """Return why a text of at most `limit` characters cannot be stored. "" if it can."""
    if len(text) > limit:
        return f"This has {len(text):,} characters; the limit is {limit:,}. Shorten it."
    return "" if is_storable(text) else "This has control characters. Remove them."


def _check_text(name: str, text: str, limit: int) -> None:
    if problem := text_problem(text, limit):
        raise ValidationError({name: problem})


def require_owner(model: TreeModel, by: Any) -> None:
    """Raise PermissionDenied unless the user owns the model or is an administrator."""
    if not may_change(by, model):
        raise PermissionDenied("Only the owner or an administrator may do this. Ask one of them.")


@transaction.atomic
def store_guidance(model: TreeModel, by: Any, what: str, **changes: Any) -> Guidance:
    """Store changes of the guidance, and record the step in the audit chain."""
    audit.hold()
    guidance, _ = Guidance.objects.update_or_create(model=model, defaults=changes)
    audit.record(what, model, by=by, training_numbers=guidance.show_training, guidance=guidance_digest(guidance))
    return guidance


def guidance_digest(guidance: Guidance) -> str:
    """Return the SHA-256 of the guidance that people rely on.

    The secret key is part of it, so that nobody can guess a contact from the digest.
    """
    texts = [guidance.purpose, guidance.contact, guidance.public, guidance.show_training, guidance.change]
    if guidance.wording:  # an empty wording must not change the digest, because earlier versions have none
        texts.append(guidance.wording)
    text = json.dumps([str(guidance.key), *texts], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _has_new_records(guidance: Guidance) -> bool:
    """Return whether the chain records creation times of models. Older chains do not record every public page."""
    trained = Record.objects.filter(subject="model", subject_id=guidance.model_id, what="trained").first()
    return trained is not None and "created" in trained.details


def audit_guidance(models: Iterable[TreeModel]) -> AuditFindings:
    """Compare the permitted changes and public pages of these models with the audit chain."""
    report = AuditFindings([], [])
    named = {model.pk: model for model in models}
    stored = Guidance.objects.filter(model__in=named).select_related("model__family")
    steps = Record.objects.filter(subject="model", subject_id__in=named, what__in=STEPS)
    removed = set(steps.values_list("subject_id", flat=True)) - {guidance.model_id for guidance in stored}
    report.problems.extend(
        sorted(f"{named[pk]}: its permitted changes and its public page were removed." for pk in removed)
    )
    for guidance in stored:
        steps = Record.objects.filter(subject="model", subject_id=guidance.model_id, what__in=STEPS)
        last = steps.order_by("number").last()
        if last is None and guidance.public and _has_new_records(guidance):
            report.problems.append(f"{guidance.model} has a public page, but no record says so.")
        elif last is None or "guidance" not in last.details:
            report.unchecked.append(f"{guidance.model}: its permitted changes and the texts of its public page.")
        elif last.details["guidance"] != guidance_digest(guidance):
            report.problems.append(
                f"record {last.number}: the permitted changes or the public page of {guidance.model} are others."
            )
    return report
