"""How long a run may take on these data: a model of cost for each method, corrected by runs that have finished.

The model gives the time of a fit from rows n, columns p, yes/no questions F, classes K and depth d. It is a guess within a factor that
`SPREAD` says. Finished runs of the same method move it: each tells by how much the model was off, on a scale of decades, and
counts more if it was on the same data and of the same depth. The answer is a range, never a number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from octweb.core.templatetags.octweb import NARROW, seconds
from octweb.datasets import stored as datasets
from octweb.datasets.models import Dataset
from octweb.runs.models import RunStatus, TrainingRun
from trainer.certificate import Guarantee, Status
from trainer.data.encoding import Scheme, encode_binary
from trainer.data.folds import held_out_of
from trainer.errors import TrainerError
from trainer.methods.base import AUTO, Method
from trainer.methods.cost import CELL_BYTES, PROGRAM_MEGABYTES, SOLVER_MEGABYTES, START_SECONDS, WIDTH, ProblemSize
from trainer.solver_common.thresholds import (
    COUNTED_CELLS,
    LADDER,
    MOST_QUESTIONS,
    PROOF_SECONDS,
    CountQuestions,
    ThresholdChoice,
    choose_bins,
    count_questions,
    estimate_questions,
)
from trainer.table import Table

LOOKED_AT = 60  # finished runs of a method
PRIOR = 1.0  # how many runs of other data the model of cost is worth
LEAST_SPREAD = 0.12  # decades; two runs of the same thing differ by so much


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The expected time as a range in seconds, in words, and where it comes from."""

    questions: int
    rows: int
    low: float
    high: float
    words: str
    source: str
    megabytes: int = 0


def estimate(*, user: Any, dataset: Dataset, method: Method, values: Mapping[str, Any], test_share: float) -> Estimate:
    """The expected time of one fit of `method` with these values on the data set."""
    sizes = dataset.profile.get("class_counts") or [dataset.rows]  # the same rule as the training's, class by class
    rows = max(1, dataset.rows - sum(held_out_of(size, test_share) for size in sizes))
    size = size_of(dataset, method, values, rows)
    finished = list(_finished_runs(user, method))
    mean, spread = correct_estimate(method.cost.spread, list(_residuals(finished, method, dataset, size)))
    middle = math.log10(seconds_of(method, size)) + mean
    low = 10 ** (middle - WIDTH * spread)
    high = 10 ** (middle + WIDTH * spread)
    limit = values.get("time_limit")
    return Estimate(
        questions=size.F,
        rows=rows,
        low=low,
        high=high,
        words=range_words(low, high, float(limit) if limit else None, proof=method.guarantee is Guarantee.TREE),
        source=_source(finished, dataset),
        megabytes=megabytes_of(method, size),
    )


def before_training(method: Method, values: Mapping[str, Any], table: Table, classes: int) -> Estimate:
    """As `estimate`, from the rows themselves and without earlier runs: for the command line, which opens no database."""
    count = partial(count_questions, table)
    size = _with_questions(method, values, count, _size(values, len(table), len(table.columns), classes))
    low, high = by_model(method, size)
    limit = values.get("time_limit")
    return Estimate(
        questions=size.F,
        rows=size.n,
        low=low,
        high=high,
        words=range_words(low, high, float(limit) if limit else None, proof=method.guarantee is Guarantee.TREE),
        source="A cost model only.",
        megabytes=megabytes_of(method, size),
    )


def megabytes_of(method: Method, size: ProblemSize) -> int:
    """Return the memory in MB, roughly: the table, its yes/no answers, and what the search keeps."""
    cells = CELL_BYTES * size.n * size.p + (10.0 * size.n * size.F if method.binary else 0.0)
    program = PROGRAM_MEGABYTES + (SOLVER_MEGABYTES if method.cost.integer_program else 0)
    return round(program + (cells + method.cost.search_bytes(size)) / 1e6)


def by_model(method: Method, size: ProblemSize) -> tuple[float, float]:
    """The range of seconds that the model of cost gives, without earlier runs."""
    middle = seconds_of(method, size)
    factor = 10 ** (WIDTH * method.cost.spread)
    return middle / factor, middle * factor


def size_of(dataset: Dataset, method: Method, values: Mapping[str, Any], rows: int) -> ProblemSize:
    """What the time of a fit depends on."""
    count = partial(questions, dataset)
    return _with_questions(method, values, count, _dataset_size(dataset, values, rows))


def threshold_choice(
    dataset: Dataset,
    method: Method,
    values: Mapping[str, Any],
    rows: int,
    longest: float = PROOF_SECONDS,
    *,
    every: bool = True,
) -> ThresholdChoice:
    """Return the thresholds that a training chooses by its model of cost; without `every` never all of them."""

    def count(scheme: Scheme, bins: int) -> int:
        most = MOST_QUESTIONS + 1
        return most if scheme is Scheme.ALL_THRESHOLDS and not every else questions(dataset, str(scheme), bins)

    return choose_bins(method, values, count, _dataset_size(dataset, values, rows), longest)


def _dataset_size(dataset: Dataset, values: Mapping[str, Any], rows: int) -> ProblemSize:
    columns = sum(c.get("role") == "feature" for c in dataset.columns)
    return _size(values, rows, columns, len(dataset.profile.get("classes") or (0, 0)))


def _size(values: Mapping[str, Any], rows: int, columns: int, classes: int) -> ProblemSize:
    """Return the size of a problem whose yes/no questions are not counted yet."""
    depth = values.get("depth")
    p = max(1, columns)
    return ProblemSize(n=rows, p=p, F=p, K=max(2, classes), d=3 if depth is None else int(depth))


def _with_questions(method: Method, values: Mapping[str, Any], count: CountQuestions, size: ProblemSize) -> ProblemSize:
    if not method.binary:
        return size
    scheme = Scheme(values.get("binarise") or Scheme.QUANTILE_THRESHOLDS)
    bins = values.get("bins") or LADDER[-1]
    if bins == AUTO:
        scheme, bins, _ = choose_bins(method, values, count, size)
    return replace(size, F=max(1, count(scheme, int(bins))))


def questions(dataset: Dataset, scheme: str = "", bins: int = 5) -> int:
    """The number of yes/no questions after binarising, counted on the rows where the table is not large."""
    scheme = scheme if scheme in list(Scheme) else Scheme.QUANTILE_THRESHOLDS
    few = scheme != Scheme.ALL_THRESHOLDS or _from_profile(dataset, Scheme(scheme), bins) <= 2 * MOST_QUESTIONS
    if few and dataset.rows * max(1, len(dataset.columns)) <= COUNTED_CELLS:
        try:
            return _count_features(str(dataset.pk), dataset.sha256, json.dumps(dataset.columns), str(scheme), bins)
        except TrainerError:
            pass  # the page says what can be said without the rows
    return _from_profile(dataset, Scheme(scheme), bins)


@lru_cache(maxsize=256)
def _count_features(pk: str, sha256: str, columns: str, scheme: str, bins: int) -> int:
    dataset = Dataset.objects.get(pk=pk)
    dataset.columns = json.loads(columns)  # which may be foreseen, and not stored
    table, _ = datasets.load(dataset)
    return len(encode_binary(table, Scheme(scheme), bins).features)


def _from_profile(dataset: Dataset, scheme: Scheme, bins: int) -> int:
    columns = dataset.profile.get("columns") or ()
    return sum(estimate_questions(str(c.get("kind")), int(c.get("distinct") or 0), scheme, bins) for c in columns)


def seconds_of(method: Method, size: ProblemSize) -> float:
    """Return the seconds of a fit by the model of cost."""
    return START_SECONDS + method.cost.seconds(size)


def correct_estimate(spread: float, residuals: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Mean and standard deviation of the error of the model in decades, after runs with (residual, weight).

    The prior has mean 0 and the weight of PRIOR runs; the spread shrinks with the weight of the runs, and grows with their own.
    """
    weighted = list(residuals)
    weight = sum(w for _, w in weighted)
    mean = sum(w * r for r, w in weighted) / (PRIOR + weight)
    around = sum(w * (r - mean) ** 2 for r, w in weighted)
    deviation = math.sqrt((PRIOR * spread**2 + around) / (PRIOR + weight))
    return mean, max(LEAST_SPREAD, deviation)


def _finished_runs(user: Any, method: Method) -> Iterable[TrainingRun]:
    runs = TrainingRun.objects.visible_to(user).filter(method=method.id, status=RunStatus.SUCCEEDED)
    return runs.select_related("dataset").order_by("-created")[:LOOKED_AT]


def _residuals(
    finished: Iterable[TrainingRun], method: Method, dataset: Dataset, size: ProblemSize
) -> Iterable[tuple[float, float]]:
    for run in finished:
        took = run.summary.get("seconds")
        n = run.summary.get("n")
        if not took or not n:
            continue
        other = _size_of_run(run, method, int(n))
        residual = math.log10(max(float(took), 0.01) / seconds_of(method, other))
        if run.summary.get("status") in (Status.TIME_LIMIT, Status.MEMORY_LIMIT):
            residual = max(residual, 0.0) + 0.3  # it would have taken longer; how much longer is not known
        weight = (3.0 if run.dataset_id == dataset.pk else 0.5) * 0.4 ** abs(other.d - size.d)
        yield residual, weight


def _size_of_run(run: TrainingRun, method: Method, rows: int) -> ProblemSize:
    F = run.summary.get("encoded_features") or len(run.dataset.columns)
    depth = run.parameters.get("depth")
    return ProblemSize(
        n=rows,
        p=int(run.summary.get("features") or 1),
        F=int(F) if method.binary else int(run.summary.get("features") or 1),
        K=max(2, len(run.summary.get("classes") or (0, 0))),
        d=3 if depth is None else int(depth),
    )


def range_words(low: float, high: float, limit: float | None, *, proof: bool) -> str:
    """'0.4 to 6 s', 'under 1 s', and what the time limit makes of it."""
    if limit is not None and low > limit:
        end = "before a proof" if proof else "before it is done"
        return f"more than {seconds(_round(limit))}: it stops at its limit, {end}"
    if high < 1:
        return f"under 1{NARROW}s"
    high_words = seconds(_round(high))
    words = f"{_low(low, high)} to {high_words}"
    if limit is not None and high > limit:
        return f"{words}, perhaps more than its limit of {seconds(limit)}"
    return words


def trainings_words(folds: int, limit: float | None) -> str:
    """How many trees are trained where there are folds, and how long each of them may take; empty where there is one tree."""
    if not folds:
        return ""
    each = f" of up to {seconds(limit)} each" if limit is not None else ""
    return f"{folds + 1} trainings{each}: one on all rows, and one for each fold"


def _low(low: float, high: float) -> str:
    """The lower end, without its unit where both have the same."""
    words = seconds(_round(max(low, 0.1)))
    unit = seconds(_round(high)).rpartition(NARROW)[2]
    return words.removesuffix(f"{NARROW}{unit}") if words.endswith(f"{NARROW}{unit}") else words


def _round(value: float) -> float:
    """Two digits below a minute; whole minutes above, since the estimate is not more exact than that."""
    if value < 10:
        return float(f"{value:.1g}") if value < 1 else round(value)
    if value < 60:
        return round(value / 5) * 5
    return max(60, round(value / 60) * 60)


def _source(finished: list[TrainingRun], dataset: Dataset) -> str:
    on_dataset = sum(run.dataset_id == dataset.pk for run in finished)
    if on_dataset:
        return f"A guess, corrected by {on_dataset} earlier run{'s' if on_dataset > 1 else ''} on these data."
    if finished:
        other = len(finished)
        return f"A guess, corrected by {other} earlier run{'s' if other > 1 else ''} on other data."
    return "A rough guess; it improves with your first runs."
