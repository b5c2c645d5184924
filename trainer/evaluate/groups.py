"""Group rows by the values of one column."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from trainer.tree.numbers import number_text, shortest_between

MOST = 12
QUARTERS = 4
GAP = "\x1a"  # a control character that replaces an empty cell while categories are counted
MIN_GROUP_ROWS = 30  # smaller groups are left out, because their shares are too uncertain


def group_rows(chosen: np.ndarray, ranks: Sequence[str] = ()) -> tuple[list[str], np.ndarray]:
    """Return the name of each group, and the group of each row, int64 (n,).

    `chosen` (n,) is float64 with NaN where missing, or an array of texts and None. Numbers with many distinct values are cut at
    quartiles, or into three or two parts if quarters have fewer than 30 rows. Each of few distinct numbers is a group. Beyond 12
    categories the rarest form one group. Missing values are a group of their own. `ranks` are the words of the numbers 1, 2, 3.
    """
    if chosen.dtype == object:
        return _by_category(chosen)
    finite = chosen[np.isfinite(chosen)]
    distinct = np.unique(finite)
    if len(distinct) <= QUARTERS + 2:
        labels = [_end_text(float(d), ranks) for d in distinct]
        codes = np.where(np.isfinite(chosen), np.searchsorted(distinct, chosen), -1)
    else:
        cuts = _cuts(finite, distinct)
        labels = _ranges(cuts, ranks)
        codes = np.where(np.isfinite(chosen), np.searchsorted(cuts, chosen, side="left"), -1)
    if len(finite) < len(chosen):
        codes = np.where(np.isfinite(chosen), codes, len(labels))
        labels = [*labels, "missing"]
    return labels, codes


def _cuts(known: np.ndarray, distinct: np.ndarray) -> np.ndarray:
    """Return the cuts into the most parts that all have enough rows: four, three, or else two."""
    for parts in range(QUARTERS, 1, -1):
        quantiles = np.quantile(known, np.arange(1, parts) / parts)
        cuts = np.unique([_shortest_cut(float(q), distinct) for q in quantiles])
        if np.bincount(np.searchsorted(cuts, known, side="left")).min() >= MIN_GROUP_ROWS:
            break
    return cuts


def _shortest_cut(quantile: float, distinct: np.ndarray) -> float:
    """Return the shortest number that divides the values as the quantile does, so that group names are short and exact."""
    above = distinct[distinct > quantile]
    return shortest_between(float(distinct[distinct <= quantile].max()), float(above.min())) if len(above) else quantile


def _by_category(chosen: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Group by the most frequent categories; the others share one group, and "missing" counts as a category."""
    texts = np.array([GAP if t is None else str(t) for t in chosen], dtype=object)
    names, places, counts = np.unique(texts.astype(str), return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    named = order[: MOST - 1] if len(order) > MOST else order
    group = np.full(len(names), len(named))
    group[named] = np.arange(len(named))
    labels = ["missing" if names[i] == GAP else str(names[i]) for i in named]
    if len(order) > len(named):
        labels.append(f"{len(order) - len(named)} other categories")
    return labels, group[places]


def _end_text(value: float, ranks: Sequence[str]) -> str:
    """Return the word of the highest rank up to `value`, or the number if there is none."""
    place = math.floor(value)
    return ranks[place - 1] if 1 <= place <= len(ranks) else number_text(value, full=True)


def _ranges(cuts: np.ndarray, ranks: Sequence[str]) -> list[str]:
    words = [_end_text(float(c), ranks) for c in cuts]
    middle = [f"above {a} to {b}" for a, b in itertools.pairwise(words)]
    return [f"at most {words[0]}", *middle, f"above {words[-1]}"]
