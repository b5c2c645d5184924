"""Change models: store, review, serve, share and delete them.

draft → in review → approved or rejected → retired
in review → draft (withdrawn, or asked back)
rejected → in review (asked again)
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.text import slugify
from rest_framework.exceptions import ValidationError

from octweb.audit import actions as audit
from octweb.audit import chain
from octweb.core.deleting import hide
from octweb.core.names import checked_name
from octweb.core.ownership import may_change, may_delete
from octweb.core.problems import Conflict, Unprocessable
from octweb.demo.visits import no_part_of_the_demo, refuse, visit_of
from octweb.registry.document.derived_columns import columns_of
from octweb.registry.hooks import (
    approval_evidence,
    obstacles,
    open_points,
    prepare_checklist,
    start_after_approval,
)
from octweb.registry.lifecycle import access
from octweb.registry.lifecycle.audit_trail import record_step
from octweb.registry.lifecycle.families import claim_name, lock_family
from octweb.registry.lifecycle.model_cache import clear_now_and_on_commit
from octweb.registry.models import Family, Recording, ReviewEvent, Share, ShareLevel, State, TreeModel
from trainer.tree.document import without_row_digests
from trainer.tree.file import from_json

# step → states before it, state after it, and the past participle that refusals use
TRANSITIONS: dict[str, tuple[tuple[State, ...], State, str]] = {
    "ask": ((State.DRAFT, State.REJECTED), State.IN_REVIEW, "sent to review"),
    "withdraw": ((State.IN_REVIEW,), State.DRAFT, "withdrawn from review"),
    "approve": ((State.IN_REVIEW,), State.APPROVED, "approved"),
    "return": ((State.IN_REVIEW,), State.DRAFT, "asked back"),
    "reject": ((State.IN_REVIEW,), State.REJECTED, "rejected"),
    "retire": ((State.APPROVED, State.REJECTED), State.RETIRED, "retired"),
}
FOR_STAFF = {"approve", "return", "reject"}
NEEDS_REASON = {
    "return": "This is empty. Say what is missing: the owner reads it.",
    "reject": "This is empty. Say why: the owner reads it.",
}

MAX_KEEP_DAYS = 36_525  # days, a hundred years


class Kept(NamedTuple):
    """What is kept of a model's answers, and for how many days. None: for RECORD_KEEP_DAYS."""

    recording: str
    keep_days: int | None


def register(
    *,
    owner: Any,
    document: dict[str, Any],
    dataset: Any,
    title: str,
    name: str | None = None,
    team: uuid.UUID | None = None,
) -> TreeModel:
    """Store a trained tree as a draft, the next version of its family.

    Raises ModelFileError if the document is damaged. The owner's family `name` is used, by default derived from the
    title. Digests of training rows are removed. The model gets the team of the data set, or `team` if it has none.
    """
    model = from_json(document)
    document = without_row_digests(document)
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    with transaction.atomic():
        audit.hold()
        if dataset is not None:
            dataset.refresh_from_db(fields=["team"])  # it may have moved while the tree was trained
            team = dataset.team_id or team
        family = lock_family(owner, name or title or model.name or model.method or "model")
        latest = TreeModel.objects.filter(family=family).aggregate(latest=Max("version"))["latest"] or 0
        stored = TreeModel.objects.create(
            owner=owner,
            family=family,
            version=latest + 1,
            title=(title or model.name or family.name)[:200],
            dataset=dataset,
            team_id=team,
            method=model.method[:50],
            ignored=[] if dataset is None else [c["name"] for c in dataset.columns if c["role"] == "ignored"],
            document=text,
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            **columns_of(model),
        )
        event = ReviewEvent.objects.create(model=stored, by=owner, before="", after=State.DRAFT)
        data = {} if dataset is None else {"dataset": str(dataset.pk), "data_sha256": dataset.sha256}
        facts = {"title": stored.title, "created": chain.moment(stored.created)}
        if team is not None:
            facts["team"] = str(team)
        record_step("trained", event, method=stored.method, sha256=stored.sha256, **facts, **data)
        clear_now_and_on_commit()
    return stored


def ask_for_approval(model: TreeModel, *, by: Any, reason: str = "") -> TreeModel:
    """Send a draft or rejected model to review, and start the jobs of its checklist.

    `reason` is a note to the reviewer.
    """
    model_in_review = _move(model, "ask", by, reason)
    prepare_checklist(model_in_review)
    return model_in_review


def withdraw(model: TreeModel, *, by: Any, reason: str = "") -> TreeModel:
    """Withdraw a model from review. It becomes a draft."""
    return _move(model, "withdraw", by, reason)


def approve(
    model: TreeModel,
    *,
    by: Any,
    reason: str = "",
    publish: bool | None = None,
    recording: str = "",
    keep_days: int | None = None,
) -> TreeModel:
    """Approve a model, so that all users may call it by its id.

    `publish` also serves it under its name, as a further step in the history. None, the default for programs, serves it
    unless a higher version is served. `recording` sets how its answers are recorded, and `keep_days` for how
    many days; "" and None leave it unchanged. With open checklist items, a `reason` is required. If two approvals are required, the model stays in review after the first.
    """
    _require_reason(model, by, reason)
    with transaction.atomic():
        audit.hold()
        if _is_first_approval(model, by):
            _record_note(model, "first approval", by, reason.strip())
            return model
        chosen = Kept(recording or model.recording, model.keep_days if keep_days is None else keep_days)
        if chosen != (model.recording, model.keep_days):
            _set_recording(model, by, chosen, reason)
        approved = _move(model, "approve", by, reason, approval_evidence(model))
        event = approved.events.filter(after=State.APPROVED).last()
        if renamed := claim_name(approved.family):
            _record_note(approved, "renamed", by, renamed)
        current = served_version(approved.family)
        if publish or (publish is None and (current is None or current.version < approved.version)):
            approved.served_since = _serve(approved, by, f"served as {approved}")
        if event is not None:
            start_after_approval(event)
    return approved


def set_recording(model: TreeModel, *, by: Any, recording: str, keep_days: int | None, reason: str) -> TreeModel:
    """Set how the answers of a model are recorded and for how many days, with a reason for the audit chain.

    `keep_days` None is the setting of the site. Raises PermissionDenied and ValidationError.
    """
    _require_owner(model, by)
    if recording not in Recording.values:
        raise ValidationError({"recording": f"'{recording[:40]}' is not one of {', '.join(Recording.values)}."})
    if not reason.strip():
        raise ValidationError({"reason": "This is empty. Say why: the reason becomes a record."})
    chosen = Kept(recording, keep_days)
    with transaction.atomic():
        audit.hold()
        if chosen != (model.recording, model.keep_days):
            _set_recording(model, by, chosen, reason.strip()[:5000])
    return model


def _set_recording(model: TreeModel, by: Any, chosen: Kept, reason: str) -> None:
    days = chosen.keep_days
    if days is not None and not 1 <= days <= MAX_KEEP_DAYS:
        raise ValidationError({"keep_days": f"{days} is not a number of days from 1 to {MAX_KEEP_DAYS:,}."})
    TreeModel.objects.filter(pk=model.pk).update(**chosen._asdict())
    model.recording, model.keep_days = chosen
    audit.record("recording", model, by=by, **chosen._asdict(), reason=reason.strip())
    clear_now_and_on_commit()


def _require_reason(model: TreeModel, by: Any, reason: str) -> None:
    """Raise ValidationError if something prevents an approval, or if it lacks a reason while checklist items are open.

    Users who may not approve the model pass.
    """
    if "approve" not in possible_steps(model, by):
        return
    if sentences := obstacles(model):
        raise ValidationError({"dossier": " ".join(sentences)})
    if reason.strip():
        return
    if points := open_points(model):
        raise ValidationError(
            {"reason": f"The checklist is open at: {'; '.join(points)}. Say in a note why you approve it all the same."}
        )


def _is_first_approval(model: TreeModel, by: Any) -> bool:
    """Return whether this approval would be the first of two."""
    if settings.APPROVALS < 2:
        return False
    locked = TreeModel.objects.select_for_update().get(pk=model.pk)
    return locked.state == State.IN_REVIEW and not approvals(locked) and _refusal(locked, "approve", by) is None


def approvals(model: TreeModel) -> list[ReviewEvent]:
    """Return the first approvals since the owner's last request."""
    events = list(model.events.select_related("by"))
    last_request = max((n for n, e in enumerate(events) if e.after == State.IN_REVIEW != e.before), default=0)
    return [e for e in events[last_request + 1 :] if e.before == e.after == State.IN_REVIEW]


def publish(model: TreeModel, *, by: Any, name: str = "") -> TreeModel:
    """Serve an approved model as the default version of its name, or of another name of its owner.

    Callers still reach the previous version by its number. Under another name, the model becomes the next version of
    that name. Raises PermissionDenied, Conflict and Unprocessable.
    """
    _require_owner(model, by)
    name = checked_name(name, most=200)
    if name and not slugify(name):
        raise Unprocessable(f"'{name[:60]}' cannot be a served name. Use at least one letter from a to z or a digit.")
    with transaction.atomic():
        audit.hold()
        locked = TreeModel.objects.select_for_update().select_related("family", "owner").get(pk=model.pk)
        if locked.state != State.APPROVED:
            raise Conflict(
                f"{model} is {locked.get_state_display().lower()}; only an approved model can be served. Have it approved first."
            )
        before = str(locked)
        if name and slugify(name) != locked.family.name:
            _rename(locked, name)
        if served_version(locked.family) == locked:
            return locked  # nothing changes, so nothing is recorded
        words = f"served as {locked}" + (f", before that {before}" if before != str(locked) else "")
        locked.served_since = _serve(locked, by, words)
    return locked


def stop_serving(model: TreeModel, *, by: Any, reason: str = "") -> TreeModel:
    """Stop serving an approved model. It stays approved.

    The previously served version, if any, takes over the name. Raises PermissionDenied and Conflict.
    """
    _require_owner(model, by)
    with transaction.atomic():
        audit.hold()
        locked = TreeModel.objects.select_for_update().select_related("family", "owner").get(pk=model.pk)
        if locked.served_since is None:
            raise Conflict(f"{locked} is not served, so there is nothing to end.")
        was_default = served_version(locked.family) == locked
        TreeModel.objects.filter(pk=locked.pk).update(served_since=None)
        locked.served_since = None
        successor = served_version(locked.family)
        words = f"no longer served as {locked}" + (
            f"; {successor} answers to the name" if was_default and successor else ""
        )
        _record_note(locked, "no longer served", by, f"{words}: {reason.strip()}" if reason.strip() else words)
        clear_now_and_on_commit()
    return locked


def _serve(model: TreeModel, by: Any, words: str) -> datetime:
    """Make this version the default of its name, and return the time. Steps at the same moment keep their order."""
    last = TreeModel.objects.filter(family=model.family_id).aggregate(last=Max("served_since"))["last"]
    now = timezone.now()
    since = now if last is None or last < now else last + timedelta(microseconds=1)
    TreeModel.objects.filter(pk=model.pk).update(served_since=since)
    _record_note(model, "served", by, words, served_since=chain.moment(since))
    clear_now_and_on_commit()
    return since


def _record_note(model: TreeModel, what: str, by: Any, words: str, **details: str) -> None:
    """Record a step that does not change the state, in the history and in the audit chain."""
    event = ReviewEvent.objects.create(model=model, by=by, before=model.state, after=model.state, reason=words)
    record_step(what, event, **details)


def delete(model: TreeModel) -> None:
    """Soft-delete a model. Raises Conflict if it is approved or in review."""
    if model.state in (State.APPROVED, State.IN_REVIEW):
        raise Conflict(f"{model} is {model.get_state_display().lower()}. Retire it, or withdraw it from review, first.")
    hide(model)
    clear_now_and_on_commit()


def share(model: TreeModel, *, by: Any, username: str, level: str, records: bool = False) -> Share:
    """Share the model with a user, or change the share. Raises PermissionDenied and ValidationError.

    `records` also lets the user read the records of its decisions.
    """
    _require_sharer(model, by)
    refuse(by, "Sharing")
    person = get_user_model().objects.filter(username=username.strip(), is_active=True).first()
    if person is None:
        raise ValidationError(
            {"username": f"There is no active account '{username.strip()[:150]}'. Check the spelling."}
        )
    if person.pk == model.owner_id:
        raise ValidationError({"username": "This is the owner, who has access anyway. Name another user."})
    if level not in ShareLevel.values:
        raise ValidationError({"level": f"'{level[:20]}' is not one of {', '.join(ShareLevel.values)}."})
    with transaction.atomic():
        audit.record(
            "shared", model, by=by, user=person.get_username(), user_id=person.pk, level=level, records=records
        )
        values = {"level": level, "records": records}
        return Share.objects.update_or_create(model=model, user=person, defaults=values)[0]


def unshare(model: TreeModel, *, by: Any, username: str) -> None:
    """Remove a user's share, if there is one. Raises PermissionDenied."""
    _require_sharer(model, by)
    with transaction.atomic():
        audit.hold()
        share = Share.objects.filter(model=model, user__username=username).first()
        if share is not None:
            audit.record("no longer shared", model, by=by, user=username, user_id=share.user_id)
            share.delete()


def _require_owner(model: TreeModel, user: Any) -> None:
    if not may_change(user, model):
        raise PermissionDenied("Only the owner or an administrator may do this. Ask one of them.")


def _require_sharer(model: TreeModel, user: Any) -> None:
    if not may_delete(user, model):
        raise PermissionDenied(
            "Only the owner of the model or of its team may do this, or an administrator. Ask one of them."
        )


def _rename(model: TreeModel, name: str) -> None:
    """Move the model to another family of its owner, as the next version there."""
    family = lock_family(model.owner, name)
    claim_name(family)
    latest = TreeModel.objects.filter(family=family).aggregate(latest=Max("version"))["latest"] or 0
    model.family = family
    model.version = latest + 1
    TreeModel.objects.filter(pk=model.pk).update(family=family, version=latest + 1, served_since=None)


def ask_back(model: TreeModel, *, by: Any, reason: str) -> TreeModel:
    """Return a model to its owner as a draft. `reason` says what is missing."""
    return _move(model, "return", by, reason)


def reject(model: TreeModel, *, by: Any, reason: str) -> TreeModel:
    """Reject a model. `reason` is for the owner."""
    return _move(model, "reject", by, reason)


def retire(model: TreeModel, *, by: Any, reason: str = "") -> TreeModel:
    """Retire an approved or rejected model. It is no longer served, but its history is kept."""
    return _move(model, "retire", by, reason)


STEPS = {
    "ask": ask_for_approval,
    "withdraw": withdraw,
    "approve": approve,
    "return": ask_back,
    "reject": reject,
    "retire": retire,
}


def describe_outcome(model: TreeModel, outcome: str) -> str:
    """Return `outcome`, or other words if this was the first of two approvals."""
    if outcome.startswith("approved") and model.state == State.IN_REVIEW:
        return "approved by the first administrator; a second one must approve it, too"
    return outcome


def possible_steps(model: TreeModel, user: Any) -> list[str]:
    """Return the steps that `user` can take with the model now, in the order of TRANSITIONS."""
    return [
        verb
        for verb, (states, _, _) in TRANSITIONS.items()
        if model.state in states and _refusal(model, verb, user) is None
    ]


def return_step(last: ReviewEvent | None, model: TreeModel) -> ReviewEvent | None:
    """Return the last step if a reviewer returned the model with a reason, otherwise None."""
    is_returned = last is not None and last.before == State.IN_REVIEW and last.after == State.DRAFT
    return last if last is not None and is_returned and last.reason and last.by_id != model.owner_id else None


def served_version(family: Family) -> TreeModel | None:
    """Return the default version of the family's name, which is the one served last. None if none is served."""
    return family.versions.served().first()


def ids_of_served_versions(families: Collection[int]) -> set[uuid.UUID]:
    """Return the ids of the default versions of the families' names."""
    models = TreeModel.objects.served().filter(family__in=families).values_list("family", "pk")
    return set(dict(models.reverse()).values())


def next_served_version(model: TreeModel) -> TreeModel | None:
    """Return the version that would take over the name if this one were not served, or None."""
    return model.family.versions.served().exclude(pk=model.pk).first()


def needs_four_eyes() -> bool:
    """Return whether owners may not approve their own models.

    OCTWEB_FOUR_EYES decides. By default, the rule applies if there are several administrators.
    """
    if settings.FOUR_EYES is not None:
        return bool(settings.FOUR_EYES)
    return get_user_model().objects.filter(is_staff=True, is_active=True).count() > 1


def _move(model: TreeModel, verb: str, by: Any, reason: str, details: Mapping[str, str] | None = None) -> TreeModel:
    """Take a step, and record it with further details."""
    reason = reason.strip()
    if (refusal := _refusal(model, verb, by)) is not None:
        raise PermissionDenied(refusal)
    if verb in NEEDS_REASON and not reason:
        raise ValidationError({"reason": NEEDS_REASON[verb]})
    states, after, words = TRANSITIONS[verb]
    with transaction.atomic():
        audit.hold()
        before = TreeModel.objects.select_for_update().values_list("state", flat=True).get(pk=model.pk)
        # the update names the expected states, so one of two simultaneous reviewers gets the conflict; a model is never
        # served after a step here, because an approved model can only be retired
        if not TreeModel.objects.filter(pk=model.pk, state__in=states).update(state=after, served_since=None):
            raise Conflict(
                f"{model} cannot be {words}: its state is {State(before).label.lower()}. "
                f"The state must be {' or '.join(s.label.lower() for s in states)}."
            )
        event = ReviewEvent.objects.create(model=model, by=by, before=before, after=after, reason=reason)
        record_step(verb, event, **(details or {}))
        clear_now_and_on_commit()
    model.state = after
    model.served_since = None
    return model


def _refusal(model: TreeModel, verb: str, user: Any) -> str | None:
    """Return why `user` may not take this step, whatever the state. None if allowed."""
    if verb == "ask" and visit_of(user) is not None:
        return no_part_of_the_demo("Approval")
    if verb not in FOR_STAFF:
        return None if may_change(user, model) else "Only the owner or an administrator may do this. Ask one of them."
    if not access.may_review(user, model):
        return "Only an administrator or a reviewer of its team may review a model. Ask one to do it."
    if verb == "approve" and user.pk == model.owner_id and (needs_four_eyes() or not user.is_staff):
        return "Four eyes: somebody other than the owner must approve this model."
    if verb == "approve" and settings.APPROVALS > 1 and any(e.by_id == user.pk for e in approvals(model)):
        return "Two approvals: you approved this model already, and another administrator must approve it, too."
    return None
