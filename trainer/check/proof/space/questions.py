"""Encode rows again as yes/no questions, from the parameters of a model.

See docs/proof-format.md, "Questions of …".
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from trainer.check.proof.model import Model, ModelTable

Questions = tuple[np.ndarray, list[int]]
SCHEMES = ("quantile-thresholds", "quantile-buckets", "all-thresholds", "none")


def questions(model: Model, rows: ModelTable) -> Questions:
    """Return the answers, bool of shape (n, m), and the column of each question of the encoding.

    A row of weight w counts w times in quantiles.
    """
    column_answers = [(j, yes) for j in range(len(model["columns"])) for yes in column_questions(model, rows, j)]
    return answer_matrix([yes for _, yes in column_answers], rows), [j for j, _ in column_answers]


def answer_matrix(answers: Sequence[np.ndarray], rows: ModelTable, kind: type = bool) -> np.ndarray:
    """Stack the answers of single questions into an array of shape (n, m)."""
    return np.array(answers, kind).reshape(len(answers), len(rows)).T


def column_questions(model: Model, rows: ModelTable, j: int) -> Iterator[np.ndarray]:
    """Yield the answers to the questions about one column, bool of shape (n,) each."""
    values = rows.columns[j]
    empty = np.isnan(values)
    if not empty.any():
        yield from _value_questions(model, j, values, rows.plain)
        return
    for yes in _value_questions(model, j, values[~empty], rows.plain[~empty]):
        if yes.any() and not yes.all():  # otherwise the question would only ask whether the cell is empty
            yield from (_with_empty(yes, empty, answer) for answer in (False, True))
    yield empty


def _with_empty(yes: np.ndarray, empty: np.ndarray, answer: bool) -> np.ndarray:
    """Return the answers of all rows from those of the rows with a value and the one of empty cells."""
    answers = np.full(len(empty), answer)
    answers[~empty] = yes
    return answers


def _value_questions(model: Model, j: int, values: np.ndarray, weights: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the answers to the questions about the values of a column."""
    parameters = model.get("parameters") or {}
    column = model["columns"][j]
    scheme = parameters.get("binarise", "quantile-thresholds")
    bins = int(parameters.get("bins") or 5)
    if scheme not in SCHEMES:
        raise ValueError(f"'binarise' is {str(scheme)[:40]!r}, which is none of {', '.join(SCHEMES)}")
    present = np.unique(values)
    if not weights.any():
        return
    if column["kind"] == "categorical":
        yield from (values == level for level in present[int(len(present) == 2) :] if len(present) > 1)
    elif set(present.tolist()) <= {0.0, 1.0}:
        yield from [values == 1] if len(present) > 1 else []
    elif len(present) > 1:
        codes = np.isin(values, column.get("special") or [])
        ordinary = values[~codes]
        ordinary_weights = weights[~codes]
        if not codes.any() or (len(np.unique(ordinary)) > 1 and ordinary_weights.any()):
            cuts = _cuts(ordinary, ordinary_weights, scheme, bins)
            cuts += [
                (cut, math.inf) for cut in _extra_thresholds(parameters, column["name"]) if (cut, math.inf) not in cuts
            ]
            yield from ((values > a) & (values <= b) for a, b in cuts)
        yield from (values == code for code in np.unique(values[codes]))


def _extra_thresholds(parameters: Model, name: str) -> list[float]:
    """Return the thresholds that the parameters list for a column, each once."""
    text = parameters.get("extra_thresholds")
    listed = json.loads(text).get(name, []) if text else []
    if not all(type(cut) in (int, float) and math.isfinite(cut) for cut in listed):
        raise ValueError(f"'extra_thresholds' of column '{name}' has a threshold that is not a number")
    return [float(cut) for cut in dict.fromkeys(listed)]


def filled_features(model: Model, rows: ModelTable) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the columns of `features` after empty cells have been filled, each with its column of the model.

    An indicator of empty cells follows each column that has some.
    """
    for j, (column, values) in enumerate(zip(model["columns"], rows.columns, strict=True)):
        empty = np.isnan(values)
        if not empty.any():
            yield from ((j, feature) for feature in _features_of(column, values))
        elif (fill := lower_median(values, rows.plain)) is not None:
            yield from ((j, feature) for feature in _features_of(column, np.where(empty, fill, values)))
            yield j, empty.astype(np.float64)


def lower_median(values: np.ndarray, weights: np.ndarray) -> float | None:
    """Return the lower weighted median; None without a value.

    If all weights are 0, each value counts once.
    """
    present = ~np.isnan(values)
    present_weights = weights[present]
    levels, place = np.unique(values[present], return_inverse=True)
    if not len(levels):
        return None
    cumulative = np.cumsum(np.bincount(place.reshape(-1), present_weights if present_weights.any() else None)).astype(
        np.int64
    )
    return float(levels[np.searchsorted(2 * cumulative, cumulative[-1])])


def open_features(model: Model, rows: ModelTable) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the columns of `features`, and columns with empty cells unchanged (NaN), each with its column of the model."""
    for j, (column, values) in enumerate(zip(model["columns"], rows.columns, strict=True)):
        empty = np.isnan(values)
        if empty.any():
            yield from [] if empty.all() else [(j, values)]
        else:
            yield from ((j, feature) for feature in _features_of(column, values))


def features(model: Model, rows: ModelTable) -> Iterator[tuple[int, np.ndarray]]:
    """Yield numeric columns and category indicators, each with its column of the model.

    Columns with one value are left out. Two categories have one indicator, that of the second.
    """
    for j, (column, values) in enumerate(zip(model["columns"], rows.columns, strict=True)):
        yield from ((j, feature) for feature in _features_of(column, values))


def threshold_features(model: Model, rows: ModelTable) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the columns of `features`, and a column with empty cells twice: with these below and above all values.

    A column with a single value needs one of the two.
    """
    for j, (column, values) in enumerate(zip(model["columns"], rows.columns, strict=True)):
        empty = np.isnan(values)
        if empty.any():
            ends = (-math.inf, math.inf)[: len(np.unique(values[~empty]))]
            yield from ((j, np.where(empty, end, values)) for end in ends)
        else:
            yield from ((j, feature) for feature in _features_of(column, values))


def _features_of(column: Model, values: np.ndarray) -> Iterator[np.ndarray]:
    levels = np.unique(values)
    if len(levels) < 2:
        return
    if column["kind"] == "categorical":
        yield from ((values == level).astype(np.float64) for level in levels[int(len(levels) == 2) :])
    else:
        yield values


def _cuts(values: np.ndarray, weights: np.ndarray, scheme: str, bins: int) -> list[tuple[float, float]]:
    """Return the questions on ordinary values as intervals (low, high): low < x ≤ high."""
    if scheme == "all-thresholds":
        weighted_values = np.unique(values[weights > 0])
        # the side of a special value between two neighbours depends on this midpoint
        return [(_midpoint(low, high), math.inf) for low, high in itertools.pairwise(weighted_values.tolist())]
    present, place = np.unique(values, return_inverse=True)
    cumulative = np.cumsum(np.bincount(place, weights).astype(np.int64))
    if scheme == "quantile-buckets":
        edges = np.unique([_quantile(present, cumulative, r / bins) for r in range(bins + 1)])
        inner = [-math.inf, *edges[1:-1].tolist(), math.inf]
        return list(itertools.pairwise(inner)) if len(edges) > 1 else []
    if scheme == "none":
        raise ValueError("without encoding, a column may only have the values 0 and 1, and one has others")
    cuts = []
    for r in range(1, bins):
        rank, remainder = divmod((int(cumulative[-1]) - 1) * r, bins)
        low, high = _values_at_ranks(present, cumulative, (rank, rank + (remainder > 0)))
        cuts.append(low if not remainder else _midpoint(low, high))
    return [(cut, math.inf) for cut in dict.fromkeys(cuts)]


def _midpoint(low: float, high: float) -> float:
    half = low / 2 + high / 2 if math.isinf(high - low) else low + (high - low) / 2
    return half if low <= half < high else low


def _values_at_ranks(present: np.ndarray, cumulative: np.ndarray, ranks: Sequence[int]) -> list[float]:
    """Return the values at these ranks (from 0) of a sorted column that repeats each row as often as its weight.

    present: float64, the distinct values, ascending; cumulative: int64, the weight up to and with each of them.
    """
    return [float(present[np.searchsorted(cumulative, rank, side="right")]) for rank in ranks]


def _quantile(present: np.ndarray, cumulative: np.ndarray, share: float) -> float:
    """Interpolate a quantile as NumPy does, which uses two forms to keep the last bit."""
    position = (int(cumulative[-1]) - 1) * share
    rank = math.floor(position)
    fraction = position - rank
    low, high = _values_at_ranks(present, cumulative, (rank, math.ceil(position)))
    return high - (high - low) * (1 - fraction) if fraction >= 0.5 else low + (high - low) * fraction


def cuts_of_bins(values: np.ndarray, bins: int) -> list[float]:
    """Return the upper ends of all bins of a numeric column but the last: quantiles that occur as values."""
    values = values[~np.isnan(values)]
    if not len(values):
        return []
    ranks = np.sort(values)[[math.ceil(Fraction(r, bins) * len(values)) - 1 for r in range(1, bins)]]
    return [float(cut) for cut in np.unique(ranks) if cut < values.max()]


def bin_codes(values: np.ndarray, bins: int) -> list[np.ndarray]:
    """Return the bin of each row, int64 of shape (n,), from 0.

    A column with empty cells has two such arrays: these cells are a bin before, and after all others.
    """
    empty = np.isnan(values)
    ends = cuts_of_bins(values, bins)
    codes = np.searchsorted(ends, values).reshape(-1)
    if not empty.any():
        return [codes]
    if empty.all():
        return []
    below = np.where(empty, 0, codes + 1)
    return [below, np.where(empty, len(ends) + 1, codes)] if ends else [below]


def bin_questions(values: np.ndarray, bins: int) -> Iterator[np.ndarray]:
    """Yield for each bin but the last whether rows lie above it, bool of shape (n,)."""
    for codes in bin_codes(values, bins):
        yield from (codes > last for last in range(int(codes.max(initial=0))))
