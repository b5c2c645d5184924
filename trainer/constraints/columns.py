"""Limit the number of columns of a tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.methods.base import Parameter, at_most
from trainer.tree.numbers import count_words


def _sentences(values: Mapping[str, Any]) -> list[str]:
    most = values.get("max_columns")
    return [] if most is None else [f"It asks at most {count_words(most, 'column')}."]


COLUMNS = Parameter(
    name="max_columns",
    type="integer",
    default=None,
    minimum=0,
    maximum=10_000,
    label="Largest number of columns",
    help="The tree may use at most this many different columns; empty means no limit.",
    advanced=True,
    restricts=at_most("max_columns", "column", "columns"),
    sentences=_sentences,
    one_leaf=True,
)
