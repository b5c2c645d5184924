"""Read the cells of a messy table as the model file states.

A model file may state the form of numbers and dates, the words for empty cells, and the lines that are not rows. None
of that may hide a row. A word that is a number cannot mean "missing", and a line that is left out must lack a value.
The only exception is a choice of the user that the file states.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.check.recount.findings import Finding, recount_finding
from trainer.check.recount.table.tables import Piece, SkippedLines
from trainer.errors import DataError

BLANKS = "\u00a0\u2007\u2009\u202f"
UNSEEN = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
GAPS = frozenset(["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "?"])
CLOCK = re.compile(
    r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?\s?(?P<half>[AaPp]\.?[Mm]\.?)?\s?"
    r"(?P<zone>Z|UTC|[+-][0-9]{2}:?[0-9]{2})?$"
)
DAYS = "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"
MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
CLAIM = "reading of the table"
SHOWN = 5
Texts = Callable[[str], Sequence[str]]
# number of emptied cells by column of the file and by the word that means "missing"
EmptiedCells = Counter[tuple[str, str]]


@dataclass(frozen=True)
class ColumnSource:
    """A column of the file, the columns of the model that derive from it, and the function that reads a cell for them."""

    name: str
    names: tuple[str, ...]
    texts: Texts | None = None
    missing: frozenset[str] = frozenset()  # words that mean an empty cell in this column, besides those of every table


def column_sources(model: dict[str, Any], names: Sequence[str]) -> list[ColumnSource]:
    """Return the columns of the file from which these columns of the model derive."""
    columns = (model.get("reading") or {}).get("columns") or {}
    makers = {
        column: source
        for name, record in columns.items()
        for source in [_source(name, record)]
        for column in source.names
    }
    by_name = {source.name: source for name in names for source in [makers.get(name) or ColumnSource(name, (name,))]}
    return list(by_name.values())


def plain_pieces(
    pieces: Iterable[Piece], file_columns: Sequence[ColumnSource], names: Sequence[str], emptied: EmptiedCells
) -> Iterator[Piece]:
    """Yield pieces of the columns `names` from pieces of the file; count the cells with a word for "missing" in `emptied`."""
    for piece in pieces:
        texts: dict[str, Sequence[str]] = {}
        for source, cells in zip(file_columns, piece, strict=True):
            if source.texts is None:
                texts[source.name] = cells
                continue
            texts_of = {cell: source.texts(cell) for cell in set(cells)}
            for word in source.missing & set(texts_of):
                emptied[source.name, word] += cells.count(word)
            for place, name in enumerate(source.names):
                texts[name] = [texts_of[cell][place] for cell in cells]
        yield [texts[name] for name in names]


def skipped_lines(model: dict[str, Any]) -> frozenset[int]:
    """Return the numbers of the lines of the file that are not rows."""
    reading = model.get("reading") or {}
    return frozenset(int(line) for side in ("top", "bottom") for line, _ in reading.get(side) or ())


def reading_findings(model: dict[str, Any], lines_skipped: SkippedLines | None, emptied: EmptiedCells) -> list[Finding]:
    """Check the reading.

    `lines_skipped` are the lines that were left out, None if there are none; `emptied` counts the cells with a word for "missing".
    """
    reading = model.get("reading")
    if reading is None:
        return []
    columns = reading.get("columns") or {}
    values = [(name, word) for name, record in columns.items() for word in _missing_words_with_value(record)]
    for name, word in values:
        if not columns[name].get("given"):
            detail = f"'{word}' is a value of column '{name}' and cannot mean an empty cell."
            return [recount_finding(CLAIM, False, detail, "basis")]
    for name, record in columns.items():
        spellings = record.get("spellings") or {}
        if any(spellings.get(word) != str(rank) for rank, word in enumerate(record.get("ranks") or (), 1)):
            return [
                recount_finding(
                    CLAIM, False, f"Column '{name}' reads its ranks as other numbers than 1, 2, 3.", "basis"
                )
            ]
    detail = f"{len(columns)} {'column is' if len(columns) == 1 else 'columns are'} read as the model says."
    if encoding := (reading.get("given") or {}).get("encoding"):
        detail += f" Somebody asked to read the text as {str(encoding)[:40]}."
    if values:
        examples = ", ".join(
            f"'{word}' of column '{name}' ({emptied[name, word]} cells)" for name, word in values[:SHOWN]
        )
        examples += f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
        detail += f" Somebody asked that {examples} {'means' if len(values) == 1 else 'mean'} an empty cell."
    either = [name for name, record in columns.items() if record.get("either")]
    if either:
        detail += f" Somebody asked to read comma and point as decimal signs in {', '.join(map(repr, either[:SHOWN]))}."
    merged = [
        (name, word, other)
        for name, column in columns.items()
        for word, other in (column.get("spellings") or {}).items()
    ]
    if merged:
        examples = ", ".join(f"'{word}' of column '{name}' as '{other}'" for name, word, other in merged[:SHOWN])
        examples += f" and {len(merged) - SHOWN} more" if len(merged) > SHOWN else ""
        detail += f" Somebody asked to read {examples}."
    if lines_skipped is None:
        return [recount_finding(CLAIM, True, detail)]
    requested = reading.get("given") or {}
    if lines_skipped.apart or (lines_skipped.rows and requested.get("skip_bottom") is None):
        line = lines_skipped.apart or lines_skipped.rows[0]
        words = "stands within the table" if lines_skipped.apart else "has a value for every column"
        return [recount_finding(CLAIM, False, f"Line {line} is left out, but {words}.", "basis")]
    requested_words = (
        f", {len(lines_skipped.rows)} of them like rows, since somebody asked for it" if lines_skipped.rows else ""
    )
    detail += f" {lines_skipped.count} lines above and below the table are not rows{requested_words}."
    return [recount_finding(CLAIM, True, detail)]


def _missing_words_with_value(record: dict[str, Any]) -> list[str]:
    """Return the words for "missing" that are values of the column; in a column without a form each word is one."""
    read = FORMS.get(record["taken_for"])
    words = [str(word) for word in record.get("missing") or () if str(word) not in GAPS]
    return [word for word in words if read is None or read(word, record) is not None]


def _source(name: str, record: dict[str, Any]) -> ColumnSource:
    missing = frozenset(str(word) for word in record.get("missing") or ())
    kind = record["taken_for"]
    if kind == "plain":
        spellings = record.get("spellings") or {}
        return ColumnSource(
            name, (name,), lambda word: ("" if word in missing else str(spellings.get(word, word)),), missing
        )
    if kind not in FORMS:
        raise DataError(f"The model reads column '{name}' in a way that is not known: {str(kind)[:40]}.")
    read = FORMS[kind]
    names = _derived_column(name, record) if kind == "date" else (name,)
    form = f"dates as {record['form']}" if kind == "date" else "numbers in another form"

    def texts(word: str) -> Sequence[str]:
        if word in GAPS or word in missing:
            return ("",) * len(names)
        parts = read(word, record)
        if parts is None or len(parts) != len(names):
            raise DataError(f"Column '{name}' holds {form} in the model; the file has '{word[:60]}' there.")
        return parts

    return ColumnSource(name, names, texts, missing)


def _normalise(word: str) -> str:
    for blank in BLANKS:
        word = word.replace(blank, " ")
    for mark in UNSEEN:
        word = word.replace(mark, "")
    return word.replace("\u2212", "-").replace("\u2019", "'").replace("\u02bc", "'").strip()


def _read_number(word: str, record: dict[str, Any]) -> Sequence[str] | None:
    """Return the plain text of a number with this decimal sign, thousands separator and unit; None for any other word."""
    text = _normalise(word)
    positive = _strip_negative_mark(text, str(record.get("negative") or ""))
    if positive is not None:
        plain = _read_number(positive, record | {"negative": ""})
        return None if plain is None or plain[0][0] in "+-" else ("-" + plain[0],)
    sign, digits_text = _split_sign(text)
    unit = str(record.get("unit") or "")
    if unit:
        if digits_text.lower().startswith(unit.lower()):
            second, digits_text = _split_sign(digits_text[len(unit) :].strip())
            if sign and second:
                return None
            sign = sign or second
        elif digits_text.lower().endswith(unit.lower()):
            digits_text = digits_text[: -len(unit)].strip()
        else:
            return None
    mantissa = digits_text
    exponent = ""
    power = re.search(r"[eE][+-]?[0-9]{1,5}$", digits_text)
    if power:
        mantissa = digits_text[: power.start()]
        exponent = power[0]
    if record.get("either"):
        mantissa = _with_usual_sign(mantissa, record["decimal"])
    integer, point, part = mantissa.partition(record["decimal"])
    digits = _integer_digits(integer, record["thousands"])
    if digits is None or not _is_digits(part, empty=bool(integer)) or (not integer and not point):
        return None
    return (sign + digits + ("." if point else "") + part + exponent,)


def _with_usual_sign(mantissa: str, decimal: str) -> str:
    """Return a number with the usual decimal sign in place of the other one, unless this may separate thousands."""
    other = "," if decimal == "." else "."
    integer, sign, part = mantissa.partition(other)
    may_be_thousands = len(part) == 3 and 1 <= len(integer) <= 3 and integer[0] != "0"
    return mantissa if not sign or may_be_thousands or other in part else integer + decimal + part


def _strip_negative_mark(text: str, style: str) -> str | None:
    """Return the text without its negative mark, (5) or 5-, if the column has this style; else None."""
    if style == "()" and text.count("(") == text.count(")") == 1 and text.index("(") < text.index(")"):
        return text.replace("(", "").replace(")", "")
    if style == "-" and text.count("-") == 1 and text[0] != "-" and text[: text.index("-")].rstrip()[-1:].isdigit():
        return text.replace("-", "")
    return None


def _split_sign(text: str) -> tuple[str, str]:
    return (text[0], text[1:].strip()) if text[:1] in ("+", "-") and text else ("", text)


def _is_digits(text: str, *, empty: bool) -> bool:
    return text.isascii() and text.isdigit() if text else empty


def _integer_digits(text: str, thousands: str) -> str | None:
    """Return the digits before the decimal sign; None if they are not grouped by three or begin with an extra zero."""
    groups = text.split(thousands) if thousands else [text]
    if not all(_is_digits(group, empty=False) for group in groups) and text:
        return None
    if len(groups) > 1 and not (len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])):
        return None
    if (len(groups[0]) > 1 and groups[0][0] == "0") or (len(groups) > 1 and groups[0] == "0"):
        return None
    return "".join(groups)


def _derived_column(name: str, record: dict[str, Any]) -> tuple[str, ...]:
    if record["form"] == "time":
        return f"{name} hour", f"{name} minutes since 00:00"
    days = f"{name} year", f"{name} month", f"{name} weekday", f"{name} days since {record['origin']}"
    return (*days, f"{name} hour") if record.get("clock") else days


def _read_day(word: str, record: dict[str, Any]) -> Sequence[str] | None:
    """Read a date as year, month, weekday, days since the origin and hour, or a time as hour and minutes.

    Returns None for any other word.
    """
    text = _normalise(word)
    clock = CLOCK.search(text)
    minutes = read_minutes(clock) if clock else None
    if (clock is None) != (minutes is None) or (
        clock is not None and (clock["zone"] or "") != (record.get("zone") or "")
    ):
        return None
    if record["form"] == "time":
        return None if minutes is None or (clock and clock.start()) else (str(minutes // 60), str(minutes))
    if bool(record.get("clock")) != (minutes is not None):
        return None
    head = text[: clock.start()].rstrip() if clock else text
    day = _read_date(head.removesuffix("T").rstrip() if clock else head, str(record["form"]))
    if day is None:
        return None
    since = day - datetime.date.fromisoformat(record["origin"])
    parts = str(day.year), str(day.month), DAYS[day.weekday()], str(since.days)
    return parts if minutes is None else (*parts, str(minutes // 60))


def read_minutes(clock: re.Match[str]) -> int | None:
    """Return the minutes since midnight; None for a time that does not exist."""
    hour = int(clock[1])
    minute = int(clock[2])
    second = int(clock[3] or 0)
    if clock["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (clock["half"][0] in "pP")
    return 60 * hour + minute if hour < 24 and minute < 60 and second < 60 else None


def _read_date(text: str, form: str) -> datetime.date | None:
    """Read a date with the parts and the signs of the form; None for any other text."""
    names = re.findall("yyyy|yy|mmm|mm|dd", form)
    if form == "yyyymmdd":
        words = [text[:4], text[4:6], text[6:]] if len(text) == 8 else []
    else:
        words = re.findall("[A-Za-z]+|[0-9]+", text)
        between = re.split("[A-Za-z]+|[0-9]+", text)
        expected = re.split("yyyy|yy|mmm|mm|dd", form)
        if [sign.replace(".", "") for sign in between] != [sign.replace(".", "") for sign in expected]:
            return None
    if len(words) != len(names):
        return None
    parts = dict(zip(names, words, strict=True))
    if "mmm" in parts:
        month = _month_number(parts["mmm"])
    else:
        month = int(parts["mm"]) if parts["mm"].isdigit() else 0
    year = parts.get("yyyy") or parts.get("yy") or ""
    if not (year.isdigit() and parts["dd"].isdigit() and len(year) == (4 if "yyyy" in parts else 2)) or not month:
        return None
    number = int(year)
    if len(year) == 2:
        number += 1900 if number >= 69 else 2000
    if not 1500 <= number <= 2199:  # years outside this range usually mean "no date", as in 9999-12-31
        return None
    try:
        return datetime.date(number, month, int(parts["dd"]))
    except ValueError:
        return None


def _month_number(name: str) -> int:
    matches = [name.lower() in (month, month[:3]) for month in MONTHS]
    return matches.index(True) + 1 if any(matches) else 0


FORMS: dict[str, Callable[[str, dict[str, Any]], Sequence[str] | None]] = {"number": _read_number, "date": _read_day}
