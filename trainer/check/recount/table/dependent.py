"""Read groups, times and weights of rows, and repeat their assignment."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.recount.findings import Finding, recount_finding, unjudged_finding
from trainer.check.recount.table.reading import CLOCK, FORMS, GAPS, read_minutes
from trainer.check.recount.table.tables import Piece
from trainer.errors import DataError

PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,5})?", re.ASCII)
SLACK = 10.0**-9  # two assignments count as equally even if their imbalances differ by less than this
MAX_STEPS = 500
MAX_SWAPS = 4000


@dataclass(frozen=True)
class Dependence:
    """The group of each row, int64 of shape (n,), its time, and its weight in the file, float64 of shape (n,).

    Larger times are later. Each is None if the model names no such column.
    """

    groups: np.ndarray | None = None
    times: np.ndarray | None = None
    weights: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Dependence:
        """Return the groups, times and weights of the chosen rows (indices or a mask)."""
        chosen = (None if values is None else values[rows] for values in (self.groups, self.times, self.weights))
        return Dependence(*chosen)


def dependence_columns(model: dict[str, Any]) -> list[str]:
    """Return the columns of the file that groups, times and weights are read from."""
    rows = model.get("rows") or {}
    return [str(rows[name]["column"]) for name in ("group", "time", "weight") if (rows.get(name) or {}).get("column")]


def divert(pieces: Iterable[Piece], width: int, others: list[list[str]]) -> Iterator[Piece]:
    """Yield the first `width` columns of each piece, and append the cells of the others to `others`."""
    for piece in pieces:
        for cells, column in zip(piece[width:], others, strict=True):
            column.extend(cells)
        yield piece[:width]


def read_dependence(model: dict[str, Any], cells: Sequence[Sequence[str]], usable: np.ndarray) -> Dependence:
    """Read groups, times and weights of the usable rows from the cells of `dependence_columns`.

    Raises DataError for an invalid time or weight.
    """
    rows = model.get("rows") or {}
    places = np.flatnonzero(usable).tolist()
    left = list(cells)
    groups = _group_codes([left[0][i] for i in places], left.pop(0)) if rows.get("group") else None
    times = None
    if rows.get("time"):
        column_cells = left.pop(0)
        form = rows["time"].get("form")
        values = {word: _read_time(word, form, rows["time"]["column"]) for word in {column_cells[i] for i in places}}
        times = np.array([values[column_cells[i]] for i in places], np.float64)
    weights = None
    record = rows.get("weight") or {}
    if record and not record["column"]:  # an array had the weights, which the file lists
        weights = np.array(record["given"], np.float64)
        if weights.ndim == 1 and len(weights) != len(places):
            raise DataError(
                f"The model file gives the weights of {len(weights):,} rows, and the table has {len(places):,}. "
                "Give the rows and weights of the training."
            )
        if weights.ndim != 1 or not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError("the weights must be one number of at least 0 per row")
    elif record:
        column_cells = left.pop(0)
        number = {word: _read_weight(word, rows["weight"]) for word in {column_cells[i] for i in places}}
        weights = np.array([number[column_cells[i]] for i in places], np.float64)
    return Dependence(groups, times, weights)


def _read_weight(word: str, record: dict[str, Any]) -> float:
    form = record.get("form")
    text: str | None = word
    if form is not None:
        number = FORMS["number"](word, form)
        text = None if number is None else number[0]
    value = float(text) if text is not None and PLAIN_NUMBER.fullmatch(text) else math.nan
    if not (math.isfinite(value) and value >= 0):
        raise DataError(f"Column '{record['column']}' gives the weights; the file has '{word[:60]}' there.")
    return value


def weights_finding(model: dict[str, Any], column: np.ndarray, weights: np.ndarray, trains: np.ndarray) -> Finding:
    """Check that the integer weights of rows are those of `column` in steps, rounded by no more than stated."""
    step = Fraction(model["rows"]["weight"]["step"])
    stated = float(model["certificate"].get("weight_error") or 0)
    total = step * int(weights.sum())
    words = (
        f"{int((weights > 0).sum())} rows of weight {float(total):.6g}; {int((weights == 0).sum())} rows count nothing."
    )
    if step <= 0 or ((weights == 0) != (column == 0)).any():
        return recount_finding(
            "weights", False, "The rows of weight 0 are not those of the file, or the step is not above 0.", "basis"
        )
    if stated == 0:
        same = bool((weights[trains] * step.numerator / step.denominator == column[trains]).all())
        return recount_finding("weights", same, words, "basis")
    kinds = Counter(zip(column[trains].tolist(), weights[trains].tolist(), strict=True))
    total_weight = sum(v * m for (_, v), m in kinds.items())
    total_given = sum(Fraction(w) * m for (w, _), m in kinds.items())
    error = sum(abs(Fraction(w) / total_given - Fraction(v, total_weight)) * m for (w, v), m in kinds.items()) / 2
    holds = float(error) <= stated + SLACK**2 and abs(float(step * total_weight / total_given) - 1) < SLACK**0.5
    return recount_finding("weights", holds, f"{words} Rounding changes no share by more than {stated:.3g}.", "basis")


def _group_codes(words: Sequence[str], column: Sequence[str]) -> np.ndarray:
    """Return the group of each row; every row with an empty cell is a group of its own."""
    marks = GAPS
    others = set(column) - GAPS
    if others and 2 * sum(re.fullmatch("[A-Z]{2}", word) is not None for word in others) >= len(others):
        marks = GAPS - {"NA"}  # among codes of two letters, NA is a value, such as Namibia
    code: dict[str, int] = {}
    first = len(words)
    return np.array([first + i if w in marks else code.setdefault(w, len(code)) for i, w in enumerate(words)], np.int64)


def _read_time(word: str, form: dict[str, Any] | None, column: str) -> float:
    if form is None and PLAIN_NUMBER.fullmatch(word) and math.isfinite(float(word)):
        return float(word) + 0.0
    parts = None if form is None or word in GAPS else FORMS[form["taken_for"]](word, form)
    if parts is None:
        raise DataError(f"Column '{column}' orders the rows of the model; the file has '{word[:60]}' there.")
    if form is None or form["taken_for"] == "number":
        return float(parts[0])
    clock = CLOCK.search(word.strip())
    seconds = 0.0
    if form.get("clock") and clock:
        seconds = 60 * (read_minutes(clock) or 0) + float(f"{clock[3] or 0}.{clock['fraction'] or 0}")
    return int(parts[3]) * 24 * 60 * 60 + seconds


# -- held-out rows -----------------------------------------------------------------------------------------------------


def held_out_finding(
    labels: np.ndarray, dependence: Dependence, held_out: np.ndarray, aside: np.ndarray, share: float, seed: int
) -> Finding:
    """Check the held-out rows: no group on both sides, none before a training row, and the same rows from the seed."""
    claim = "rows held out"
    train = ~held_out & ~aside
    if not held_out.any() or not train.any():
        return recount_finding(claim, False, "No row was held out, or no row trains.")
    if trouble := _find_leak(dependence, train, held_out):
        return recount_finding(claim, False, f"{trouble} on both sides.")
    if aside.any() and (
        dependence.groups is None or dependence.times is None or not _all_grouped(dependence.groups, aside, held_out)
    ):
        return recount_finding(claim, False, "Some rows neither train nor are held out, and are in no held-out group.")
    if dependence.times is not None:
        expected = _time_blocks(dependence.times, 2, share) == 1
        shared = (
            np.zeros(len(labels), bool)
            if dependence.groups is None
            else np.isin(dependence.groups, dependence.groups[expected])
        )
        same = bool((held_out == expected).all() and (aside == (shared & ~expected)).all())
    else:
        assert dependence.groups is not None
        counts, place = _count_groups(labels, dependence.groups)
        part = deal(counts, np.array([1 - share, share]), seed)[place]
        same = bool((held_out == (part == 1)).all())
    words = f"{int(held_out.sum())} of {len(labels)} rows; {_order_words(dependence)}."
    return _judge(claim, words, same=same)


def folds_finding(labels: np.ndarray, dependence: Dependence, fold: np.ndarray, folds: int, seed: int) -> Finding:
    """Check the folds: whole groups, chains that follow the time, and the same folds from the seed."""
    claim = "folds"
    sizes = np.bincount(fold[fold >= 0], minlength=folds)
    if len(sizes) != folds or not sizes.all():
        return recount_finding(claim, False, "A fold has no row.")
    for f in range(folds):
        train = fold != f if dependence.times is None else trains_for(fold, dependence, f)
        if trouble := _find_leak(dependence, train, fold == f):
            return recount_finding(claim, False, f"{trouble} in fold {f + 1} and among the rows that train for it.")
    if dependence.times is not None:
        expected = _time_blocks(dependence.times, folds + 1) - 1
    else:
        assert dependence.groups is not None
        if (fold < 0).any():
            return recount_finding(claim, False, "A row is in no fold.")
        counts, place = _count_groups(labels, dependence.groups)
        expected = deal(counts, np.full(folds, 1 / folds), seed)[place]
    words = f"{folds} folds of {sizes.min()} to {sizes.max()} rows; {_order_words(dependence)}."
    return _judge(claim, words, same=bool((fold == expected).all()))


def trains_for(fold: np.ndarray, dependence: Dependence, f: int) -> np.ndarray:
    """Return the training rows of a fold: earlier rows if there are times, and no row of a group of the fold."""
    train = fold < f if dependence.times is not None else fold != f
    return train if dependence.groups is None else train & ~np.isin(dependence.groups, dependence.groups[fold == f])


def _find_leak(dependence: Dependence, train: np.ndarray, judged: np.ndarray) -> str:
    """Return the beginning of a sentence on groups or times that are on both sides; empty if there are none."""
    if dependence.groups is not None and np.isin(dependence.groups[judged], dependence.groups[train]).any():
        return "Rows of one group are"
    if dependence.times is not None and train.any() and dependence.times[judged].min() <= dependence.times[train].max():
        return "Some training rows are not earlier than all judged rows: the same times are"
    return ""


def _all_grouped(groups: np.ndarray, rows: np.ndarray, judged: np.ndarray) -> bool:
    return bool(np.isin(groups[rows], groups[judged]).all())


def _order_words(dependence: Dependence) -> str:
    parts = (
        [] if dependence.groups is None else [f"{len(np.unique(dependence.groups))} groups, none of them on both sides"]
    )
    return "; ".join(parts + ([] if dependence.times is None else ["every row that trains is earlier"]))


def _judge(claim: str, words: str, *, same: bool) -> Finding:
    if same:
        return recount_finding(claim, True, words)
    return unjudged_finding(
        claim, words + " The seed of the file gives other rows, so it is not known who chose these."
    )


# -- the assignment again ----------------------------------------------------------------------------------------------


def _count_groups(labels: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count the rows of each class in each group, in the order of their first rows; return also each row's group."""
    _, first, place = np.unique(groups, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    place = rank[place]
    counts = np.zeros((len(first), int(labels.max()) + 1), np.int64)
    np.add.at(counts, (place, labels), 1)
    return counts, place


def _time_blocks(times: np.ndarray, blocks: int, share: float | None = None) -> np.ndarray:
    """Cut the sorted times into blocks of about equal size, or give the last its share; equal times stay together."""
    distinct, place = np.unique(times, return_inverse=True)
    upto = np.cumsum(np.bincount(place))
    n = len(times)
    block = np.zeros(len(distinct), np.int64)
    first = 0
    rows = 0
    for b in range(blocks - 1):
        goal = rows + (n - rows) / (blocks - b) if share is None else n * (1 - share)
        candidates = upto[first : len(distinct) - (blocks - b) + 1]
        if not len(candidates):
            return np.full(n, -1)
        first += 1 + int(np.abs(candidates - goal).argmin())
        rows = int(upto[first - 1])
        block[first:] = b + 1
    return block[place]


def deal(counts: np.ndarray, shares: np.ndarray, seed: int) -> np.ndarray:
    """Assign groups to parts: greedily by the chi-squared statistic of the classes, from large to small, then by swaps."""
    totals = np.column_stack([counts, counts.sum(axis=1)])
    kinds, kind = np.unique(totals, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    size = np.bincount(kind)
    total = totals.sum(axis=0)
    weight = np.array([1 / t if t else 0.0 for t in total])
    amount = np.floor(size[:, None] * shares + SLACK).astype(np.int64)
    excess = amount.T @ kinds - shares[:, None] * total
    for u in sorted(range(len(kinds)), key=lambda u: (-kinds[u, -1], u)):
        for _ in range(int(size[u] - amount[u].sum())):
            rise = ((2 * excess + kinds[u]) * kinds[u] * weight).sum(axis=1) / shares
            b = int(np.argmin(np.round(rise, 9)))
            amount[u, b] += 1
            excess[b] += kinds[u]
    for b in np.flatnonzero(amount.sum(axis=0) == 0).tolist():
        rich = int(amount.sum(axis=0).argmax())
        u = min(np.flatnonzero(amount[:, rich]).tolist(), key=lambda u: (kinds[u, -1], u))
        amount[u, rich] -= 1
        amount[u, b] += 1
    _improve(kinds, amount, weight, shares)
    order = np.random.default_rng(seed).permutation(len(counts))
    part = np.empty(len(counts), np.int64)
    part[order[np.argsort(kind[order], kind="stable")]] = np.concatenate(
        [np.repeat(np.arange(len(shares)), numbers) for numbers in amount]
    )
    return part


def _improve(kinds: np.ndarray, amount: np.ndarray, weight: np.ndarray, shares: np.ndarray) -> None:
    n = len(kinds)
    pairs = [(u, -1) for u in range(n)]
    pairs += list(itertools.permutations(range(n), 2)) if n * n <= MAX_SWAPS else []
    out = np.array([u for u, _ in pairs])
    back = np.array([w for _, w in pairs])
    change = kinds[out] - np.where(back[:, None] >= 0, kinds[back], 0)
    squares = (change * change * weight).sum(axis=1)
    total = (kinds * amount.sum(axis=1)[:, None]).sum(axis=0)
    for _ in range(MAX_STEPS):
        excess = amount.T @ kinds - shares[:, None] * total
        least = (-SLACK, -1, -1, -1)
        for a, b in itertools.permutations(range(len(shares)), 2):
            slope = weight * (excess[b] / shares[b] - excess[a] / shares[a])
            gain = squares * (1 / shares[a] + 1 / shares[b]) + 2 * change @ slope
            free = np.where(back >= 0, amount[back, b] > 0, amount[:, a].sum() > 1)
            gain = np.round(np.where((amount[out, a] > 0) & free, gain, 0.0), 9)
            i = int(np.argmin(gain))
            if gain[i] < least[0]:
                least = (float(gain[i]), a, b, i)
        _, a, b, i = least
        if i < 0:
            return
        amount[out[i], a] -= 1
        amount[out[i], b] += 1
        if back[i] >= 0:
            amount[back[i], b] -= 1
            amount[back[i], a] += 1
