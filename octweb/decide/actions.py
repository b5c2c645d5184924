"""Change the guidance of a model. Only these functions write a Guidance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from rest_framework.exceptions import ValidationError

from octweb.audit import actions as audit
from octweb.core.problems import Conflict
from octweb.decide.models import Guidance
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle import access
from octweb.registry.models import State, TreeModel
from trainer.errors import ParameterError
from trainer.explain.permission import permissions

MAX_PURPOSE = 4_000
MAX_CONTACT = 300


def guidance_of(model: TreeModel) -> Guidance:
    """Return the guidance of the model, or an empty unsaved one."""
    return Guidance.objects.filter(model=model).first() or Guidance(model=model)


def marks_of(model: TreeModel) -> dict[str, Any]:
    """Return the permitted changes that the owner set, as column → words. Other columns may change freely."""
    return dict(guidance_of(model).change)


def mark(model: TreeModel, *, by: Any, change: Mapping[str, Any]) -> Guidance:
    """Store the permitted changes as the default for all users of the model. Raises ValidationError and PermissionDenied."""
    _owner(model, by)
    try:
        permissions(model_file(model).tree.schema, change)
    except ParameterError as error:
        raise ValidationError({"change": str(error)}) from error
    return _store_guidance(model, change=dict(change))


def publish(model: TreeModel, *, by: Any, purpose: str, contact: str, show_training: bool) -> Guidance:
    """Open the public page of an approved model, or change it. Raises ValidationError, Conflict and PermissionDenied."""
    _owner(model, by)
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
    if len(purpose) > MAX_PURPOSE:
        raise ValidationError({"purpose": _too_long(purpose, MAX_PURPOSE)})
    if len(contact) > MAX_CONTACT:
        raise ValidationError({"contact": _too_long(contact, MAX_CONTACT)})
    with transaction.atomic():
        audit.record("opened to the public", model, by=by, training_numbers=show_training)
        return _store_guidance(model, public=True, purpose=purpose, contact=contact, show_training=show_training)


def unpublish(model: TreeModel, *, by: Any) -> Guidance:
    """Close the public page; its address answers 404 from now on. Raises PermissionDenied."""
    _owner(model, by)
    with transaction.atomic():
        audit.record("closed to the public", model, by=by)
        return _store_guidance(model, public=False)


def _too_long(text: str, limit: int) -> str:
    return f"This has {len(text):,} characters; the limit is {limit:,}. Shorten it."


def _owner(model: TreeModel, by: Any) -> None:
    if not access.is_owner_or_staff(by, model):
        raise PermissionDenied("Only the owner or an administrator may do this. Ask one of them.")


def _store_guidance(model: TreeModel, **changes: Any) -> Guidance:
    guidance, _ = Guidance.objects.update_or_create(model=model, defaults=changes)
    return guidance
