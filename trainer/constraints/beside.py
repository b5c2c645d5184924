"""Refuse settings that the search for monotone columns and rates of groups does not support; shared by both."""

from __future__ import annotations

from trainer.errors import ParameterError
from trainer.goal import GOAL_NAMES, count_goal
from trainer.methods.base import Settings


def check_beside(name: str, settings: Settings) -> None:
    """Raise ParameterError if the constraint `name` is set beside settings that its search does not support."""
    beside = [other for other in ("optimal_trees", "column_price") if settings.get(other)]
    if goal := count_goal(settings):
        beside.append(f"the goal {GOAL_NAMES[goal]}")
    if beside:
        raise ParameterError({name: f"it is not possible with {beside[0]}. Leave one of the two out."})
