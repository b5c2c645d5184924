"""Guess the format of a column's dates or times, or ask."""

from __future__ import annotations

from collections.abc import Sequence

from trainer.data.parsing.column import ASK, DATE, TEXT, ColumnReading
from trainer.data.parsing.dates import MOST_STAND_INS, TIME, DateForm, form_for, is_no_day, moment_of, stand_ins
from trainer.data.parsing.draft import MAX_SLIP_SHARE, SAMPLE, Words, gaps_reason, how_many
from trainer.data.parsing.given import ParsingChoices
from trainer.data.parsing.words import is_missing_word


def dates_of(words: Words, forms: Sequence[str], given: ParsingChoices, *, is_chosen: bool) -> ColumnReading | None:
    """Return the reading of a column's dates or times, or the question about them; None if it does not look like dates."""
    odd_dates = stand_ins(words.words)
    gaps = tuple(word for word in words.words if is_missing_word(word) or word in odd_dates)
    values = tuple(word for word in words.words if word not in gaps)
    sample = values[:SAMPLE]
    likely = [f for f in forms if sample and 2 * sum(moment_of(word, f) is not None for word in sample) >= len(sample)]
    if not likely:
        return None
    no_days = _no_days(words, values, likely)
    gaps = (*gaps, *no_days)
    values = tuple(word for word in values if word not in no_days)
    forms_and_odd = {form: form_for(values, form) for form in likely}
    fitting = {form: date_form for form, (date_form, odd) in forms_and_odd.items() if not odd}
    missing = (*given.words(words.name), *gaps)
    if len(fitting) == 1 or _same_days(fitting, values):
        made = next(iter(fitting.values()))
        return ColumnReading(
            name=words.name,
            taken_for=DATE,
            date=made,
            missing=missing,
            given=is_chosen or bool(given.words(words.name)),
            reason=_date_reason(words, made, values, likely, forms_and_odd, gaps),
            choices=(*map(_date_switch, fitting), TEXT),
        )
    choices = (*(_date_switch(form) for form in (fitting or likely)), TEXT)
    if fitting:
        other = list(fitting)
        word = next(w for w in values if len({moment_of(w, form) for form in other}) > 1)
        question = (
            f"{words.where(word)}: column '{words.name}' has '{word}', which can be {' or '.join(other)}, and no date of the column "
            "tells which"
        )
        return ColumnReading(name=words.name, taken_for=ASK, question=question, choices=choices)
    made, odd = min(forms_and_odd.values(), key=lambda pair: words.rows(pair[1]))
    between = all(any(moment_of(word, form) is not None for form in likely) for word in odd)
    if not (is_chosen or between or words.rows(odd) <= MAX_SLIP_SHARE * words.counts.sum()):
        return None
    if likely == [TIME] and not is_chosen and any(moment_of(word, TIME) is None for word in odd):
        return None  # the column has durations such as 30:15, which are not times of day
    word = words.first(odd)
    question = f"{words.where(word)}: column '{words.name}' has '{word[:60]}' among dates as {_date_name(made)}"
    if len(likely) == 1:
        choices = (TEXT,)  # with one likely form, naming it would change nothing, so the only choice is text
    no_dates_at_all = tuple(word for word in odd if all(moment_of(word, form) is None for form in likely))
    return ColumnReading(
        name=words.name, taken_for=ASK, question=question + how_many(words, odd), choices=choices, odd=no_dates_at_all
    )


def _no_days(words: Words, values: Sequence[str], forms: Sequence[str]) -> tuple[str, ...]:
    """Return the values that are dates of no real day, such as 30 February; () if there are too many of them."""
    no_days = tuple(word for word in values if is_no_day(word, forms))
    few = len(no_days) <= MOST_STAND_INS and words.rows(no_days) <= MAX_SLIP_SHARE * words.counts.sum()
    return no_days if few else ()


def no_dates(words: Words, forms: Sequence[str]) -> ColumnReading:
    word = words.words[0]
    what = forms[0] if len(forms) == 1 else "in a form that is known"
    question = f"{words.where(word)}: column '{words.name}' has '{word[:60]}', which is not a {'time of day' if what == TIME else f'date {what}'}"
    return ColumnReading(
        name=words.name, taken_for=ASK, question=question, choices=(TEXT,), given=True, odd=words.words
    )


def _same_days(fitting: dict[str, DateForm], values: Sequence[str]) -> bool:
    """Return whether all fitting formats give the same days."""
    return bool(fitting) and all(len({moment_of(word, form) for form in fitting}) == 1 for word in values)


def _date_switch(form: str) -> str:
    return TIME if form == TIME else f"date:{form}"


def _date_name(date_form: DateForm) -> str:
    clock = " with a time of day" if date_form.clock else ""
    zone = f" and the zone {date_form.zone}" if date_form.zone else ""
    return ("times of day" if date_form.form == TIME else date_form.form) + clock + zone


def _date_reason(
    words: Words,
    date_form: DateForm,
    values: Sequence[str],
    likely: Sequence[str],
    odd_words: dict[str, tuple[DateForm, tuple[str, ...]]],
    gaps: Sequence[str],
) -> str:
    reason = f"all {words.rows(values)} values are {_date_name(date_form)}"
    for form in likely:
        if form != date_form.form and odd_words[form][1]:
            word = words.first(odd_words[form][1])
            reason += f"; not {form}, since {words.where(word).lower()} has '{word}'"
    return reason + gaps_reason(words, gaps)
