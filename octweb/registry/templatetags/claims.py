"""`{% claims_of model as found %}`: the badges of a model with what draws them."""

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
from trainer.evaluate.verdict import TreeVerdict

register = template.Library()
_count = itertools.count()


@register.simple_tag
def claims_of(model: TreeModel) -> list[dict[str, Any]]:
    """Style, icon, words, popover text and an id that no other badge of the page has."""
    badges_shown = []
    for claim in claims.claim_badges(model):
        style, icon = LOOK[claim.kind]
        badges_shown.append(
            {"id": f"claim-{next(_count)}", "style": style, "icon": icon, "words": claim.words, "tip": claim.tip}
        )
    return badges_shown


@register.simple_tag
def verdict_of(model: TreeModel) -> TreeVerdict | None:
    """Whether the model is better than one answer for all rows; None for a damaged document."""
    return claims.verdict_of(model)


@register.simple_tag
def weights_of(model: TreeModel) -> str:
    """How much training rows count; "" if every row counts one."""
    return claims.weights_of(model)


@register.simple_tag
def next_run(model: TreeModel, verdict: TreeVerdict) -> str:
    """The query of the form of a new run with the settings that the verdict proposes; "" if it proposes none."""
    if model.dataset_id is None or not verdict.settings:
        return ""
    fields = {f"p_{name}": value for name, value in verdict.settings.items()}
    rows = model_file(model).rows or {}
    fields |= {role: rows[role]["column"] for role in ("group", "time", "weight") if rows.get(role)}
    return urlencode({"dataset": model.dataset_id, "method": model.method, **fields})


@register.simple_tag
def warnings_of(model: TreeModel) -> list[str]:
    """Return what speaks against using the tree, in sentences."""
    return claims.warnings_of(model)


@register.simple_tag
def agreement_of(model: TreeModel) -> dict[str, Any] | None:
    """What is known of the other good trees; for those alone who may see the rows."""
    try:
        return hooks.agreement(model)
    except DamagedDocument:
        return None
