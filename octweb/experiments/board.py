"""Leaderboard of an experiment: results, recommendation, and an unbiased estimate."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.db.models import Prefetch
from django.utils import timezone

from octweb.core.templatetags.octweb import NARROW, percent
from octweb.experiments.models import Candidate, Experiment
from octweb.figures.measure import ACCURACY, Measure
from octweb.jobs.models import FINISHED, RunStatus
from octweb.runs import advice
from trainer.evaluate import FoldRecord, NestedEstimate, OneStandardErrorChoice, Score, choose, honest
from trainer.evaluate.intervals import Interval, wilson
from trainer.evaluate.tables import cost_interval_of
from trainer.registry import get
from trainer.training.claims import parts_claim, read_claim
from trainer.tree.file import from_json
from trainer.tree.numbers import number_text
from trainer.tree.render.outline import tree_outline

COLUMNS = {"one column": 1, "groups of categories": 1, "two columns": 2, "many columns": 3}
SORTS = ("accuracy", "leaves", "time", "queue")  # "accuracy" sorts by the measure of the experiment, whichever it is


class UnseenCost(NamedTuple):
    """Cost per unseen row: of the tree with its 95 % interval, and of the best single answer of the training rows."""

    per_row: float
    constant_per_row: float
    unit: str
    interval: Interval | None = None

    @property
    def words(self) -> str:
        """Both costs in a short sentence."""
        unit = f" {self.unit}" if self.unit else ""
        return f"{number_text(self.per_row)}{unit} a row; {self.constant_words}"

    @property
    def constant_words(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"always one answer: {number_text(self.constant_per_row)}{unit}"


@dataclass(frozen=True, kw_only=True)
class BoardLine:
    """A candidate on the leaderboard, with its results. Shares are in [0, 1], and None while unknown."""

    candidate: Candidate
    title: str
    asks: str
    done: int
    accuracies: tuple[float, ...]
    score: Score | None
    leaves: int | None
    fold_leaves: tuple[int, ...]
    train_accuracy: float | None
    claim: dict[str, Any] | None
    seconds: float | None
    base_rate: float | None = None
    cost: UnseenCost | None = None
    measure: Measure = ACCURACY
    recommended: bool = False
    failed: str = ""

    @property
    def label(self) -> str:
        return str(self.candidate.pk)

    @property
    def mean_words(self) -> str:
        """Mean of the measure over the folds, or "" while unknown."""
        return self.measure.text(self.score.mean) if self.score else ""

    @property
    def error_words(self) -> str:
        return self.measure.error(self.score.error) if self.score else ""

    @property
    def more_words(self) -> str:
        """Words below the measure: the cost or, if the measure is a cost, its interval and the accuracy."""
        if self.cost is None or self.score is None:
            return ""
        if not self.measure.by_cost:
            return self.cost.words
        low_high = () if self.cost.interval is None else map(number_text, self.cost.interval)
        interval = f"95{NARROW}% interval {' to '.join(low_high)}; " if self.cost.interval else ""
        return f"{interval}{self.cost.constant_words}; right for {percent(self.score.accuracy)}"

    @property
    def next_fit(self) -> int:
        """Number of the current fit, from 1."""
        return min(self.done + 1, self.candidate.experiment.fits)

    @property
    def ranges(self) -> str:
        """Range of leaves in the folds. "" if all fold trees have as many leaves as the tree on all training rows."""
        if not self.fold_leaves or set(self.fold_leaves) == {self.leaves}:
            return ""
        low = min(self.fold_leaves)
        high = max(self.fold_leaves)
        return f"({low} to {high})" if low < high else f"({low})"


@dataclass(frozen=True, kw_only=True)
class Board:
    """Current state of an experiment: its lines, the recommendation, and the estimate from nested folds."""

    experiment: Experiment
    lines: tuple[BoardLine, ...]
    choice: OneStandardErrorChoice | None
    honest: NestedEstimate | None
    status: str
    measure: Measure = ACCURACY

    @property
    def sorts(self) -> dict[str, str]:
        """Sort keys of the leaderboard and their titles."""
        return {name: name.capitalize() for name in SORTS} | {SORTS[0]: self.measure.title}

    @property
    def base(self) -> float | None:
        """Value of the measure on the same unseen rows if one answer is always given."""
        if not self.measure.by_cost:
            return self.base_rate
        return next((line.cost.constant_per_row for line in self.lines if line.cost is not None), None)

    @property
    def chosen(self) -> BoardLine | None:
        return next((line for line in self.lines if line.recommended), None)

    @property
    def highest(self) -> BoardLine | None:
        return self.line(self.choice.highest.label) if self.choice else None

    @property
    def tied(self) -> list[BoardLine]:
        """All lines with the highest accuracy, or with the lowest cost."""
        labels = self.choice.tied if self.choice else ()
        return [line for line in self.lines if line.label in labels]

    @property
    def base_rate(self) -> float | None:
        """Accuracy of always predicting the most frequent training class, on the same unseen rows."""
        return next((line.base_rate for line in self.lines if line.base_rate is not None), None)

    @property
    def has_costs(self) -> bool:
        """Whether any candidate has costs."""
        return any(line.cost is not None for line in self.lines)

    @property
    def tried(self) -> int:
        return sum(line.candidate.was_tried for line in self.lines)

    @property
    def finished(self) -> bool:
        return all(line.candidate.is_finished for line in self.lines)

    def line(self, label: str) -> BoardLine | None:
        return next((line for line in self.lines if line.label == label), None)

    def sorted(self, by: str) -> list[BoardLine]:
        """Return the lines by the measure ("accuracy"), leaves or time, unknown ones last.

        Other keys: in queue order.
        """
        keys = {
            "accuracy": lambda x: x.score.loss,
            "leaves": lambda x: (x.leaves, x.score.loss),
            "time": lambda x: (x.seconds or 0.0, x.score.loss),
        }
        if by not in keys:
            return list(self.lines)
        scored = [line for line in self.lines if line.score is not None and line.leaves is not None]
        rest = [line for line in self.lines if line not in scored]
        return sorted(scored, key=keys[by]) + rest


UNSHOWN = ("document", "trees", "log")
# one query reads the candidates of all experiments in a list
SHOWN = Prefetch("candidates", queryset=Candidate.objects.defer(*UNSHOWN), to_attr="shown_candidates")


def board(experiment: Experiment) -> Board:
    """Score and compare the candidates of an experiment."""
    prefetched = getattr(experiment, "shown_candidates", None)
    candidates = list(experiment.candidates.defer(*UNSHOWN)) if prefetched is None else prefetched
    measure = _measure_of(candidates)
    lines = [_line(candidate, experiment, measure) for candidate in candidates]
    scores = [line.score for line in lines if line.score is not None and line.candidate.is_done]
    choice = choose(scores) if scores else None
    chosen = choice.chosen.label if choice else ""
    lines = [_mark_recommended(line) if line.label == chosen else line for line in lines]
    return Board(
        experiment=experiment,
        lines=tuple(lines),
        choice=choice,
        honest=_honest(experiment, lines, measure),
        status=status_of(candidates),
        measure=measure,
    )


def _measure_of(candidates: Sequence[Candidate]) -> Measure:
    """Return the measure: cost per row if all candidates have the same costs and all records have cost sums, else accuracy."""
    costs = {json.dumps([c.parameters.get(name) or "" for name in ("costs", "cost_unit")]) for c in candidates}
    has_costs = bool(candidates) and all(c.parameters.get("costs") for c in candidates)
    records = [r for c in candidates for r in c.records if not r.get("error")]
    if len(costs) != 1 or not has_costs or not all(r.get("cost_sums") for r in records):
        return ACCURACY
    return Measure(by_cost=True, unit=next((str(r["cost_unit"]) for r in records if r.get("cost_unit")), ""))


def status_of(candidates: Sequence[Candidate]) -> str:
    """Return the status of an experiment as one of RunStatus, from those of its candidates."""
    states = {c.status for c in candidates}
    if RunStatus.RUNNING in states or (RunStatus.QUEUED in states and states & set(FINISHED)):
        return str(RunStatus.RUNNING)
    if RunStatus.QUEUED in states:
        return str(RunStatus.QUEUED)
    if RunStatus.CANCELLED in states:
        return str(RunStatus.CANCELLED)
    return str(RunStatus.SUCCEEDED if RunStatus.SUCCEEDED in states else RunStatus.FAILED)


def elapsed(experiment: Experiment, lines: Sequence[BoardLine]) -> float | None:
    """Return the seconds from the first start to the last end, or to now while running. None before the start."""
    starts = [line.candidate.started for line in lines if line.candidate.started]
    if not starts:
        return None
    running = any(not line.candidate.is_finished for line in lines)
    ends: list[datetime] = [line.candidate.finished for line in lines if line.candidate.finished]
    end = timezone.now() if running or not ends else max(ends)
    return (end - min(starts)).total_seconds()


def held_out(experiment: Experiment) -> dict[str, Any] | None:
    """Return the result of the first opened tree on the held-out rows, or None before a tree is opened."""
    if experiment.chosen_id is None or not experiment.test_share:
        return None
    return (experiment.chosen.summary.get("metrics") or {}).get("test")


def interval_of(test: Mapping[str, Any]) -> Interval | None:
    """Return the 95 % interval of the accuracy on held-out rows: the stored one, or else Wilson's."""
    interval = test.get("interval")
    return (
        wilson(int(test["correct"]), int(test["n"])) if interval is None else (float(interval[0]), float(interval[1]))
    )


def tree_of(line: BoardLine) -> dict[str, Any] | None:
    """Return the outline of a candidate's tree, or None before it is done."""
    return _outline(str(line.candidate.pk), str(line.candidate.finished)) if line.candidate.is_done else None


@lru_cache(maxsize=64)
def _outline(pk: str, finished: str) -> dict[str, Any] | None:
    document = Candidate.objects.values_list("document", flat=True).get(pk=pk)
    return tree_outline(from_json(json.loads(document)).tree) if document else None


def points(leaderboard: Board) -> list[dict[str, Any]]:
    """Return the points for `experiment_figure`."""
    return [
        {
            "id": line.label,
            "name": line.candidate.name,
            "leaves": line.leaves,
            "mean": line.score.mean,
            "error": line.score.error,
            "proved": bool(line.claim and line.claim["kind"] == "proved"),
            "recommended": line.recommended,
            "highest": line in leaderboard.tied,
            "tied": len(leaderboard.tied) > 1,
        }
        for line in leaderboard.lines
        if line.score is not None and line.leaves is not None
    ]


def _line(candidate: Candidate, experiment: Experiment, measure: Measure) -> BoardLine:
    method = get(candidate.method)
    fold_records = sorted((r for r in candidate.records if r.get("second", -1) < 0), key=lambda r: r["fold"])
    good = [r for r in fold_records if not r.get("error")]
    accuracies = tuple(r["accuracy"] for r in good)
    leaves = tuple(r["leaves"] for r in good)
    summary = candidate.summary
    claim = _claim(candidate)
    score = None
    if len(accuracies) == experiment.folds:
        score = Score(
            label=str(candidate.pk),
            accuracies=accuracies,
            leaves=float(summary.get("leaves") or sum(leaves) / len(leaves)),
            columns=COLUMNS[advice.split_phrase(method)],
            claim={"proved": 0, "gap": 1}.get(claim["kind"] if claim else "", 2),
            costs=tuple(r["cost"] / r["n"] for r in good) if measure.by_cost else (),
        )
    broken = next((r["error"] for r in fold_records if r.get("error")), "")
    return BoardLine(
        candidate=candidate,
        title=method.title,
        asks=advice.split_phrase(method),
        done=len(candidate.records),
        accuracies=accuracies,
        score=score,
        leaves=summary.get("leaves"),
        fold_leaves=leaves,
        train_accuracy=summary.get("train_accuracy"),
        claim=claim,
        seconds=summary.get("seconds"),
        base_rate=_base_rate(good) if score is not None else None,
        cost=_cost(good) if score is not None else None,
        measure=measure,
        failed=broken or (candidate.error if candidate.status == RunStatus.FAILED else ""),
    )


def _base_rate(records: Sequence[dict[str, Any]]) -> float | None:
    """Return the base rate over all folds, or None for records of an earlier version."""
    if any(r.get("base_correct") is None for r in records):
        return None
    return float(sum(r["base_correct"] for r in records) / sum(r["n"] for r in records))


def _cost(records: Sequence[dict[str, Any]]) -> UnseenCost | None:
    """Return the cost over all folds, or None if answers have no costs."""
    if any(r.get("cost") is None or r.get("constant_cost") is None for r in records):
        return None
    n = sum(r["n"] * r.get("weight_step", 1.0) for r in records)
    sums = [sum(r[name] for r in records) / n for name in ("cost", "constant_cost")]
    return UnseenCost(
        sums[0], sums[1], str(records[0].get("cost_unit") or ""), cost_interval_of([_fold_record(r) for r in records])
    )


def _claim(candidate: Candidate) -> dict[str, Any] | None:
    """Return the claim about the tree on all training rows, as a badge for templates."""
    summary = candidate.summary
    if not summary:
        return None
    certificate = {"guarantee": get(candidate.method).guarantee, **summary}
    parts = parts_claim(certificate)
    if parts is not None:
        return {"kind": "parts", "words": parts.words, "proved": parts.proved, "total": parts.total}
    claim = read_claim(certificate)
    claim_record = {"kind": claim.kind, "words": claim.words}
    return claim_record | {"gap": summary.get("gap")} if claim.kind == "gap" else claim_record


def _mark_recommended(line: BoardLine) -> BoardLine:
    return replace(line, recommended=True)


def _honest(experiment: Experiment, lines: Sequence[BoardLine], measure: Measure) -> NestedEstimate | None:
    """Return the estimate from nested folds, or None before all candidates have ended."""
    if not experiment.nested or any(not line.candidate.is_finished for line in lines):
        return None
    records = {
        line.label: [_fold_record(r) for r in line.candidate.records] for line in lines if line.score is not None
    }
    kinds = {line.label: (line.score.columns, line.score.claim) for line in lines if line.score is not None}
    return honest(records, kinds, experiment.folds, by_cost=measure.by_cost)


def _fold_record(record: dict[str, Any]) -> FoldRecord:
    """Create a FoldRecord from a stored record. Members of other versions are dropped."""
    known = {f.name for f in fields(FoldRecord)}
    return FoldRecord(**{name: value for name, value in record.items() if name in known})
