"""That a model was chosen among others, and what that choice is worth; light, because apps are loaded by every command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from octweb.registry.models import TreeModel


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The accuracy of a model that was looked for among many is too high, so what the choice is worth is said beside it.

    `accuracy` in [0, 1] with its 95 % interval estimates the whole choice on rows that took no part in it, `correct` of `n`; None if
    that is not known. `fair` says that the model's own accuracy on unseen rows took no part in its choice.
    """

    candidates: int
    words: str
    fair: bool
    accuracy: float | None = None
    interval: tuple[float, float] | None = None
    correct: int | None = None
    n: int | None = None
    url: str = ""  # of what it was chosen in, for those who may see that


def _no_selection(model: TreeModel) -> Selection | None:
    return None


SELECTION: Callable[[TreeModel], Selection | None] = (
    _no_selection  # `octweb.experiments` knows, and sets this in its `ready`
)


def selection_of(model: TreeModel) -> Selection | None:
    """How the model was chosen; None if it was not chosen among others, as far as this site knows."""
    return SELECTION(model)
