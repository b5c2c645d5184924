"""Cells of a messy table as the model says that they were read: the checker's own way from them to the columns of the model.

A model file may say how a column writes its numbers or dates, which words mean that a cell is empty, and which lines of the file are
no rows. Nothing of that may hide a row: a word that is a number cannot mean "missing", and a line that is left out has no value for
some column, unless the file says that somebody asked for it.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.check.recount.findings import Finding, recounted
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
Gone = Counter[tuple[str, str]]  # cells by the column of the file and the word


@dataclass(frozen=True)
class ColumnSource:
    """A column of the file, the columns of the model that are made of it, and how a cell becomes their plain texts."""

    name: str
    made: tuple[str, ...]
    texts: Texts | None = None
    missing: frozenset[str] = frozenset()  # words that mean that a cell is empty, beside those of every table


def sources(model: dict[str, Any], wanted: Sequence[str]) -> list[ColumnSource]:
    """The columns of the file that the columns `wanted` of the model are made of."""
    columns = (model.get("reading") or {}).get("columns") or {}
    made = {
        own: source for name, record in columns.items() for source in [_source(name, record)] for own in source.made
    }
    found = {source.name: source for name in wanted for source in [made.get(name) or ColumnSource(name, (name,))]}
    return list(found.values())


def plain_pieces(
    pieces: Iterable[Piece], own: Sequence[ColumnSource], wanted: Sequence[str], gone: Gone
) -> Iterator[Piece]:
    """The pieces of the columns `wanted`, from those of the columns of the file; `gone` counts the cells that are empty by a word."""
    for piece in pieces:
        texts: dict[str, Sequence[str]] = {}
        for source, cells in zip(own, piece, strict=True):
            if source.texts is None:
                texts[source.name] = cells
                continue
            known = {cell: source.texts(cell) for cell in set(cells)}
            for word in source.missing & set(known):
                gone[source.name, word] += cells.count(word)
            for place, name in enumerate(source.made):
                texts[name] = [known[cell][place] for cell in cells]
        yield [texts[name] for name in wanted]


def skipped_lines(model: dict[str, Any]) -> frozenset[int]:
    """The numbers of the lines of the file that are not rows."""
    reading = model.get("reading") or {}
    return frozenset(int(line) for side in ("top", "bottom") for line, _ in reading.get(side) or ())


def reading_findings(model: dict[str, Any], around: SkippedLines | None, gone: Gone) -> list[Finding]:
    """What is to be said of the reading; `around` tells of the lines that were left out here, None if none was, `gone` of cells."""
    reading = model.get("reading")
    if reading is None:
        return []
    columns = reading.get("columns") or {}
    values = [(name, word) for name, record in columns.items() for word in _values_gone(record)]
    for name, word in values:
        if not columns[name].get("given"):
            detail = f"'{word}' is a value of column '{name}', and no word for a cell that is empty."
            return [recounted(CLAIM, False, detail, "basis")]
    detail = f"{len(columns)} {'column is' if len(columns) == 1 else 'columns are'} read as the model says."
    if named := (reading.get("given") or {}).get("encoding"):
        detail += f" Somebody asked to read the text as {str(named)[:40]}."
    if values:
        shown = ", ".join(f"'{word}' of column '{name}' ({gone[name, word]} cells)" for name, word in values[:SHOWN])
        shown += f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
        detail += f" Somebody asked that {shown} {'means' if len(values) == 1 else 'mean'} an empty cell."
    merged = [
        (name, word, other) for name, own in columns.items() for word, other in (own.get("spellings") or {}).items()
    ]
    if merged:
        shown = ", ".join(f"'{word}' of column '{name}' as '{other}'" for name, word, other in merged[:SHOWN])
        shown += f" and {len(merged) - SHOWN} more" if len(merged) > SHOWN else ""
        detail += f" Somebody asked to read {shown}."
    if around is None:
        return [recounted(CLAIM, True, detail)]
    given = reading.get("given") or {}
    if around.apart or (around.rows and given.get("skip_bottom") is None):
        line = around.apart or around.rows[0]
        words = "stands within the table" if around.apart else "has a value for every column"
        return [recounted(CLAIM, False, f"Line {line} is left out, but {words}.", "basis")]
    asked = f", {len(around.rows)} of them like rows, since somebody asked for it" if around.rows else ""
    detail += f" {around.count} lines above and below the table are not rows{asked}."
    return [recounted(CLAIM, True, detail)]


def _values_gone(record: dict[str, Any]) -> list[str]:
    """The words for "missing" that are numbers or dates in the form of the column; in a column that is read as it stands each word is a value."""
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
    made = _derived_column(name, record) if kind == "date" else (name,)
    form = f"dates as {record['form']}" if kind == "date" else "numbers in another form"

    def texts(word: str) -> Sequence[str]:
        if word in GAPS or word in missing:
            return ("",) * len(made)
        found = read(word, record)
        if found is None or len(found) != len(made):
            raise DataError(f"Column '{name}' holds {form} in the model; the file has '{word[:60]}' there.")
        return found

    return ColumnSource(name, made, texts, missing)


def _tidy(word: str) -> str:
    for blank in BLANKS:
        word = word.replace(blank, " ")
    for mark in UNSEEN:
        word = word.replace(mark, "")
    return word.replace("\u2212", "-").replace("\u2019", "'").replace("\u02bc", "'").strip()


def _number(word: str, record: dict[str, Any]) -> Sequence[str] | None:
    """The plain text of a number with this decimal sign, thousands separator and unit; None for any other word."""
    text = _tidy(word)
    positive = _unmarked(text, str(record.get("negative") or ""))
    if positive is not None:
        plain = _number(positive, record | {"negative": ""})
        return None if plain is None or plain[0][0] in "+-" else ("-" + plain[0],)
    sign, rest = _signed(text)
    unit = str(record.get("unit") or "")
    if unit:
        if rest.lower().startswith(unit.lower()):
            second, rest = _signed(rest[len(unit) :].strip())
            if sign and second:
                return None
            sign = sign or second
        elif rest.lower().endswith(unit.lower()):
            rest = rest[: -len(unit)].strip()
        else:
            return None
    mantissa = rest
    exponent = ""
    power = re.search(r"[eE][+-]?[0-9]{1,5}$", rest)
    if power:
        mantissa = rest[: power.start()]
        exponent = power[0]
    whole, point, part = mantissa.partition(record["decimal"])
    digits = _integer_digits(whole, record["thousands"])
    if digits is None or not _digits(part, empty=bool(whole)) or (not whole and not point):
        return None
    return (sign + digits + ("." if point else "") + part + exponent,)


def _unmarked(text: str, style: str) -> str | None:
    """The number whose negative is written as (5) or as 5-, if this is the style of the column and the text is written so."""
    if style == "()" and text.count("(") == text.count(")") == 1 and text.index("(") < text.index(")"):
        return text.replace("(", "").replace(")", "")
    if style == "-" and text.count("-") == 1 and text[0] != "-" and text[: text.index("-")].rstrip()[-1:].isdigit():
        return text.replace("-", "")
    return None


def _signed(text: str) -> tuple[str, str]:
    return (text[0], text[1:].strip()) if text[:1] in ("+", "-") and text else ("", text)


def _digits(text: str, *, empty: bool) -> bool:
    return text.isascii() and text.isdigit() if text else empty


def _integer_digits(text: str, thousands: str) -> str | None:
    """The digits before the decimal sign; None if they are not grouped by three or begin with a needless zero."""
    groups = text.split(thousands) if thousands else [text]
    if not all(_digits(group, empty=False) for group in groups) and text:
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


def _day(word: str, record: dict[str, Any]) -> Sequence[str] | None:
    """Year, month, weekday, days since the origin, and the hour; hour and minutes of a time; None for any other word."""
    text = _tidy(word)
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
    day = _date(head.removesuffix("T").rstrip() if clock else head, str(record["form"]))
    if day is None:
        return None
    since = day - datetime.date.fromisoformat(record["origin"])
    found = str(day.year), str(day.month), DAYS[day.weekday()], str(since.days)
    return found if minutes is None else (*found, str(minutes // 60))


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


def _date(text: str, form: str) -> datetime.date | None:
    """A date with its parts in the order of the form and the signs of the form between them."""
    names = re.findall("yyyy|yy|mmm|mm|dd", form)
    if form == "yyyymmdd":
        cut = [text[:4], text[4:6], text[6:]] if len(text) == 8 else []
    else:
        cut = re.findall("[A-Za-z]+|[0-9]+", text)
        between = re.split("[A-Za-z]+|[0-9]+", text)
        wanted = re.split("yyyy|yy|mmm|mm|dd", form)
        if [sign.replace(".", "") for sign in between] != [sign.replace(".", "") for sign in wanted]:
            return None
    if len(cut) != len(names):
        return None
    parts = dict(zip(names, cut, strict=True))
    month = _month(parts["mmm"]) if "mmm" in parts else int(parts["mm"]) if parts["mm"].isdigit() else 0
    year = parts.get("yyyy") or parts.get("yy") or ""
    if not (year.isdigit() and parts["dd"].isdigit() and len(year) == (4 if "yyyy" in parts else 2)) or not month:
        return None
    number = int(year) if len(year) == 4 else int(year) + (1900 if int(year) >= 69 else 2000)
    if not 1500 <= number <= 2199:  # stands for "no date", as 9999-12-31 does
        return None
    try:
        return datetime.date(number, month, int(parts["dd"]))
    except ValueError:
        return None


def _month(name: str) -> int:
    known = [name.lower() in (month, month[:3]) for month in MONTHS]
    return known.index(True) + 1 if any(known) else 0


FORMS: dict[str, Callable[[str, dict[str, Any]], Sequence[str] | None]] = {"number": _number, "date": _day}
