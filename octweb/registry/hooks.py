"""Let other apps register what they know about models.

Imports little, since every command loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from octweb.registry.models import TreeModel


def _no_permissions(model: TreeModel) -> Mapping[str, Any]:
    return {}


_read_permissions: Callable[[TreeModel], Mapping[str, Any]] = _no_permissions


def register_column_permissions(read: Callable[[TreeModel], Mapping[str, Any]]) -> None:
    """Set the function that reads column permissions. `octweb.decide` stores them and calls this in `ready`."""
    global _read_permissions
    _read_permissions = read


def column_permissions(model: TreeModel) -> Mapping[str, Any]:
    """Return the permitted changes, column → words; other columns may change freely."""
    return _read_permissions(model)


def _no_wording(model: TreeModel) -> list[dict[str, Any]]:
    return []


_read_wording: Callable[[TreeModel], list[dict[str, Any]]] = _no_wording


def register_wording(read: Callable[[TreeModel], list[dict[str, Any]]]) -> None:
    """Set the function that reads the owner's words for the answers of a tree. `octweb.decide` stores them."""
    global _read_wording
    _read_wording = read


def wording(model: TreeModel) -> list[dict[str, Any]]:
    """Return each question of a tree with its `nodes` and the owner's words for `yes` and `no`, empty where there are none."""
    return _read_wording(model)


# Key of `checklist.TITLES` → function that makes a `checklist.ChecklistItem` from a `checklist.ReviewedModel`.
item_sources: dict[str, Callable[[Any], Any]] = {}
preparations: list[Callable[[TreeModel], None]] = []


def register_item(key: str, source: Callable[[Any], Any]) -> None:
    """Add an item to the reviewer's checklist."""
    item_sources[key] = source


def register_preparation(start: Callable[[TreeModel], None]) -> None:
    """Add a function that starts a job when an owner asks for approval."""
    preparations.append(start)


def _no_points(model: TreeModel) -> list[str]:
    return []


_read_open_points: Callable[[TreeModel], list[str]] = _no_points


def register_open_points(read: Callable[[TreeModel], list[str]]) -> None:
    """Set the function that returns the titles of the open items.

    The actions of a review cannot import the checklist, which imports them.
    """
    global _read_open_points
    _read_open_points = read


def open_points(model: TreeModel) -> list[str]:
    """Return the titles of the open checklist items, which forbid an approval without a note."""
    return _read_open_points(model)


def prepare_checklist(model: TreeModel) -> None:
    """Start the jobs whose results the checklist shows."""
    for start in preparations:
        start(model)


def _no_agreement(model: TreeModel) -> dict[str, Any] | None:
    return None


_read_agreement: Callable[[TreeModel], dict[str, Any] | None] = _no_agreement


def register_agreement(read: Callable[[TreeModel], dict[str, Any] | None]) -> None:
    """Set the function that reads the agreement of the good trees.

    `octweb.workbench` counts them and calls this in `ready`.
    """
    global _read_agreement
    _read_agreement = read


def agreement(model: TreeModel) -> dict[str, Any] | None:
    """Return the agreement of the good trees of a model; None if they cannot be counted.

    Show it only to the owner and administrators.
    """
    return _read_agreement(model)


class NamedChallenger(NamedTuple):
    """A model that answers the rows of another one silently; `key` names its counts."""

    key: str
    challenger: TreeModel


def _no_challenger(model: TreeModel) -> NamedChallenger | None:
    return None


_read_challenger: Callable[[TreeModel], NamedChallenger | None] = _no_challenger


def register_challenger(read: Callable[[TreeModel], NamedChallenger | None]) -> None:
    """Set the function that reads the challenger of a model. `octweb.challengers` stores it and calls this in `ready`."""
    global _read_challenger
    _read_challenger = read


def challenger_of(model: TreeModel) -> NamedChallenger | None:
    """Return the challenger of an approved model; None if it has none."""
    return _read_challenger(model)
