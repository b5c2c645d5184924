"""Estimate how long a run takes on a data set.

The estimate is a range. Its middle comes from the method's cost model, corrected by finished runs of the same method.
Each run shows the model's error in decades. It has more weight if it had the same data or a similar depth.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

from octweb.datasets import stored as datasets
from octweb.datasets.models import Dataset
from octweb.jobs.models import RunStatus
from octweb.runs.models import TrainingRun
from trainer.certificate import Guarantee, Status
from trainer.data.encoding import Scheme, encode_binary
from trainer.data.folds import held_out_of
from trainer.errors import TrainerError
from trainer.methods.base import Method
from trainer.methods.cost import ASSUMED_DEPTH, WIDTH, ProblemSize
from trainer.solver_common.thresholds import (
    COUNTED_CELLS,
    MOST_QUESTIONS,
    PROOF_SECONDS,
    ThresholdChoice,
    choose_bins,
    estimate_questions,
)
from trainer.training.estimate import (
    FitEstimate,
    expected_megabytes,
    expected_seconds,
    problem_size,
    range_words,
    with_features,
)

LOOKED_AT = 60  # the estimate uses at most this many newest finished runs of a method
PRIOR = 1.0  # weight of the cost model in the mean over past runs
LEAST_SPREAD = 0.12  # decades (log10 of seconds) by which two identical runs differ


def estimate(
    *, user: Any, dataset: Dataset, method: Method, values: Mapping[str, Any], test_share: float
) -> FitEstimate:
    """Estimate time and memory of one fit of `method` with these values on the data set."""
    # training holds out rows by class, so each class is rounded separately
    sizes = dataset.profile.get("class_counts") or [dataset.rows]
    rows = max(1, dataset.rows - sum(held_out_of(size, test_share) for size in sizes))
    size = size_of(dataset, method, values, rows)
    finished = list(_finished_runs(user, method))
    mean, spread = correct_estimate(method.cost.spread, list(_residuals(finished, method, dataset, size)))
    middle = math.log10(expected_seconds(method, size)) + mean
    low = 10 ** (middle - WIDTH * spread)
    high = 10 ** (middle + WIDTH * spread)
    limit = values.get("time_limit")
    return FitEstimate(
        questions=size.F,
        rows=rows,
        low=low,
        high=high,
        words=range_words(low, high, float(limit) if limit else None, proof=method.guarantee is Guarantee.TREE),
        source=_source(finished, dataset),
        megabytes=expected_megabytes(method, size),
    )


def size_of(dataset: Dataset, method: Method, values: Mapping[str, Any], rows: int) -> ProblemSize:
    """Return the size of a problem, which determines the time of a fit."""
    count = partial(questions, dataset)
    return with_features(method, values, count, _dataset_size(dataset, values, rows))


def threshold_choice(
    dataset: Dataset,
    method: Method,
    values: Mapping[str, Any],
    rows: int,
    longest: float = PROOF_SECONDS,
    *,
    every: bool = True,
) -> ThresholdChoice:
    """Return the thresholds that training would choose by its cost model. Without `every`, never choose all of them."""

    def count(scheme: Scheme, bins: int) -> int:
        most = MOST_QUESTIONS + 1
        return most if scheme is Scheme.ALL_THRESHOLDS and not every else questions(dataset, str(scheme), bins)

    return choose_bins(method, values, count, _dataset_size(dataset, values, rows), longest)


def _dataset_size(dataset: Dataset, values: Mapping[str, Any], rows: int) -> ProblemSize:
    columns = sum(c.get("role") == "feature" for c in dataset.columns)
    return problem_size(values, rows, columns, len(dataset.profile.get("classes") or (0, 0)))


def questions(dataset: Dataset, scheme: str = "", bins: int = 5) -> int:
    """Return the number of binary features, counted for small tables, or else estimated from the profile."""
    scheme = scheme if scheme in list(Scheme) else Scheme.QUANTILE_THRESHOLDS
    few = scheme != Scheme.ALL_THRESHOLDS or _from_profile(dataset, Scheme(scheme), bins) <= 2 * MOST_QUESTIONS
    if few and dataset.rows * max(1, len(dataset.columns)) <= COUNTED_CELLS:
        try:
            return _count_features(str(dataset.pk), dataset.sha256, json.dumps(dataset.columns), str(scheme), bins)
        except TrainerError:
            pass  # the rows cannot be read, so use the profile
    return _from_profile(dataset, Scheme(scheme), bins)


@lru_cache(maxsize=256)
def _count_features(pk: str, sha256: str, columns: str, scheme: str, bins: int) -> int:
    dataset = Dataset.objects.get(pk=pk)
    dataset.columns = json.loads(columns)  # a preview may show columns that are not stored
    table, _ = datasets.load(dataset)
    return len(encode_binary(table, Scheme(scheme), bins).features)


def _from_profile(dataset: Dataset, scheme: Scheme, bins: int) -> int:
    columns = dataset.profile.get("columns") or ()
    return sum(estimate_questions(str(c.get("kind")), int(c.get("distinct") or 0), scheme, bins) for c in columns)


def correct_estimate(spread: float, residuals: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return mean and standard deviation of the cost model's error in decades, from (residual, weight) of runs.

    The prior has mean 0, standard deviation `spread` and weight PRIOR. The standard deviation is at least LEAST_SPREAD.
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
        residual = math.log10(max(float(took), 0.01) / expected_seconds(method, other))
        if run.summary.get("status") in (Status.TIME_LIMIT, Status.MEMORY_LIMIT):
            # the limit ended this run, so it would have taken longer by an unknown time
            residual = max(residual, 0.0) + 0.3
        weight = (3.0 if run.dataset_id == dataset.pk else 0.5) * 0.4 ** abs(other.d - size.d)
        yield residual, weight


def _size_of_run(run: TrainingRun, method: Method, rows: int) -> ProblemSize:
    F = run.summary.get("encoded_features") or len(run.dataset.columns)
    depth = run.parameters.get("depth", 3)
    return ProblemSize(
        n=rows,
        p=int(run.summary.get("features") or 1),
        F=int(F) if method.binary else int(run.summary.get("features") or 1),
        K=max(2, len(run.summary.get("classes") or (0, 0))),
        d=ASSUMED_DEPTH if depth is None else int(depth),
    )


def _source(finished: list[TrainingRun], dataset: Dataset) -> str:
    on_dataset = sum(run.dataset_id == dataset.pk for run in finished)
    if on_dataset:
        return f"A guess, corrected by {on_dataset} earlier run{'s' if on_dataset > 1 else ''} on these data."
    if finished:
        other = len(finished)
        return f"A guess, corrected by {other} earlier run{'s' if other > 1 else ''} on other data."
    return "A rough guess; it improves with your first runs."
