"""Parse dates and times of day into derived columns."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from trainer.data.parsing.codes import spike_rows
from trainer.data.parsing.numbers import fold_characters

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
FULL_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PIECES = {
    "yyyy": r"(?P<y>1[5-9][0-9]{2}|2[0-1][0-9]{2})", "yy": r"(?P<y2>[0-9]{2})", "mm": r"(?P<m>[0-9]{1,2})",
    "dd": r"(?P<d>[0-9]{1,2})", "mmm": r"(?P<name>[A-Za-z]{3,9})\.?",
}  # fmt: skip
CLOCK = (
    r"(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:[.,](?P<F>[0-9]{1,9}))?)?\s?(?P<ap>[AaPp]\.?[Mm]\.?)?"
    r"\s?(?P<zone>Z|UTC|[+-][0-9]{2}:?[0-9]{2})?"
)
GUESSED = (
    "yyyy-mm-dd", "yyyy/mm/dd", "yyyy.mm.dd", "dd.mm.yyyy", "dd/mm/yyyy", "mm/dd/yyyy", "dd-mm-yyyy", "mm-dd-yyyy",
    "mm.dd.yyyy", "dd mmm yyyy", "dd-mmm-yyyy", "dd. mmm yyyy", "mmm dd, yyyy", "mmm dd yyyy",
)  # fmt: skip
SHORT = (*(form.replace("yyyy", "yy") for form in GUESSED if form.endswith("yyyy")), "yyyymmdd")
FORMATS = (*GUESSED, *SHORT)
TIME = "time"
ISO = GUESSED[0]
# date-like texts with a year outside the supported range: 9999-12-31, 0000-00-00, 31.12.2999
STAND_IN = re.compile(
    r"((?P<y>[0-9]{4})([-/.])[0-9]{1,2}\3[0-9]{1,2}|[0-9]{1,2}[-. ]{1,2}[A-Za-z]{3,9}[-. ]{1,2}(?P<y4>[0-9]{4})|"
    r"[A-Za-z]{3,9}\.? [0-9]{1,2},? (?P<y5>[0-9]{4})|[0-9]{1,2}(?P<sign>[-/.])[0-9]{1,2}(?P=sign)(?P<y2>[0-9]{4})|(?P<y3>0000|0001|9999)[0-9]{4})"
    r"([T ].*)?",
    re.ASCII,
)
FIRST_YEAR = 1500
LAST_YEAR = 2199
MOST_STAND_INS = 20  # limit on the distinct stand-ins of a column
MOST_HISTORIC = 3  # limit on distinct dates in the years 2 to 1499; more of them are historic dates
MOST_DISTANT = 3  # limit on distinct dates in the years 2200 to 3199; more of them are real, such as ends of leases
LAST_DISTANT_YEAR = 3199
USUAL_STAND_INS = ((1, 1), (12, 31), (12, 30))  # months and days that stand-ins usually have
FEWEST_ROWS = 2
LONELY_YEARS = 10  # a stand-in is at least this many years away from every other date
LARGEST_TWO_DIGIT_YEAR = 69  # 69 to 99 mean 1969 to 1999, as in POSIX


def _pattern(form: str) -> re.Pattern[str]:
    pieces = re.findall("yyyy|yy|mmm|mm|dd|[^ymd]+", form)
    pattern = "".join(PIECES.get(piece) or re.escape(piece) for piece in pieces)
    if form == "yyyymmdd":
        pattern = pattern.replace("{1,2}", "{2}")
    return re.compile(rf"{pattern}(?:[T ]\s*{CLOCK})?", re.ASCII)


PATTERNS = {form: _pattern(form) for form in FORMATS} | {TIME: re.compile(CLOCK, re.ASCII)}


@dataclass(frozen=True)
class Moment:
    """A date, a time of day in minutes and seconds, or both; `zone` is the offset as it is written."""

    date: datetime.date | None
    minutes: int | None
    zone: str = ""
    seconds: float = 0.0  # seconds within the minute

    @property
    def is_midnight(self) -> bool:
        return self.minutes == 0 and self.seconds == 0


def moment_of(word: str, form: str) -> Moment | None:
    """Parse a word in this format; None if it does not fit, or there is no such day or time."""
    match = PATTERNS[form].fullmatch(fold_characters(word))
    if match is None:
        return None
    parts = match.groupdict()
    minutes = _minutes(parts) if parts["H"] is not None else None
    if parts["H"] is not None and minutes is None:
        return None
    if form == TIME:
        return Moment(None, minutes, parts["zone"] or "")
    date = _date(parts)
    seconds = float(f"{parts['S'] or 0}.{parts['F'] or 0}")
    return None if date is None else Moment(date, minutes, parts["zone"] or "", seconds)


def stand_ins(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words that mean "no date", such as 9999-12-31 and 0000-00-00.

    None if there are more than 20, or more than three in the years 2 to 1499 or 2200 to 3199, which may be real ones.
    """
    years = {word: year for word in words if (year := _stand_in_year(word)) is not None}
    historic = sum(1 < year < FIRST_YEAR for year in years.values())
    distant = sum(LAST_YEAR < year <= LAST_DISTANT_YEAR for year in years.values())
    is_real = historic > MOST_HISTORIC or distant > MOST_DISTANT
    return () if is_real or len(years) > MOST_STAND_INS else tuple(years)


def is_no_day(word: str, forms: Sequence[str]) -> bool:
    """Return whether a word is written as a date in one of the formats, but there is no such day, as 30 February.

    A date that exists with day and month exchanged is no such word: the column may mix two formats.
    """
    matches = [PATTERNS[form].fullmatch(fold_characters(word)) for form in forms if form != TIME]
    parts = [match.groupdict() for match in matches if match is not None]
    # a word such as "12 plums 2021" names no month
    parts = [own for own in parts if own.get("name") is None or _date(own | {"d": "1"}) is not None]
    swapped = [own | {"m": own["d"], "d": own["m"]} for own in parts if own.get("m") is not None]
    return bool(parts) and all(_date(own) is None for own in (*parts, *swapped))


def likely_stand_ins(rows: Mapping[datetime.date, int]) -> list[datetime.date]:
    """Return the dates that may mean "no date", such as 1900-01-01 among dates of 2021, ascending.

    `rows` has the number of rows of each date. A stand-in is the first or last day of a year, which most other dates
    are not. It is the earliest or latest date, in at least two rows and ten years from the next date. Or it is a spike
    (`spike_rows`).
    """
    others = {date: n for date, n in rows.items() if (date.month, date.day) not in USUAL_STAND_INS}
    if 2 * len(others) <= len(rows) or len(others) == len(rows):
        return []
    least = spike_rows(others.values())
    spikes = {date for date in rows.keys() - others.keys() if rows[date] >= least}
    earliest = min(others)
    latest = max(others)
    far = datetime.timedelta(days=365 * LONELY_YEARS)
    lonely = {
        date
        for date in rows.keys() - others.keys()
        if rows[date] >= FEWEST_ROWS and (earliest - date >= far or date - latest >= far)
    }
    return sorted(spikes | lonely)


def _stand_in_year(word: str) -> int | None:
    """Return the year of a date outside the years 1500 to 2199; None for any other word."""
    match = STAND_IN.fullmatch(word.strip())
    if match is None:
        return None
    year = int(next(filter(None, match.group("y", "y2", "y3", "y4", "y5"))))
    return None if FIRST_YEAR <= year <= LAST_YEAR else year


def _date(parts: dict[str, str | None]) -> datetime.date | None:
    name = (parts.get("name") or "").lower()
    if name:
        month_names = FULL_MONTHS if len(name) > 3 else MONTHS
        if name not in month_names:
            return None
        month = month_names.index(name) + 1
    else:
        month = int(parts["m"] or 0)
    year = int(parts.get("y") or 0)
    if parts.get("y2") is not None:
        short = int(parts["y2"] or 0)
        year = short + (1900 if short >= LARGEST_TWO_DIGIT_YEAR else 2000)
    try:
        return datetime.date(year, month, int(parts["d"] or 0))
    except ValueError:
        return None


def _minutes(parts: dict[str, str | None]) -> int | None:
    hour = int(parts["H"] or 0)
    minute = int(parts["M"] or 0)
    second = int(parts["S"] or 0)
    if parts["ap"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if parts["ap"][0] in "pP" else 0)
    return hour * 60 + minute if hour < 24 and minute < 60 and second < 60 else None


@dataclass(frozen=True, kw_only=True)
class DateForm:
    """A format of dates, or of times of day (the form 'time'), and its derived columns.

    `origin` is day 0 of the count of days, as yyyy-mm-dd; `clock` tells whether dates have a time of day.
    """

    form: str
    origin: str = ""
    clock: bool = False
    zone: str = ""

    @cached_property
    def _day_zero(self) -> int:
        return datetime.date.fromisoformat(self.origin).toordinal()

    def names(self, column: str) -> tuple[str, ...]:
        """Return the names of the columns derived from `column`."""
        if self.form == TIME:
            return f"{column} hour", f"{column} minutes since 00:00"
        days = (f"{column} year", f"{column} month", f"{column} weekday", f"{column} days since {self.origin}")
        return (*days, f"{column} hour") if self.clock else days

    def names_no_day(self, word: str) -> bool:
        """Return whether a word has the form of a date, or of yyyy-mm-dd, but names no day, as 30 February or 9999-12-31."""
        return self.form != TIME and (is_no_day(word, (self.form, ISO)) or _stand_in_year(word) is not None)

    def fits(self, word: str) -> bool:
        """Return whether a word has exactly this form."""
        moment = moment_of(word, self.form)
        if moment is None or moment.zone != self.zone:
            return False
        return (moment.minutes is not None) == (self.clock or self.form == TIME)

    def values(self, word: str) -> tuple[str, ...] | None:
        """Return the plain texts of these columns for a word; None if the word does not have this form.

        Dates as yyyy-mm-dd have one meaning in every form, and midnight is not a time of day in a form without one: data
        frames write dates so.
        """
        moment = moment_of(word, self.form)
        if moment is None and self.form != TIME:
            moment = moment_of(word, ISO)
        if moment is not None and not self.clock and moment.date is not None and moment.is_midnight:
            moment = Moment(moment.date, None, moment.zone)
        if (
            moment is None
            or moment.zone != self.zone
            or (moment.minutes is not None) != (self.clock or self.form == TIME)
        ):
            return None
        if moment.date is None:
            assert moment.minutes is not None
            return str(moment.minutes // 60), str(moment.minutes)
        date = moment.date
        days = str(date.year), str(date.month), WEEKDAYS[date.weekday()], str(date.toordinal() - self._day_zero)
        return days if moment.minutes is None else (*days, str(moment.minutes // 60))


def form_for(words: Sequence[str], form: str) -> tuple[DateForm, tuple[str, ...]]:
    """Return the form with origin, clock and zone from the words, and the words that do not fit it."""
    moments = {word: moment_of(word, form) for word in words}
    known_moments = [moment for moment in moments.values() if moment is not None]
    clock = (
        bool(known_moments)
        and form != TIME
        and sum(m.minutes is not None for m in known_moments) * 2 > len(known_moments)
    )
    zones = [m.zone for m in known_moments]
    zone = max(set(zones), key=zones.count) if zones else ""
    years = [m.date.year for m in known_moments if m.date is not None]
    date_form = DateForm(form=form, origin=f"{min(years)}-01-01" if years else "", clock=clock, zone=zone)
    if not known_moments:
        return date_form, tuple(words)
    return date_form, tuple(word for word in words if not date_form.fits(word))
