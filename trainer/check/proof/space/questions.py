"""The yes/no questions of the methods that search over an encoding, made again from the rows and the parameters."""

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
    """The answers bool (n, m) and the columns of the encoding that the parameters ask for.

    A row of weight w counts w times in quantiles.
    """
    found = [(j, yes) for j in range(len(model["columns"])) for yes in of_column(model, rows, j)]
    return matrix([yes for _, yes in found], rows), [j for j, _ in found]


def matrix(answers: Sequence[np.ndarray], rows: ModelTable, kind: type = bool) -> np.ndarray:
    """The answers of all questions, (n, m), from those of each."""
    return np.array(answers, kind).reshape(len(answers), len(rows)).T


def of_column(model: Model, rows: ModelTable, j: int) -> Iterator[np.ndarray]:
    """The answers to the questions about one column, bool (n,) each, as `questions` takes them; each is made when it is asked for."""
    values = rows.columns[j]
    empty = np.isnan(values)
    if not empty.any():
        yield from _of_values(model, j, values, rows.plain)
        return
    for yes in _of_values(model, j, values[~empty], rows.plain[~empty]):
        if yes.any() and not yes.all():  # else it is the question whether the cell is empty
            yield from (_with_empty(yes, empty, answer) for answer in (False, True))
    yield empty


def _with_empty(yes: np.ndarray, empty: np.ndarray, answer: bool) -> np.ndarray:
    """Return the answers of all rows from those of the rows with a value and the one of empty cells."""
    found = np.full(len(empty), answer)
    found[~empty] = yes
    return found


def _of_values(model: Model, j: int, values: np.ndarray, weights: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the answers to the questions about the values of a column."""
    given = model.get("parameters") or {}
    column = model["columns"][j]
    scheme = given.get("binarise", "quantile-thresholds")
    bins = int(given.get("bins") or 5)
    if scheme not in SCHEMES:
        raise ValueError(f"there is no encoding {str(scheme)[:40]!r}")
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
        own = weights[~codes]
        if not codes.any() or (len(np.unique(ordinary)) > 1 and own.any()):
            cuts = _cuts(ordinary, own, scheme, bins)
            cuts += [(cut, math.inf) for cut in _extra(given, column["name"]) if (cut, math.inf) not in cuts]
            yield from ((values > a) & (values <= b) for a, b in cuts)
        yield from (values == code for code in np.unique(values[codes]))


def _extra(given: Model, name: str) -> list[float]:
    """Return the thresholds that the parameters list for a column, each once."""
    text = given.get("extra_thresholds")
    listed = json.loads(text).get(name, []) if text else []
    if not all(type(cut) in (int, float) and math.isfinite(cut) for cut in listed):
        raise ValueError("a threshold of the parameters is not a number")
    return [float(cut) for cut in dict.fromkeys(listed)]


def filled_features(model: Model, rows: ModelTable) -> Iterator[tuple[int, np.ndarray]]:
    """Yield what `features` yields of the table with its empty cells filled, each with its column of the model.

    Behind a column with empty cells comes one of 1 for these and 0.
    """
    for j, (column, values) in enumerate(zip(model["columns"], rows.columns, strict=True)):
        empty = np.isnan(values)
        if not empty.any():
            yield from ((j, feature) for feature in _features_of(column, values))
        elif (fill := lower_median(values, rows.plain)) is not None:
            yield from ((j, feature) for feature in _features_of(column, np.where(empty, fill, values)))
            yield j, empty.astype(np.float64)


def lower_median(values: np.ndarray, weights: np.ndarray) -> float | None:
    """Return the smallest value up to which half of the weight of all values lies; None without a value.

    Where no value has a weight, each counts one.
    """
    present = ~np.isnan(values)
    own = weights[present]
    levels, place = np.unique(values[present], return_inverse=True)
    if not len(levels):
        return None
    behind = np.cumsum(np.bincount(place.reshape(-1), own if own.any() else None)).astype(np.int64)
    return float(levels[np.searchsorted(2 * behind, behind[-1])])


def open_features(model: Model, rows: ModelTable) -> Iterator[tuple[int, np.ndarray]]:
    """Yield what `features` yields, and columns with empty cells as they are, NaN where empty, each with its column of the model."""
    for j, (column, values) in enumerate(zip(model["columns"], rows.columns, strict=True)):
        empty = np.isnan(values)
        if empty.any():
            yield from [] if empty.all() else [(j, values)]
        else:
            yield from ((j, feature) for feature in _features_of(column, values))


def features(model: Model, rows: ModelTable) -> Iterator[tuple[int, np.ndarray]]:
    """The columns of numbers with more than one value, and one of 0 and 1 for each category that occurs, each with its column of the model.

    Two categories have one, for the second of them.
    """
    for j, (column, values) in enumerate(zip(model["columns"], rows.columns, strict=True)):
        yield from ((j, feature) for feature in _features_of(column, values))


def threshold_features(model: Model, rows: ModelTable) -> Iterator[tuple[int, np.ndarray]]:
    """Yield what `features` yields, and a column with empty cells twice: with these below, and above all values.

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
    """The questions on ordinary values, each as its ends: low < x ≤ high."""
    if scheme == "all-thresholds":
        counted = np.unique(values[weights > 0])
        # a special value may lie between two neighbours
        return [(_middle(low, high), math.inf) for low, high in itertools.pairwise(counted.tolist())]
    present, place = np.unique(values, return_inverse=True)
    behind = np.cumsum(np.bincount(place, weights).astype(np.int64))
    if scheme == "quantile-buckets":
        edges = np.unique([_quantile(present, behind, r / bins) for r in range(bins + 1)])
        inner = [-math.inf, *edges[1:-1].tolist(), math.inf]
        return list(itertools.pairwise(inner)) if len(edges) > 1 else []
    if scheme == "none":
        raise ValueError("a column of other numbers than 0 and 1 is not asked as it is")
    cuts = []
    for r in range(1, bins):
        at, rest = divmod((int(behind[-1]) - 1) * r, bins)
        low, high = _ranked(present, behind, (at, at + (rest > 0)))
        cuts.append(low if not rest else _middle(low, high))
    return [(cut, math.inf) for cut in dict.fromkeys(cuts)]


def _middle(low: float, high: float) -> float:
    half = low / 2 + high / 2 if math.isinf(high - low) else low + (high - low) / 2
    return half if low <= half < high else low


def _ranked(present: np.ndarray, behind: np.ndarray, places: Sequence[int]) -> list[float]:
    """The values at these places (from 0) of a column, sorted, with each row repeated as often as its weight says.

    `present`: the different values; `behind`: the weight up to and with each of them.
    """
    return [float(present[np.searchsorted(behind, place, side="right")]) for place in places]


def _quantile(present: np.ndarray, behind: np.ndarray, share: float) -> float:
    """Linear between neighbours, in the two forms that keep the last bit on either side of the middle."""
    position = (int(behind[-1]) - 1) * share
    below = math.floor(position)
    rest = position - below
    low, high = _ranked(present, behind, (below, math.ceil(position)))
    return high - (high - low) * (1 - rest) if rest >= 0.5 else low + (high - low) * rest


def cuts_of_bins(values: np.ndarray, bins: int) -> list[float]:
    """The upper ends of all bins of a numeric column but the last: quantiles that are values, each once."""
    values = values[~np.isnan(values)]
    if not len(values):
        return []
    ranks = np.sort(values)[[math.ceil(Fraction(r, bins) * len(values)) - 1 for r in range(1, bins)]]
    return [float(cut) for cut in np.unique(ranks) if cut < values.max()]


def bin_codes(values: np.ndarray, bins: int) -> list[np.ndarray]:
    """The bin of each row, int64 (n,) from 0; twice for a column with empty cells, as a bin before and after all others."""
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
    """Whether a row lies above each bin but the last, bool (n,) each."""
    for codes in bin_codes(values, bins):
        yield from (codes > last for last in range(int(codes.max(initial=0))))
