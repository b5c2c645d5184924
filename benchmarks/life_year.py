"""Replay a year of recorded decisions on a fresh installation, to show the page Life.

    python benchmarks/life_year.py --folder EMPTY_FOLDER [--data heloc.csv] [--rows 55]
    OCTWEB_DATA_DIR=EMPTY_FOLDER python manage.py serve

The script trains `exact` of depth 2 on three quarters of the table and approves the model as of 364 days ago, with a record
of each answer. For each day it records and counts answers to rows drawn from the last quarter. From day 190 on, rows of
the second largest leaf occur more often; from day 150 on, more of its answers are wrong; and from day 215 on, some cells
lie above the training range. Outcomes are due after 120 days, and some stay unknown. A second version of depth 3 answers
silently. Persons decide otherwise, object, and have their decisions erased. Then the script evaluates the counts and
prints what the page says. The folder gets a user `year` with the password `a year of decisions`: never use it on a server.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import FOLDER

DAYS = 364
CHANGE_DAY = 190
BROKEN_DAY = 150
ABOVE_DAY = 215
OUTCOME_DAYS = 120
TARGET = "class"
SEED = 47
GROWTH = 1.7  # the weight of one leaf's rows grows by this factor
MORE_WRONG = 0.25  # share of its right answers that become wrong
ABOVE_SHARE = 0.005
UNKNOWN_SHARE = 0.07  # of the outcomes
EMPTY_ROWS = 42  # refused, for an empty cell
OVERRIDE_SHARE = 0.02
NOON_NS = 12 * 3600 * 10**9


class Days(NamedTuple):
    """Answered rows: day from 0, cells, leaf, and code of the class that came true, -1 if it stays unknown."""

    day: np.ndarray
    matrix: np.ndarray
    leaf: np.ndarray
    outcome: np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=FOLDER / "heloc.csv")
    parser.add_argument("--rows", type=int, default=55, help="decisions a day")
    options = parser.parse_args()
    if options.folder.exists() and any(options.folder.iterdir()):
        parser.error(f"{options.folder} is not empty; name an empty folder.")
    os.environ |= {"OCTWEB_DATA_DIR": str(options.folder.resolve()), "DJANGO_SETTINGS_MODULE": "octweb.settings"}
    import django

    django.setup()
    replay(options.data, options.rows)


def replay(data: Path, rows: int) -> None:
    """Replay the year of a model, evaluate it, and print the alarms and sentences of its page."""
    from django.core.management import call_command
    from django.utils import timezone

    from octweb.life.actions import look_now
    from octweb.life.record import life_record

    call_command("migrate", interactive=False, verbosity=0)
    model, challenger = trained_models(data)
    approve(model, challenger)
    days = draw_days(model, rows)
    record_answers(model, days)
    record_outcomes(model, days)
    record_people(model)
    look_now(model)
    record = life_record(model, 365, timezone.now())
    print(f"{record['decisions']:,} decisions; the page is /models/{model.pk}/?mode=life")
    for alarm in record["alarms"]:
        print(alarm["sentence"], alarm["when"])
    for sentence in [*record["sentences"], *record["challenger"]["sentences"]]:
        print(sentence)


def trained_models(data: Path) -> list[Any]:
    """Train two trees of the table, and register them as two versions of a model. The second tests no further column."""
    from django.contrib.auth import get_user_model

    from octweb.datasets import actions as datasets
    from octweb.registry.lifecycle import actions as registry
    from trainer.data.reader import load
    from trainer.training.run import TrainRequest, train

    user = get_user_model().objects.create_superuser("year", password="a year of decisions")
    with data.open("rb") as stream:
        dataset = datasets.create(owner=user, file=stream, source_name=data.name, target=TARGET)
    table, labels, _ = load(data, target=TARGET)
    models = []
    for depth in (2, 3):
        parameters = {"depth": depth, "leaf_penalty": "0.0002", "bins": 32}
        request = TrainRequest(
            table=table, labels=labels, method="exact", parameters=parameters, test_share=0.25, name="Credit risk"
        )
        trained = train(request).model
        used = [table.columns[j] for j in trained.tree.used_columns]
        table = replace(table, columns=tuple(used))
        models.append(
            registry.register(
                owner=user, document=trained.to_json(), dataset=dataset, title="Credit risk", name="credit-risk"
            )
        )
    return models


def approve(model: Any, challenger: Any) -> None:
    """Approve and serve a model as of a year ago, state its oversight, and let the other one answer silently."""
    from django.utils import timezone

    from octweb.challengers.actions import name_challenger
    from octweb.challengers.models import Challenge
    from octweb.oversight.actions import state_oversight
    from octweb.registry.lifecycle import actions as registry
    from octweb.registry.models import Recording, ReviewEvent, State

    user = model.owner
    registry.approve(
        registry.ask_for_approval(model, by=user), by=user, reason="a replayed year", recording=Recording.FULL
    )
    start = timezone.now() - timedelta(days=DAYS)
    ReviewEvent.objects.filter(after=State.APPROVED).update(at=start)
    model.refresh_from_db()
    values = {
        "purpose": "Decide on credit up to 10,000.",
        "exposure": "high",
        "consequence": "medium",
        "review_on": (start + timedelta(days=455)).date(),
        "outcome_days": OUTCOME_DAYS,
    }
    state_oversight(model, by=user, values=values)
    name_challenger(model, challenger, by=user, outcome_days=OUTCOME_DAYS)
    Challenge.objects.update(since=start)


def draw_days(model: Any, rows: int) -> Days:
    """Sample held-out rows of each day, change some cells and classes, and return the answers."""
    from octweb.registry.document.model_files import model_file
    from octweb.registry.document.rows import rows_of

    tree = model_file(model).tree
    stored = rows_of(model)
    matrix = stored.matrix[stored.unseen]
    codes = stored.codes[stored.unseen]
    leaves = tree.apply(matrix)
    grown = np.argsort(np.bincount(leaves))[-2]
    weights = np.where(leaves == grown, GROWTH, 1.0)
    rng = np.random.default_rng(SEED)
    sampled = [
        rng.choice(len(matrix), rows, p=weights / weights.sum() if d >= CHANGE_DAY else None) for d in range(DAYS)
    ]
    at = np.concatenate(sampled)
    day = np.repeat(np.arange(DAYS), rows)
    cells = matrix[at].copy()
    column = tree.nodes[0].split.cut[0]
    high = tree.schema[column].range[1]
    is_above = (day >= ABOVE_DAY) & (rng.random(len(at)) < ABOVE_SHARE)
    cells[is_above, column] = high + 3
    leaf = tree.apply(cells)
    outcome = codes[at].astype(np.int64)
    right = outcome == tree.labels[leaf]
    flipped = right & (leaf == grown) & (day >= BROKEN_DAY) & (rng.random(len(at)) < MORE_WRONG)
    outcome[flipped] = 1 - outcome[flipped]
    outcome[rng.random(len(at)) < UNKNOWN_SHARE] = -1
    return Days(day, cells, leaf, outcome)


def record_answers(model: Any, days: Days) -> None:
    """Write the frames of all calls, one a day, collect them, and count answers and unusual cells."""
    from octweb.challengers.following import follow_due
    from octweb.core.spool import WRITER, FrameKind
    from octweb.core.tally import Key
    from octweb.decisions import collecting, replaying
    from octweb.life.counting import add_counts
    from octweb.registry.document.model_files import model_file
    from octweb.registry.prediction.recording import Caller, new_id, recorder_of

    tree = model_file(model).tree
    recorder = recorder_of(model)
    assert recorder is not None
    for d in range(DAYS):
        own = days.day == d
        matrix = days.matrix[own]
        leaves = days.leaf[own].astype(np.int32)
        at = _day(d) * 86_400 * 10**9 + NOON_NS
        cells = matrix.take(tree.used_columns, 1)
        body = recorder.rows_body("v1", Caller("token year", "credit-risk"), at, new_id(at), cells, leaves)
        WRITER.append(FrameKind.ROWS, body, len(leaves), recorder.schema)
        counts = {"rows": Counter(map(str, leaves.tolist())), **tree.unusual_cells(matrix)}
        for kind, numbers in counts.items():
            add_counts({Key(str(model.pk), "v1", _day(d), kind, name): int(n) for name, n in numbers.items()})
    rng = np.random.default_rng(SEED)
    refused = Counter(rng.integers(ABOVE_DAY, DAYS, EMPTY_ROWS).tolist())
    name = tree.schema[tree.used_columns[-1]].name
    add_counts({Key(str(model.pk), "v1", _day(d), "refused_empty", name): n for d, n in refused.items()})
    WRITER.close()
    collecting.collect_due()
    follow_due()
    replaying.replay_daily(datetime.now(UTC))


def record_outcomes(model: Any, days: Days) -> None:
    """Record the outcomes that are due, and count them on the days on which they were."""
    from octweb.core.tally import Key
    from octweb.decisions.due_outcomes import RECORDS
    from octweb.decisions.later import MAX_ROWS, LaterRow, add_later_rows
    from octweb.decisions.models import ChainEntry, Kind
    from octweb.life.actions import look_now
    from octweb.life.counting import EPOCH, add_counts
    from octweb.life.models import Watching
    from octweb.life.watches import NO_OUTCOME, RIGHT, WRONG
    from octweb.registry.document.model_files import model_file

    look_now(model)  # stores the references
    tree = model_file(model).tree
    entries = list(ChainEntry.objects.filter(model=model.pk, kind=Kind.DECISION).order_by("number"))
    assert [entry.leaf for entry in entries] == days.leaf.tolist()
    counts: Counter[Key] = Counter()
    later = []
    for entry, day, leaf, outcome in zip(
        entries, days.day.tolist(), days.leaf.tolist(), days.outcome.tolist(), strict=True
    ):
        due = day + OUTCOME_DAYS
        if due >= DAYS:
            continue
        kind = NO_OUTCOME if outcome < 0 else RIGHT if outcome == entry.label else WRONG
        counts[Key(str(model.pk), RECORDS, _day(due), kind, str(leaf))] += 1
        if outcome >= 0:
            known = (EPOCH + timedelta(days=_day(due))).isoformat()
            later.append(LaterRow(entry.key, {"value": tree.classes[outcome], "known_at": known}))
    for start in range(0, len(later), MAX_ROWS):
        add_later_rows(str(Kind.OUTCOME), later[start : start + MAX_ROWS], user=model.owner, by="token year")
    add_counts(counts)
    last = EPOCH + timedelta(days=_day(DAYS - 1))
    Watching.objects.filter(model=model).update(outcomes_on=last, decided_on=last - timedelta(days=OUTCOME_DAYS))


def record_people(model: Any) -> None:
    """Record decisions by persons and two open objections, and erase three decisions."""
    from octweb.decisions.erasing import erase_decisions
    from octweb.decisions.later import LaterRow, add_later_rows
    from octweb.decisions.models import ChainEntry, Kind
    from octweb.registry.document.model_files import model_file

    classes = model_file(model).tree.classes
    entries = list(ChainEntry.objects.filter(model=model.pk, kind=Kind.DECISION).order_by("number"))
    rng = np.random.default_rng(SEED)
    chosen = rng.choice(len(entries), int(OVERRIDE_SHARE * len(entries)), replace=False)
    others = [(entries[i].key, classes[1 - entries[i].label]) for i in sorted(chosen.tolist())]
    rows = [LaterRow(key, {"label": label, "reason": "New documents of the person."}) for key, label in others]
    add_later_rows(str(Kind.OVERRIDE), rows, user=model.owner, by="user year")
    objections = [LaterRow(entry.key, {"reason": "My income was read wrongly."}) for entry in entries[-900::600]]
    add_later_rows(str(Kind.OBJECTION), objections, user=model.owner, by="user year")
    erase_decisions([entry.key for entry in entries[5000:5003]], why="request", by="user year")


def _day(place: int) -> int:
    """Return a day of the year as days since 1970. The last one is yesterday."""
    return int(datetime.now(UTC).timestamp()) // 86_400 - DAYS + place


if __name__ == "__main__":
    main()
