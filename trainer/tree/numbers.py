"""Write numbers and names in words; find short decimals between numbers.

A model's numbers have every digit, so that readers get the model's answers. Only numbers that decide nothing (a margin,
an impurity) are rounded, by `number_text`.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from trainer.table import ColumnSchema

MINUS = "−"
TIMES = "×"
THIN = "\u202f"
LETTERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
DIGITS = 3
MOST_DECIMALS = 8  # decimals of a percentage, which suffice for one row in 10^10
MAX_DIGITS = 17  # digits that distinguish any two doubles
TENS = 1e15  # from this number on, a power of ten is shorter than all digits
SMALLEST = -6  # below this exponent, a power of ten is shorter, too
YEAR = re.compile(
    r"(?i:(?:^|[\W_])(?:years?|yr|jahr|jaar|année|annee|año|ano|anno|rok|år)(?:$|[\W_]))|(?:^|[a-z])(?:Year|Yr)(?=[A-Z]|$)|jahr$"
)
YEARS = (1000, 3000)
WIDE = Context(prec=1200)  # precise enough for exact sums and halves of any two doubles


def number_text(value: float, digits: int = DIGITS, *, full: bool = False) -> str:
    """Write a number with thousands commas and a minus sign: 7314.2 is "7,314", 0.01234 is "0.0123".

    Parameters
    ----------
    value : float
        NaN is "missing".
    digits : int
        Significant digits that are not rounded off; zeros at the end are left out.
    full : bool
        Whether to write every digit, so that reading the text gives the same double. Beyond 20 places it is written like 1.5E-30.

    Returns
    -------
    str
    """
    if math.isnan(value):
        return "missing"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if value == 0:
        return "0"
    sign = MINUS if value < 0 else ""
    size = abs(value)
    if full:
        return sign + _plain_decimal(Decimal(repr(float(size))))
    exponent = math.floor(math.log10(size))
    if size >= TENS or exponent < SMALLEST:
        mantissa, power = f"{size:.{digits - 1}e}".split("e")
        return f"{sign}{_trim(mantissa)}{THIN}{TIMES}{THIN}10^{int(power)}".replace("10^-", f"10^{MINUS}")
    return sign + _trim(f"{size:,.{max(0, digits - 1 - exponent)}f}")


def percent_text(share: float) -> str:
    """Write a share in percent, with up to four digits: 0.125 is "12.5 %" with a narrow space."""
    return f"{100 * share:.4g}{THIN}%"


def points_text(share: float, digits: int = 1) -> str:
    """Write a share in percent without the unit: 0.9332 is "93.3". Only 1 is "100.0" and only 0 is "0.0": 0.9996 is "99.96"."""
    telling = (
        d for d in range(digits, MOST_DECIMALS + 1) if not 0 < share < 1 or round(100 * share, d) not in (0, 100)
    )
    return f"{100 * share:.{next(telling, digits)}f}".replace("-", MINUS)


def count_words(number: int | str, one: str, many: str = "") -> str:
    """Write a number of things, up to ten in letters: "one leaf", "three leaves", "1,200 leaves"."""
    n = int(number)
    word = LETTERS[n] if 0 <= n < len(LETTERS) else f"{n:,}"
    return f"{word} {one if n == 1 else many or one + 's'}"


def decimal_text(value: float) -> str:
    """Write a number as a plain decimal that every program reads, with every digit: "-7314.2", "0.00001"."""
    return _plain_decimal(Decimal(repr(float(value)))).replace(",", "")


def read_number(text: str) -> float:
    """Parse a number that `number_text` wrote; raise ValueError for other texts."""
    plain = text.replace(THIN, "").replace(",", "").replace(MINUS, "-").replace(f"{TIMES}10^", "e")
    return {"∞": math.inf, "-∞": -math.inf}[plain] if "∞" in plain else float(plain)


def column_number(name: str, value: float, *, plain: bool = False) -> str:
    """Write a value of a column with every digit.

    A year, recognised by the column's name, has no comma: "2024.5". With `plain`, no value has one.
    """
    text = number_text(value, full=True)
    return text.replace(",", "") if plain or (YEARS[0] <= value < YEARS[1] and YEAR.search(name)) else text


def schema_number(column: ColumnSchema, value: float) -> str:
    """Write a value of a column with every digit; years and numbers that name rows have no comma."""
    return column_number(column.name, value, plain=column.names_or_years)


def column_value(column: ColumnSchema, value: float) -> str:
    """Write a value of a numeric column: the word of a rank, or the number with every digit."""
    word = column.rank_word(value) if value.is_integer() else None
    return schema_number(column, value) if word is None else word


def shortest_between(low: float, high: float) -> float:
    """Return the decimal with the fewest digits between `low` and `high`; of several, the nearest to their middle.

    It lies strictly between them, also as a double; if no double does, it is `low`. 0 is taken if it lies in the middle
    half of the gap. Both ends must be finite, `low` < `high`.
    """
    a = Decimal(low)
    b = Decimal(high)
    middle = WIDE.divide(WIDE.add(a, b), Decimal(2))
    if a < 0 < b and abs(middle) * 4 <= b - a:
        return 0.0
    for digits in range(1, MAX_DIGITS + 1):
        candidates = [
            c
            for rounding in (ROUND_HALF_EVEN, ROUND_FLOOR, ROUND_CEILING)
            if a < (c := Context(prec=digits, rounding=rounding).plus(middle)) < b and low < float(c) < high
        ]
        if candidates:
            return float(min(candidates, key=lambda c: (abs(WIDE.subtract(c, middle)), c)))
    return low


def round_digits(value: float, digits: int) -> float:
    """Round a number to at most `digits` significant digits."""
    return float(f"{value:.{digits - 1}e}")


def label(name: str) -> str:
    """Return a name on one line, in quotes if it is empty or has blanks at its ends, so that these can be seen."""
    text = " ".join(name.split()) if any(c in name for c in "\r\n\t\v\f\u2028\u2029\x85") else name
    return f'"{text}"' if not text or text != text.strip() else text


def in_list(name: str) -> str:
    """Return a name for a list with commas, in quotes if it has a comma of its own."""
    text = label(name)
    return f'"{text}"' if "," in text and not text.startswith('"') else text


def unit(column: ColumnSchema) -> str:
    """Return the unit of a column as it follows a number; "" if it has none."""
    return f"{THIN}{column.unit}" if column.unit else ""


def category_text(column: ColumnSchema, code: float) -> str:
    """Return the category of a code.

    Parameters
    ----------
    column : ColumnSchema
        A categorical column.
    code : float
        An index into its categories.

    Returns
    -------
    str
        "missing" for NaN, "unknown" for a code that the column does not have.
    """
    if math.isnan(code):
        return "missing"
    return label(column.categories[int(code)]) if 0 <= code < len(column.categories) else "unknown"


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _plain_decimal(value: Decimal) -> str:
    text = f"{value:,f}" if -20 < value.adjusted() < 21 else f"{value}"
    return _trim(text) if "E" not in text else text


def middle(low: float, high: float) -> float:
    """Return the number halfway from `low` to `high`, but never `high`, so that neighbouring doubles stay separate."""
    mean = low / 2 + high / 2 if math.isinf(high - low) else low + (high - low) / 2
    return mean if low <= mean < high else low


def duration_text(seconds: float) -> str:
    """Return a duration as 0.83 s, 4:30 min or 2:05:00 h."""
    if seconds < 60:
        return f"{seconds:.{2 if seconds < 1 else 3}g}{THIN}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}{THIN}min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}{THIN}h"
