"""What an experiment tries: methods, depths and penalties that fit the table, and why the others are left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from octweb.datasets.models import Dataset
from octweb.runs import advice
from octweb.runs.estimate import seconds_of, size_of
from octweb.runs.words import run_name
from trainer.methods import get

FEW_ROWS = 1000  # below, no rows are held out: nested folds use them all
HELD_OUT = 0.25
SMALL, LARGE = (0.0005, 1.0), (0.002, 3.0)  # what a leaf must win: a share of the rows, but at least so many rows
KINDS = ("one", "two", "many", "groups")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A method with the settings that are tried."""

    method: str
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """Method, depth and what differs from the defaults."""
        method = get(self.method)
        return run_name("", method, method.settings(self.parameters).to_json()).removeprefix(", ")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Trials in the order of the queue, quick ones first; `skipped` has what was left out, and why."""

    trials: tuple[Trial, ...]
    skipped: tuple[dict[str, str], ...]


def plan(dataset: Dataset, *, kinds: Collection[str] = KINDS, time_limit: float) -> Plan:
    """What is tried on these data when trees may ask questions of these kinds and one fit may take so long."""
    trials: list[tuple[float, Trial]] = []
    skipped: list[dict[str, str]] = []
    for kind in advice.kinds(dataset):
        if kind.id not in kinds:
            continue
        for trial in _trials(dataset, kind.id):
            reason = kind.refusal or _refusal(dataset, trial)
            seconds = _seconds(dataset, trial)
            if not reason and seconds > 3 * time_limit and get(trial.method).guarantee != "heuristic":
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
    trials.sort(key=lambda pair: pair[0])
    return Plan(trials=tuple(trial for _, trial in trials), skipped=tuple(skipped))


def evaluation(dataset: Dataset) -> tuple[float, bool]:
    """The share that is held out, and whether folds are nested: few rows are too few to hold any out."""
    return (0.0, True) if dataset.rows < FEW_ROWS else (HELD_OUT, False)


def _trials(dataset: Dataset, kind: str) -> Iterable[Trial]:
    small, large = (max(share, rows / max(1, dataset.rows)) for share, rows in (SMALL, LARGE))
    small, large = (float(f"{penalty:.1g}") for penalty in (small, large))
    if kind == "one":
        yield Trial(method="cart", parameters={"depth": 3, "pruning": str(large)})
        yield Trial(method="cart", parameters={"depth": 6, "pruning": str(small)})
        yield Trial(method="cart", parameters={"depth": 10, "pruning": "cross-validation"})
        yield Trial(method="exact", parameters={"depth": 1, "leaf_penalty": large})
        for depth in (2, 3):
            yield Trial(method="exact", parameters={"depth": depth, "leaf_penalty": large, "bins": 10})
        yield Trial(method="exact", parameters={"depth": 3, "leaf_penalty": small, "bins": 10})
        yield Trial(method="exact", parameters={"depth": 4, "leaf_penalty": small})
        if advice.feature_columns(dataset, "numeric"):
            yield Trial(method="exact-numeric", parameters={"depth": 2, "leaf_penalty": large})
    elif kind == "two":
        for depth in (1, 2):
            yield Trial(method="bivariate", parameters={"depth": depth, "pruning": str(large)})
    elif kind == "many":
        yield Trial(method="oc1", parameters={"depth": 2, "pruning": str(large)})
        yield Trial(method="cut-h", parameters={"depth": 1, "leaf_penalty": large})
    elif kind == "groups":
        yield Trial(method="odt", parameters={"depth": 2})


def _refusal(dataset: Dataset, trial: Trial) -> str:
    method = get(trial.method)
    classes = len(dataset.profile.get("classes") or ())
    if method.two_classes and classes != 2:
        return f"it takes two classes, and these data have {classes}"
    return ""


def _seconds(dataset: Dataset, trial: Trial) -> float:
    method = get(trial.method)
    values = method.settings(trial.parameters).to_json()
    return seconds_of(method, size_of(dataset, method, values, dataset.rows))
