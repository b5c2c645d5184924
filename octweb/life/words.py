"""Write sentences about a served model. Days are written as 15 Jun 2026."""

from __future__ import annotations

import math
from datetime import date

from octweb.core.templatetags.octweb import percent, points, whole
from octweb.life.watches import QUESTIONS, RECENT_DAYS, RECENT_DUE_DAYS, WERE, WRONG, Watch
from trainer.monitoring import rows_until_alarm

MIN_DETECTABLE_CHANGE = 0.10  # a reference that cannot reveal this change of a share is called too small


def day_text(day: date) -> str:
    return f"{day.day} {day:%b %Y}"


def alarm_words(watch: Watch, answer: str, *, grew: bool, recent: float | None, folded: str = "") -> str:
    """Describe an alarm in one sentence, followed by the shares if they are known."""
    if folded:
        return f"Leaf {watch.name} shrank, as {folded} grows."
    more = "more" if grew else "fewer"
    if watch.is_leaf:
        first = f"Leaf {watch.name} answers “{answer}” to {more} people than {_against(watch)}."
    elif watch.kind == WRONG:
        first = f"{_whose(watch)} wrong more often than {_against(watch)}."
    else:
        first = f"{watch.name} {QUESTIONS[watch.kind]} in {more} rows than {_against(watch)}."
    if recent is None or watch.allowed is None:
        return first
    return f"{first} {percent(recent)} in the last {_days_of(watch)}, {percent(watch.allowed)} {_against(watch)}."


def past_alarm_words(watch: Watch, answer: str, *, grew: bool, then: str, recent: float | None) -> str:
    """Describe an alarm that is closed, or whose share has gone back. `then` has the share and days of the change."""
    more = "more" if grew else "fewer"
    if watch.is_leaf:
        first = f"Leaf {watch.name} answered “{answer}” to {more} people than {_against(watch)}"
    elif watch.kind == WRONG:
        first = f"{_whose(watch, past=True)} wrong more often than {_against(watch)}"
    else:
        first = f"{watch.name} {WERE[watch.kind]} in {more} rows than {_against(watch)}"
    reference = "" if watch.allowed is None else f", {percent(watch.allowed)} {_against(watch)}"
    now = "" if recent is None else f" Now it is {percent(recent)}, in the last {_days_of(watch)}."
    return f"{first}: {then}{reference}.{now}"


def share_words(share: float, first: date, last: date) -> str:
    """State a share with its days."""
    days = f"on {day_text(first)}" if first == last else f"from {day_text(first)} to {day_text(last)}"
    return f"{percent(share)} {days}"


def _whose(watch: Watch, *, past: bool = False) -> str:
    """Return the leaf, or all leaves, with the verb."""
    if watch.name:
        return f"Leaf {watch.name} {'was' if past else 'is'}"
    return f"The answers of all leaves together {'were' if past else 'are'}"


def _days_of(watch: Watch) -> str:
    return f"{RECENT_DUE_DAYS} days due" if watch.kind == WRONG else f"{RECENT_DAYS} days"


def _against(watch: Watch) -> str:
    if watch.limit is not None:
        return "allowed"
    return "promised" if watch.kind == WRONG else "in training"


def found_words(began: date, found_on: date, rows: int, *, is_of_outcomes: bool = False) -> str:
    """State when a change began, and when it was found. Outcomes are dated by the day on which they were due."""
    if is_of_outcomes:
        outcomes = "1 outcome" if rows == 1 else f"{whole(rows)} outcomes"
        return f"Began about {day_text(began)}, by the day on which outcomes are due, found on {day_text(found_on)} after {outcomes}."
    decisions = "1 decision" if rows == 1 else f"{whole(rows)} decisions"
    return f"Began about {day_text(began)}, found on {day_text(found_on)} after {decisions}."


def state_words(days: int, rows: int, watches: list[Watch]) -> str:
    """State that nothing was found, or that there are too few rows to find a doubled share."""
    rows_needed = [(w, n) for w in watches if w.is_leaf and math.isfinite(n := rows_for_double(w))]
    if rows_needed:
        rows_needed.sort(key=lambda pair: pair[1])
        watch, number = rows_needed[len(rows_needed) // 2]
        if rows < number:
            came = "1 came before today" if rows == 1 else f"{whole(rows)} came before today"
            return (
                f"Too few to tell: if leaf {watch.name} ({percent(watch.share)} in training) doubled its share, that would be "
                f"found after about {whole(_round_to_two_digits(number))} decisions; {came}."
            )
    length = "1 day" if days == 1 else f"{whole(days)} days"
    return f"Nothing has changed in {length} that {whole(rows)} decisions could show."


def rows_for_double(watch: Watch) -> float:
    """Estimate how many rows reveal that a share has doubled. Infinite if it cannot double or has a limit.

    For wrong answers: how many outcomes reveal a share twice as large as the end of the interval or the limit, or half way
    to 1 if that is nearer.
    """
    if watch.kind == WRONG:
        worse = min(2 * watch.high, (1 + watch.high) / 2)
        if watch.high >= 1:
            return math.inf
        return rows_until_alarm(worse, watch.high, 1, 1 / watch.threshold, two_sided=False)
    share = watch.share
    if share is None or not 0 < share < 0.5 or watch.limit is not None:
        return math.inf
    return rows_until_alarm(2 * share, watch.high, 1, 1 / watch.threshold, two_sided=watch.low > 0)


def reference_words(watches: list[Watch]) -> str:
    """State that the reference is too small to reveal a change of ten points. "" if it is large enough."""
    leaves = [w for w in watches if w.is_leaf and w.share is not None and w.limit is None]
    blind = [w for w in leaves if w.share is not None and w.high >= min(1.0, w.share + MIN_DETECTABLE_CHANGE)]
    if not blind:
        return ""
    half = max((w.high - w.low) / 2 for w in blind)
    return (
        f"The share in training is known only within {points(half, 0)} points, from {whole(blind[0].rows)} rows; a change of 10 "
        "points may never be found. Limits of your own help."
    )


def alike_words(dispersion: float) -> str:
    """Explain why days are counted instead of rows."""
    return (
        f"Rows of the same day resemble each other ({dispersion:.1f} times the spread of chance), so that days are counted "
        "instead of rows."
    )


def _round_to_two_digits(number: float) -> int:
    """Round an estimate to two significant digits."""
    digits = max(0, int(math.log10(max(number, 1))) - 1)
    return int(round(number, -digits))
