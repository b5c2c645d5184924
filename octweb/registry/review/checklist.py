"""Evaluate the reviewer's checklist of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from octweb.core.faults import DamagedDocument, StoreUnavailable
from octweb.registry.document import claims
from octweb.registry.document.difference import ChangedAnswers, Difference, compare_with_served
from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import absence_words
from octweb.registry.hooks import column_permissions, item_sources
from octweb.registry.models import ReviewEvent, State, TreeModel
from octweb.registry.page import performance
from octweb.registry.page.node import path_rules
from octweb.registry.page.scene import UNSEEN, ModelScene
from trainer.errors import TrainerError
from trainer.training.claims import price_of_wishes
from trainer.tree.numbers import THIN, count_words, points_text

ChecklistState = Literal["holds", "open", "cannot be said"]
LISTED_LEAVES = 3  # at most this many weak leaves are named
MAX_QUOTED_CHARACTERS = 300  # maximum characters of a quoted note


@dataclass(frozen=True, kw_only=True)
class ChecklistItem:
    """An item of the checklist. `part` names the part of the pages with details; `pending`: a job will decide it."""

    key: str
    title: str
    state: ChecklistState
    sentence: str
    part: str = ""
    pending: bool = False

    def to_json(self) -> dict[str, str]:
        """Return the record for the API."""
        return {"item": self.key, "title": self.title, "state": self.state, "sentence": self.sentence}


class ReviewedModel:
    """A model in review, with cached inputs of the checklist items."""

    def __init__(self, model: TreeModel) -> None:
        self.model = model

    @cached_property
    def scene(self) -> ModelScene:
        return ModelScene(model=self.model, user=None, inside=True)

    @cached_property
    def served(self) -> TreeModel | None:
        return self.model.family.versions.served().first()

    @cached_property
    def difference(self) -> Difference | None:
        """Difference from the served version. None if no version is served, or if this is the served one."""
        if self.served is None or self.served.pk == self.model.pk:
            return None
        return compare_with_served(self.model, self.served)

    @cached_property
    def events(self) -> list[ReviewEvent]:
        return list(self.model.events.select_related("by"))


Source = Callable[[ReviewedModel], ChecklistItem]


def build_checklist(reviewed: ReviewedModel) -> list[ChecklistItem]:
    """Return all items in the order of TITLES. They reveal rows, so show them only to the owner and administrators."""
    items = [_item(key, source, reviewed) for key, source in (_OWN | item_sources).items()]
    return sorted(items, key=lambda item: ORDER.index(item.key))


def open_titles(model: TreeModel) -> list[str]:
    """Return the titles of the open items. With open items, an approval needs a reason."""
    return [item.title for item in build_checklist(ReviewedModel(model)) if item.state == "open"]


def _item(key: str, source: Source, reviewed: ReviewedModel) -> ChecklistItem:
    try:
        return source(reviewed)
    except (TrainerError, DamagedDocument, StoreUnavailable) as error:
        return ChecklistItem(key=key, title=TITLES[key], state="cannot be said", sentence=str(error))


def purpose_of(events: Sequence[ReviewEvent]) -> ReviewEvent | None:
    """Return the first request for approval with a note, which states the model's purpose, or None."""
    return next((e for e in events if _asks(e) and e.reason), None)


def answers_of(events: Sequence[ReviewEvent]) -> list[tuple[ReviewEvent, ReviewEvent | None]]:
    """Return the steps that sent the model back, each with the owner's next request or None."""
    answers = []
    for n, event in enumerate(events):
        sent_back = event.after in (State.DRAFT, State.REJECTED) and event.before == State.IN_REVIEW
        if sent_back and event.reason and event.by_id != event.model.owner_id:
            answers.append((event, next((e for e in events[n + 1 :] if _asks(e)), None)))
    return answers


def _asks(event: ReviewEvent) -> bool:
    return event.after == State.IN_REVIEW != event.before


# Each function below builds one item.


def _better(reviewed: ReviewedModel) -> ChecklistItem:
    verdict = claims.verdict_of(reviewed.model)
    if verdict is None:
        return _make_item("better", "cannot be said", "The model file is damaged.")
    if verdict.kind == "unknown":
        return _make_item("better", "cannot be said", verdict.sentence)
    speaks_against = verdict.no_better or verdict.kind == "other_aim"
    return _make_item("better", "open" if speaks_against else "holds", verdict.sentence, "performance")


def _weak_leaves(reviewed: ReviewedModel) -> ChecklistItem:
    scene = reviewed.scene
    if scene.rows is None:
        return _make_item("leaves", "cannot be said", f"{absence_words(reviewed.model).capitalize()}.")
    points = performance.calibration(scene)
    if not len(scene.part(UNSEEN)):
        return _make_item(
            "leaves", "cannot be said", "No rows were held out, so no leaf was tried on unseen rows of its own."
        )
    weak = sorted((p for p in points if p["interval"][1] < p["promised"]), key=lambda p: p["seen"] - p["promised"])
    without = scene.tree.n_leaves - len(points)
    unmet = f" {_leaves(without)} met no unseen row." if without else ""
    if not weak:
        return _make_item(
            "leaves",
            "holds",
            f"No leaf is right on unseen rows less often than it promises, beyond chance.{unmet}",
            "performance",
        )
    examples = " ".join(_leaf_words(scene, p) for p in weak[:LISTED_LEAVES])
    more = f" And {_leaves(len(weak) - LISTED_LEAVES)} more." if len(weak) > LISTED_LEAVES else ""
    words = f"{_leaves(len(weak))} of {scene.tree.n_leaves} keep less than they promise. {examples}{more}{unmet}"
    return _make_item("leaves", "open", words, "performance")


def _leaf_words(scene: ModelScene, point: dict[str, Any]) -> str:
    answer = scene.tree.class_words[point["code"]]
    way = ", ".join(f"{step['rule']}: {step['answer']}" for step in path_rules(scene, point["leaf"]))
    return (
        f"“{answer}” ({way or 'no question'}) is right for {points_text(point['seen'])}{THIN}% of its "
        f"{point['rows']:,} unseen rows and promises {points_text(point['promised'])}{THIN}%."
    )


def _leaves(number: int) -> str:
    return f"{number} {'leaf' if number == 1 else 'leaves'}"


def _wishes(reviewed: ReviewedModel) -> ChecklistItem:
    claim = claims.claim_of(reviewed.model)
    if not claim.wishes:
        return _make_item("wishes", "holds", "The tree keeps no wishes.")
    lines = [f"{wish['words']} ({wish['reason'] or 'no reason'})" for wish in claim.wishes]
    words = f"{'; '.join(lines)}. On training rows all together cost {claim.price_words}."
    price = price_of_wishes(model_file(reviewed.model).certificate)
    if price.least is None or not price.proved:
        return _make_item("wishes", "cannot be said", words, "proof")
    unexplained = price.least > 0 and not all(wish["reason"] for wish in claim.wishes)
    return _make_item("wishes", "open" if unexplained else "holds", words, "proof")


def _columns(reviewed: ReviewedModel) -> ChecklistItem:
    tree = model_file(reviewed.model).tree
    used_names = [tree.schema[j].name for j in tree.used_columns]
    if not used_names:
        return _make_item("columns", "holds", "The tree asks no column.")
    if warnings := claims.warnings_of(reviewed.model):
        return _make_item("columns", "open", " ".join(warnings))
    marks = column_permissions(reviewed.model)
    words = "; ".join(
        f"{name} ({MARKS.get(str(marks[name]), marks[name])})" if name in marks else name for name in used_names
    )
    if not any(name in marks for name in used_names):
        return _make_item(
            "columns", "cannot be said", f"The tree asks {words}. The owner marked none of them.", "decisions"
        )
    return _make_item("columns", "holds", f"The tree asks {words}.", "decisions")


def _changes(reviewed: ReviewedModel) -> ChecklistItem:
    if reviewed.served is None:
        return _make_item("changes", "holds", "No version of this name is served, so no answer changes.")
    change = reviewed.difference
    if change is None:
        return _make_item("changes", "holds", "This version is the one that is served.")
    number = change.served.version
    if change.training is None:
        words = f"The rows of this version and of version {number}, which is served, cannot be compared."
        return _make_item("changes", "cannot be said", words, "difference")
    if change.unseen is None or not change.unseen.rows:
        words = f"{_describe_changes(change.training, 'training', number)} {_no_unseen_rows(change)}"
        return _make_item("changes", "cannot be said", words, "difference")
    words = _describe_changes(change.unseen, "unseen", number)
    if change.left_out:
        words += f" Left out: {count_words(change.left_out, 'held-out row')} on which version {number} was trained."
    if change.unseen.now_wrong <= change.unseen.now_right:
        return _make_item("changes", "holds", words, "difference")
    if change.overlap_unknown:
        words = f"{words} But version {number} may have been trained on some of these rows, which favours it."
        return _make_item("changes", "cannot be said", words, "difference")
    return _make_item("changes", "open", words, "difference")


def _no_unseen_rows(change: Difference) -> str:
    if change.left_out:
        held_out = count_words(change.left_out, "held-out row")
        return f"Version {change.served.version} was trained on {held_out}, so there is no unseen row to compare."
    return "No unseen rows can be compared."


def _describe_changes(counts: ChangedAnswers, kind: str, number: int) -> str:
    if not counts.different:
        return f"Version {number}, which is served, gives the same answer for all {counts.rows:,} {kind} rows."
    return (
        f"{counts.different:,} of {counts.rows:,} {kind} rows get another answer than from version {number}, which is served: "
        f"{counts.now_right:,} are now right, {counts.now_wrong:,} now wrong."
    )


def _questions(reviewed: ReviewedModel) -> ChecklistItem:
    answers = answers_of(reviewed.events)
    if not answers:
        return _make_item("questions", "holds", "No reviewer has sent it back.")
    unanswered = [back for back, again in answers if again is None or not again.reason]
    back, again = answers[-1]
    if unanswered:
        return _make_item("questions", "open", f"Not answered: “{_shorten(unanswered[-1].reason)}”")
    assert again is not None
    return _make_item(
        "questions", "holds", f"Sent back: “{_shorten(back.reason)}” Answered: “{_shorten(again.reason)}”"
    )


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_QUOTED_CHARACTERS else f"{text[:MAX_QUOTED_CHARACTERS]}…"


def _make_item(key: str, state: ChecklistState, sentence: str, part: str = "") -> ChecklistItem:
    return ChecklistItem(key=key, title=TITLES[key], state=state, sentence=sentence, part=part)


TITLES = {
    "better": "Better than one answer for all",
    "checked": "Checked by the independent program",
    "dossier": "Dossier made",
    "leaves": "Leaves keep what they promise",
    "wishes": "Wishes and what they cost",
    "columns": "Columns, and what may change in them",
    "changes": "Changes against the served version",
    "questions": "Questions of reviewers answered",
}
ORDER = list(TITLES)
MARKS = {
    "never": "never changes",
    "up": "only goes up",
    "down": "only goes down",
    "whole": "whole numbers",
    "free": "may change",
}
_OWN: dict[str, Source] = {
    "better": _better,
    "leaves": _weak_leaves,
    "wishes": _wishes,
    "columns": _columns,
    "changes": _changes,
    "questions": _questions,
}
