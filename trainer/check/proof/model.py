"""Read parameters of a model document; define the table of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

Model = dict[str, Any]
MAX_DIGITS = 200
MAX_EXPONENT = 400
# methods whose claim covers all trees, by their kind of split; `odt` is not listed, since it splits by subsets of
# categories
QUESTIONS = {"exact", "flowoct", "bendoct", "bendoct-accelerated", "oct", "binoct"}
THRESHOLDS = {"exact-numeric"}
LOCAL = {"local-search"}  # methods whose claim covers small subtrees over all thresholds
OBLIQUE = {"cut-h", "cutw-h", "s-oct", "oct-h"}


@dataclass(frozen=True)
class ModelTable:
    """The training rows, in the order of the file.

    `columns` are float64 of shape (n,): values of numeric and binary columns, positions of categories otherwise.
    `labels` are int32 of shape (n,), positions in the list of classes.
    `weights` are int64 of shape (n,) and include the weight of the class. `plain` are the weights without it, for quantiles.
    `costs` are float64 of shape (n, classes), the cost of each answer, if rows have their own costs.
    `step` is one unit of the weights, and `given` are the weights before rounding, float64 of shape (n,), if they are decimals.
    """

    columns: list[np.ndarray]
    labels: np.ndarray
    weights: np.ndarray
    plain: np.ndarray
    costs: np.ndarray | None = None
    step: Fraction = Fraction(1)
    given: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.labels)


def read_fraction(value: object) -> Fraction:
    """Read a decimal of the file as a fraction.

    Raises ValueError for other text, and for numbers with so many digits that reading them takes minutes.
    """
    text = str(value).strip()
    exponent = int(text.lower().partition("e")[2] or 0)
    if len(text) > MAX_DIGITS or abs(exponent) > MAX_EXPONENT:
        raise ValueError(f"'{text[:80]}' has more than {MAX_DIGITS} digits, or an exponent over {MAX_EXPONENT}")
    return Fraction(text)


def split_items(text: object) -> list[str]:
    """Return the nonempty items of a parameter whose items are separated by semicolons."""
    return [item.strip() for item in str(text or "").split(";") if item.strip()]


def active_parameter(model: Model, name: str) -> Any:
    """Return a parameter of the training; None if it is missing or switched off."""
    value = (model.get("parameters") or {}).get(name)
    return None if value is False or value in ("", "none") else value


def has_threshold_questions(model: Model) -> bool:
    """Return True if each threshold of `exact-numeric` is a separate yes/no question.

    Wishes, prices of columns, and limits of whole trees or paths, require this.
    """
    names = ("recall", "forbidden_pairs", "monotone", "column_price")
    listed = any(split_items(active_parameter(model, name)) for name in names)
    sized = any(active_parameter(model, name) is not None for name in ("max_columns", "max_leaves", "fairness"))
    is_limited = listed or sized or int(active_parameter(model, "min_leaf") or 1) > 1
    return model["method"] in THRESHOLDS and (bool(model["certificate"].get("wishes")) or is_limited)


def minimum_recalls(model: Model) -> list[tuple[str, str]]:
    """Return classes, each with its minimum recall as text."""
    return [_split_at(text, ":") for text in split_items(active_parameter(model, "recall"))]


def forbidden_column_pairs(model: Model) -> list[tuple[str, str]]:
    """Return pairs of columns that must not share a path."""
    return [_split_at(text, "+") for text in split_items(active_parameter(model, "forbidden_pairs"))]


def monotone_columns(model: Model) -> list[tuple[str, str]]:
    """Return monotone columns, each with "rising" or "falling"."""
    columns = (_split_at(text, " ") for text in split_items(active_parameter(model, "monotone")))
    return [(name, "rising" if direction == "up" else "falling") for name, direction in columns]


def _split_at(text: str, sign: str) -> tuple[str, str]:
    first, second = text.rsplit(sign, 1)
    return first.strip(), second.strip()


def has_margin(model: Model) -> bool:
    """Return True if the method keeps rows at a distance from its hyperplanes."""
    return model["method"] == "oct-h" or (model["method"] == "s-oct" and active_parameter(model, "big_m") is not None)
