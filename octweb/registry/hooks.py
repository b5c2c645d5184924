"""Let other apps register what they know about models.

This module imports little, because every command loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from octweb.registry.models import ReviewEvent, TreeModel


def _no_permissions(model: TreeModel) -> Mapping[str, Any]:
    return {}


_read_permissions: Callable[[TreeModel], Mapping[str, Any]] = _no_permissions


def register_column_permissions(read: Callable[[TreeModel], Mapping[str, Any]]) -> None:
    """Set the function that reads column permissions. `octweb.decide` stores them, and calls this in `ready`."""
    global _read_permissions
    _read_permissions = read


def column_permissions(model: TreeModel) -> Mapping[str, Any]:
    """Return the permitted changes by column. Other columns may change freely."""
    return _read_permissions(model)


def _no_wording(model: TreeModel) -> list[dict[str, Any]]:
    return []


_read_wording: Callable[[TreeModel], list[dict[str, Any]]] = _no_wording


def register_wording(read: Callable[[TreeModel], list[dict[str, Any]]]) -> None:
    """Set the function that reads the owner's texts for the answers of a tree. `octweb.decide` stores them."""
    global _read_wording
    _read_wording = read


def wording(model: TreeModel) -> list[dict[str, Any]]:
    """Return each question of a tree with its `nodes` and the owner's texts for `yes` and `no`.

    "" where there is none.
    """
    return _read_wording(model)


# key of `checklist.TITLES` → function that turns a `checklist.ReviewedModel` into a `checklist.ChecklistItem`
item_sources: dict[str, Callable[[Any], Any]] = {}
preparations: list[Callable[[TreeModel], None]] = []


def register_item(key: str, source: Callable[[Any], Any]) -> None:
    """Register the function of an item of the reviewer's checklist."""
    item_sources[key] = source


def register_preparation(start: Callable[[TreeModel], None]) -> None:
    """Register a function that starts a job when an owner requests approval."""
    preparations.append(start)


def _no_points(model: TreeModel) -> list[str]:
    return []


_read_open_points: Callable[[TreeModel], list[str]] = _no_points


def register_open_points(read: Callable[[TreeModel], list[str]]) -> None:
    """Set the function that returns the titles of the open items.

    Actions of a review cannot import the checklist, which imports them.
    """
    global _read_open_points
    _read_open_points = read


def open_points(model: TreeModel) -> list[str]:
    """Return the titles of the open checklist items. With open items, an approval needs a reason."""
    return _read_open_points(model)


# functions that return why a model must not be approved yet
obstacle_sources: list[Callable[[TreeModel], list[str]]] = []


def register_obstacles(read: Callable[[TreeModel], list[str]]) -> None:
    """Register a function that returns sentences about what prevents an approval. No reason overrides them."""
    obstacle_sources.append(read)


def obstacles(model: TreeModel) -> list[str]:
    """Return sentences about what prevents an approval, or []."""
    return [sentence for read in obstacle_sources for sentence in read(model)]


# functions that return what the record of an approval names, by name of its detail
evidence_sources: list[Callable[[TreeModel], Mapping[str, str]]] = []
# functions that start what belongs to an approval, in its transaction
approval_starters: list[Callable[[ReviewEvent], None]] = []


def register_approval(
    *, evidence: Callable[[TreeModel], Mapping[str, str]], start: Callable[[ReviewEvent], None]
) -> None:
    """Register what the record of an approval names, and what the approval starts."""
    evidence_sources.append(evidence)
    approval_starters.append(start)


def approval_evidence(model: TreeModel) -> dict[str, str]:
    """Return what the record of the approval of a model names."""
    return {name: value for read in evidence_sources for name, value in read(model).items()}


def start_after_approval(event: ReviewEvent) -> None:
    """Start what belongs to an approval. Called in the transaction of the approval."""
    for start in approval_starters:
        start(event)


def prepare_checklist(model: TreeModel) -> None:
    """Start the jobs whose results the checklist shows."""
    for start in preparations:
        start(model)


def _no_agreement(model: TreeModel) -> dict[str, Any] | None:
    return None


_read_agreement: Callable[[TreeModel], dict[str, Any] | None] = _no_agreement


def register_agreement(read: Callable[[TreeModel], dict[str, Any] | None]) -> None:
    """Set the function that reads how far the good trees agree.

    `octweb.workbench` counts them, and calls this in `ready`.
    """
    global _read_agreement
    _read_agreement = read


def agreement(model: TreeModel) -> dict[str, Any] | None:
    """Return how far the good trees of a model agree, or None if they cannot be counted.

    Show it only to the owner and administrators.
    """
    return _read_agreement(model)


class NamedChallenger(NamedTuple):
    """A model that silently answers the rows of another one. `key` names its counts, `since` is ns since 1970."""

    key: str
    challenger: TreeModel
    since: int = 0


def _no_challenger(model: TreeModel) -> NamedChallenger | None:
    return None


_read_challenger: Callable[[TreeModel], NamedChallenger | None] = _no_challenger


def register_challenger(read: Callable[[TreeModel], NamedChallenger | None]) -> None:
    """Set the function that reads the challenger of a model.

    `octweb.challengers` stores it, and calls this in `ready`.
    """
    global _read_challenger
    _read_challenger = read


def challenger_of(model: TreeModel) -> NamedChallenger | None:
    """Return the challenger of an approved model, or None."""
    return _read_challenger(model)
