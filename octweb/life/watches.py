"""Define the watches of a model: shares of leaves, of wrong answers, and of unusual cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from octweb.core.tally import ROWS
from octweb.life.models import Watching
from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import rows_of
from octweb.registry.models import State, TreeModel
from trainer.monitoring import HORIZON_DAYS, ShareLimits, threshold
from trainer.table import ColumnKind
from trainer.tree.nodes import Tree

# error probability per model and year for all watches of a kind; it is spent twice, on missed references and on false
# alarms
LEAF_LEVEL = 0.002
CELL_LEVEL = 0.001
WRONG_LEVEL = 0.001  # of wrong answers of the leaves, and once more of those of all leaves together
RECENT_DAYS = 28  # sentences and tables state the share of decisions in these days
RECENT_DUE_DAYS = 60  # and the share of wrong answers in these days; there are fewer outcomes than decisions
RIGHT = "right"
WRONG = "wrong"
NO_OUTCOME = "due"
OUTCOMES = (RIGHT, WRONG, NO_OUTCOME)  # kinds of counts by the due day of the outcome
QUESTIONS = {
    "empty": "is empty",
    "unknown": "has a value that training did not have",
    "below": "lies below the training range",
    "above": "lies above the training range",
}
WERE = {  # QUESTIONS in the past tense
    "empty": "was empty",
    "unknown": "had a value that training did not have",
    "below": "lay below the training range",
    "above": "lay above the training range",
}

Question = tuple[str, str, int, int]  # kind, name, and how many of the reference rows say yes, out of how many


@dataclass(frozen=True, kw_only=True)
class Watch:
    """A yes/no question about each decision: does it reach this leaf, is its answer wrong, or is this cell unusual?"""

    kind: str  # rows, wrong, empty, unknown, below or above
    name: str  # the leaf, or the column; of all leaves together ""
    yes: int  # rows of the model, out of `rows`, with the answer yes; of wrong answers unseen rows
    rows: int
    threshold: float
    since: date  # the first day that counts
    limit: float | None  # largest share that a user allowed
    limit_since: date | None  # the first day of the limit
    low: float
    high: float

    @property
    def id(self) -> str:
        return watch_id(self.kind, self.name)

    @property
    def is_leaf(self) -> bool:
        return self.kind == ROWS

    @property
    def share(self) -> float | None:
        """Share of yes among the reference rows. None without a reference."""
        return self.yes / self.rows if self.rows else None

    @property
    def allowed(self) -> float | None:
        """Largest share that a user allowed, otherwise the reference share. None without either."""
        return self.share if self.limit is None else self.limit


def watch_id(kind: str, name: str) -> str:
    """Return the id of a watch, such as `leaf 4` or `above: Score`."""
    if kind == WRONG:
        return f"wrong: leaf {name}" if name else "wrong: all leaves"
    return f"leaf {name}" if kind == ROWS else f"{kind}: {name}"


def first_day(model: TreeModel, today: date) -> date | None:
    """Return the first day of the current watching period, or None if the model was never approved.

    A period begins on the day of the last approval, and again every HORIZON_DAYS.
    """
    last = model.events.filter(after=State.APPROVED).exclude(before=State.APPROVED).order_by("at").last()
    if last is None:
        return None
    day = utc_day(last.at)
    years = max(0, (today - day).days // HORIZON_DAYS)
    return day + timedelta(days=years * HORIZON_DAYS)


def last_day(model: TreeModel, today: date) -> date:
    """Return the last watched day: yesterday, or the day on which the model lost its approval."""
    if model.state != State.APPROVED:
        last = model.events.filter(before=State.APPROVED).exclude(after=State.APPROVED).order_by("at").last()
        if last is not None:
            return min(utc_day(last.at), today - timedelta(days=1))
    return today - timedelta(days=1)


def utc_day(at: datetime) -> date:
    """Return the UTC day of a moment. Answers are counted by UTC day."""
    return at.astimezone(UTC).date()


def watches_of(model: TreeModel, start: date) -> list[Watch]:
    """Return the watches of a model from the day `start` on.

    A leaf whose share is unknown in training, or on unseen rows, is watched only if a user has set a limit.
    """
    tree = model_file(model).tree
    watching = Watching.objects.filter(model=model).first()
    promised = None if watching is None else watching.promised
    leaf_rows = {} if watching is None else watching.leaf_rows or {}
    limits = {} if watching is None else watching.limits
    closed = _last_closed_by_watch(model)
    groups = [
        (LEAF_LEVEL, _leaf_questions(model, tree, leaf_rows)),
        (CELL_LEVEL, _cell_questions(model, tree)),
        (WRONG_LEVEL, _wrong_questions(promised, tree)),
        (WRONG_LEVEL, _all_wrong_question(promised)),
    ]
    return [
        _watch_of(question, level, len(questions), start, limits, closed)
        for level, questions in groups
        for question in questions
    ]


def _watch_of(
    question: Question,
    level: float,
    number: int,
    start: date,
    limits: Mapping[str, dict[str, str | float]],
    closed: Mapping[str, date],
) -> Watch:
    """Return one of `number` watches that share the error probability `level`."""
    kind, name, yes, rows = question
    watch = watch_id(kind, name)
    set_limit = limits.get(watch)
    if set_limit is not None:
        ends = Ends(0.0, float(set_limit["share"]))
    elif rows:
        ends = _interval(yes, rows, level / number, kind != ROWS)
    else:
        ends = Ends(0.0, 1.0)
    return Watch(
        kind=kind,
        name=name,
        yes=yes,
        rows=rows,
        threshold=threshold(number, level),
        since=max([start, *(day for day in (closed.get(watch), _since(set_limit)) if day is not None)]),
        limit=None if set_limit is None else float(set_limit["share"]),
        limit_since=_since(set_limit),
        low=ends.low,
        high=ends.high,
    )


class Ends(NamedTuple):
    """Interval of a share. A low end of 0, or a high end of 1, leaves that side unwatched."""

    low: float
    high: float


@lru_cache(maxsize=10_000)
def _interval(yes: int, rows: int, miss: float, growth_only: bool) -> Ends:
    """Return the interval of a reference. It never changes, so it is cached."""
    limits = ShareLimits.of_reference(np.array([yes]), np.array([rows]), miss, growth_only=growth_only)
    return Ends(float(limits.low[0]), float(limits.high[0]))


def rows_by_leaf(model: TreeModel) -> dict[str, int]:
    """Count the rows that the model used by leaf, training and held-out rows. {} if rows cannot be read or are weighted."""
    rows = rows_of(model)
    if rows is None or not rows.same or rows.weights is not None or not len(rows.unseen):
        return {}
    tree = model_file(model).tree
    leaves = tree.apply(rows.matrix[np.concatenate([rows.training, rows.unseen])])
    return {str(leaf.id): int((leaves == leaf.id).sum()) for leaf in tree.leaves}


def _leaf_questions(model: TreeModel, tree: Tree, leaf_rows: Mapping[str, int]) -> list[Question]:
    """Return a question for each leaf. Weighted counts are not rows, so they give no reference."""
    if tree.n_leaves < 2:
        return []
    if model_file(model).certificate.get("weights"):
        return [(ROWS, str(v.id), 0, 0) for v in tree.leaves]
    counts = leaf_rows or {str(v.id): v.rows for v in tree.leaves}
    rows = sum(counts.values())
    return [(ROWS, str(v.id), counts[str(v.id)], rows) for v in tree.leaves]


def _cell_questions(model: TreeModel, tree: Tree) -> list[Question]:
    """Return questions about cells of the columns that the tree tests. No training row is out of range."""
    trained = tree.nodes[0].rows
    empty = {} if model.dataset is None else {c["name"]: c.get("empty") for c in model.dataset.columns}
    questions: list[Question] = []
    for j in tree.used_columns:
        column = tree.schema[j]
        cells = empty.get(column.name)
        if j not in tree.refused_columns and cells is not None and model.dataset is not None:
            questions.append(("empty", column.name, min(int(cells), model.dataset.rows), model.dataset.rows))
        if column.kind is ColumnKind.CATEGORICAL:
            questions.append(("unknown", column.name, 0, trained))
        elif column.range is not None:
            questions += [(kind, column.name, 0, trained) for kind in ("below", "above")]
    return questions


def _wrong_questions(promised: Mapping[str, list[int]] | None, tree: Tree) -> list[Question]:
    """Return a question about wrong answers for each leaf, if outcomes are watched."""
    if promised is None or tree.n_leaves < 2:
        return []
    return [(WRONG, str(v.id), *_wrong_of(promised, str(v.id))) for v in tree.leaves]


def _all_wrong_question(promised: Mapping[str, list[int]] | None) -> list[Question]:
    """Return the question about wrong answers of all leaves together, if outcomes are watched."""
    if promised is None:
        return []
    return [(WRONG, "", sum(wrong for wrong, _ in promised.values()), sum(rows for _, rows in promised.values()))]


def _wrong_of(promised: Mapping[str, list[int]], leaf: str) -> tuple[int, int]:
    wrong, rows = promised.get(leaf, (0, 0))
    return wrong, rows


def _since(limit: Mapping[str, str | float] | None) -> date | None:
    return None if limit is None else date.fromisoformat(str(limit["since"]))


def _last_closed_by_watch(model: TreeModel) -> dict[str, date]:
    """Return the day after the last closed alarm of each watch, from which its evidence starts again."""
    closed = model.alarms.exclude(closed_at=None).order_by("closed_at").values_list("watch", "closed_at")
    return {watch: utc_day(at) + timedelta(days=1) for watch, at in closed}
