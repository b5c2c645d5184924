"""Find out whether a model was selected among candidates.

This module imports little, because every command loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from octweb.registry.models import TreeModel


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Selection of a model among candidates, with an estimate to show next to its own, too optimistic accuracy.

    `accuracy` in [0, 1] with its 95 % `interval` estimates the selection on unseen rows, `correct` of `n`. They are
    None if unknown. `fair` says that the selection did not use the model's own accuracy on unseen rows.
    """

    candidates: int
    words: str
    fair: bool
    accuracy: float | None = None
    interval: tuple[float, float] | None = None
    correct: int | None = None
    n: int | None = None
    url: str = ""  # page of the experiment; empty if it was deleted


def _no_selection(model: TreeModel) -> Selection | None:
    return None


SELECTION: Callable[[TreeModel], Selection | None] = _no_selection  # `octweb.experiments` sets this in its `ready`


def selection_of(model: TreeModel) -> Selection | None:
    """Return how the model was selected, or None if it was not."""
    return SELECTION(model)
