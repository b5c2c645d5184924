"""Build the record of a challenger for API, page and review note."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Count, Sum

from octweb.challengers import words
from octweb.challengers.models import Challenge
from octweb.challengers.verdicts import Verdicts
from octweb.decisions.reading import nanoseconds_of
from octweb.life.models import DailyCount
from octweb.registry.document.model_files import is_damaged, model_file
from octweb.registry.models import TreeModel
from octweb.registry.prediction.recording import is_recorded
from octweb.registry.prediction.silent import NOT_COMPARED, SILENT, SKIPPED, SilentTree
from trainer.tree.nodes import Tree


class LeafAnswer(NamedTuple):
    """A leaf of the served tree, and the challenger's answer: a class index as text, NOT_COMPARED or SKIPPED."""

    leaf: int
    answer: str


def latest_challenge(model: TreeModel) -> Challenge | None:
    """Return the last challenge of a model, which may be running, or None if there was none."""
    related = ("model__family", "challenger__family", "by")
    challenges = Challenge.objects.filter(model=model).select_related(*related)
    challenge: Challenge | None = challenges.defer("model__document", "challenger__document").first()
    return challenge


def challenger_record(model: TreeModel, now: datetime) -> dict[str, Any] | None:
    """Return the record of the model's running or last challenge, or None if it never had a challenger."""
    challenge = latest_challenge(model)
    if challenge is None:
        return None
    served = model_file(model)
    counts = counts_by_leaf(challenge)
    has_outcomes = is_recorded(model) and _reads_records(challenge)
    verdicts = verdicts_by_leaf(challenge, now)
    total = _sum(verdicts.values())
    rows = leaf_rows(served.tree, counts, verdicts)
    compared = sum(row["rows"] for row in rows)
    different = sum(row["different"] for row in rows)
    return {
        "model": str(challenge.challenger_id),
        "name": challenge.challenger.family.name,
        "version": challenge.challenger.version,
        "state": challenge.challenger.state,
        "since": challenge.since,
        "until": challenge.until,
        "outcome_days": challenge.outcome_days,
        "named_by": None if challenge.by is None else challenge.by.get_username(),
        "running": challenge.ended_at is None,
        "ended_at": challenge.ended_at,
        "reason": challenge.reason,
        "rows": compared,
        "different": different,
        "not_compared": sum(n for key, n in counts.items() if key.answer == NOT_COMPARED),
        "skipped": sum(n for key, n in counts.items() if key.answer == SKIPPED),
        "leaves": rows,
        "outcomes": {
            "known": total.decided + total.neither,
            "unknown": total.unknown,
            "challenger_right": total.challenger,
            "served_right": total.served,
            "neither_right": total.neither,
            "odds": total.odds,
        },
        "sentences": words.sentences(
            challenge, compared, different, total, has_outcomes=has_outcomes, unheard=_answers_without_outcome(rows)
        ),
    }


def counts_by_leaf(challenge: Challenge) -> Counter[LeafAnswer]:
    """Return the number of rows by leaf of the served tree and challenger's answer."""
    mine = DailyCount.objects.filter(model=challenge.model_id, kind=SILENT, name__startswith=f"{challenge.pk} ")
    counts: Counter[LeafAnswer] = Counter()
    for name, number in mine.order_by().values_list("name").annotate(Sum("number")):
        _, leaf, answer = name.split(" ")
        counts[LeafAnswer(int(leaf), answer)] += number
    return counts


def daily_differences(challenge: Challenge) -> list[tuple[date, int, int]]:
    """Return each day with compared rows: the day, these rows, and those with another answer of the challenger."""
    labels = {leaf.id: str(leaf.label) for leaf in model_file(challenge.model).tree.leaves}
    mine = DailyCount.objects.filter(model=challenge.model_id, kind=SILENT, name__startswith=f"{challenge.pk} ")
    compared: Counter[date] = Counter()
    different: Counter[date] = Counter()
    for day, name, number in mine.order_by().values_list("day", "name").annotate(Sum("number")):
        _, leaf, answer = name.split(" ")
        if answer not in (NOT_COMPARED, SKIPPED):
            compared[day] += number
            different[day] += number if answer != labels.get(int(leaf)) else 0
    return [(day, compared[day], different[day]) for day in sorted(compared)]


def verdicts_by_leaf(challenge: Challenge, now: datetime) -> dict[int, Verdicts]:
    """Return who was right on the rows with different answers whose outcome is due, by leaf of the served tree.

    The last outcome on record of a decision counts. The database counts the rows from one index.
    """
    due = nanoseconds_of(now - timedelta(days=challenge.outcome_days))
    numbers: dict[int, Counter[str]] = {}
    differences = challenge.differences.filter(at__lte=due).order_by()
    groups = differences.values_list("leaf", "answer", "silent", "outcome").annotate(Count("pk"))
    for leaf, answer, silent, outcome, number in groups:
        numbers.setdefault(leaf, Counter())[_verdict(outcome, answer, silent)] += number
    return {leaf: Verdicts(**counts) for leaf, counts in numbers.items()}


def _verdict(outcome: int | None, answer: int, silent: int) -> str:
    if outcome is None:
        return "unknown"
    if outcome == silent:
        return "challenger"
    return "served" if outcome == answer else "neither"


def leaf_rows(tree: Tree, counts: Mapping[LeafAnswer, int], verdicts: Mapping[int, Verdicts]) -> list[dict[str, Any]]:
    """Return for each leaf of the served tree: compared rows, different answers, and which model was right."""
    rows = []
    for leaf in tree.leaves:
        given = tree.classes[leaf.label]
        answers = {tree.classes[int(key.answer)]: n for key, n in counts.items() if _is_of(key, leaf.id)}
        verdict = verdicts.get(leaf.id, Verdicts())
        rows.append(
            {
                "leaf": leaf.id,
                "answer": given,
                "rows": sum(answers.values()),
                "different": sum(n for label, n in answers.items() if label != given),
                "instead": {label: n for label, n in sorted(answers.items()) if label != given},
                "challenger_right": verdict.challenger,
                "served_right": verdict.served,
                "neither_right": verdict.neither,
                "unknown": verdict.unknown,
            }
        )
    return rows


def _answers_without_outcome(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the served tree's answers for which no outcome is known, although some are due.

    Only rows with different answers count.
    """
    known: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for row in rows:
        known[row["answer"]] += row["challenger_right"] + row["served_right"] + row["neither_right"]
        unknown[row["answer"]] += row["unknown"]
    return [answer for answer, number in unknown.items() if number and not known[answer]]


def _is_of(key: LeafAnswer, leaf: int) -> bool:
    return key.leaf == leaf and key.answer not in (NOT_COMPARED, SKIPPED)


def _sum(verdicts: Iterable[Verdicts]) -> Verdicts:
    total: Counter[str] = Counter()
    for verdict in verdicts:
        total.update(asdict(verdict))
    return Verdicts(**total)


def _reads_records(challenge: Challenge) -> bool:
    """Return whether the records of the served tree hold all columns of the challenger; True if its document is damaged."""
    if is_damaged(challenge.challenger):
        return True
    return SilentTree(model_file(challenge.model), model_file(challenge.challenger)).reads_tested_columns
