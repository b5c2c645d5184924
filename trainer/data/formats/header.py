"""Judge whether the first line of a CSV file has the names of the columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trainer.dtypes import FloatArray

EXAMINED_ROWS = 10_000  # rows in which a name is looked up as a value
NUMBER_ROWS = 500  # rows whose cells are parsed as numbers
FEWEST_IN_SERIES = 3  # names form a series if at least this many neighbours rise by one, such as 2019, 2020, 2021
FEWEST_IN_STEPS = 4  # the same for other equal steps, such as wavelengths 400, 410, 420, 430
FEWEST_YEARS = 2
YEARS = (1900, 2100)
# a series of names is a header only if the same columns rise by its step in at most this share of the rows
RARE_SERIES = 0.05
MOST_VALUES_SHARE = (
    0.2  # if a column has more distinct texts per row, an unknown text in the first line is not evidence
)


class NameEvidence(Enum):
    """Evidence of one name about the first line: a row, names, or neither."""

    ROW = "row"
    NAMES = "names"
    NOTHING = "nothing"


class HeaderGuess(NamedTuple):
    """Confidence that the first line has the names, from 0 to 1, and the reason."""

    sure: float
    reason: str


def judge_header(names: Sequence[str], columns: Sequence[pa.Array]) -> HeaderGuess:
    """Judge a first line that was read as names, by the cells below it.

    A number speaks for a row if it lies among the numbers of its column, and a text if it is a value of its column. A
    number outside the numbers of its column, numbers that rise by equal steps from name to name, a text above numbers, and a
    text that a column of few texts does not have speak for names.

    Parameters
    ----------
    names : sequence of str
        The cells of the first line.
    columns : sequence of string arrays
        The cells below each name.
    """
    heads = [column.slice(0, EXAMINED_ROWS) for column in columns]
    numeric = [is_number(name) for name in names]
    evidence = [
        _of_number(name, head) if is_numeric else _of_text(name, head)
        for name, head, is_numeric in zip(names, heads, numeric, strict=True)
    ]
    for j in _series(names, heads):
        evidence[j] = NameEvidence.NAMES
    of_row = [name for name, side in zip(names, evidence, strict=True) if side is NameEvidence.ROW]
    repeated = [name for name in of_row if not is_number(name)]
    if of_row and len(of_row) > 2 * evidence.count(NameEvidence.NAMES):
        share = len(of_row) / len(names)
        return HeaderGuess(round(0.5 * (1 - share), 2), _row_words(len(of_row) - len(repeated), repeated, len(names)))
    if of_row or any(numeric):
        return HeaderGuess(0.6, "Some names could be values, but the columns below do not go with them.")
    if any(is_number(column[0].as_py()) for column in columns):
        return HeaderGuess(1.0, "The first line has no number, but the lines below have numbers.")
    return HeaderGuess(0.7, "Neither the first line nor the second has a number.")


def is_number(cell: str) -> bool:
    """Return whether a cell is a plain number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _of_number(name: str, column: pa.Array) -> NameEvidence:
    numbers, share = _numbers(column)
    if share <= 0.5 or not np.isfinite(float(name)):
        return NameEvidence.NAMES if share == 0 and len(column) else NameEvidence.ROW
    low = numbers.min()
    high = numbers.max()
    # the first row may have the largest number of its column, so allow for values outside the range
    margin = max(high - low, abs(low), abs(high))
    return NameEvidence.ROW if low - margin <= float(name) <= high + margin else NameEvidence.NAMES


def _of_text(name: str, column: pa.Array) -> NameEvidence:
    words = pc.utf8_trim_whitespace(column)
    if not name:
        return NameEvidence.NOTHING
    if pc.index(words, name).as_py() >= 0:
        return NameEvidence.ROW
    if _numbers(column)[1] > 0.5:
        return NameEvidence.NOTHING  # "NA" above numbers can be a cell as well as a name
    return NameEvidence.NAMES if len(pc.unique(words)) <= MOST_VALUES_SHARE * len(words) else NameEvidence.NOTHING


def _numbers(column: pa.Array) -> tuple[FloatArray, float]:
    """Return the finite numbers among the cells, and their share of the cells that are not empty."""
    trimmed = pc.utf8_trim_whitespace(column.slice(0, NUMBER_ROWS))
    trimmed = trimmed.filter(pc.not_equal(trimmed, ""))
    try:
        plain = pc.cast(trimmed, pa.float64()).to_numpy(zero_copy_only=False)
        finite = plain[np.isfinite(plain)]
        return finite, len(finite) / len(plain) if len(plain) else 0.0
    except pa.ArrowInvalid:  # a word is not a number, or a number in a notation that pyarrow does not parse
        filled = trimmed.to_pylist()
    numbers = np.array([float(word) for word in filled if is_number(word)], np.float64)
    finite = numbers[np.isfinite(numbers)]
    return finite, len(finite) / len(filled) if filled else 0.0


def _series(names: Sequence[str], columns: Sequence[pa.Array]) -> set[int]:
    """Return the places of names that rise by equal steps, such as 2019, 2020, 2021, if hardly any row does the same."""
    places: set[int] = set()
    numbers = [int(name) if name.isascii() and name.isdigit() else None for name in names]
    steps = [0 if low is None or high is None else high - low for low, high in itertools.pairwise(numbers)]
    start = 0
    for step, run in itertools.groupby(steps):
        series = range(start, start + len(list(run)) + 1)
        start = series[-1]
        fewest = FEWEST_IN_SERIES if step == 1 else FEWEST_IN_STEPS
        if step == 1 and all(YEARS[0] <= int(names[j]) <= YEARS[1] for j in series):
            fewest = FEWEST_YEARS
        if step > 0 and len(series) >= fewest and not _rows_rise(series, step, columns):
            places |= set(series)
    return places


def _rows_rise(places: Sequence[int], step: int, columns: Sequence[pa.Array]) -> bool:
    """Return whether more than a few rows rise by the step in these columns."""
    rows = list(zip(*(columns[j].slice(0, NUMBER_ROWS).to_pylist() for j in places), strict=True))
    rising = 0
    for row in rows:
        if all(is_number(cell) for cell in row):
            numbers = [float(cell) for cell in row]
            rising += all(b - a == step for a, b in itertools.pairwise(numbers))
    return rising > RARE_SERIES * len(rows)


def _row_words(numbers: int, repeated: Sequence[str], width: int) -> str:
    """Return in words why the first line may be a row."""
    parts = [f"{numbers} of {width} names look like numbers"] if numbers else []
    if repeated:
        again = "1 name is a value" if len(repeated) == 1 else f"{len(repeated)} of {width} names are values"
        parts.append(f"{again} of the column below, such as '{repeated[0][:40]}'")
    return f"{' and '.join(parts)}: is there a header at all?"
