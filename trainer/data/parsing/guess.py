"""Guess the format of each column of a raw table.

Evidence comes from the column's cells or, if they are ambiguous, from other columns. A format is used only if every
cell fits it, except known words for "missing". If two formats fit with different results, the user
must choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trainer.data.formats.parquet_file import declared_order
from trainer.data.formats.raw import RawTable
from trainer.data.parsing.cells import Cells
from trainer.data.parsing.column import (
    ASK,
    DATE,
    NUMBER,
    PLAIN,
    RANKS,
    TEXT,
    ColumnReading,
    either_switch,
    kind_of,
    rank_spellings,
    ranks_of,
)
from trainer.data.parsing.dates import FORMATS, GUESSED, TIME, moment_of
from trainer.data.parsing.draft import MAX_SLIP_SHARE, SAMPLE, Draft, Words, gaps_reason, how_many, quote_words
from trainer.data.parsing.given import ParsingChoices
from trainer.data.parsing.guess_dates import dates_of, no_dates
from trainer.data.parsing.numbers import (
    BODIES,
    BRACKETS,
    NAMES,
    NEGATIVE,
    NumberForm,
    NumberParts,
    Way,
    account_like,
    parts_of,
    ways_of,
)
from trainer.data.parsing.words import is_missing_word

MAX_CODES = 10  # in a column with words, at most this many distinct numbers may be codes
MAX_UNIT_LETTERS = 4  # a word of at most this many letters after a digit may be a number with a unit, or a month

UNKNOWN_FORM = "its values look like numbers or times, but not in a form that is known"


def guess_columns(raw: RawTable, choices: ParsingChoices) -> dict[str, ColumnReading]:
    """Guess the readings of a table's columns, by name.

    The result has only columns that need special parsing, a note, or a decision of the user.
    """
    drafts = [_draft(name, column, raw, choices) for name, column in zip(raw.names, raw.columns, strict=True)]
    decimals = _Decimals(raw, drafts)
    settled = [_settle(draft, decimals, choices) for draft in drafts]
    thousands = {s.number.thousands for s in settled if s.number is not None and s.number.thousands}
    settled = [
        _as_elsewhere(reading, draft, thousands, choices) for reading, draft in zip(settled, drafts, strict=True)
    ]
    if decimals.found == {","}:
        settled = [_points_are_thousands(reading, raw, decimals) for reading in settled]
    elif not decimals.found:
        settled = _maybe_thousands(settled, raw, choices)
    return {own.name: own for own in settled if own.taken_for != PLAIN or own.missing or own.reason}


def _draft(name: str, column: pa.Array, raw: RawTable, choices: ParsingChoices) -> Draft:
    untouched = Draft(ColumnReading(name=name, taken_for=PLAIN))
    if choices.merge.get(name) and pa.types.is_string(column.type):
        return Draft(
            ColumnReading(
                name=name,
                taken_for=PLAIN,
                missing=choices.words(name),
                spellings=choices.merge[name],
                reason="you said so",
                given=True,
            )
        )
    spec, how = kind_of(choices.kinds[name]) if name in choices.kinds else ("", "")
    if (categories := _categories(name, column, choices, spec, how)) is not None:
        return Draft(categories)
    if not pa.types.is_string(column.type) or (name == raw.detected.index and not spec):
        return untouched  # row names are not a feature, so a date in them needs no parsing
    signs = [choices.sign(what, name) for what in ("decimal", "thousands")]
    if not spec and not choices.words(name) and signs[0] in (None, ".") and not signs[1] and _all_plain(column):
        return untouched
    words = _word_column(name, column, raw, set(choices.words(name)))
    if not words.words or spec == "binary":
        return Draft(_plain_or_missing(name, choices, PLAIN, "you said so"))
    if spec in (DATE, TIME):
        forms = FORMATS
        if spec == TIME:
            forms = (TIME,)
        elif how:
            forms = (how,)
        return Draft(dates_of(words, forms, choices, is_chosen=True) or no_dates(words, forms))
    is_requested = bool(spec or choices.words(name)) or any(sign is not None for sign in signs)
    if words.plain.all() and not is_requested:
        return untouched
    if not spec and not _worth_a_look(words):
        return Draft(_plain_or_missing(name, choices, PLAIN, "you said so"))
    if not spec and (date_reading := dates_of(words, (*GUESSED, TIME), choices, is_chosen=False)) is not None:
        return Draft(date_reading)
    return _with_a_note(_numbers(words, choices, how, is_chosen=spec == NUMBER), words)


def _categories(name: str, column: pa.Array, choices: ParsingChoices, spec: str, how: str) -> ColumnReading | None:
    """Return the reading of a column that the user declares to be text or ranks; None for another kind."""
    if spec == RANKS:
        return _ranks(name, column, how, choices)
    return _plain_or_missing(name, choices, TEXT, "you said so") if spec == TEXT else None


def _ranks(name: str, column: pa.Array, order: str, choices: ParsingChoices) -> ColumnReading:
    """Return the reading of categories as their ranks."""
    cells = Cells.of(column)
    words = [cells.word(i) for i in np.flatnonzero(~cells.missing)]
    gaps = choices.words(name)
    words = [word for word in words if word not in gaps]
    ranks = ranks_of(name, words, order, declared_order(column))
    return ColumnReading(
        name=name,
        taken_for=PLAIN,
        missing=gaps,
        spellings=rank_spellings(ranks, words),
        ranks=ranks,
        reason="you said so",
        given=True,
    )


def _with_a_note(draft: Draft, words: Words) -> Draft:
    """Turn a plain column into text with a reason if nearly all words look like numbers, but in no known form."""
    reading = draft.reading
    few = len(words.words) <= MAX_CODES and not any(map(_has_foreign_digit, words.words))
    if reading.taken_for != PLAIN or reading.given or draft.ways or few:
        return draft
    odd = [w for w, plain in zip(words.words, words.plain, strict=True) if not plain and not _is_number(w)]
    if not odd or 10 * sum(_like_a_number(word) for word in words.words) < 9 * len(words.words):
        return draft
    word = words.first([w for w in odd if moment_of(w, TIME) is None] or odd)
    reason = f"{UNKNOWN_FORM}, such as '{word[:60]}' on {words.where(word).lower()}"
    return Draft(replace(reading, taken_for=TEXT, reason=reason))


def _has_foreign_digit(word: str) -> bool:
    """Return whether a word has a digit of another alphabet, or one of full width."""
    return any(c.isdecimal() and not c.isascii() for c in word)


def _is_number(word: str) -> bool:
    number_parts = parts_of(word)
    return number_parts is not None and bool(ways_of(number_parts.core))


def _like_a_number(word: str) -> bool:
    """Return whether a word begins with a digit, or a sign and a digit, and has few letters."""
    begin = word.lstrip("+-(<>=~≤≥≈±#'\" ")
    return begin[:1].isdigit() and sum(c.isalpha() for c in word) <= MAX_UNIT_LETTERS


def _plain_or_missing(name: str, choices: ParsingChoices, taken_for: str, reason: str) -> ColumnReading:
    is_chosen = bool(choices.words(name)) or taken_for == TEXT
    return ColumnReading(
        name=name,
        taken_for=PLAIN if choices.words(name) else taken_for,
        missing=choices.words(name),
        reason=reason if is_chosen else "",
        given=is_chosen,
    )


def _all_plain(column: pa.Array) -> bool:
    """Return whether every cell is a plain number, without parsing each word."""
    try:
        pc.cast(column, pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _word_column(name: str, column: pa.Array, raw: RawTable, missing: set[str]) -> Words:
    cells = Cells.of(column)
    values = ~cells.marks & ~np.array([word in missing for word in cells.words], bool)
    first = np.zeros(len(cells.words), np.int64)
    first[cells.index[::-1]] = np.arange(len(cells.index))[::-1]
    at = np.flatnonzero(values)
    plain = cells.numbers | cells.truths | cells.infinite
    return Words(
        name=name,
        words=tuple(cells.words[i] for i in at),
        counts=cells.counts[at],
        lines=raw.line_numbers[first[at]],
        plain=plain[at],
        place=raw.place,
    )


def _worth_a_look(words: Words) -> bool:
    """Return whether at least half of the first words could be numbers, dates, or words for "missing"."""
    some = words.words[:SAMPLE]
    fit = sum(any(c.isdigit() for c in word) or is_missing_word(word) for word in some)
    return 2 * fit >= len(some)


# -- numbers -----------------------------------------------------------------------------------------------------------


def _numbers(words: Words, choices: ParsingChoices, how: str, *, is_chosen: bool) -> Draft:
    """Guess the number format of a column from its cells; `ways` stays open if other columns may decide."""
    name = words.name
    extra = choices.words(name)
    gaps = tuple(w for w, plain in zip(words.words, words.plain, strict=True) if not plain and is_missing_word(w))
    values = [(w, bool(p)) for w, p in zip(words.words, words.plain, strict=True) if w not in set(gaps)]
    parts = {
        w: number_parts for w, _ in values if (number_parts := parts_of(w)) is not None and ways_of(number_parts.core)
    }
    odd = [w for w, _ in values if w not in parts]
    plain = all(p for _, p in values)
    signs = choices.sign("decimal", name), choices.sign("thousands", name)
    is_requested = is_chosen or how or any(sign is not None for sign in signs)
    if (plain and not is_requested and not gaps) or not parts:
        return Draft(
            _plain_or_missing(name, choices, PLAIN, "you said so") if not is_chosen else _no_numbers(words, odd)
        )
    if odd:
        return Draft(_with_odd(words, parts, odd, choices, plain_parts=_plain_parts(values), is_chosen=is_chosen))
    if plain and gaps and not is_chosen and _may_be_codes(words, parts):
        return Draft(_codes_beside(words, gaps))
    units = {own.unit for own in parts.values()}
    if len(units) > 1:
        return Draft(_several_units(words, parts))
    if (doubt := _doubtful_negatives(words, parts, is_chosen=bool(is_requested))) is not None:
        return Draft(doubt)
    if "/" in how and (form := _either_form(parts, how[0])) is not None:
        return Draft(_either_sign(words, parts, form, (*extra, *gaps)))
    ways = _possible(parts, signs, how)
    if not ways:
        return Draft(_no_common_way(words, parts, signs, how))
    draft = ColumnReading(name=name, taken_for=NUMBER, missing=(*extra, *gaps), given=bool(is_chosen or how or extra))
    return Draft(draft, words, ways, parts, gaps)


def _plain_parts(values: Sequence[tuple[str, bool]]) -> bool:
    """Return whether all words that are numbers are plain ones."""
    return all(p or parts_of(w) is None for w, p in values)


def _possible(parts: dict[str, NumberParts], signs: tuple[str | None, str | None], how: str) -> frozenset[Way]:
    """Return the allowed number formats that all cells fit."""
    ways = frozenset(_allowed_ways(signs, how))
    for core in {number_parts.core for number_parts in parts.values()}:
        ways &= ways_of(core)
        if not ways:
            break
    return ways


def _allowed_ways(signs: tuple[str | None, str | None], how: str) -> list[Way]:
    """Return the number formats that agree with the given decimal sign and thousands separator, or with the switch `how`."""
    if "/" in how:
        return [(how[0], "")]
    if len(how) > 1:
        return [(how[0], how[1:])]
    decimal, thousands = (how, None) if how else signs
    ways = [way for way in BODIES if decimal in (None, way[0])]
    return [way for way in ways if thousands is None or (way[1] in (thousands, "") and way[0] != thousands)]


def _with_odd(
    words: Words,
    parts: dict[str, NumberParts],
    odd: Sequence[str],
    user_choices: ParsingChoices,
    *,
    plain_parts: bool,
    is_chosen: bool,
) -> ColumnReading:
    """Return the reading of a column in which some words are not numbers: undecided, text or plain."""
    numbers = words.rows(list(parts))
    all_rows = int(words.counts.sum())
    word = words.first(odd)
    facts = f"{words.where(word)}: column '{words.name}' has '{word[:60]}' among {numbers} numbers"
    choices = ("text",)
    if is_chosen or (not plain_parts and words.rows(odd) <= MAX_SLIP_SHARE * all_rows):
        return ColumnReading(
            name=words.name, taken_for=ASK, question=facts + how_many(words, odd), choices=choices, odd=tuple(odd)
        )
    if user_choices.words(words.name):
        return _plain_or_missing(words.name, user_choices, PLAIN, "you said so")
    if 2 * numbers > all_rows and len(parts) > MAX_CODES:
        reason = f"{numbers} of {all_rows} values are numbers, but {words.where(word).lower()} has '{word[:60]}'"
        return ColumnReading(name=words.name, taken_for=TEXT, reason=reason, choices=("number",), odd=tuple(odd))
    return ColumnReading(name=words.name, taken_for=PLAIN)


def _no_numbers(words: Words, odd: Sequence[str]) -> ColumnReading:
    word = words.first(odd) if odd else words.words[0]
    question = f"{words.where(word)}: column '{words.name}' has '{word[:60]}', which is not a number"
    return ColumnReading(name=words.name, taken_for=ASK, question=question, choices=(TEXT,), given=True, odd=tuple(odd))


def _may_be_codes(words: Words, parts: dict[str, NumberParts]) -> bool:
    return len(parts) <= MAX_CODES and words.rows(list(parts)) >= 2 * len(parts)


def _codes_beside(words: Words, gaps: Sequence[str]) -> ColumnReading:
    reason = (
        f"only {len(words.words) - len(gaps)} different numbers beside {quote_words(gaps)}: kept as categories, as codes are; choose number "
        f"to read {quote_words(gaps)} as missing"
    )
    return ColumnReading(name=words.name, taken_for=TEXT, reason=reason, choices=("number",))


def _several_units(words: Words, parts: dict[str, NumberParts]) -> ColumnReading:
    rows = {
        unit: words.rows([w for w, number_parts in parts.items() if number_parts.unit == unit])
        for unit in {p.unit for p in parts.values()}
    }
    usual = max(rows, key=lambda unit: (rows[unit], unit))
    word = words.first([w for w, own in parts.items() if own.unit != usual])
    what = f"'{usual}'" if usual else "no unit"
    question = (
        f"{words.where(word)}: column '{words.name}' has '{word[:60]}', but {rows[usual]} other values have {what}"
    )
    return ColumnReading(name=words.name, taken_for=ASK, question=question, choices=(TEXT,))


def _doubtful_negatives(words: Words, parts: dict[str, NumberParts], *, is_chosen: bool) -> ColumnReading | None:
    """Return the doubt about reading (5) or 5- as negative numbers; None if there is none, or no such word."""
    negatives = {word: number_parts for word, number_parts in parts.items() if number_parts.negative}
    styles = {number_parts.negative for number_parts in negatives.values()}
    if not styles:
        return None
    word = words.first(list(negatives))
    if len(styles) > 1:
        question = f"{words.where(word)}: column '{words.name}' has '{word[:60]}', but negative numbers are written in another way, too"
        return ColumnReading(name=words.name, taken_for=ASK, question=question, choices=(TEXT,))
    if BRACKETS in styles:
        sure = len(negatives) < len(parts)
    else:  # 5- can also be a grade, or an open range
        sure = any("." in number_parts.core or "," in number_parts.core for number_parts in negatives.values())
    if sure or is_chosen:
        return None
    reason = f"{words.where(word).lower()} has '{word[:60]}', which may be a negative number or a code"
    return ColumnReading(name=words.name, taken_for=TEXT, reason=reason, choices=(NUMBER,))


def _no_common_way(
    words: Words, parts: dict[str, NumberParts], signs: tuple[str | None, str | None], how: str
) -> ColumnReading:
    """Return the question for cells that no format fits: the first one that differs from the usual or chosen format."""
    fit = {
        way: words.rows([w for w, number_parts in parts.items() if way in ways_of(number_parts.core)]) for way in BODIES
    }
    allowed = _allowed_ways(signs, how)
    way = max(allowed or list(BODIES), key=lambda w: (fit[w], -list(BODIES).index(w)))
    odd = [w for w, own in parts.items() if way not in ways_of(own.core)]
    word = words.first(odd)
    form = NumberForm(decimal=way[0], thousands=way[1]).words
    do = "does" if words.rows(odd) == 1 else "do"
    question = f"{words.where(word)}: column '{words.name}' has {quote_words(odd)}, which {do} not fit {fit[way]} other values ({form})"
    choices: tuple[str, ...] = (TEXT,)
    if _either_form(parts, way[0]) is not None:
        choices = (either_switch(way[0]), TEXT)
    return ColumnReading(
        name=words.name, taken_for=ASK, question=question, choices=choices, given=bool(how), odd=tuple(odd)
    )


def _either_form(parts: dict[str, NumberParts], decimal: str) -> NumberForm | None:
    """Return the format in which point and comma are decimal signs; None if a word does not have it."""
    unit = next(iter(parts.values())).unit
    form = NumberForm(decimal=decimal, unit=unit, negative=max(own.negative for own in parts.values()), either=True)
    return None if any(form.plain(word) is None for word in parts) else form


def _either_sign(
    words: Words, parts: dict[str, NumberParts], form: NumberForm, missing: tuple[str, ...]
) -> ColumnReading:
    rows = words.rows(list(parts))
    return ColumnReading(
        name=words.name, taken_for=NUMBER, number=form, missing=missing, given=True, choices=(TEXT,),
        reason=f"all {rows} values are numbers; comma and point are both decimal signs, as you said",
    )  # fmt: skip


# -- evidence from other columns ----------------------------------------------------------------------------------------


class _Decimals:
    """The decimal signs that columns use without ambiguity."""

    def __init__(self, raw: RawTable, drafts: Sequence[Draft]) -> None:
        self.by: dict[str, str] = {}
        self.raw = raw
        for draft in drafts:
            decimals = {way[0] for way in draft.ways}
            if len(decimals) == 1 and _uses_signs(draft):
                self.by.setdefault(decimals.pop(), draft.reading.name)
        if any(len({way[0] for way in d.ways}) > 1 for d in drafts) or "," in self.by:
            self._plain_columns(drafts)
        self.found = set(self.by)

    def _plain_columns(self, drafts: Sequence[Draft]) -> None:
        """Add the decimal point of the first plain column whose points cannot separate thousands."""
        for draft in drafts:
            if draft.reading.taken_for == PLAIN and "." not in self.by:
                column = self.raw.column(draft.reading.name)
                if pa.types.is_string(column.type) and not points_fit_thousands(column) and _is_plain(column):
                    self.by["."] = draft.reading.name


def _is_plain(column: pa.Array) -> bool:
    cells = Cells.of(column)
    values = ~cells.marks
    return bool(values.any() and cells.numbers[values].all())


def points_fit_thousands(column: pa.Array) -> bool:
    """Return whether every point of a column could separate thousands; True without points."""
    cells = pc.filter(column, pc.match_substring(column, "."))
    return not len(cells) or bool(
        pc.all(pc.match_substring_regex(pc.utf8_trim_whitespace(cells), r"^[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+$")).as_py()
    )


def _uses_signs(draft: Draft) -> bool:
    return any("," in number_parts.core or "." in number_parts.core for number_parts in draft.parts.values())


def _settle(draft: Draft, decimals: _Decimals, choices: ParsingChoices) -> ColumnReading:
    """Return the final reading of a column; other columns may decide its decimal sign."""
    reading = draft.reading
    words = draft.words
    if words is None or not draft.ways:
        return reading
    ways = draft.ways
    why = ""
    if len({way[0] for way in ways}) > 1 and _uses_signs(draft):
        if len(decimals.found) != 1:
            return _open_sign(words, draft, decimals)
        sign = next(iter(decimals.found))
        if (".", "") in ways and sign == ".":
            ways = frozenset({(".", "")})
        ways = frozenset(way for way in ways if way[0] == sign)
        why = f"; the decimal {NAMES[sign]} is taken from column '{decimals.by[sign]}': this column alone does not tell"
    way = min(ways, key=lambda w: (w[1] != "", w[0] != ".", w[1]))
    cores = [p.core for p in draft.parts.values()]
    if way[1] and not reading.given and account_like(cores):
        reason = (
            "every value has the same number of groups of digits, as telephone numbers and accounts have: kept as text"
        )
        return ColumnReading(name=reading.name, taken_for=TEXT, reason=reason, choices=("number",))
    unit = next(iter(draft.parts.values())).unit
    negative = max(parts.negative for parts in draft.parts.values())
    form = NumberForm(decimal=way[0], thousands=way[1], unit=unit, negative=negative)
    if form == NumberForm() and not reading.missing and not reading.given and words.plain.all():
        return ColumnReading(name=reading.name, taken_for=PLAIN)
    reason = _number_reason(words, draft, form) + why
    return replace(reading, number=form, reason=reason, choices=(*_other_ways(draft, form), TEXT))


def _open_sign(words: Words, draft: Draft, known: _Decimals) -> ColumnReading:
    """Return the reading if both decimal signs are possible: plain if nothing contradicts a decimal point, else a question."""
    plain = (".", "") in draft.ways
    if plain and "," not in known.found and not draft.reading.given and not any(p.unit for p in draft.parts.values()):
        if not draft.reading.missing:
            return ColumnReading(name=words.name, taken_for=PLAIN)
        form = NumberForm()
        return replace(draft.reading, number=form, reason=_number_reason(words, draft, form), choices=(TEXT,))
    word = words.first(
        [w for w, number_parts in draft.parts.items() if "," in number_parts.core or "." in number_parts.core]
    )
    sign = NAMES["," if "," in draft.parts[word].core else "."]
    many = "the other columns have both signs" if known.found else "no other value of the file tells"
    question = f"{words.where(word)}: column '{words.name}' has '{word}': its {sign} can be a decimal sign or stand between thousands, and {many}"
    return ColumnReading(name=words.name, taken_for=ASK, question=question, choices=(*_other_ways(draft, None), TEXT))


def _other_ways(draft: Draft, form: NumberForm | None) -> tuple[str, ...]:
    """Return one switch for each possible decimal sign, that of `form` first."""
    simplest: dict[str, Way] = {}
    for way in sorted(draft.ways, key=lambda w: (w[1] != "", w[1])):
        simplest.setdefault(way[0], way)
    if form is not None:
        simplest = {
            form.decimal: (form.decimal, form.thousands),
            **{d: w for d, w in simplest.items() if d != form.decimal},
        }
    return tuple(f"number:{decimal}{thousands}" for decimal, thousands in simplest.values())


def _as_elsewhere(reading: ColumnReading, draft: Draft, thousands: set[str], choices: ParsingChoices) -> ColumnReading:
    """Give a column whose values show no thousands separator the separator of the other columns.

    New rows may then have it.
    """
    if reading.number is None or reading.number.thousands or len(thousands) != 1 or reading.given:
        return reading
    sign = next(iter(thousands))
    if (reading.number.decimal, sign) not in draft.ways or choices.sign("thousands", reading.name) == "":
        return reading
    return replace(
        reading,
        number=replace(reading.number, thousands=sign),
        reason=reading.reason + f"; {NAMES[sign]} between thousands as elsewhere",
    )


def _points_are_thousands(reading: ColumnReading, raw: RawTable, decimals: _Decimals) -> ColumnReading:
    """Read points as thousands separators in a file with decimal commas, if three digits follow each point."""
    if reading.taken_for != PLAIN or reading.missing:
        return reading
    column = raw.column(reading.name)
    if not pa.types.is_string(column.type) or not pc.any(pc.match_substring(column, ".")).as_py():
        return reading
    if not points_fit_thousands(column) or not _is_plain(column):
        return reading
    reason = f"points between thousands: column '{decimals.by[',']}' has decimal commas, and every point stands before three digits"
    form = NumberForm(decimal=",", thousands=".")
    return ColumnReading(
        name=reading.name, taken_for=NUMBER, number=form, reason=reason, choices=("number:,.", "number:.", TEXT)
    )


def _maybe_thousands(settled: Sequence[ColumnReading], raw: RawTable, choices: ParsingChoices) -> list[ColumnReading]:
    """Add a note to plain columns whose points all precede three digits, if no column has a sure decimal point."""
    pointed = {
        reading.name
        for reading in settled
        if reading.taken_for == PLAIN and not reading.missing and _has_points(raw.column(reading.name))
    }
    if not all(_points_look_like_thousands(raw.column(name)) for name in pointed):
        return list(settled)
    reason = "points are taken for decimal signs, but every one stands before three digits: they could also separate thousands"
    doubt = {
        n
        for n in pointed
        if n not in choices.kinds and choices.sign("decimal", n) is None and choices.sign("thousands", n) is None
    }
    return [
        replace(reading, reason=reason, choices=("number:,.", "number:.")) if reading.name in doubt else reading
        for reading in settled
    ]


def _has_points(column: pa.Array) -> bool:
    return pa.types.is_string(column.type) and bool(pc.any(pc.match_substring(column, ".")).as_py())


def _points_look_like_thousands(column: pa.Array) -> bool:
    """Return whether the points may separate thousands: no cell contradicts, such as four digits without a point."""
    some = column.slice(0, SAMPLE)  # a sample suffices to reject nearly every column of decimals
    return points_fit_thousands(some) and points_fit_thousands(column) and _is_plain(column) and not _long_whole(column)


def _long_whole(column: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(column, r"^\s*[+-]?([0-9]{4}|0[0-9])")).as_py())


def _number_reason(words: Words, draft: Draft, form: NumberForm) -> str:
    rows = words.rows(list(draft.parts))
    reason = (
        f"all {rows} values are numbers"
        if not form.unit
        else f"all {rows} values are numbers with the unit {form.unit}"
    )
    for sign, what in (
        (form.decimal, f"decimal {NAMES[form.decimal]}"),
        (form.thousands, f"{NAMES[form.thousands]} between thousands"),
    ):
        words_with_sign = [w for w, number_parts in draft.parts.items() if sign and sign in number_parts.core]
        if words_with_sign and (sign != "." or form.thousands or form.decimal != "."):
            word = words.first(words_with_sign)
            reason += f"; {what}, as {words.where(word).lower()} has '{word}'"
    if form.negative:
        word = words.first([w for w, own in draft.parts.items() if own.negative])
        reason += f"; {NEGATIVE[form.negative]}, as {words.where(word).lower()} has '{word}'"
    return reason + gaps_reason(words, draft.missing)
