"""Build the record of a served model for API, page and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from django.db.models import Sum

from octweb.core.tally import DRY_RUNS, REFUSED
from octweb.life import words
from octweb.life.looking import DayCounts, Look, day_counts, look_at
from octweb.life.models import Alarm, DailyCount, Watching
from octweb.life.parts import parts
from octweb.life.watches import QUESTIONS, RECENT_DAYS, RECENT_DUE_DAYS, RIGHT, WRONG, Watch
from octweb.registry.document.model_files import model_file
from octweb.registry.models import State, TreeModel
from trainer.monitoring import MAX_DISPERSION

MAX_DAYS = 3650
WEEK_DAYS = 7


def life_record(model: TreeModel, days: int, now: datetime, *, with_parts: bool = True) -> dict[str, Any]:
    """Return the decisions of the last `days` days, the watches with their evidence, the alarms, and the registered parts."""
    today = now.astimezone(UTC).date()
    counts = day_counts(model, today - timedelta(days=days - 1), today)
    look = look_at(model, today)
    watching = Watching.objects.filter(model=model).first()
    open_alarms = {alarm.watch: alarm for alarm in model.alarms.filter(closed_at=None)}
    answers = _answers(model)
    watches = [] if look is None else [_watch(watch, look, counts, open_alarms, answers) for watch in look.watches]
    return {
        "model": str(model.pk),
        "name": model.family.name,
        "version": model.version,
        "state": model.state,
        "served": model.state == State.APPROVED and model.served_since is not None,
        "days": [counts.date(i).isoformat() for i in range(counts.days)],
        "rows": counts.rows.tolist(),
        "decisions": int(counts.rows.sum()),
        "since": None if look is None else look.start.isoformat(),
        "looked_at": None if watching is None else watching.looked_at,
        "unit": "row" if look is not None and look.units[-1] else "day",
        "dispersion": None if look is None or math.isnan(look.dispersion[-1]) else float(look.dispersion[-1]),
        "watches": watches,
        "answers": answers,
        "alarms": [_alarm(a, look, counts, answers, open_alarms) for a in model.alarms.select_related("closed_by")],
        "refused": _refused_cells(model, counts),
        "dry_runs": _dry_runs(model, counts),
        "sentences": _sentences(counts, look, open_alarms),
        **({part.name: part.record(model, now) for part in parts} if with_parts else {}),
    }


def _answers(model: TreeModel) -> dict[str, str]:
    """Return the class of each leaf."""
    tree = model_file(model).tree
    return {str(leaf.id): tree.classes[leaf.label] for leaf in tree.leaves}


def _watch(
    watch: Watch, look: Look, counts: DayCounts, open_alarms: dict[str, Alarm], answers: dict[str, str]
) -> dict[str, Any]:
    rows_needed = words.rows_for_double(watch)
    return {
        "watch": watch.id,
        "kind": watch.kind,
        "name": watch.name,
        "reference": {"yes": watch.yes, "rows": watch.rows, "share": watch.share} if watch.rows else None,
        "limit": watch.limit,
        "low": watch.low,
        "high": watch.high,
        "threshold": watch.threshold,
        "since": watch.since.isoformat(),
        "counts": counts.of(watch.kind, watch.name).tolist(),
        "outcomes": counts.rows_of(watch).tolist() if watch.kind == WRONG else None,
        "promise": _promise(watch, look, answers, is_open=watch.id in open_alarms),
        "evidence": _on_days(look.evidence[watch.id], look, counts),
        "recent": recent_share(watch, counts),
        "rows_for_double": round(rows_needed) if math.isfinite(rows_needed) else None,
        "alarm": open_alarms[watch.id].pk if watch.id in open_alarms else None,
    }


def _on_days(logs: np.ndarray, look: Look, counts: DayCounts) -> list[float | None]:
    """Return the evidence (log10) on the days of `counts`. None on days without evidence, such as today."""
    shift = (counts.first - look.start).days
    at = range(shift, shift + counts.days)
    return [float(logs[i]) if 0 <= i < len(logs) and math.isfinite(logs[i]) else None for i in at]


def recent_share(watch: Watch, counts: DayCounts) -> float | None:
    """Return the share in the last 28 days, of wrong answers in the last 60. None without rows."""
    days = RECENT_DUE_DAYS if watch.kind == WRONG else RECENT_DAYS
    rows = int(counts.rows_of(watch)[-days:].sum())
    return int(counts.of(watch.kind, watch.name)[-days:].sum()) / rows if rows else None


def _promise(watch: Watch, look: Look, answers: dict[str, str], *, is_open: bool) -> str | None:
    """Return whether the share of wrong answers is kept. None for another watch, or without an interval."""
    if watch.kind != WRONG or watch.high >= 1:
        return None
    if is_open:
        return "broken"
    known = {leaf: int(look.counts.of(WRONG, leaf).sum() + look.counts.of(RIGHT, leaf).sum()) for leaf in answers}
    heard = {answers[leaf] for leaf, number in known.items() if number}
    if watch.name and heard and answers[watch.name] not in heard:
        return "cannot be known"
    skipped = max(0, (watch.since - look.start).days)
    return "kept" if look.counts.rows_of(watch)[skipped:].sum() >= words.rows_for_double(watch) else "few outcomes"


def _alarm(
    alarm: Alarm, look: Look | None, counts: DayCounts, answers: dict[str, str], open_alarms: dict[str, Alarm]
) -> dict[str, Any]:
    watch = next((w for w in look.watches if w.id == alarm.watch), None) if look is not None else None
    grown = [a for a in open_alarms.values() if a.grew and a.watch.startswith("leaf ") and a.found <= alarm.found]
    folded = grown[0].watch if grown and not alarm.grew and alarm.closed_at is None else ""
    sentence = f"{alarm.watch}."
    if watch is not None:
        sentence = _alarm_sentence(alarm, watch, counts, answers.get(watch.name, ""), folded)
    return {
        "id": alarm.pk,
        "watch": alarm.watch,
        "grew": alarm.grew,
        "began": alarm.began.isoformat(),
        "found": alarm.found.isoformat(),
        "decisions": alarm.rows,
        "folded": bool(folded),
        "sentence": sentence,
        "when": words.found_words(
            alarm.began, alarm.found, alarm.rows, is_of_outcomes=alarm.watch.startswith(f"{WRONG}: ")
        ),
        "closed_at": alarm.closed_at,
        "closed_by": None if alarm.closed_by is None else alarm.closed_by.get_username(),
        "reason": alarm.reason,
    }


def _alarm_sentence(alarm: Alarm, watch: Watch, counts: DayCounts, answer: str, folded: str) -> str:
    """Describe an alarm: in the past tense if it is closed, or if its share has gone back since."""
    if watch.limit_since is not None and watch.limit_since > alarm.found:
        watch = replace(watch, limit=None)  # the limit did not exist yet
    recent = None if alarm.closed_at is not None else recent_share(watch, counts)
    goes_on = recent is None or watch.allowed is None or (recent > watch.allowed) == alarm.grew
    if folded or (alarm.closed_at is None and goes_on):
        return words.alarm_words(watch, answer, grew=alarm.grew, recent=recent, folded=folded)
    during = day_counts(alarm.model, alarm.began, alarm.found)
    share = int(during.of(watch.kind, watch.name).sum()) / max(1, int(during.rows_of(watch).sum()))
    then = words.share_words(share, alarm.began, alarm.found)
    return words.past_alarm_words(watch, answer, grew=alarm.grew, then=then, recent=recent)


def _refused_cells(model: TreeModel, counts: DayCounts) -> list[dict[str, Any]]:
    """Return the number of refused rows on these days, by reason and column."""
    last = counts.date(counts.days - 1)
    kinds = DailyCount.objects.filter(model=model, kind__startswith=REFUSED, day__range=(counts.first, last))
    counts_by_cell: dict[tuple[str, str], np.ndarray] = {}
    for kind, name, day, number in kinds.values_list("kind", "name", "day", "number"):
        counts_by_cell.setdefault((kind, name), np.zeros(counts.days, np.int64))[(day - counts.first).days] += number
    return [
        {"reason": kind.removeprefix(REFUSED), "column": name, "counts": numbers.tolist()}
        for (kind, name), numbers in sorted(counts_by_cell.items())
    ]


def _dry_runs(model: TreeModel, counts: DayCounts) -> int:
    """Return the number of calls on these days that were dry runs."""
    days = (counts.first, counts.date(counts.days - 1))
    calls = DailyCount.objects.filter(model=model, kind=DRY_RUNS, day__range=days)
    return calls.aggregate(total=Sum("number"))["total"] or 0


def _sentences(counts: DayCounts, look: Look | None, open_alarms: dict[str, Alarm]) -> list[str]:
    """Return the sentences that the page shows next to the alarms."""
    if look is None or not (counts.rows.any() or look.counts.rows.any()):
        return ["No decisions yet."]
    sentences = []
    if not open_alarms:
        sentences.append(words.state_words(max(1, look.counts.days), int(look.counts.rows.sum()), look.watches))
    sentences.append(words.reference_words(look.watches))
    value = look.dispersion[-1]
    if value >= MAX_DISPERSION:  # false for NaN
        sentences.append(words.alike_words(float(value)))
    return [sentence for sentence in sentences if sentence]


def unusual_cells(record: dict[str, Any], ranges: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the rows of the table "What came in": cell watches and refusals that occurred, with numbers by week.

    `ranges` are the training ranges of columns as text.
    """
    cells = [
        (_cell_words(w["kind"], w["name"], ranges), w["counts"], w["alarm"])
        for w in record["watches"]
        if w["kind"] in QUESTIONS
    ]
    cells += [(_refusal_words(r["reason"], r["column"]), r["counts"], None) for r in record["refused"]]
    return [
        {
            "words": sentence,
            "number": sum(counts),
            "alarm": alarm,
            "weeks": [
                sum(counts[max(0, end - WEEK_DAYS) : end])
                for end in range(_first_end(counts), len(counts) + 1, WEEK_DAYS)
            ],
            "first": words.day_text(date.fromisoformat(record["days"][next(i for i, n in enumerate(counts) if n)])),
        }
        for sentence, counts, alarm in cells
        if sum(counts)
    ]


def _first_end(counts: Sequence[int]) -> int:
    """Return the end of the first week. The last one ends on the last day."""
    return len(counts) % WEEK_DAYS or WEEK_DAYS


def _cell_words(kind: str, column: str, ranges: Mapping[str, tuple[str, str]]) -> str:
    if kind == "above" and column in ranges:
        return f"{column} above {ranges[column][1]}, the highest in training"
    if kind == "below" and column in ranges:
        return f"{column} below {ranges[column][0]}, the lowest in training"
    return f"{column} {QUESTIONS[kind]}"


def _refusal_words(reason: str, column: str) -> str:
    name = column or "A cell"
    return {
        "empty": f"{name} is empty, refused",
        "unknown": f"{name} has an unknown value, refused",
        "value": f"{name} has a value of the wrong kind, refused",
        "column": "An unknown column, refused",
        "row": "Not a row, refused",
    }.get(reason, f"{name}, refused")
