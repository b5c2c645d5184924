"""Estimate time and memory of a fit by the method's cost model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from trainer.certificate import Guarantee
from trainer.data.encoding import Scheme
from trainer.methods.base import AUTO, Method
from trainer.methods.cost import (
    ASSUMED_DEPTH,
    CELL_BYTES,
    PROGRAM_MEGABYTES,
    SOLVER_MEGABYTES,
    START_SECONDS,
    WIDTH,
    ProblemSize,
)
from trainer.solver_common.thresholds import LADDER, CountQuestions, choose_bins, count_questions
from trainer.table import Table
from trainer.tree.numbers import THIN, duration_text


@dataclass(frozen=True, kw_only=True)
class FitEstimate:
    """The expected time of a fit as a range in seconds and in words, with its source, and the memory."""

    questions: int
    rows: int
    low: float
    high: float
    words: str
    source: str
    megabytes: int = 0


def estimate_fit(method: Method, values: Mapping[str, Any], table: Table, classes: int) -> FitEstimate:
    """Estimate the time and memory of one fit of `method` on a table, without earlier runs."""
    count = partial(count_questions, table)
    size = with_features(method, values, count, problem_size(values, len(table), len(table.columns), classes))
    low, high = range_of_seconds(method, size)
    limit = values.get("time_limit")
    return FitEstimate(
        questions=size.F,
        rows=size.n,
        low=low,
        high=high,
        words=range_words(low, high, float(limit) if limit else None, proof=method.guarantee is Guarantee.TREE),
        source="A cost model only.",
        megabytes=expected_megabytes(method, size),
    )


def expected_megabytes(method: Method, size: ProblemSize) -> int:
    """Return the rough memory in MB of the table, its binary features, and the search."""
    cells = CELL_BYTES * size.n * size.p + (10.0 * size.n * size.F if method.binary else 0.0)
    program = PROGRAM_MEGABYTES + (SOLVER_MEGABYTES if method.cost.integer_program else 0)
    return round(program + (cells + method.cost.search_bytes(size)) / 1e6)


def range_of_seconds(method: Method, size: ProblemSize) -> tuple[float, float]:
    """Return the ends of the expected seconds by the cost model."""
    middle = expected_seconds(method, size)
    factor = 10 ** (WIDTH * method.cost.spread)
    return middle / factor, middle * factor


def problem_size(values: Mapping[str, Any], rows: int, columns: int, classes: int) -> ProblemSize:
    """Return the size of a problem whose binary features are not counted yet."""
    depth = values.get("depth", 3)
    p = max(1, columns)
    return ProblemSize(n=rows, p=p, F=p, K=max(2, classes), d=ASSUMED_DEPTH if depth is None else int(depth))


def with_features(method: Method, values: Mapping[str, Any], count: CountQuestions, size: ProblemSize) -> ProblemSize:
    """Return the size with the number of binary features, which `count` counts for a scheme and a number of bins."""
    if not method.binary:
        return size
    scheme = Scheme(values.get("binarise") or Scheme.QUANTILE_THRESHOLDS)
    bins = values.get("bins") or LADDER[-1]
    if bins == AUTO:
        scheme, bins, _ = choose_bins(method, values, count, size)
    return replace(size, F=max(1, count(scheme, int(bins))))


def expected_seconds(method: Method, size: ProblemSize) -> float:
    """Return the expected seconds of a fit by the cost model."""
    return START_SECONDS + method.cost.seconds(size)


def range_words(low: float, high: float, limit: float | None, *, proof: bool) -> str:
    """Return a range of seconds as '0.4 to 6 s' or 'under 1 s', and whether the time limit ends the fit first."""
    if limit is not None and low > limit:
        end = "before a proof" if proof else "before it is done"
        return f"more than {duration_text(_round(limit))}: it stops at its limit, {end}"
    if high < 1:
        return f"under 1{THIN}s"
    high_words = duration_text(_round(high))
    words = f"{_lower_end(low, high)} to {high_words}"
    if limit is not None and high > limit:
        return f"{words}, perhaps more than its limit of {duration_text(limit)}"
    return words


def trainings_words(folds: int, limit: float | None) -> str:
    """Return how many trees are trained with these folds, and the time limit of each; empty without folds."""
    if not folds:
        return ""
    each = f" of up to {duration_text(limit)} each" if limit is not None else ""
    return f"{folds + 1} trainings{each}: one on all rows, and one for each fold"


def _lower_end(low: float, high: float) -> str:
    """Return the lower end of a range, without its unit if the upper end has the same."""
    words = duration_text(_round(max(low, 0.1)))
    unit = duration_text(_round(high)).rpartition(THIN)[2]
    return words.removesuffix(f"{THIN}{unit}") if words.endswith(f"{THIN}{unit}") else words


def _round(value: float) -> float:
    """Round to two digits below a minute and to minutes above; the estimate is not more exact."""
    if value < 10:
        return float(f"{value:.1g}") if value < 1 else round(value)
    if value < 60:
        return round(value / 5) * 5
    return max(60, round(value / 60) * 60)
