"""User actions on the challenger of a model, for pages and API."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from rest_framework.exceptions import ValidationError

from octweb.audit import actions as audit
from octweb.challengers.models import ABOVE_ALL_RECORDS, Challenge
from octweb.challengers.record import challenger_record
from octweb.core.problems import Conflict, Unprocessable
from octweb.decisions.models import DecisionHead
from octweb.decisions.reading import nanoseconds_of
from octweb.registry.document.model_files import is_damaged, model_file
from octweb.registry.hooks import NamedChallenger
from octweb.registry.lifecycle import actions as lifecycle
from octweb.registry.lifecycle.model_cache import clear_now_and_on_commit
from octweb.registry.models import State, TreeModel
from octweb.registry.prediction.silent import refusal_of

MAX_REASON = 5_000
MAX_OUTCOME_DAYS = 3_650
NO_CHALLENGER = "This model challenges no model of yours. Name it a challenger first."


def running_challenges() -> Any:
    """Return the running challenges, with both models joined, without their documents."""
    return _joined(Challenge.objects.filter(ended_at=None))


def ended_challenges() -> Any:
    """Return the ended challenges that may still have records to compare, joined like running ones."""
    return _joined(Challenge.objects.exclude(ended_at=None).exclude(last_number=ABOVE_ALL_RECORDS))


def _joined(challenges: Any) -> Any:
    related = ("model__family", "model__owner", "challenger__family", "challenger__owner", "by")
    # without documents, because workers ask each second
    return challenges.select_related(*related).defer("model__document", "challenger__document")


def running_challenge(model: TreeModel) -> Challenge | None:
    """Return the running challenge of an approved model, or None."""
    challenge: Challenge | None = running_challenges().filter(model=model).first()
    return challenge


def named_challenger(model: TreeModel) -> NamedChallenger | None:
    """Return the challenger that silently answers the model's rows today, or None."""
    challenge = running_challenge(model)
    if challenge is None or reason_to_end(challenge, timezone.now()):
        return None
    return NamedChallenger(str(challenge.pk), challenge.challenger, nanoseconds_of(challenge.since))


def reason_to_end(challenge: Challenge, now: datetime) -> str:
    """Return why a challenge must end, or "" if it can go on."""
    if challenge.until is not None and now.astimezone(UTC).date() > challenge.until:
        return f"Its last day was {challenge.until.isoformat()}."
    if challenge.model.state != State.APPROVED or challenge.model.deleted_at is not None:
        return f"{challenge.model} is no longer approved."
    if challenge.challenger.state == State.RETIRED or challenge.challenger.deleted_at is not None:
        return f"{challenge.challenger} is retired or deleted."
    if is_damaged(challenge.challenger):
        return f"The stored document of {challenge.challenger} was damaged or changed."
    if (
        challenge.by is None
        or not TreeModel.objects.readable_by(challenge.by).filter(pk=challenge.challenger_id).exists()
    ):
        return f"{challenge.challenger} is no longer readable for the person who named it."
    return ""


def served_model_named(user: Any, to: str) -> TreeModel:
    """Return an approved model of the user by id, served name, or name and version (`credit-risk/2`).

    Raises ValidationError. The error is the same whether the model does not exist or belongs to another user.
    """
    models = TreeModel.objects.changeable_by(user).approved().select_related("family", "owner", "dataset")
    name, _, version = to.strip().partition("/")
    try:
        matches = models.filter(pk=uuid.UUID(name))
    except ValueError:
        matches = models.filter(family__name=name) if version else models.served().filter(family__name=name)
    if version:
        is_number = version.isascii() and version.isdigit() and len(version) < 10
        matches = matches.filter(version=int(version)) if is_number else matches.none()
    model: TreeModel | None = matches.first()
    if model is None:
        words = f"'{to[:60]}' is not an approved model that you may see. Give its served name, such as credit-risk, or its id."
        raise ValidationError({"to": words})
    return model


def name_challenger(
    model: TreeModel, challenger: TreeModel, *, by: Any, until: date | None = None, outcome_days: int = 0
) -> Challenge:
    """Start a challenge: from now on, `challenger` also answers each row of an approved model, silently.

    The caller checks that the user owns `model` (or is staff) and may read `challenger`. Raises Conflict,
    ValidationError and Unprocessable.
    """
    _check_models(model, challenger)
    if until is not None and until < datetime.now(UTC).date():
        raise ValidationError({"until": f"{until.isoformat()} has passed. Give today or a later day, or leave it out."})
    if not 0 <= outcome_days <= MAX_OUTCOME_DAYS:
        raise ValidationError({"outcome_days": f"{outcome_days} is not from 0 to {MAX_OUTCOME_DAYS}."})
    try:
        with transaction.atomic():
            audit.hold()
            head = DecisionHead.objects.first()
            challenge = Challenge.objects.create(
                model=model,
                challenger=challenger,
                since=timezone.now(),
                by=by,
                until=until,
                outcome_days=outcome_days,
                last_number=0 if head is None else head.records,
            )
            facts = {"challenger": str(challenger.pk), "challenger_name": str(challenger), "sha256": challenger.sha256}
            last_day = "" if until is None else until.isoformat()
            audit.record("challenger named", model, by=by, until=last_day, outcome_days=outcome_days, **facts)
            clear_now_and_on_commit()
    except IntegrityError as error:
        raise Conflict(
            f"{model} has a challenger already, or {challenger} challenges another model. End that first."
        ) from error
    return challenge


def require_approved(model: TreeModel) -> None:
    """Raise Conflict unless a model is approved."""
    if model.state != State.APPROVED:
        raise Conflict(
            f"{model} is {model.get_state_display().lower()}; only an approved model answers rows. Have it approved first."
        )


def _check_models(model: TreeModel, challenger: TreeModel) -> None:
    require_approved(model)
    if model.pk == challenger.pk:
        raise Unprocessable("A model cannot challenge itself. Name another version.")
    if challenger.state == State.RETIRED:
        raise Conflict(f"{challenger} is retired. Name another version.")
    if refusal := refusal_of(model_file(model), model_file(challenger)):
        raise Unprocessable(f"{challenger} cannot answer the rows of {model}. {refusal}")


def challenge_by(challenger: uuid.UUID, user: Any) -> Challenge | None:
    """Return the running challenge of a challenger against a model of the user, or None."""
    mine = TreeModel.objects.changeable_by(user)
    challenge: Challenge | None = running_challenges().filter(challenger=challenger, model__in=mine).first()
    return challenge


def end_challenge(challenge: Challenge, *, by: Any, reason: str = "") -> None:
    """End a challenge. Its counts are kept. `by` is None for the system. Raises Conflict if it has ended before."""
    reason = reason.strip()[:MAX_REASON]
    with transaction.atomic():
        audit.hold()
        running = Challenge.objects.filter(pk=challenge.pk, ended_at=None)
        if not running.update(ended_at=timezone.now(), reason=reason):
            raise Conflict(f"{challenge.challenger} no longer challenges {challenge.model}.")
        audit.record(
            "challenger ended",
            challenge.model,
            by=by,
            challenger=str(challenge.challenger_id),
            challenger_name=str(challenge.challenger),
            reason=reason,
        )
        clear_now_and_on_commit()


def ask_for_promotion(challenge: Challenge, *, by: Any, reason: str = "") -> TreeModel:
    """Request approval of the challenger, with the comparison as a note to the reviewer. Nothing is served by this.

    Raises PermissionDenied unless the user owns the challenger or is staff. Raises Conflict unless it is a draft or
    rejected.
    """
    challenger = challenge.challenger
    if challenger.state == State.APPROVED:
        raise Conflict(f"{challenger} is approved already. Serve it on its page; that is a step of its own.")
    record = challenger_record(challenge.model, timezone.now())
    comparison = " ".join(record["sentences"]) if record is not None else ""
    note = f"It challenges {challenge.model}. {comparison} {reason.strip()[:MAX_REASON]}".strip()
    return lifecycle.ask_for_approval(challenger, by=by, reason=note)
