"""What the owner of a model says may change, column → words; light, because apps are loaded by every command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octweb.registry.models import TreeModel


def _no_permissions(model: TreeModel) -> Mapping[str, Any]:
    return {}


_read_permissions: Callable[[TreeModel], Mapping[str, Any]] = _no_permissions


def register_column_permissions(read: Callable[[TreeModel], Mapping[str, Any]]) -> None:
    """Set the function that reads them; `octweb.decide`, which stores them, calls this in `ready`."""
    global _read_permissions
    _read_permissions = read


def column_permissions(model: TreeModel) -> Mapping[str, Any]:
    """Return what may change in each column."""
    return _read_permissions(model)
