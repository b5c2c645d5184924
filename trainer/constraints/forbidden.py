"""Forbid columns: no question of the tree tests them.

The constraint is written as 'age; sex'.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.constraints.text import item_text, split_items
from trainer.data.problem import SettingNames
from trainer.methods.base import Parameter, Settings


def forbidden_columns(settings: Settings, names: SettingNames) -> set[str]:
    """Return the columns that no question may test. Raises ParameterError."""
    return {names.column(name, "forbidden") for name in split_items(settings["forbidden"])}


def _sentences(values: Mapping[str, Any]) -> list[str]:
    *others, last = split_items(values.get("forbidden")) or [""]
    names = f"{', '.join(others)} or {last}" if others else last
    return [f"It never asks {names}."] if last else []


FORBIDDEN = Parameter(
    name="forbidden",
    type="text",
    default="",
    label="Columns not to ask",
    help="Columns that no question may use, separated by semicolons, for example 'age; sex'.",
    advanced=True,
    as_text=item_text,
    check=forbidden_columns,
    restricts=lambda s: [f"no question on {name}" for name in split_items(s["forbidden"])],
    sentences=_sentences,
)
