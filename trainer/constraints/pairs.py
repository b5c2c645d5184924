"""Forbid pairs of columns on the same path.

The constraint is written as 'age + income; sex + region'.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.constraints.text import pair_text, split_items
from trainer.data.problem import Problem, SettingNames
from trainer.errors import ParameterError
from trainer.methods.base import Parameter, Settings


def forbidden_pairs(settings: Settings, names: SettingNames) -> list[tuple[str, str]]:
    """Return the pairs of columns that no path may use together. Raises ParameterError."""
    pairs = []
    for text in split_items(settings["forbidden_pairs"]):
        pair = [names.column(name.strip(), "forbidden_pairs") for name in text.split("+")]
        if len(pair) != 2:
            raise ParameterError(
                {
                    "forbidden_pairs": f"'{text[:80]}' is not a pair of columns. Write two columns with a + between them, as in 'age + income'."
                }
            )
        pairs.append((pair[0], pair[1]))
    return pairs


def column_pairs(problem: Problem, settings: Settings) -> dict[int, frozenset[int]]:
    """Map the index of each column in a forbidden pair to the indices of its forbidden partners."""
    partners: dict[int, frozenset[int]] = {}
    names = problem.names
    for pair in forbidden_pairs(settings, names):
        first, second = (names.columns.index(name) for name in pair)
        partners[first] = partners.get(first, frozenset()) | {second}
        partners[second] = partners.get(second, frozenset()) | {first}
    return partners


def _scope_words(settings: Settings) -> list[str]:
    pairs = [text.split("+") for text in split_items(settings["forbidden_pairs"])]
    return [f"no path with both {' and '.join(name.strip() for name in pair)}" for pair in pairs]


def _sentences(values: Mapping[str, Any]) -> list[str]:
    pairs = split_items(values.get("forbidden_pairs"))
    return [f"No path asks both of {' and '.join(pair.split(' + '))}." for pair in pairs]


PAIRS = Parameter(
    name="forbidden_pairs",
    type="text",
    default="",
    label="Forbidden pairs",
    help="Pairs of columns that must not appear on the same path, for example 'age + income; sex + region'.",
    advanced=True,
    check=forbidden_pairs,
    restricts=_scope_words,
    sentences=_sentences,
    one_leaf=True,
    as_text=pair_text,
)
