"""What the owner of a model says may change, column → words; light, because apps are loaded by every command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octweb.registry.models import TreeModel


def _no_marks(model: TreeModel) -> Mapping[str, Any]:
    return {}


MARKS: Callable[[TreeModel], Mapping[str, Any]] = _no_marks  # `octweb.decide` keeps them, and sets this in its `ready`
