"""Count the outcomes of recorded decisions on the days on which they are due."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, time, timedelta

from octweb.core.tally import Key
from octweb.decisions.models import ChainEntry, Kind
from octweb.decisions.reading import nanoseconds_of
from octweb.life.counting import EPOCH, add_counts
from octweb.life.models import Watching
from octweb.life.watches import NO_OUTCOME, RIGHT, WRONG
from octweb.oversight.due import oversight_of
from octweb.registry.document.model_files import model_file
from octweb.registry.models import TreeModel
from octweb.registry.page.scene import ModelScene
from octweb.registry.prediction.recording import is_recorded

KEYS_PER_QUERY = 500
RECORDS = "records"  # takes the place of the API in counts of outcomes


def count_due_outcomes(model: TreeModel, watching: Watching, last: date) -> None:
    """Count the decisions whose outcomes fell due up to the day `last`, each decision once.

    A decision is due `outcome_days` after its day, whatever its outcome: bad outcomes are often known sooner. The last
    outcome recorded by the end of the due day counts. What is recorded later, and an erasure, changes no count, so that
    the evidence stays as it was. The first call only begins: `outcome_days` may have been chosen after seeing outcomes.
    """
    days = oversight_of(model).outcome_days
    if days is None or not is_recorded(model):
        return
    if not watching.promised:  # also if the rows could not be read at earlier looks
        watching.promised = _promised(model)
    if watching.outcomes_on is None or watching.decided_on is None:
        watching.outcomes_on = last
        watching.decided_on = last - timedelta(days=days)
        return
    while watching.outcomes_on < last:
        watching.outcomes_on += timedelta(days=1)
        decided = watching.outcomes_on - timedelta(days=days)
        if decided > watching.decided_on:  # false for a while after `outcome_days` was raised
            add_counts(_counts(model, watching.decided_on, decided, watching.outcomes_on))
            watching.decided_on = decided


def _counts(model: TreeModel, after: date, decided: date, due: date) -> Counter[Key]:
    """Return the counts of the decisions after a day up to the day `decided`, by leaf, for the day `due`."""
    times = (_end_of(after), _end_of(decided) - 1)
    entries = ChainEntry.objects.filter(model=model.pk, kind=Kind.DECISION, leaf__isnull=False, at__range=times)
    known = ChainEntry.objects.filter(model=model.pk, kind=Kind.OUTCOME, label__isnull=False, at__lt=_end_of(due))
    counts: Counter[Key] = Counter()
    rows = list(entries.order_by().values_list("key", "leaf", "label"))
    for first in range(0, len(rows), KEYS_PER_QUERY):
        # PostgreSQL without statistics would run a subquery for the keys again for each outcome
        part = rows[first : first + KEYS_PER_QUERY]
        about = known.filter(about__in=[key for key, _, _ in part]).order_by("number")
        outcomes = dict(about.values_list("about", "label"))  # the last one of a decision stays
        for key, leaf, label in part:
            outcome = outcomes.get(key)
            if outcome is None:
                kind = NO_OUTCOME
            else:
                kind = RIGHT if outcome == label else WRONG
            counts[Key(str(model.pk), RECORDS, (due - EPOCH).days, kind, str(leaf))] += 1
    return counts


def _end_of(day: date) -> int:
    """Return the end of a UTC day, which is the begin of the next one (ns since 1970)."""
    return nanoseconds_of(datetime.combine(day + timedelta(days=1), time.min, UTC))


def _promised(model: TreeModel) -> dict[str, list[int]]:
    """Return wrong and all unseen rows by leaf. Weighted rows, rows of groups, and changed rows give no interval: {}."""
    document = model_file(model)
    if document.certificate.get("weights"):
        return {}
    scene = ModelScene(model=model, user=None, inside=True)
    if scene.rows is None or not scene.rows.same or scene.rows.weights is not None or scene.rows.groups is not None:
        return {}
    unseen = {str(leaf.id): scene.unseen_of(leaf) for leaf in document.tree.leaves}
    return {leaf: [rows - right, rows] for leaf, (right, rows) in unseen.items()}
