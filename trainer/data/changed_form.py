"""Propose unit conversions or renamed categories that explain strange values.

A proposal changes no prediction. It is shown to the user, with the number of answers that it would change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from trainer.data.parsing.alike import spelling_key
from trainer.dtypes import BoolArray, FloatArray
from trainer.table import MISSING_CATEGORY

MIN_NUMBERS = 8  # with fewer numbers, no factor is proposed
MIN_STRANGE_SHARE = 0.5  # a column has changed its form only if at least this share of its cells is strange
MIN_FITTING_SHARE = 0.95  # a proposal must explain at least this share of the cells
# the middle 90 % must fill at least this part of the training range, because a tiny factor would fit anything
SPREAD = 0.2
SPREAD_SHIFTED = 0.35  # the same for conversions with an offset, which drifting values fit more easily
PLAIN_WORTH = 0.9  # a power of ten is preferred if its fit is at least this share of the best fit
MIN_PART_SHARE = 0.1  # a part in another unit must have at least this share of the numbers
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
ALIKE = 0.2  # two parts have the same spread if these quantiles differ by at most this part of the training range
MOST_WORDS = 200  # with more distinct unknown words, no recoding is proposed
NAMED = 3  # a sentence names at most this many pairs of words
MAX_SAMPLED_NUMBERS = 20_000  # at most this many numbers of a column are examined

POWERS = tuple(10.0**k for k in (-3, 3, -2, 2, -1, 1, -6, 6))  # ordered by how likely they are
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
SHIFTS: tuple[tuple[float, float, str], ...] = (  # factor, offset and units
    (5 / 9, -160 / 9, "°F to °C"), (1.8, 32.0, "°C to °F"),
    (1.0, -273.15, "K to °C"), (1.0, 273.15, "°C to K"),
    (1.8, -459.67, "K to °F"), (5 / 9, 459.67 * 5 / 9, "°F to K"),
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

    `strange` of `cells` do not fit, such as `example`. A number x becomes `factor * x + offset`; `words` maps cells to
    categories. The proposal would change `changed` of `rows` answers; None if they were not counted.
    """

    column: str
    strange: int
    cells: int
    factor: float | None = None
    offset: float = 0.0
    unit: str = ""
    stays: tuple[float, float] | None = None  # numbers in this range are not converted; None converts all
    example: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    changed: int | None = None
    rows: int = 0

    @property
    def reading(self) -> str:
        """The reading that would fit."""
        if self.offset:
            return f"turned from {self.unit} they would fit"
        if self.stays is not None and self.factor is not None:
            return f"{_times(self.factor)} these would fit like the other numbers"
        if self.factor is not None:
            return f"{_times(self.factor)}{f' (such as {self.unit})' if self.unit else ''} they would fit"
        pairs = [f"'{word}' for '{category}'" for word, category in list(self.words.items())[:NAMED]]
        return f"perhaps {', '.join(pairs)}"

    @property
    def sentence(self) -> str:
        """The strange cells, the reading that would fit, and the answers that it would change."""
        what = (
            "numbers lie outside of the training range"
            if self.factor is not None
            else "cells have a value that training did not have"
        )
        such = f", such as {self.example}" if self.example else ""
        text = f"Column '{self.column}': {self.strange:,} of {self.cells:,} {what}{such}; {self.reading}."
        return f"{text} {self._consequence}".rstrip()

    @property
    def guess(self) -> str:
        """The reading that would fit, and the answers that it would change, as full sentences."""
        return f"{self.reading[0].upper()}{self.reading[1:]}. {self._consequence}".rstrip()

    @property
    def _consequence(self) -> str:
        if self.changed is None:
            return ""
        return f"Then {self.changed:,} of {self.rows:,} answers would be others."

    def to_json(self) -> dict[str, Any]:
        """Return the proposal as a dictionary."""
        record: dict[str, Any] = {"column": self.column, "strange": self.strange, "cells": self.cells}
        if self.factor is None:
            record["words"] = dict(self.words)
        else:
            record |= {"factor": self.factor, "offset": self.offset, "unit": self.unit}
            record |= {} if self.stays is None else {"stays": list(self.stays)}
        if self.changed is not None:
            record |= {"answers_changed": self.changed, "rows": self.rows}
        return record | {"sentence": self.sentence}

    def reread(self, values: FloatArray, codes: Collection[float] = ()) -> FloatArray:
        """Return numbers converted by this reading; declared codes do not change."""
        assert self.factor is not None
        read = values * self.factor + self.offset
        if self.stays is not None:
            read = np.where((values >= self.stays[0]) & (values <= self.stays[1]), values, read)
        return np.where(np.isin(values, tuple(codes)), values, read) if codes else read


def _times(factor: float) -> str:
    return f"multiplied by {factor:.10g}" if factor >= 1 else f"divided by {1 / factor:.10g}"


class _Conversion(NamedTuple):
    """The conversion `factor * x + offset`, with its units."""

    factor: float
    offset: float
    unit: str


READINGS = (
    *(_Conversion(factor, 0.0, "") for factor in POWERS),
    *(_Conversion(factor, 0.0, unit) for factor, unit in UNITS),
    *(_Conversion(*shift) for shift in SHIFTS),
)


def propose_factor(
    column: str, values: FloatArray, low: float, high: float, codes: Collection[float] = ()
) -> ChangedForm | None:
    """Propose the factor or the unit that brings numbers back into their training range.

    Parameters
    ----------
    column : str
        Name of the column.
    values : float64 (n,)
        Its numbers; NaN for an empty cell.
    low, high : float
        Ends of the training range.
    codes : collection of float
        Numbers that are codes; they are ignored.

    Returns
    -------
    ChangedForm or None
        None unless at least half of the numbers lie outside the range and a reading brings nearly all of them into it. The
        reading that fills the range best wins, but a power of ten is preferred if it fits nearly as well. Otherwise, a power
        of ten may bring only the numbers outside the range back, if they are then spread like those inside.
    """
    numbers = values[~np.isnan(values)]
    if codes:
        numbers = numbers[~np.isin(numbers, tuple(codes))]
    outside = (numbers < low) | (numbers > high)
    strange = int(outside.sum())
    if len(numbers) < MIN_NUMBERS or not strange or not high > low:
        return None
    whole = _whole_column(column, numbers, outside, low, high) if strange >= MIN_STRANGE_SHARE * len(numbers) else None
    return whole or _part_of_column(column, numbers, outside, low, high)


def _part_of_column(
    column: str, numbers: FloatArray, outside: BoolArray, low: float, high: float
) -> ChangedForm | None:
    """Return the power of ten that makes the numbers outside the range spread like those inside; None without one."""
    inner = numbers[~outside]
    outer = numbers[outside]
    if min(len(inner), len(outer)) < MIN_NUMBERS or len(outer) < MIN_PART_SHARE * len(numbers):
        return None
    places = np.quantile(inner, QUANTILES)
    if places[-1] - places[0] < SPREAD * (high - low):
        return None
    for factor in POWERS:
        converted = outer * factor
        fits = ((converted >= low) & (converted <= high)).mean() >= MIN_FITTING_SHARE
        if fits and np.abs(np.quantile(converted, QUANTILES) - places).max() <= ALIKE * (high - low):
            return ChangedForm(
                column=column,
                strange=len(outer),
                cells=len(numbers),
                factor=factor,
                stays=(low, high),
                example=f"{outer[0]:.10g}",
            )
    return None


def _whole_column(column: str, numbers: FloatArray, outside: BoolArray, low: float, high: float) -> ChangedForm | None:
    """Return the reading that brings nearly all numbers into the range; None without one."""
    strange = int(outside.sum())
    first, last = np.quantile(numbers, (0.05, 0.95))

    def fit(reading: _Conversion) -> float:
        """Return the part of the training range that the numbers fill; 0 if it is too small, or too many lie outside."""
        converted = numbers * reading.factor + reading.offset
        filled_share = float((last - first) * reading.factor / (high - low))
        spread = SPREAD_SHIFTED if reading.offset else SPREAD
        return (
            filled_share
            if ((converted >= low) & (converted <= high)).mean() >= MIN_FITTING_SHARE and filled_share >= spread
            else 0.0
        )

    fits = {reading: fit(reading) for reading in READINGS}
    best = max(fits.values())
    if not best:
        return None
    unitless = (reading for reading in fits if not reading.unit and fits[reading] >= PLAIN_WORTH * best)
    best_reading = next(unitless, None) or max(fits, key=fits.__getitem__)
    return ChangedForm(
        column=column,
        strange=strange,
        cells=len(numbers),
        factor=best_reading.factor,
        offset=best_reading.offset,
        unit=best_reading.unit,
        example=f"{numbers[outside][0]:.10g}",
    )


def propose_words(column: str, unknown: Mapping[str, int], cells: int, categories: Sequence[str]) -> ChangedForm | None:
    """Propose a category for each unknown word.

    Parameters
    ----------
    column : str
        Name of the column.
    unknown : mapping from str to int
        Number of cells of each unknown word.
    cells : int
        Cells of the column that are not empty.
    categories : sequence of str
        The categories of the training.

    Returns
    -------
    ChangedForm or None
        None unless at least half of the cells have an unknown word, and nearly all of these match exactly one category, each
        a different one, by their beginning or meaning.
    """
    strange = sum(unknown.values())
    if not strange or strange < MIN_STRANGE_SHARE * cells or len(unknown) > MOST_WORDS:
        return None
    categories_by_key = {spelling_key(name): name for name in categories if name != MISSING_CATEGORY}
    meanings: dict[str, str] = {}
    for word in unknown:
        candidates = [name for key, name in categories_by_key.items() if _may_mean(spelling_key(word), key)]
        if len(candidates) == 1:
            meanings[word] = candidates[0]
    explained = sum(unknown[word] for word in meanings)
    if explained < MIN_FITTING_SHARE * strange or len(set(meanings.values())) < len(meanings):
        return None
    return ChangedForm(column=column, strange=strange, cells=cells, words=meanings)


def _may_mean(word: str, category: str) -> bool:
    if not word or not category:
        return False
    if word.startswith(category) or category.startswith(word):
        return True
    return any(word in group and category in group for group in SAME_MEANING)


@dataclass
class WatchedColumn:
    """A sample of one column of a stream of rows: the first numbers, or the unknown words."""

    numbers: list[FloatArray] = field(default_factory=list)
    kept: int = 0
    words: Counter[str] = field(default_factory=Counter)
    cells: int = 0

    def add_numbers(self, values: FloatArray) -> None:
        """Add numbers until the sample is full."""
        if self.kept < MAX_SAMPLED_NUMBERS:
            self.numbers.append(values[: MAX_SAMPLED_NUMBERS - self.kept].copy())
            self.kept += len(self.numbers[-1])

    def add_words(self, unknown: Mapping[str, int], cells: int) -> None:
        """Count unknown words while there are few different ones."""
        self.cells += cells
        if len(self.words) <= MOST_WORDS:
            self.words.update(unknown)
