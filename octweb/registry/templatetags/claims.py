"""Template tags about a model: badges, verdict, weights and warnings."""

from __future__ import annotations

import itertools
from typing import Any
from urllib.parse import urlencode

from django import template

from octweb.core.badges import LOOK
from octweb.core.faults import DamagedDocument
from octweb.registry import hooks
from octweb.registry.document import claims
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.registry.page.content import facts
from trainer.evaluate.verdict import FOLDS_ADVICE, BaseRate, TreeVerdict

register = template.Library()
USUAL_FOLDS = 5
_count = itertools.count()


@register.simple_tag
def claims_of(model: TreeModel) -> list[dict[str, Any]]:
    """Return style, icon, words, tooltip and a unique id of each badge."""
    badges_shown = []
    for claim in claims.claim_badges(model):
        style, icon = LOOK[claim.kind]
        badges_shown.append(
            {"id": f"claim-{next(_count)}", "style": style, "icon": icon, "words": claim.words, "tip": claim.tip}
        )
    return badges_shown


@register.simple_tag
def verdict_of(model: TreeModel) -> TreeVerdict | None:
    """Compare the model with a constant answer. None for a damaged document."""
    return claims.verdict_of(model)


@register.simple_tag
def costs_of(model: TreeModel) -> dict[str, Any] | None:
    """Return what the answers cost per unseen and per training row. None if the training minimised no costs."""
    try:
        found = facts(model)["cost"]
    except DamagedDocument:
        return None
    return None if found is None else dict(zip(("unseen", "training"), found, strict=True))


@register.simple_tag
def count_word(model: TreeModel, many: str = "rows") -> str:
    """Return what the counts of nodes are: `many`, or "weight" if rows or classes have weights."""
    return "weight" if claims.weights_of(model) else many


@register.simple_tag
def weights_of(model: TreeModel) -> str:
    """Describe the weights of training rows. "" without weights."""
    return claims.weights_of(model)


@register.simple_tag
def next_run(model: TreeModel, verdict: TreeVerdict) -> str:
    """Return the query for the new-run form with the settings that the verdict proposes. "" if it proposes none."""
    file = model_file(model)
    folds = verdict.next == FOLDS_ADVICE
    if model.dataset_id is None or not (verdict.settings or folds):
        return ""
    fields = {f"p_{name}": value for name, value in verdict.settings.items()}
    fields |= {"evaluation": "folds", "folds": USUAL_FOLDS} if folds else {}
    rows = file.rows or {}
    fields |= {role: rows[role]["column"] for role in ("group", "time", "weight") if rows.get(role)}
    return urlencode({"dataset": model.dataset_id, "method": model.method, **fields})


@register.simple_tag
def training_base_of(model: TreeModel) -> BaseRate | None:
    """Return the accuracy of one answer for all training rows. None if unknown."""
    return claims.training_base_of(model)


@register.simple_tag
def warnings_of(model: TreeModel) -> list[str]:
    """Return the warnings about the tree, in sentences."""
    return claims.warnings_of(model)


@register.simple_tag
def agreement_of(model: TreeModel) -> dict[str, Any] | None:
    """Return how far the good trees agree, or None for a damaged document.

    The template must check that the user may see the rows.
    """
    try:
        return hooks.agreement(model)
    except DamagedDocument:
        return None
