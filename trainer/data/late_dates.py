"""Find dates that may be known only after the outcome.

Such dates follow another date, and predict the class or have a name that suggests it.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from trainer.data.formats.raw import RawTable
from trainer.data.parsing.cells import Cells
from trainer.data.parsing.column import DATE, ColumnReading
from trainer.data.parsing.dates import TIME
from trainer.dtypes import CodeArray, FloatArray
from trainer.tree.numbers import percent_text

FEWEST_ROWS = 20  # required number of rows with both dates
MIN_NOT_BEFORE_SHARE = 0.98  # the date must be equal or later in at least this share of these rows
MIN_LATER_SHARE = 0.5  # the date must be later in at least this share of these rows
MIN_LEFT_ERROR_SHARE = 0.5  # the date must leave at most this share of the baseline's errors
WORDS_OF_ENDS = re.compile(
    r"(?:^|[\W_])(?:outcome|closed|closing|ended?|paid|payment|default|discharged?|death|died|cancel\w*|churn\w*|resolved|"
    r"decision|decided|exit|terminat\w*|returned|settled|completed|ende|austritt|bezahlt|entlassung)(?:$|[\W_])",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class LateDate:
    """A column of dates that may be known only after the outcome, with the evidence."""

    column: str
    made: tuple[str, ...]  # columns of the table that are derived from this one
    earlier: str  # the other column of dates, which is earlier in almost all rows
    figure: str
    certain: bool  # whether the dates predict the class; otherwise only the column's name raises the suspicion


def late_dates(
    raw: RawTable, readings: Mapping[str, ColumnReading], target: str, rows: np.ndarray, codes: CodeArray
) -> Iterator[LateDate]:
    """Yield the dates that may be known only after the outcome.

    Parameters
    ----------
    raw : RawTable
        Parsed cells, with the columns that are derived from dates.
    readings : mapping
        The parsing of each column of the file.
    target : str
        The column of classes.
    rows : int64 array of shape (n,)
        The rows of `raw` that can train.
    codes : int32 array of shape (n,)
        Their classes.
    """
    days = {
        name: _days(raw, reading, rows)
        for name, reading in readings.items()
        if reading.taken_for == DATE and reading.date is not None and reading.date.form != TIME and name != target
    }
    for name, late in days.items():
        pairs = [(earlier, late - days[earlier]) for earlier in days if earlier != name]
        follows = [(earlier, gap) for earlier, gap in pairs if _follows(gap)]
        if not follows:
            continue
        earlier, gap = max(follows, key=lambda pair: int(np.isfinite(pair[1]).sum()))
        evidence = _evidence(gap, ~np.isnan(late), codes)
        if not evidence and not WORDS_OF_ENDS.search(name):
            continue
        both = np.isfinite(gap)
        figure = f"later than '{earlier}' in {int((gap[both] > 0).sum()):,} of {int(both.sum()):,} rows"
        yield LateDate(
            column=name,
            made=readings[name].names,
            earlier=earlier,
            figure="; ".join([figure, evidence] if evidence else [figure]),
            certain=bool(evidence),
        )


def _days(raw: RawTable, reading: ColumnReading, rows: np.ndarray) -> FloatArray:
    """Return the ordinal day of each row; NaN for an empty cell, or if the days are left out."""
    assert reading.date is not None
    name = next((derived for derived in reading.names if derived.endswith(f" days since {reading.date.origin}")), "")
    if name not in raw.names:
        return np.full(len(rows), np.nan)
    cells = Cells.of(raw.column(name))
    values = np.where(cells.numbers, cells.floats(), np.nan)[cells.index[rows]]
    return values + datetime.date.fromisoformat(reading.date.origin).toordinal()


def _follows(gap: FloatArray) -> bool:
    known_gaps = gap[np.isfinite(gap)]
    return len(known_gaps) >= FEWEST_ROWS and bool(
        (known_gaps >= 0).mean() >= MIN_NOT_BEFORE_SHARE and (known_gaps > 0).mean() >= MIN_LATER_SHARE
    )


def _evidence(gap: FloatArray, filled: np.ndarray, codes: CodeArray) -> str:
    """Describe how well the date predicts the class: filled or not, or days since the earlier one; "" if it does not."""
    right = {
        "whether it is filled": _best_cut(filled.astype(np.float64), codes),
        "the days between them": _best_cut(np.where(np.isnan(gap), np.inf, gap), codes),
    }
    base = float(np.bincount(codes).max() / len(codes))
    words, share = max(right.items(), key=lambda pair: pair[1])
    if base == 1 or 1 - share > MIN_LEFT_ERROR_SHARE * (1 - base):
        return ""
    return f"{words} alone: right on {percent_text(share)}; always the most frequent class: {percent_text(base)}"


def _best_cut(values: FloatArray, codes: CodeArray) -> float:
    """Return the largest share of rows that one threshold classifies correctly."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    onehot = np.zeros((len(codes), int(codes.max()) + 1), np.int64)
    onehot[np.arange(len(codes)), codes[order]] = 1
    below = np.cumsum(onehot, axis=0)
    right = below.max(axis=1) + (below[-1] - below).max(axis=1)
    ends = np.append(ordered[1:] != ordered[:-1], True)
    return float(right[ends].max() / len(codes))
