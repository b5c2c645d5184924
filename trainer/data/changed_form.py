"""Values that changed their form after the training: numbers in another unit, categories by other words.

Nothing is read differently because of a proposal. A person sees it, with the number of answers that would change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainer.data.parsing.alike import spelling_key
from trainer.dtypes import FloatArray
from trainer.table import MISSING_CATEGORY

FEWEST = 8  # numbers below which no factor is proposed
STRANGE = 0.5  # least share of strange cells in a column whose form has changed
FITTING = 0.95  # least share of cells that a proposal must explain
SPREAD = 0.2  # least part of the training range that the middle 90 % must fill, so that not everything shrinks to 0
MOST_WORDS = 200  # different unknown words beyond which no recoding is looked for
NAMED = 3  # pairs of words in a sentence
SAMPLE = 20_000  # numbers of a column that are kept

POWERS = tuple(10.0**k for k in (-3, 3, -2, 2, -1, 1, -6, 6))  # the likeliest first
UNITS: tuple[tuple[float, str], ...] = (
    (0.45359237, "pounds to kilograms"), (1 / 0.45359237, "kilograms to pounds"),
    (2.54, "inches to centimetres"), (1 / 2.54, "centimetres to inches"),
    (0.3048, "feet to metres"), (1 / 0.3048, "metres to feet"),
    (1.609344, "miles to kilometres"), (1 / 1.609344, "kilometres to miles"),
    (60.0, "hours to minutes"), (1 / 60, "minutes to hours"),
    (12.0, "years to months"), (1 / 12, "months to years"),
    (365.25, "years to days"), (1 / 365.25, "days to years"),
    (88.42, "mg/dl to µmol/l"), (1 / 88.42, "µmol/l to mg/dl"),
    (18.016, "mmol/l to mg/dl"), (1 / 18.016, "mg/dl to mmol/l"),
)  # fmt: skip
SAME_MEANING = (
    ("yes", "y", "ja", "j", "oui", "si", "sí", "true", "t", "1"),
    ("no", "n", "nein", "non", "false", "f", "0"),
    ("female", "f", "w", "weiblich", "woman", "femme", "frau"),
    ("male", "m", "männlich", "man", "homme", "mann"),
)


@dataclass(frozen=True, kw_only=True)
class ChangedForm:
    """A column whose values may have another form than in training.

    `factor` leads from the cells to the numbers of the training; `words` from the cells to the categories; one of them is there.
    `strange` of `cells` do not fit as they are. `changed` answers of `rows` would be others; None where nobody counted.
    """

    column: str
    strange: int
    cells: int
    factor: float | None = None
    unit: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    changed: int | None = None
    rows: int = 0

    @property
    def reading(self) -> str:
        """The reading that would fit."""
        if self.factor is not None:
            return f"{_times(self.factor)}{f' (such as {self.unit})' if self.unit else ''} they would fit"
        pairs = [f"'{word}' for '{category}'" for word, category in list(self.words.items())[:NAMED]]
        return f"perhaps {', '.join(pairs)}"

    @property
    def sentence(self) -> str:
        """What was seen, the reading that would fit, and what it would change."""
        what = (
            "numbers lie outside of the training range"
            if self.factor is not None
            else "cells have a value that training did not have"
        )
        text = f"Column '{self.column}': {self.strange:,} of {self.cells:,} {what}; {self.reading}."
        if self.changed is None:
            return text
        return f"{text} Then {self.changed:,} of {self.rows:,} answers would be others."

    def to_json(self) -> dict[str, Any]:
        """The proposal as a dictionary."""
        record: dict[str, Any] = {"column": self.column, "strange": self.strange, "cells": self.cells}
        record |= {"words": dict(self.words)} if self.factor is None else {"factor": self.factor, "unit": self.unit}
        if self.changed is not None:
            record |= {"answers_changed": self.changed, "rows": self.rows}
        return record | {"sentence": self.sentence}


def _times(factor: float) -> str:
    return f"multiplied by {factor:.10g}" if factor >= 1 else f"divided by {1 / factor:.10g}"


def propose_factor(column: str, values: FloatArray, low: float, high: float) -> ChangedForm | None:
    """Propose the factor that brings numbers back into their training range.

    Parameters
    ----------
    column : str
        Name of the column.
    values : float64 (n,)
        Its numbers; NaN where a cell is empty.
    low, high : float
        Ends of the training range.

    Returns
    -------
    ChangedForm or None
        None unless at least half of the numbers lie outside of the range and one factor brings nearly all of them into it.
    """
    known = values[~np.isnan(values)]
    strange = int(((known < low) | (known > high)).sum())
    if len(known) < FEWEST or strange < STRANGE * len(known) or not high > low:
        return None
    first, last = np.quantile(known, (0.05, 0.95))

    def fit(factor: float) -> float:
        """The part of the training range that the scaled numbers fill; 0 if too many lie outside, or if it is too small."""
        inside = (known * factor >= low) & (known * factor <= high)
        part = float((last - first) * factor / (high - low))
        return part if inside.mean() >= FITTING and part >= SPREAD else 0.0

    chosen = next(((factor, "") for factor in POWERS if fit(factor)), None) or max(UNITS, key=lambda one: fit(one[0]))
    if not fit(chosen[0]):
        return None
    return ChangedForm(column=column, strange=strange, cells=len(known), factor=chosen[0], unit=chosen[1])


def propose_words(column: str, unknown: Mapping[str, int], cells: int, categories: Sequence[str]) -> ChangedForm | None:
    """Propose for each unknown word the category that it may stand for.

    Parameters
    ----------
    column : str
        Name of the column.
    unknown : mapping from str to int
        The words that are no category, and how many cells have each.
    cells : int
        Cells of the column that are not empty.
    categories : sequence of str
        The categories of the training.

    Returns
    -------
    ChangedForm or None
        None unless at least half of the cells have an unknown word and nearly all of these have one category each that begins
        alike or means the same, no two the same one.
    """
    strange = sum(unknown.values())
    if not strange or strange < STRANGE * cells or len(unknown) > MOST_WORDS:
        return None
    known = {spelling_key(name): name for name in categories if name != MISSING_CATEGORY}
    found: dict[str, str] = {}
    for word in unknown:
        alike = [name for key, name in known.items() if _may_mean(spelling_key(word), key)]
        if len(alike) == 1:
            found[word] = alike[0]
    explained = sum(unknown[word] for word in found)
    if explained < FITTING * strange or len(set(found.values())) < len(found):
        return None
    return ChangedForm(column=column, strange=strange, cells=cells, words=found)


def _may_mean(word: str, category: str) -> bool:
    if not word or not category:
        return False
    if word.startswith(category) or category.startswith(word):
        return True
    return any(word in group and category in group for group in SAME_MEANING)


@dataclass
class WatchedColumn:
    """What is kept of one column while rows pass: the first numbers, or the unknown words."""

    numbers: list[FloatArray] = field(default_factory=list)
    kept: int = 0
    words: Counter[str] = field(default_factory=Counter)
    cells: int = 0

    def add_numbers(self, values: FloatArray) -> None:
        """Keep numbers until there are enough."""
        if self.kept < SAMPLE:
            self.numbers.append(values[: SAMPLE - self.kept].copy())
            self.kept += len(self.numbers[-1])

    def add_words(self, unknown: Mapping[str, int], cells: int) -> None:
        """Count unknown words, as long as they are few."""
        self.cells += cells
        if len(self.words) <= MOST_WORDS:
            self.words.update(unknown)
