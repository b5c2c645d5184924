"""Require a minimum recall of classes.

The constraint is written as 'yes: 0.9; no: 0.8'.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from trainer.constraints.text import share_text, split_items
from trainer.data.problem import Problem, SettingNames
from trainer.errors import ParameterError
from trainer.methods.base import Parameter, Settings, exact_fraction
from trainer.tree.numbers import percent_text


def recalls(settings: Settings, names: SettingNames) -> list[tuple[str, Fraction]]:
    """Return the classes with their minimum recalls. Raises ParameterError."""
    minimum_recalls = []
    for text in split_items(settings["recall"]):
        name, colon, share = text.rpartition(":")
        if not colon:
            raise ParameterError(
                {
                    "recall": f"'{text[:80]}' has no minimum recall. Write 'class: share', for example 'yes: 0.9; no: 0.8'."
                }
            )
        minimum_recalls.append((names.label(name.strip(), "recall"), _share(share)))
    return minimum_recalls


def required_recalls(problem: Problem, settings: Settings) -> tuple[tuple[int, Fraction], ...]:
    """Return the class codes with their minimum recalls. Raises ParameterError for a class without rows."""
    required = []
    names = problem.names
    for name, share in recalls(settings, names):
        code = names.classes.index(name)
        if not (problem.row_weights[problem.y == code] > 0).any():
            raise ParameterError({"recall": f"No training row has the class '{name}'. Leave this class out."})
        required.append((code, share))
    return tuple(required)


def _share(text: str) -> Fraction:
    try:
        share = exact_fraction(text.strip())
    except ValueError:
        raise ParameterError(
            {"recall": f"'{text[:80]}' is not a share. Write 'class: share', for example 'yes: 0.9; no: 0.8'."}
        ) from None
    if not 0 <= share <= 1:
        raise ParameterError({"recall": f"{text.strip()[:80]} is not between 0 and 1. Write a share such as 0.9."})
    return share


def _pairs(text: Any) -> list[tuple[str, str]]:
    parts = [item.rpartition(":") for item in split_items(text)]
    return [(name.strip(), share.strip()) for name, _, share in parts]


def _scope_words(settings: Settings) -> list[str]:
    return [f"recall of {name} ≥ {share}" for name, share in _pairs(settings["recall"])]


def _sentences(values: Mapping[str, Any]) -> list[str]:
    pairs = _pairs(values.get("recall"))
    return [f"At least {percent_text(float(share))} of the “{name}” rows must be found." for name, share in pairs]


RECALL = Parameter(
    name="recall",
    counts_rows=True,
    type="text",
    default="",
    label="Least recall",
    help="The share of a class that must be classified correctly (sensitivity, specificity), for example 'yes: 0.9; no: 0.8'.",
    advanced=True,
    check=recalls,
    restricts=_scope_words,
    sentences=_sentences,
    as_text=share_text,
)
