"""Draft the texts of a dossier from what is known about a model. A person checks and completes them."""

from __future__ import annotations

from octweb.decide.actions import guidance_of
from octweb.oversight.due import oversight_of
from octweb.registry.models import TreeModel
from octweb.registry.review.checklist import purpose_of
from trainer.errors import list_names

MAX_COLUMNS = 10  # a draft names at most this many columns


def drafts_of(model: TreeModel) -> dict[str, str]:
    """Return drafts by the name of their text. A text without known facts has none."""
    oversight = oversight_of(model)
    asked = purpose_of(list(model.events.select_related("by")))
    guidance = guidance_of(model)
    drafts = {
        "meant_for": oversight.purpose or guidance.purpose or (asked.reason if asked is not None else ""),
        "contact": guidance.contact or model.owner.email,
        "responsible": model.owner.get_full_name() or model.owner.get_username(),
        "sources": _sources(model),
        "plan": _plan(model, oversight.review_on and oversight.review_on.isoformat(), oversight.outcome_days),
    }
    return {name: text for name, text in drafts.items() if text}


def _sources(model: TreeModel) -> str:
    dataset = model.dataset
    if dataset is None:
        return ""
    ignored = [c["name"] for c in dataset.columns if c["role"] == "ignored"]
    left_out = f" Left out: {list_names(ignored, MAX_COLUMNS)}." if ignored else ""
    name = dataset.source_name or dataset.name
    return f"{dataset.rows:,} rows of {name}, stored here on {dataset.created:%d %B %Y}, version {dataset.version}.{left_out}"


def _plan(model: TreeModel, review_on: str | None, outcome_days: int | None) -> str:
    words = ["octweb looks every day at the shares of the leaves and at unusual cells, and sends alarms to the owner."]
    if outcome_days is not None:
        words.append(f"Outcomes are watched {outcome_days} days after the answer.")
    if review_on:
        words.append(f"Next review: {review_on}.")
    return " ".join(words)
