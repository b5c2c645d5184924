"""Report the dossier as an item of the review checklist."""

from __future__ import annotations

import contextlib

from django.conf import settings
from rest_framework.exceptions import ValidationError

from octweb.core.problems import Conflict
from octweb.dossier import actions
from octweb.dossier.texts import BASIC
from octweb.jobs.models import RunStatus
from octweb.registry.models import TreeModel
from octweb.registry.review.checklist import TITLES, ChecklistItem, ChecklistState, ReviewedModel
from trainer.errors import list_names

KEY = "dossier"
PENDING = "The dossier is being made."


def start_dossier(model: TreeModel) -> None:
    """Queue a dossier, unless the model has one or cannot have one."""
    if actions.latest_dossier(model) is not None:
        return
    with contextlib.suppress(ValidationError, Conflict):
        actions.start(by=model.owner, model=model, site=settings.ADDRESS)


def reviewed_digest(model: TreeModel) -> dict[str, str]:
    """Return the SHA-256 of the dossier that a reviewer could read, as `dossier`, for the record of the approval."""
    dossier = actions.latest_dossier(model)
    return {"dossier": dossier.sha256} if dossier is not None and dossier.sha256 else {}


def unwritten_sentences(model: TreeModel) -> list[str]:
    """Return what the last dossier lacks of the tables in OCTWEB_REQUIRED_CLAUSES, or []."""
    required = settings.REQUIRED_CLAUSES
    if not required:
        return []
    dossier = actions.latest_dossier(model)
    clauses = None if dossier is None else dossier.summary.get("open_clauses")
    if clauses is None:
        return [f"This site approves a model only with a dossier by {list_names(required)}. Make it, and wait for it."]
    return [
        f"The dossier lacks texts for {key}: {', '.join(clauses[key])}. Write them under “Proof & dossier”, and make it again."
        for key in required
        if clauses.get(key)
    ]


def read_item(reviewed: ReviewedModel) -> ChecklistItem:
    """Return the checklist item: whether a dossier exists, and which texts are missing."""
    state, sentence = _finding(reviewed.model)
    return ChecklistItem(
        key=KEY, title=TITLES[KEY], state=state, sentence=sentence, part="proof", pending=sentence == PENDING
    )


def _finding(model: TreeModel) -> tuple[ChecklistState, str]:
    dossier = actions.latest_dossier(model)
    if dossier is not None:
        missing = [label for name, (label, _) in BASIC.items() if not dossier.said.get(name)]
        words = f"Made on {dossier.finished:%d %B %Y}." if dossier.finished else "Made."
        return "holds", f"{words} Nobody wrote: {', '.join(missing).lower()}." if missing else words
    job = actions.latest(model)
    if job is not None and job.status == RunStatus.FAILED:
        return "open", f"The dossier could not be made: {job.error}"
    if job is not None and job.status != RunStatus.CANCELLED:
        return "cannot be said", PENDING
    if reason := actions.absence_words(model):
        return "cannot be said", reason
    return "open", "No dossier was made. Make one under “Proof & dossier”."
