"""Plan an experiment: choose methods, depths and penalties for the table."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from octweb.datasets.models import Dataset
from octweb.runs import advice
from octweb.runs.estimate import size_of
from octweb.runs.thresholds import bins_within
from octweb.runs.words import run_name
from trainer.methods.capabilities import Penalty
from trainer.methods.cost import ProblemSize
from trainer.registry import METHODS, get
from trainer.solver_common.thresholds import PROOF_SECONDS
from trainer.training.estimate import expected_seconds, range_of_seconds

FEW_ROWS = 1000  # with fewer rows, none are held out, and nested folds use all of them
HELD_OUT = 0.25
# accuracy that a leaf must gain: a share of the rows, and at least this number of rows
LEAST_GAIN = {Penalty.SMALL: (0.0005, 1.0), Penalty.LARGE: (0.002, 3.0)}
DEEP = 5  # trees of this depth get the higher penalty, because 32 leaves are hard to read
KINDS = ("one", "two", "many", "groups")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A method with parameters, to be tried in an experiment."""

    method: str
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """Method, depth and non-default settings in words."""
        method = get(self.method)
        return run_name("", method, method.settings(self.parameters).to_json()).removeprefix(", ")


@dataclass(frozen=True, kw_only=True)
class TrialPlan:
    """Trials in queue order, fast ones first. `skipped` lists excluded methods with reasons."""

    trials: tuple[Trial, ...]
    skipped: tuple[dict[str, str], ...]


def plan(dataset: Dataset, *, kinds: Collection[str] = KINDS, time_limit: float) -> TrialPlan:
    """Return the trials for a data set, for these kinds of splits and this time limit per fit in seconds."""
    trials: list[tuple[float, Trial]] = []
    skipped: list[dict[str, str]] = []
    for kind in advice.kinds(dataset):
        if kind.id not in kinds:
            continue
        for trial in _trials(dataset, kind.id, min(PROOF_SECONDS, time_limit)):
            reason = kind.refusal or _refusal(dataset, trial)
            seconds = _seconds(dataset, trial)
            if not reason and _too_long(dataset, trial, seconds, time_limit):
                reason = "these data are too large for it within the time of one fit"
            if reason:
                title = get(trial.method).title
                depth = trial.parameters.get("depth")
                skipped.append(
                    {
                        "method": trial.method,
                        "title": f"{title}, depth {depth}",
                        "reason": reason[0].lower() + reason[1:].rstrip("."),
                    }
                )
            else:
                trials.append((seconds, trial))
    # integer programs come last, because they often use the whole time limit
    trials.sort(key=lambda pair: (get(pair[1].method).cost.integer_program, pair[0]))
    return TrialPlan(trials=tuple(trial for _, trial in trials), skipped=tuple(skipped))


def evaluation(dataset: Dataset) -> tuple[float, bool]:
    """Return the held-out share, and whether folds are nested. The number of rows decides."""
    return (0.0, True) if dataset.rows < FEW_ROWS else (HELD_OUT, False)


def _trials(dataset: Dataset, kind: str, longest: float) -> Iterable[Trial]:
    """Yield the trials that methods declare for a kind of split.

    `longest` is the time in seconds within which the number of thresholds should allow a proof.
    """
    penalties = {
        penalty: float(f"{max(share, rows / max(1, dataset.rows)):.1g}")
        for penalty, (share, rows) in LEAST_GAIN.items()
    }
    numbers = bool(advice.feature_columns(dataset, "numeric"))
    for method in METHODS:
        if method.asks != kind:
            continue
        for candidate in method.candidates:
            if candidate.needs_numbers and not numbers:
                continue
            parameters = {name: penalties.get(value, value) for name, value in candidate.parameters.items()}
            if method.parameter("pruning"):  # this parameter is a text
                parameters["pruning"] = str(parameters["pruning"])
            if method.chooses_bins:
                settings = method.settings(parameters).to_json()
                parameters["bins"] = bins_within(dataset, method, settings, longest)
            yield Trial(method=method.id, parameters=parameters)


def _too_long(dataset: Dataset, trial: Trial, seconds: float, time_limit: float) -> bool:
    """Return whether fits would probably end unproved.

    A deep search that its time limit stops is seldom better than a proved tree of one level less.
    """
    if get(trial.method).guarantee == "heuristic":
        return False
    if trial.parameters.get("depth") != DEEP:
        return seconds > 3 * time_limit
    return range_of_seconds(get(trial.method), _size(dataset, trial))[1] > time_limit


def _refusal(dataset: Dataset, trial: Trial) -> str:
    method = get(trial.method)
    classes = len(dataset.profile.get("classes") or ())
    if method.two_classes and classes != 2:
        return f"it takes two classes, and these data have {classes}"
    return ""


def _seconds(dataset: Dataset, trial: Trial) -> float:
    return expected_seconds(get(trial.method), _size(dataset, trial))


def _size(dataset: Dataset, trial: Trial) -> ProblemSize:
    method = get(trial.method)
    return size_of(dataset, method, method.settings(trial.parameters).to_json(), dataset.rows)
