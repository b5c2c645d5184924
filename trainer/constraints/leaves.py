"""Limit the number of leaves of a tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.methods.base import Parameter, at_most
from trainer.tree.numbers import count_words


def _sentences(values: Mapping[str, Any]) -> list[str]:
    most = values.get("max_leaves")
    return [f"The tree has at most {count_words(most, 'leaf', 'leaves')}."] if most else []


LEAVES = Parameter(
    name="max_leaves",
    type="integer",
    default=None,
    minimum=1,
    maximum=256,
    label="Largest number of leaves",
    help="The tree may have at most this many leaves; empty means no limit.",
    advanced=True,
    restricts=at_most("max_leaves", "leaf", "leaves"),
    sentences=_sentences,
    one_leaf=True,
)
