"""Refuse calls of retired models, except dry runs by their owners."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.utils import formats, timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from octweb.core.ownership import may_change
from octweb.core.problems import Gone
from octweb.core.tally import DRY_RUNS, ModelTally
from octweb.registry.models import ReviewEvent, State, TreeModel
from octweb.registry.prediction.predictions import tally_of
from octweb.registry.prediction.recording import MAX_SUBJECT_CHARACTERS, SUBJECT_HEADER, RecordedCall, call_of

RETIRED_HEADER = "Octweb-Retired"
RETIRED_HELP = "only in a dry run of a retired model: a note that its answers are not for new decisions"
DRY_RUN_HEADER = "Octweb-Dry-Run"
DRY_RUN_HELP = "1 asks for a dry run, for the owner and administrators only: a retired model answers, and the call does not count as decisions"

DRY_RUN_PARAMETER = OpenApiParameter(
    DRY_RUN_HEADER, str, OpenApiParameter.HEADER, enum=["0", "1"], description=DRY_RUN_HELP
)

SUBJECT_PARAMETER = OpenApiParameter(
    SUBJECT_HEADER,
    str,
    OpenApiParameter.HEADER,
    description=f"your own reference to the person, at most {MAX_SUBJECT_CHARACTERS} characters; kept only as a keyed hash, to find and erase records",
)


def retired_member(model: TreeModel) -> dict[str, str]:
    """Return the member that marks JSON answers of a retired model. {} for other models."""
    note = retired_note(model)
    return {"retired": note} if note else {}


def retired_note(model: TreeModel) -> str | None:
    """Return the note in the answers of a retired model. None for other models."""
    if model.state != State.RETIRED:
        return None
    return f"{model.family.name} version {model.version} is retired. Do not use its answers for new decisions."


def retired_headers(model: TreeModel) -> dict[str, str]:
    """Return the header that marks answers of a retired model. {} for other models."""
    return {RETIRED_HEADER: "true"} if model.state == State.RETIRED else {}


def dry_run(request: Request, model: TreeModel) -> bool:
    """Return whether the call requests a dry run.

    Raises ValidationError for values other than 0 and 1, and PermissionDenied unless the user is the owner or an
    administrator.
    """
    value = request.headers.get(DRY_RUN_HEADER, "0").strip()
    if value not in ("0", "1"):
        raise ValidationError({DRY_RUN_HEADER: f"'{value[:40]}' is neither 0 nor 1."})
    if value == "1" and not may_change(request.user, model):
        raise PermissionDenied("Only the owner of a model and administrators may ask for a dry run.")
    return value == "1"


def tally_of_call(request: Request, model: TreeModel, api: str) -> ModelTally | None:
    """Return the counter of a call's answers.

    None if the model is not approved, and for a dry run: only the call itself is counted. Raises like `dry_run`.
    """
    tally = tally_of(model, api)
    if not dry_run(request, model):
        return tally
    if tally is not None:
        tally.add({DRY_RUNS: {"": 1}})
    return None


def recorded_call(request: Request, model: TreeModel, api: str, name: str) -> RecordedCall | None:
    """Return the recorder of a call.

    None for a dry run, and if nothing is recorded. Raises like `dry_run` and `call_of`.
    """
    return None if dry_run(request, model) else call_of(request, model, api, name)


def refuse_if_retired(model: TreeModel) -> None:
    """Raise Gone, with the reason, if the model is retired."""
    if model.state == State.RETIRED:
        raise Gone(_retired_sentence(model))


def refuse_if_name_retired(name: str, version: int | None) -> None:
    """Raise Gone if this version of the name is retired and was once approved.

    Without a version, raise it if there is any such version.
    """
    models = TreeModel.objects.filter(deleted_at=None, family__name=name, state=State.RETIRED)
    if version is not None:
        models = models.filter(version=version)
    model = was_approved(models).select_related("family").order_by("version").last()
    if model is not None:
        raise Gone(_retired_sentence(model))


def was_approved(models: QuerySet) -> QuerySet:
    """Filter models that were once approved. Their existence is public."""
    return models.filter(pk__in=ReviewEvent.objects.filter(after=State.APPROVED).values("model"))


def _retired_sentence(model: TreeModel) -> str:
    event = model.events.filter(after=State.RETIRED).exclude(before=State.RETIRED).last()
    sentence = f"{model.family.name} version {model.version} is retired and gives no more answers."
    if event is not None:
        day = formats.date_format(timezone.localtime(event.at), "j F Y")
        sentence = f"{model.family.name} version {model.version} was retired on {day} and gives no more answers."
        if event.reason:
            sentence += f" Reason: {event.reason.strip().rstrip('.')}."
    return f"{sentence} Its owner and administrators may send {DRY_RUN_HEADER}: 1 to its address under /api/v1/."
