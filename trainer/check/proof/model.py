"""What a model document asks for, as it is written, and the rows that it is about."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

Model = dict[str, Any]
MAX_DIGITS = 200
MAX_EXPONENT = 400
# what the methods that claim something of all trees ask: yes/no questions, thresholds, hyperplanes; `odt` asks for subsets
QUESTIONS = {"exact", "flowoct", "bendoct", "bendoct-accelerated", "oct", "binoct"}
THRESHOLDS = {"exact-numeric"}
OBLIQUE = {"cut-h", "cutw-h", "s-oct", "oct-h"}


@dataclass(frozen=True)
class ModelTable:
    """Rows without gaps, in the order of the file.

    `columns`: float64 (n,), the values of numeric and binary columns, positions in the list of categories of the others.
    `labels`: int32 (n,), positions in the list of classes.  `weights`: int64 (n,), what a row counts in all sums, the weight of
    its class included.  `plain`: int64 (n,), the same without the weight of the class, for quantiles.  `costs`: float64 (n, classes), what each answer costs, where each row has costs of its own.
    """

    columns: list[np.ndarray]
    labels: np.ndarray
    weights: np.ndarray
    plain: np.ndarray
    costs: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.labels)


def exact(value: object) -> Fraction:
    """A number as it is written in the file; raises ValueError for other text, and for so many digits that reading them takes minutes."""
    text = str(value).strip()
    exponent = int(text.lower().partition("e")[2] or 0)
    if len(text) > MAX_DIGITS or abs(exponent) > MAX_EXPONENT:
        raise ValueError(f"'{text[:80]}' has too many digits")
    return Fraction(text)


def items(text: object) -> list[str]:
    """The parts of a parameter that lists several things."""
    return [item.strip() for item in str(text or "").split(";") if item.strip()]


def active_parameter(model: Model, name: str) -> Any:
    """A parameter of the training; None if it was not given or says that nothing is asked for."""
    value = (model.get("parameters") or {}).get(name)
    return None if value is False or value in ("", "none") else value


def recalls(model: Model) -> list[tuple[str, str]]:
    """Classes, and the least share of each."""
    return [_two(text, ":") for text in items(active_parameter(model, "recall"))]


def pairs(model: Model) -> list[tuple[str, str]]:
    """Columns that no path asks both."""
    return [_two(text, "+") for text in items(active_parameter(model, "forbidden_pairs"))]


def ways(model: Model) -> list[tuple[str, str]]:
    """Columns, and whether the classes are only rising or falling along each."""
    found = (_two(text, " ") for text in items(active_parameter(model, "monotone")))
    return [(name, "rising" if way == "up" else "falling") for name, way in found]


def _two(text: str, sign: str) -> tuple[str, str]:
    first, second = text.rsplit(sign, 1)
    return first.strip(), second.strip()


def distant(model: Model) -> bool:
    """Whether the rows keep a distance from the planes of the method."""
    return model["method"] == "oct-h" or (model["method"] == "s-oct" and active_parameter(model, "big_m") is not None)
