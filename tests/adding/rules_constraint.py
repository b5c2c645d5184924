"""A limit on the number of leaves that predict the last class: a short list of rules leads to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.methods.base import Parameter, at_most
from trainer.tree.numbers import count_words


def _sentences(values: Mapping[str, Any]) -> list[str]:
    most = values.get("max_rules")
    return [] if most is None else [f"At most {count_words(most, 'leaf', 'leaves')} may predict the last class."]


RULES = Parameter(
    name="max_rules",
    type="integer",
    default=None,
    minimum=0,
    maximum=256,
    label="Largest number of rules",
    help="At most this many leaves may predict the last class; empty means no limit.",
    advanced=True,
    restricts=at_most("max_rules", "leaf of the last class", "leaves of the last class"),
    sentences=_sentences,
)
