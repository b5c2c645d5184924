"""Report the dossier as an item of the review checklist."""

from __future__ import annotations

import contextlib

from django.conf import settings
from rest_framework.exceptions import ValidationError

from octweb.core.problems import Conflict
from octweb.dossier import actions
from octweb.jobs.models import RunStatus
from octweb.registry.models import TreeModel
from octweb.registry.review.checklist import TITLES, ChecklistItem, ChecklistState, ReviewedModel

KEY = "dossier"


def start_dossier(model: TreeModel) -> None:
    """Queue a dossier, unless the model has one or cannot have one."""
    if actions.latest_dossier(model) is not None:
        return
    with contextlib.suppress(ValidationError, Conflict):
        actions.start(by=model.owner, model=model, site=settings.ADDRESS)


def read_item(reviewed: ReviewedModel) -> ChecklistItem:
    """Return the checklist item: whether a dossier exists, and which texts are missing."""
    state, sentence = _finding(reviewed.model)
    return ChecklistItem(key=KEY, title=TITLES[KEY], state=state, sentence=sentence, part="proof")


def _finding(model: TreeModel) -> tuple[ChecklistState, str]:
    dossier = actions.latest_dossier(model)
    if dossier is not None:
        missing = [label for name, label in actions.TEXTS.items() if not dossier.said.get(name)]
        words = f"Made on {dossier.finished:%d %B %Y}." if dossier.finished else "Made."
        return "holds", f"{words} Nobody wrote: {', '.join(missing).lower()}." if missing else words
    job = actions.latest(model)
    if job is not None and job.status == RunStatus.FAILED:
        return "open", f"The dossier could not be made: {job.error}"
    if job is not None and job.status != RunStatus.CANCELLED:
        return "cannot be said", "The dossier is being made. Open this page again in a moment."
    if model.dataset is None or not model.dataset.file:
        return "cannot be said", actions.NO_ROWS
    return "open", "No dossier was made. Make one under “Proof & dossier”."
