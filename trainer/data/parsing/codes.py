"""Find and parse special values: numbers such as −9 that are codes.

They mean "refused" or "not asked" and measure nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np

from trainer.dtypes import CountArray, FloatArray
from trainer.errors import DataError
from trainer.tree.numbers import decimal_text, number_text

BELOW = (-1.0, -7.0, -8.0, -9.0, -77.0, -88.0, -99.0, -777.0, -888.0, -999.0, -9999.0, -99999.0)
ABOVE = (77.0, 88.0, 99.0, 777.0, 888.0, 999.0, 9999.0, 99999.0, 999999.0, 99991231.0, 99999999.0)
SAME_DIGITS = tuple(v for v in (*BELOW, *ABOVE) if abs(v) >= 99 and len(set(str(int(abs(v))))) == 1)
ALL_CODES = np.unique((*BELOW, *ABOVE))
FEWEST_ROWS = 2
FEWEST_IN_A_SPIKE = 5
MIN_SPIKE_FACTOR = 10  # a spike has at least this many times the rows of any ordinary value
MANY_VALUES = 20
APART = 2.0  # a large code is at least this many times the highest ordinary value
MOST = 20
MAX_MEANING_CHARACTERS = 80  # limit on the characters of a code's meaning


def likely_codes(values: FloatArray, rows: CountArray | None = None) -> dict[float, int]:
    """Return the values of a numeric column that look like codes, ascending, with the rows of each; NaN are
    skipped.

    `values`, float64 (n,), occur in one row each, or in `rows`, int64 (n,). A number of BELOW is a code if no
    other value is negative. A number of ABOVE is a code if it is at least twice as large as all other values.
    Each needs at least two rows. A number such as −999 or 9999 can also be a spike: a code of any size that
    is MIN_SPIKE_FACTOR times as frequent as each of at least MANY_VALUES other values.
    """
    if not (ALL_CODES[np.searchsorted(ALL_CODES[:-1], values)] == values).any():
        return {}
    finite = np.isfinite(values)
    distinct, place = np.unique(values[finite], return_inverse=True)
    counts = np.bincount(place.ravel(), None if rows is None else rows[finite], len(distinct)).astype(np.int64)
    repeated = counts >= FEWEST_ROWS
    often = dict(zip(distinct[repeated].tolist(), counts[repeated].tolist(), strict=True))
    low = [v for v in BELOW if v in often]
    high = [v for v in ABOVE if v in often]
    is_ordinary = ~np.isin(distinct, [*low, *high]) if low or high else np.ones(len(distinct), bool)
    ordinary = distinct[is_ordinary]
    if not len(ordinary):
        return {}
    codes = low if ordinary.min() >= 0 else []
    # a single −1, or a value close to the others, is more likely a measurement than a code
    if codes == [-1.0] and len(ordinary) < 5:
        codes = []
    codes += [v for v in high if v >= APART * max(float(ordinary.max()), 1.0)]
    least = spike_rows(counts[is_ordinary])
    codes += [v for v in SAME_DIGITS if often.get(v, 0) >= least]
    return {code: often[code] for code in sorted(set(codes))}


def spike_rows(rows: Collection[int]) -> float:
    """Return the fewest rows that make a value a spike among values with these rows.

    The result is infinite if there are fewer than MANY_VALUES values.
    """
    return max(FEWEST_IN_A_SPIKE, MIN_SPIKE_FACTOR * int(max(rows))) if len(rows) >= MANY_VALUES else math.inf


def codes_text(rows: Mapping[float, int]) -> str:
    """Describe the rows of each code: "−9 in 588 rows, −8 in 1 row"."""
    return ", ".join(
        f"{number_text(code, full=True)} in {n:,} {'row' if n == 1 else 'rows'}" for code, n in rows.items()
    )


def parse_codes(text: str, column: str) -> tuple[float, ...]:
    """Parse special values such as "-7, -8: refused; 999", ascending; raise DataError that names the column."""
    codes = []
    for part, _ in _parts(text):
        try:
            number = float(part)
        except ValueError:
            number = np.nan
        if not np.isfinite(number):
            raise DataError(
                f"'{part[:40]}' is not a number: special values of '{column}' look like -7, -8: refused, 999."
            )
        codes.append(number + 0.0)
    if len(codes) > MOST:
        raise DataError(
            f"Column '{column}' has {len(codes)} special values, but at most {MOST} are possible. Declare fewer."
        )
    return tuple(sorted(set(codes)))


def parse_meanings(text: str) -> dict[str, str]:
    """Return the meanings in a text of special values, by the number as text; values without one are left out."""
    return {decimal_text(float(part) + 0.0): meaning for part, meaning in _parts(text) if meaning}


def check_meanings(meanings: Mapping[str, str], codes: Iterable[float], column: str) -> dict[str, str]:
    """Return meanings by the number as `decimal_text` writes it; raise DataError for a number that is not a code.

    Commas and semicolons separate codes in text, so slashes replace them in a meaning.
    """
    declared = set(codes)
    meanings_by_code = {}
    for word, meaning in meanings.items():
        try:
            code = float(word.replace("−", "-")) + 0.0
        except ValueError:
            code = np.nan
        if code not in declared:
            code_list = ", ".join(map(decimal_text, sorted(declared))) or "none"
            raise DataError(f"'{word[:40]}' is not a code of column '{column}'. Its codes are: {code_list}.")
        meanings_by_code[decimal_text(code)] = " ".join(re.sub(r"[,;]", " / ", meaning).split())[
            :MAX_MEANING_CHARACTERS
        ]
    return meanings_by_code


def write_codes(codes: Iterable[float], meanings: Mapping[str, str]) -> str:
    """Return special values with their meanings as text that `parse_codes` and `parse_meanings` read."""
    words = (decimal_text(code) for code in codes)
    return ", ".join(f"{word}: {meanings[word]}" if word in meanings else word for word in words)


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield each number of a text and the meaning behind its colon, as texts."""
    for part in text.replace(";", ",").split(","):
        number, _, meaning = part.partition(":")
        if part.strip():
            yield number.strip().replace("−", "-"), " ".join(meaning.split())[:MAX_MEANING_CHARACTERS]
