"""Report possible faults of a table, the worst first."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.data.build import LoadReport, useless_columns
from trainer.data.empty_report import EmptyReport, empty_report
from trainer.data.formats.parquet_file import declared_order
from trainer.data.formats.raw import RawTable
from trainer.data.formats.read_file import read_table
from trainer.data.late_dates import late_dates
from trainer.data.mixed_units import mixed_units
from trainer.data.parsing.alike import alike_groups
from trainer.data.parsing.cells import Cells
from trainer.data.parsing.column import DATE, RANKS, TEXT, ColumnReading
from trainer.data.parsing.dates import GUESSED, SHORT, DateForm, likely_stand_ins, moment_of
from trainer.data.parsing.draft import SAMPLE
from trainer.data.parsing.guess import UNKNOWN_FORM
from trainer.data.parsing.infer import GuessedColumn, may_number_rows, numbers_rows, stray_words
from trainer.data.parsing.reading import ColumnParsing
from trainer.data.parsing.words import is_missing_word
from trainer.data.profile import Profile, profile
from trainer.errors import list_names
from trainer.table import Column, ColumnKind, Labels, RowNaming, Table
from trainer.tree.nodes import Tree
from trainer.tree.numbers import count_words, decimal_text, number_text, percent_text

HIGH = "high"
MEDIUM = "medium"
LOW = "low"
SEVERITIES = (HIGH, MEDIUM, LOW)
LEAK_SHARE = 0.98  # a leak classifies at least this share of the rows correctly
LEAK_RATIO = 0.1  # a leak leaves at most this share of the baseline's errors
MOST_LEAK_CELLS = 5_000_000  # larger tables are not searched for leaks before a training
FEWEST_ROWS = 20  # in smaller tables, a column may predict the class by chance
ROWS_FOR_EACH_VALUE = 20  # with fewer rows per value, a column could memorise the rows
COMMON_CLASS = 0.8
MANY_COPIES = 0.1
HEADER_DOUBT = 0.25  # a header with at most this `header_sure` is reported; half of its names or more look like numbers
SHOWN = 4
FEWEST_RANKS = 3  # the order of two categories is of no use
FEWEST_DAYS = 5  # fewer different integers may be codes that look like dates
WRITTEN_TOGETHER = "yyyymmdd"
# "update", "candidate", "holiday", "birthplace" and "sales per day" are not dates
DATE_NAME = re.compile(
    r"(?<!(?i:up))(?<!(?i:man))(?<!(?i:candi))(?<!(?i:vali))(?i:date|datum|geburtstag|birthday)(?![a-z])"
    r"|(?<![A-Za-z])(?<!(?i:per)[ _.-])(?i:day|dob|birth)$"
)
SPREADSHEET_ORIGIN = datetime.date(1899, 12, 30)
SPREADSHEET_DAYS = (10_000, 60_000)  # the days 1927-05-18 to 2064-04-08
RANGE = re.compile(r"([0-9]{1,9}) ?[-–] ?([0-9]{1,9})")
# phone numbers, long postal codes and addresses of computers; times that begin with a year are none of these
DIGIT_GROUPS = re.compile(r"(?!(19|20)[0-9]{2})(?=(.*[0-9]){9})[+(]*[0-9][0-9 ()/.-]*|[0-9]{1,3}(\.[0-9]{1,3}){3}")
MAX_STRAY_WORDS = 20  # with more different words among numbers, no remedy is proposed


@dataclass(frozen=True, kw_only=True)
class IntakeFinding:
    """One finding of the intake report.

    Attributes
    ----------
    kind : str
        Such as "identifier", "leak" or "look_alike_classes".
    column : str
        The column; "" for the table.
    severity : str
        "high", "medium" or "low".
    figure : str
        The count behind the finding.
    sentence : str
        Why it matters.
    mend : mapping
        The remedy as a change: `column`, and `role`, `kind`, `missing`, `special` or `merge`; empty if the table itself must change.
    if_nothing : str
        What happens if nothing is done.
    """

    kind: str
    column: str
    severity: str
    figure: str
    sentence: str
    mend: Mapping[str, Any] = field(default_factory=dict)
    if_nothing: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class InspectedTable:
    """A parsed table with its guesses, profile and empty cells.

    `built` and `profile` are None for a table that cannot be built. `ignored` and `named` are columns that the user left out
    or named.
    """

    raw: RawTable  # the cells after parsing
    unparsed: RawTable  # the cells as they are in the file
    target: str
    reading: ColumnParsing
    guesses: Sequence[GuessedColumn]
    built: tuple[Table, Labels, LoadReport] | None = None
    profile: Profile | None = None
    empty: EmptyReport | None = None
    ignored: Collection[str] = ()
    named: Collection[str] = ()


def findings_of(table: InspectedTable) -> tuple[IntakeFinding, ...]:
    """Return the findings about a table, the worst first."""
    findings = [
        *_header(table), *_identifiers(table), *_look_alike(table), *_sentinels(table), *_words_among_numbers(table),
        *_words_among_dates(table), *_dates_as_numbers(table), *_unread_values(table), *_ordered(table),
    ]  # fmt: skip
    if table.built is not None and table.profile is not None:
        data, labels, _ = table.built
        findings += [
            *_leaks(data, labels, table.profile),
            *_late_dates(table.raw, table.reading, table.target, data, labels),
            *_table_findings(table.profile),
        ]
        findings += _mixed_units(data)
    if table.empty is not None and table.built is not None:
        findings += _emptiness(table.empty, *table.built[:2])
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def _header(table: InspectedTable) -> Iterable[IntakeFinding]:
    detected = table.raw.detected
    if not detected.header or detected.header_sure > HEADER_DOUBT:
        return
    yield IntakeFinding(
        kind="no_header",
        column="",
        severity=HIGH,
        figure=f"the first line is {', '.join(table.raw.names[:SHOWN])}",
        sentence="The first line looks like a row, not like names of columns.",
        mend={"header": False},
        if_nothing="The first row is lost, and its values are the names of the columns.",
    )


def _identifiers(table: InspectedTable) -> Iterable[IntakeFinding]:
    features = [guess for guess in table.guesses if guess.name != table.target]
    left_out = {*useless_columns(features, table.named), *table.ignored}
    for guess in features:
        if guess.likely_identifier and guess.name not in table.ignored and guess.name not in table.named:
            yield _likely_identifier(guess)
        if not guess.identifier:
            continue
        figure = f"{guess.distinct:,} different values; {guess.identifier_reason}"
        if guess.name in left_out:
            kind = str(guess.schema.kind)
            yield IntakeFinding(
                kind="identifier",
                column=guess.name,
                severity=LOW,
                figure=figure,
                sentence="The values name or count the rows, which says nothing about a new row. The column is left out.",
                mend={"column": guess.name, "role": "feature", "kind": kind},
                if_nothing="No tree uses the column.",
            )
        else:
            yield IntakeFinding(
                kind="identifier",
                column=guess.name,
                severity=HIGH,
                figure=figure,
                sentence="The values name or count the rows, which says nothing about a new row.",
                mend={"column": guess.name, "role": "ignored"},
                if_nothing="A tree may ask the column. It is then right on these rows and useless for new ones.",
            )


def _likely_identifier(guess: GuessedColumn) -> IntakeFinding:
    return IntakeFinding(
        kind="identifier",
        column=guess.name,
        severity=MEDIUM,
        figure=guess.identifier_reason,
        sentence="The numbers look like names of the rows, such as account numbers. They say nothing about a new row then.",
        mend={"column": guess.name, "role": "ignored"},
        if_nothing="The column stays. A tree that asks it may be right on these rows and useless for new ones.",
    )


def _look_alike(table: InspectedTable) -> Iterable[IntakeFinding]:
    kinds = {guess.name: guess.schema.kind for guess in table.guesses}
    if table.built is not None:
        kinds |= {column.name: column.kind for column in table.built[0].columns}
    unique = {guess.name for guess in table.guesses if guess.identifier}
    for name in table.raw.names:
        is_target = name == table.target
        if not is_target and (kinds.get(name) is not ColumnKind.CATEGORICAL or name in table.ignored or name in unique):
            continue
        cells = Cells.of(table.raw.column(name))
        words = {cells.words[i]: int(cells.counts[i]) for i in np.flatnonzero(~cells.missing)}
        groups = alike_groups(words)
        if not groups:
            continue
        figure = _alike_figure(groups, words)
        yield IntakeFinding(
            kind="look_alike_classes" if is_target else "other_spelling",
            column=name,
            severity=HIGH if is_target else MEDIUM,
            figure=figure,
            sentence=f"The column writes {count_words(len(groups), 'value')} in several ways.",
            mend={"column": name, "merge": {word: first for first, *others in groups for word in others}},
            if_nothing=(
                "Each spelling is a separate class, and a tree is proved optimal for telling them apart."
                if is_target
                else "Each spelling is a separate category."
            ),
        )


def _alike_figure(groups: Sequence[tuple[str, ...]], counts: Mapping[str, int]) -> str:
    """Describe groups of words that look alike, with the rows of each word."""
    return "; ".join(", ".join(f"{_visible(w)} ({counts[w]:,})" for w in group[:SHOWN]) for group in groups[:SHOWN])


def _visible(word: str) -> str:
    """Return a word in quotes, with invisible characters as codes."""
    return repr(word) if all(c.isprintable() for c in word) else ascii(word)


def _sentinels(table: InspectedTable) -> Iterable[IntakeFinding]:
    for column in table.reading.columns.values():
        if column.taken_for == DATE and column.missing and not column.given and column.name != table.target:
            yield _empty_date(table, column)
        if column.date is not None and column.name not in (table.target, *table.ignored):
            yield from _stand_in_dates(table, column, column.date)
    chosen_codes = {column.name: column.special for column in table.built[0].schema} if table.built is not None else {}
    columns_with_codes = {name for column in table.reading.columns.values() for name in column.names if column.special}
    for guess in table.guesses:
        if guess.name == table.target or guess.name in table.ignored:
            continue
        if guess.special and not chosen_codes.get(guess.name):
            codes = ", ".join(number_text(code) for code in guess.special)
            yield IntakeFinding(
                kind="sentinel",
                column=guess.name,
                severity=MEDIUM,
                figure=codes,
                sentence=f"{codes} {'stands' if len(guess.special) == 1 else 'stand'} apart from the other numbers and may be codes for missing values.",
                mend={"column": guess.name, "missing": [decimal_text(code) for code in guess.special]},
                if_nothing="A tree compares the codes like measured numbers.",
            )
        elif guess.schema.kind is ColumnKind.CATEGORICAL and guess.name not in columns_with_codes:
            yield from _missing_words(table, guess)


def _empty_date(table: InspectedTable, column: ColumnReading) -> IntakeFinding:
    cells = Cells.of(table.unparsed.column(column.name))
    words = _named(column.missing, dict(zip(cells.words, cells.counts.tolist(), strict=True)))
    return IntakeFinding(
        kind="sentinel",
        column=column.name,
        severity=LOW,
        figure=words,
        sentence=f"{'This word' if len(column.missing) == 1 else 'These words'} among the dates {'is' if len(column.missing) == 1 else 'are'} read as empty cells, so that the column stays a date.",
        mend={"column": column.name, "kind": "text"},
        if_nothing="The cells count as empty.",
    )


def _stand_in_dates(table: InspectedTable, column: ColumnReading, form: DateForm) -> Iterable[IntakeFinding]:
    """Yield a finding for dates such as 1900-01-01 that may mean "no date"."""
    cells = Cells.of(table.unparsed.column(column.name))
    words: dict[datetime.date, dict[str, int]] = {}
    for i in np.flatnonzero(~cells.missing):
        moment = moment_of(cells.word(i), form.form)
        if moment is not None and moment.date is not None and cells.word(i) not in column.missing:
            words.setdefault(moment.date, {})[cells.word(i)] = int(cells.counts[i])
    dates = likely_stand_ins({date: sum(rows.values()) for date, rows in words.items()})
    if not dates:
        return
    spellings = {word: n for date in dates for word, n in words[date].items()}
    yield IntakeFinding(
        kind="sentinel",
        column=column.name,
        severity=MEDIUM,
        figure=", ".join(f"{word} ({n:,})" for word, n in list(spellings.items())[:SHOWN]),
        sentence=f"{'This date' if len(dates) == 1 else 'Each of these dates'} is unlike the others and may mean that no date is known.",
        mend={"column": column.name, "missing": list(spellings)},
        if_nothing="A tree compares the date like a real one.",
    )


def _missing_words(table: InspectedTable, guess: GuessedColumn) -> Iterable[IntakeFinding]:
    """Yield a finding for words such as \\N and <null> in a categorical column; a word without letters can be a category."""
    words = [w for w in guess.schema.categories if is_missing_word(w) and any(c.isalpha() for c in w)]
    if not words or guess.identifier:
        return
    cells = Cells.of(table.raw.column(guess.name))
    counts = dict(zip(cells.words, cells.counts.tolist(), strict=True))
    yield IntakeFinding(
        kind="sentinel",
        column=guess.name,
        severity=LOW,
        figure=", ".join(f"'{word}' ({counts[word]:,})" for word in words[:SHOWN]),
        sentence="The words may mean that a cell is empty.",
        mend={"column": guess.name, "missing": words},
        if_nothing="Each word is a category.",
    )


def _words_among_numbers(table: InspectedTable) -> Iterable[IntakeFinding]:
    """Yield a finding for each column of numbers that a few words turn into categories."""
    for guess in table.guesses:
        if (
            guess.name in (table.target, *table.ignored, *table.named)
            or guess.schema.kind is not ColumnKind.CATEGORICAL
        ):
            continue
        stray = stray_words(Cells.of(table.raw.column(guess.name)))
        if stray is None:
            continue
        few = len(stray.words) <= MAX_STRAY_WORDS
        yield IntakeFinding(
            kind="words_among_numbers",
            column=guess.name,
            severity=HIGH,
            figure=f"{stray.figure}; {count_words(guess.distinct, 'different value')}",
            sentence="A few words turn a column of numbers into categories.",
            mend={"column": guess.name, "missing": list(stray.words)} if few else {},
            if_nothing="Each number is a category: a tree cannot ask whether it is large, and a new number is unknown.",
        )


def _words_among_dates(table: InspectedTable) -> Iterable[IntakeFinding]:
    """Yield a finding for each column of dates that a few words turn into categories."""
    for guess in table.guesses:
        if (
            guess.name in (table.target, *table.ignored, *table.named)
            or guess.schema.kind is not ColumnKind.CATEGORICAL
        ):
            continue
        cells = Cells.of(table.raw.column(guess.name))
        values = np.flatnonzero(~cells.missing)
        sample = [cells.word(i) for i in values[:SAMPLE]]
        form = next((f for f in GUESSED if _mostly_dates(sample, f)), None)
        if form is None:
            continue
        words = {cells.word(i): int(cells.counts[i]) for i in values}
        odd = [word for word in words if moment_of(word, form) is None]
        if not odd:
            continue
        dates = sum(words.values()) - sum(words[word] for word in odd)
        yield IntakeFinding(
            kind="words_among_dates",
            column=guess.name,
            severity=HIGH,
            figure=f"{dates:,} of {sum(words.values()):,} values are dates ({form}), but not {_named(odd, words)}",
            sentence="A few words turn a column of dates into categories.",
            mend={"column": guess.name, "missing": odd} if len(odd) <= MAX_STRAY_WORDS else {},
            if_nothing="Each date is a category: a tree cannot ask whether it is early or late, and a new date is unknown.",
        )


def _dates_as_numbers(table: InspectedTable) -> Iterable[IntakeFinding]:
    """Yield a finding for each column of integers that may be dates such as 20241231, or the days of a spreadsheet."""
    file_names = {*table.unparsed.names} - {table.target, *table.ignored}
    columns = table.built[0].columns if table.built is not None else ()
    fractions = {own.name for own in columns if (own.values[~own.missing] % 1 != 0).any()}
    for guess in table.guesses:
        is_candidate = guess.name in file_names and guess.name not in fractions and not guess.identifier
        if not is_candidate or guess.schema.kind is not ColumnKind.NUMERIC:
            continue
        column = table.raw.column(guess.name)
        cells = Cells.of(column)
        numbers = cells.floats()[~cells.missing & cells.numbers]
        if len(numbers) < FEWEST_DAYS or not (numbers == np.round(numbers)).all():
            continue
        written = all(moment_of(f"{number:.0f}", WRITTEN_TOGETHER) is not None for number in numbers)
        named = DATE_NAME.search(guess.name) is not None
        low, high = SPREADSHEET_DAYS
        if not written and not (named and low <= numbers.min() and numbers.max() <= high):
            continue
        example = f"{numbers[0]:.0f}"
        day = moment_of(example, WRITTEN_TOGETHER) if written else None
        date = day.date if day is not None else SPREADSHEET_ORIGIN + datetime.timedelta(days=int(numbers[0]))
        yield IntakeFinding(
            kind="dates_as_numbers",
            column=guess.name,
            severity=MEDIUM if written else LOW,
            figure=f"{len(numbers):,} different integers such as {example}, which may mean {date}",
            sentence="The numbers may be dates. As numbers, their differences are no days."
            if written
            else "The numbers may be days as spreadsheets count them. Format the column as dates before you save the file.",
            mend={"column": guess.name, "kind": f"date:{WRITTEN_TOGETHER}"}
            if written and pa.types.is_string(column.type)
            else {},
            if_nothing="A tree compares the numbers. It cannot ask for a month or a weekday.",
        )


def _unread_values(table: InspectedTable) -> Iterable[IntakeFinding]:
    """Yield a finding for each column of texts that look like dates with two-digit years, or like numbers in no known form."""
    for guess in table.guesses:
        is_text = guess.schema.kind is ColumnKind.CATEGORICAL and guess.distinct >= FEWEST_DAYS
        if not is_text or guess.name in (table.target, *table.ignored, *table.named):
            continue
        if_nothing = (
            "The column is left out, because its texts name the rows."
            if guess.identifier
            else "Each text is a category: a tree cannot ask whether it is early or late, large or small."
        )
        cells = Cells.of(table.raw.column(guess.name))
        words = [cells.word(i) for i in np.flatnonzero(~cells.missing)]
        forms = [form for form in SHORT if all(moment_of(word, form) is not None for word in words)]
        reading = table.reading.columns.get(guess.name)
        if forms:
            yield IntakeFinding(
                kind="unread_dates",
                column=guess.name,
                severity=HIGH,
                figure=f"{len(words):,} different texts such as '{words[0]}' look like dates ({' or '.join(forms)})",
                sentence="Dates with a year of two digits are read only if you name their form.",
                mend={"column": guess.name, "kind": f"date:{forms[0]}"} if len(forms) == 1 else {},
                if_nothing=if_nothing,
            )
        elif _is_in_unknown_form(reading) and not all(map(_is_range, words)) and not _are_names(words):
            yield IntakeFinding(
                kind="unread_numbers",
                column=guess.name,
                severity=HIGH if guess.identifier else MEDIUM,
                figure="" if reading is None else reading.reason,
                sentence="Write the values as plain numbers, or as dates such as 2024-12-31, to let a tree compare them.",
                if_nothing=if_nothing,
            )


def _is_in_unknown_form(reading: ColumnReading | None) -> bool:
    return reading is not None and reading.taken_for == TEXT and reading.reason.startswith(UNKNOWN_FORM)


def _is_range(word: str) -> bool:
    """Return whether a word is a range of numbers, such as 30-34."""
    match = RANGE.fullmatch(word)
    return match is not None and int(match[1]) < int(match[2])


def _are_names(words: Sequence[str]) -> bool:
    """Return whether nearly all words are names made of digits, such as phone numbers."""
    return sum(DIGIT_GROUPS.fullmatch(word) is not None for word in words) >= 0.9 * len(words)


def _named(words: Sequence[str], counts: Mapping[str, int]) -> str:
    """Name the first words with their rows: "'x' (2), 'y' (1) and 3 more"."""
    named = ", ".join(f"'{word[:40]}' ({counts.get(word, 0):,})" for word in words[:SHOWN])
    return f"{named} and {len(words) - SHOWN} more" if len(words) > SHOWN else named


def _ordered(table: InspectedTable) -> Iterable[IntakeFinding]:
    """Yield a finding for each column whose categories have a declared order that no question uses."""
    for guess in table.guesses:
        order = declared_order(table.raw.column(guess.name))
        if len(order) < FEWEST_RANKS or guess.name in (table.target, *table.ignored):
            continue
        yield IntakeFinding(
            kind="ordered_categories",
            column=guess.name,
            severity=LOW,
            figure=" < ".join(order[:SHOWN]) + (f" and {len(order) - SHOWN} more" if len(order) > SHOWN else ""),
            sentence=f"The categories have an order. A tree asks about single categories, never whether a value is at least '{order[1]}'.",
            mend={"column": guess.name, "kind": RANKS},
            if_nothing="The contract keeps the order, and no question uses it.",
        )


def _mostly_dates(words: Sequence[str], form: str) -> bool:
    return bool(words) and 2 * sum(moment_of(word, form) is not None for word in words) > len(words)


def required_leak_share(baseline: float) -> float:
    """Return the share of rows that a column alone must classify correctly to count as a leak.

    Parameters
    ----------
    baseline : float
        The share of the most frequent class.

    Returns
    -------
    float
    """
    return max(LEAK_SHARE, 1 - LEAK_RATIO * (1 - baseline))


def _leaks(table: Table, labels: Labels, profile: Profile) -> Iterable[IntakeFinding]:
    n = len(table)
    if n < FEWEST_ROWS:
        return
    required_share = required_leak_share(profile.baseline)
    dates = _dates_of_parts(table)
    reported: set[str] = set()
    for column, column_profile in zip(table.columns, profile.columns, strict=True):
        few = column_profile.distinct <= max(2 * len(labels.classes), n // ROWS_FOR_EACH_VALUE)
        # a value in one row is not evidence, and at least 2 * distinct - (n - missing) values are in one row
        most_right = 2 * (n - column_profile.distinct) - column_profile.missing
        if not few and max(most_right, column_profile.cut_accuracy * n) < required_share * n:
            continue
        correct, right_by_others = _rows_right_by_value(column, labels)
        by_value = (correct if few else right_by_others) >= required_share * n
        if not by_value and column_profile.cut_accuracy < required_share:
            continue
        source = dates.get(column.name, column.name)
        if source in reported:
            continue
        reported.add(source)
        correct = correct if by_value else round(column_profile.cut_accuracy * n)
        is_coding = by_value and correct == n
        sentence = (
            "The column is the target in another coding: each of its values belongs to one class."
            if is_coding
            else "This column alone gives the class of nearly all rows. Was it known before the outcome?"
        )
        yield IntakeFinding(
            kind="leak",
            column=column.name,
            severity=HIGH,
            figure=f"{correct:,} of {n:,} rows right by this column alone; always the most frequent class: {percent_text(profile.baseline)}",
            sentence=sentence,
            mend=_left_out(column.name, table, dates),
            if_nothing="The tree repeats this column. If new rows do not have it before the outcome, the tree cannot be used.",
        )


def _dates_of_parts(table: Table) -> dict[str, str]:
    """Return the date of each column that was made from a date, such as "paid" for "paid year"."""
    columns = ColumnParsing.from_json(table.reading).columns if table.reading else {}
    return {part: name for name, own in columns.items() if own.taken_for == DATE for part in own.names if part != name}


def _left_out(name: str, table: Table, dates: Mapping[str, str]) -> dict[str, Any]:
    """Return the remedy that leaves a column out, or all parts of its date."""
    if name not in dates:
        return {"column": name, "role": "ignored"}
    parts = [part for part in table.names if dates.get(part) == dates[name]]
    return {"column": dates[name], "columns": parts, "role": "ignored"}


def leak_findings(table: Table, labels: Labels, path: str | Path) -> list[IntakeFinding]:
    """Return what makes accuracy look better than it will be: leaks, copies of rows, telling gaps, late dates.

    Large tables are not searched. The file at `path` is read again only if it has several dates.
    """
    if not len(table) or len(table) * len(table.columns) > MOST_LEAK_CELLS:
        return []
    described = profile(table, labels)
    copies = [finding for finding in _table_findings(described) if finding.kind == "equal_rows_across"]
    found = [*_leaks(table, labels, described), *(finding for finding in copies if finding.severity != LOW)]
    named = {finding.mend.get("column") for finding in found}
    gaps = _emptiness(empty_report(table, labels), table, labels)
    found += [finding for finding in gaps if finding.mend["column"] not in named]
    if len(set(_dates_of_parts(table).values())) > 1:
        assert table.reading is not None
        reading = ColumnParsing.from_json(table.reading)
        raw = read_table(path, **reading.given.structure)
        cells = reading.apply(raw, target=labels.name, needed=())
        found += _late_dates(cells, reading, labels.name, table, labels)
    return found


def _mixed_units(data: Table) -> Iterable[IntakeFinding]:
    """Yield a finding for each column in which some numbers look like the others in another unit."""
    for mixed in mixed_units(data):
        factor = number_text(mixed.factor)
        yield IntakeFinding(
            kind="mixed_units",
            column=mixed.column,
            severity=HIGH,
            figure=f"{mixed.rows:,} of {mixed.cells:,} numbers ({mixed.where}), such as {number_text(mixed.example)}, look like the others times {factor}",
            sentence=f"Some numbers seem to have another unit. Divided by {factor} they are spread like the others.",
            mend={"column": mixed.column, "role": "ignored"},
            if_nothing="A tree compares numbers of different units. Correct them in the file, or leave the column out.",
        )


def _late_dates(
    raw: RawTable, reading: ColumnParsing, target: str, data: Table, labels: Labels
) -> Iterable[IntakeFinding]:
    """Yield a finding for each date that may be known only after the outcome."""
    rows = np.searchsorted(raw.line_numbers, data.row_numbers)
    feature_names = set(data.names)
    for date in late_dates(raw, reading.columns, target, rows, labels.codes):
        if not feature_names.intersection(date.made):
            continue
        yield IntakeFinding(
            kind="date_after_outcome",
            column=date.column,
            severity=HIGH if date.certain else MEDIUM,
            figure=date.figure,
            sentence=f"This date follows '{date.earlier}'. Is it known before the outcome, or written down after it?",
            mend={"column": date.column, "columns": list(date.made), "role": "ignored"},
            if_nothing="A tree may ask a date that new rows do not have yet.",
        )


def _rows_right_by_value(column: Column, labels: Labels) -> tuple[int, int]:
    """Return how many rows have the most frequent class of their value, with and without counting the row itself."""
    values = np.where(column.missing, np.inf, column.values)
    _, codes = np.unique(values, return_inverse=True)
    k = len(labels.classes)
    joint = np.bincount(codes.reshape(-1) * k + labels.codes, minlength=(int(codes.max()) + 1) * k).reshape(-1, k)
    largest = joint.max(axis=1)
    second = np.partition(joint, -2, axis=1)[:, -2] if k > 1 else np.zeros_like(largest)
    return int(largest.sum()), int(largest[largest - 1 > second].sum())


def _emptiness(report: EmptyReport, table: Table, labels: Labels) -> Iterable[IntakeFinding]:
    """Yield a finding for each column, and each date, in which empty cells depend on the class."""
    dates = _dates_of_parts(table)
    reported: set[str] = set()
    for column in report.columns:
        source = dates.get(column.name, column.name)
        if not column.telling or source in reported:
            continue
        reported.add(source)
        empty = np.array(column.classes_empty) / sum(column.classes_empty)
        present = np.array(column.classes_present) / sum(column.classes_present)
        label = int(np.abs(empty - present).argmax())
        yield IntakeFinding(
            kind="emptiness_predicts",
            column=column.name,
            severity=MEDIUM,
            figure=f"'{labels.classes[label]}': {percent_text(float(empty[label]))} where empty, {percent_text(float(present[label]))} elsewhere",
            sentence="Whether the cell is empty depends on the class. Often this comes from how the data were collected.",
            mend=_left_out(column.name, table, dates),
            if_nothing="A tree may ask whether the cell is empty. Check that this will be so for new rows.",
        )


def _table_findings(profile: Profile) -> Iterable[IntakeFinding]:
    for name in profile.constant_columns:
        yield IntakeFinding(
            kind="constant",
            column=name,
            severity=LOW,
            figure="1 value",
            sentence="The column has one value, so no tree can use it.",
            mend={"column": name, "role": "ignored"},
            if_nothing="The column has no effect.",
        )
    if profile.duplicate_rows:
        share = profile.duplicate_rows / profile.rows
        yield IntakeFinding(
            kind="equal_rows_across",
            column="",
            severity=MEDIUM if share >= MANY_COPIES else LOW,
            figure=f"{profile.duplicate_rows:,} of {profile.rows:,} rows repeat another one",
            sentence="Equal rows can stand on both sides of a holdout, so a tree is tested on rows that trained it.",
            if_nothing="Test accuracy can be too high. Remove copies of the same case from the file.",
        )
    if profile.conflicting_rows:
        yield IntakeFinding(
            kind="conflicting_rows",
            column="",
            severity=LOW,
            figure=f"{profile.conflicting_rows:,} of {profile.rows:,} rows",
            sentence=profile.floor_sentence,
            if_nothing="The error stays. A column that tells these rows apart would help.",
        )
    single = [name for name, rows in profile.class_counts.items() if rows == 1]
    if single and profile.rows >= FEWEST_ROWS:
        yield IntakeFinding(
            kind="rare_class",
            column="",
            severity=MEDIUM,
            figure=f"{count_words(len(single), 'class', 'classes')} with one row: {list_names(single[:SHOWN])}",
            sentence="Nothing can be learned from one row. It may be a spelling mistake, or a line of totals.",
            if_nothing="The class stays. A tree that is tested on other rows never meets it.",
        )
    if profile.baseline >= COMMON_CLASS:
        common = max(profile.class_counts, key=lambda name: profile.class_counts[name])
        yield IntakeFinding(
            kind="base_rate",
            column="",
            severity=LOW,
            figure=f"'{common}': {percent_text(profile.baseline)} of the rows",
            sentence=f"Always answering '{common}' is right on {percent_text(profile.baseline)}. Compare every accuracy with this.",
            if_nothing="A tree with a high accuracy may have learned nothing.",
        )


def mark_identifiers(tree: Tree, table: Table) -> Tree:
    """Return the tree with `names_rows` in the schema of each used column that names or counts the rows of a table."""
    used = set(tree.used_columns)
    schemas = tuple(
        replace(schema, names_rows=_row_naming(column)) if j in used else schema
        for j, (schema, column) in enumerate(zip(tree.schema, table.columns, strict=True))
    )
    return replace(tree, schema=schemas)


def _row_naming(column: Column) -> RowNaming | None:
    values = column.values[~column.missing]
    if column.kind is ColumnKind.CATEGORICAL:
        return RowNaming.CERTAIN if len(values) > FEWEST_ROWS and len(np.unique(values)) == len(values) else None
    if column.kind is not ColumnKind.NUMERIC:
        return None
    if numbers_rows(column.name, values):
        return RowNaming.CERTAIN
    return RowNaming.LIKELY if may_number_rows(values, column.name) else None


def tree_warnings(tree: Tree, identifiers: Collection[str] = ()) -> list[str]:
    """Return warnings about a tree: columns that name or count the rows, and classes that look alike.

    `identifiers` are such columns that the schema of the tree does not mark, as in older model files.
    """
    used = [tree.schema[j] for j in tree.used_columns]
    certain = [c.name for c in used if c.names_rows is RowNaming.CERTAIN or c.name in identifiers]
    likely = [c.name for c in used if c.names_rows is RowNaming.LIKELY and c.name not in certain]
    sentences = (_warn_identifiers(certain), _warn_likely_identifiers(likely), warn_alike_classes(tree))
    return [words for words in sentences if words]


def warn_alike_classes(tree: Tree) -> str:
    """Return a warning about classes that look alike, with their training rows; "" if there are none."""
    counts = dict(zip(tree.classes, tree.nodes[0].counts, strict=True))
    groups = alike_groups(counts)
    if not groups:
        return ""
    return (
        f"Classes that look alike are different classes here: {_alike_figure(groups, counts)}. "
        "If they mean the same, merge them and train again."
    )


def _warn_likely_identifiers(names: Sequence[str]) -> str:
    if not names:
        return ""
    return (
        f"The tree asks {list_names(names)}. {'Its' if len(names) == 1 else 'Their'} numbers are all different and may name the rows. "
        "If they do, leave the column out and train again."
    )


def _warn_identifiers(used_names: Sequence[str]) -> str:
    """Return a warning about columns of a tree that name or count the rows; "" if there are none."""
    if not used_names:
        return ""
    return (
        f"The tree asks {list_names(used_names)}. {'Its' if len(used_names) == 1 else 'Their'} values name or count the training rows, "
        "so the answer says nothing about a new row. Leave the column out and train again."
    )
