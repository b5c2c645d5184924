"""Report the independent check as an item of the review checklist."""

from __future__ import annotations

import contextlib

from rest_framework.exceptions import ValidationError

from octweb.checking import actions
from octweb.core.problems import Conflict
from octweb.jobs.models import RunStatus
from octweb.registry.document.claims import claim_of
from octweb.registry.models import TreeModel
from octweb.registry.review.checklist import TITLES, ChecklistItem, ChecklistState, ReviewedModel

KEY = "checked"
PENDING = "The check is under way."
WORDS: dict[str, tuple[ChecklistState, str]] = {
    "proved": ("holds", "It counted every number again, and showed again that no tree of the stated scope is better."),
    "refuted": ("open", "It found something in the model file that is not true."),
    "cannot be judged": ("cannot be said", "It could not judge the model file; its report says why."),
}


def start_check(model: TreeModel) -> None:
    """Queue a check, unless the model has a verdict or cannot be checked."""
    if actions.latest_verdict(model):
        return
    with contextlib.suppress(ValidationError, Conflict):
        actions.start(owner=model.owner, model=model)


def read_item(reviewed: ReviewedModel) -> ChecklistItem:
    """Return the checklist item on the independent check of a model."""
    model = reviewed.model
    state, sentence = _finding(model)
    return ChecklistItem(
        key=KEY, title=TITLES[KEY], state=state, sentence=sentence, part="proof", pending=sentence == PENDING
    )


def _finding(model: TreeModel) -> tuple[ChecklistState, str]:
    verdict = actions.latest_verdict(model)
    if verdict == "recounted":
        if claim_of(model).kind in ("proved", "wishes"):
            return "cannot be said", "Every number holds. The check did not show again that no tree is better."
        return (
            "holds",
            "It counted every number again, and all of them hold. The file claims no proof of the whole tree.",
        )
    if verdict:
        return WORDS[verdict]
    job = actions.latest(model)
    if job is None:
        return "cannot be said", "It has not been checked yet. Start the check under “Proof & dossier”."
    if job.status == RunStatus.FAILED:
        return "open", f"The check failed: {job.error}"
    if job.status == RunStatus.CANCELLED:
        return "cannot be said", "The check was stopped before it ended. Start it again under “Proof & dossier”."
    return "cannot be said", PENDING
