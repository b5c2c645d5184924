"""Groups, times and weights of the rows, read again, and the assignment to held-out rows and folds repeated from the seed."""

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

from trainer.check.recount.findings import Finding, recounted, unjudged
from trainer.check.recount.table.reading import CLOCK, FORMS, GAPS, read_minutes
from trainer.check.recount.table.tables import Piece
from trainer.errors import DataError

PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,5})?", re.ASCII)
SLACK = 10.0**-9  # two assignments whose imbalance agrees up to this are equally even
MAX_STEPS = 500
MAX_SWAPS = 4000


@dataclass(frozen=True)
class Dependence:
    """The group of each row, int64 (n,), its time, float64 (n,), rising, and its weight as the file has it, float64 (n,).

    None where the model names no such column.
    """

    groups: np.ndarray | None = None
    times: np.ndarray | None = None
    weights: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Dependence:
        """Return the groups, times and weights of the chosen rows (indices or a mask)."""
        chosen = (None if own is None else own[rows] for own in (self.groups, self.times, self.weights))
        return Dependence(*chosen)


def dependence_columns(model: dict[str, Any]) -> list[str]:
    """Return the columns of the file that groups, times and weights are read from."""
    rows = model.get("rows") or {}
    return [str(rows[name]["column"]) for name in ("group", "time", "weight") if rows.get(name)]


def divert(pieces: Iterable[Piece], width: int, kept: list[list[str]]) -> Iterator[Piece]:
    """Yield the first `width` columns of each piece, and append the cells of the others to `kept`."""
    for piece in pieces:
        for cells, own in zip(piece[width:], kept, strict=True):
            own.extend(cells)
        yield piece[:width]


def read_dependence(model: dict[str, Any], cells: Sequence[Sequence[str]], usable: np.ndarray) -> Dependence:
    """Return what `Dependence` holds of the usable rows from the cells of `dependence_columns`.

    Raises DataError for a bad time or weight.
    """
    rows = model.get("rows") or {}
    places = np.flatnonzero(usable).tolist()
    left = list(cells)
    groups = _group_codes([left[0][i] for i in places], left.pop(0)) if rows.get("group") else None
    times = None
    if rows.get("time"):
        own = left.pop(0)
        form = rows["time"].get("form")
        values = {word: _time(word, form, rows["time"]["column"]) for word in {own[i] for i in places}}
        times = np.array([values[own[i]] for i in places], np.float64)
    weights = None
    if rows.get("weight"):
        own = left.pop(0)
        number = {word: _weight(word, rows["weight"]) for word in {own[i] for i in places}}
        weights = np.array([number[own[i]] for i in places], np.float64)
    return Dependence(groups, times, weights)


def _weight(word: str, record: dict[str, Any]) -> float:
    form = record.get("form")
    text: str | None = word
    if form is not None:
        found = FORMS["number"](word, form)
        text = None if found is None else found[0]
    value = float(text) if text is not None and PLAIN_NUMBER.fullmatch(text) else math.nan
    if not (math.isfinite(value) and value >= 0):
        raise DataError(f"Column '{record['column']}' gives the weights; the file has '{word[:60]}' there.")
    return value


def weights_finding(model: dict[str, Any], given: np.ndarray, weights: np.ndarray, trains: np.ndarray) -> Finding:
    """Judge the integers that the model counts rows as: the column `given` in steps, or rounded by no more than stated."""
    step = Fraction(model["rows"]["weight"]["step"])
    stated = float(model["certificate"].get("weight_error") or 0)
    total = step * int(weights.sum())
    words = (
        f"{int((weights > 0).sum())} rows of weight {float(total):.6g}; {int((weights == 0).sum())} rows count nothing."
    )
    if step <= 0 or ((weights == 0) != (given == 0)).any():
        return recounted("weights", False, "Other rows weigh nothing in the file.", "basis")
    if stated == 0:
        same = bool((weights[trains] * step.numerator / step.denominator == given[trains]).all())
        return recounted("weights", same, words, "basis")
    kinds = Counter(zip(given[trains].tolist(), weights[trains].tolist(), strict=True))
    whole = sum(v * m for (_, v), m in kinds.items())
    real = sum(Fraction(w) * m for (w, _), m in kinds.items())
    error = sum(abs(Fraction(w) / real - Fraction(v, whole)) * m for (w, v), m in kinds.items()) / 2
    holds = float(error) <= stated + SLACK**2 and abs(float(step * whole / real) - 1) < SLACK**0.5
    return recounted("weights", holds, f"{words} Rounding changes no share by more than {stated:.3g}.", "basis")


def _group_codes(words: Sequence[str], column: Sequence[str]) -> np.ndarray:
    """Return the group of each row; every row with an empty cell is a group of its own."""
    marks = GAPS
    others = set(column) - GAPS
    if others and 2 * sum(re.fullmatch("[A-Z]{2}", word) is not None for word in others) >= len(others):
        marks = GAPS - {"NA"}  # a value among other codes of two letters
    code: dict[str, int] = {}
    first = len(words)
    return np.array([first + i if w in marks else code.setdefault(w, len(code)) for i, w in enumerate(words)], np.int64)


def _time(word: str, form: dict[str, Any] | None, column: str) -> float:
    if form is None and PLAIN_NUMBER.fullmatch(word) and math.isfinite(float(word)):
        return float(word) + 0.0
    found = None if form is None or word in GAPS else FORMS[form["taken_for"]](word, form)
    if found is None:
        raise DataError(f"Column '{column}' orders the rows of the model; the file has '{word[:60]}' there.")
    if form is None or form["taken_for"] == "number":
        return float(found[0])
    clock = CLOCK.search(word.strip())
    seconds = 0.0
    if form.get("clock") and clock:
        seconds = 60 * (read_minutes(clock) or 0) + float(f"{clock[3] or 0}.{clock['fraction'] or 0}")
    return int(found[3]) * 24 * 60 * 60 + seconds


# -- held-out rows -----------------------------------------------------------------------------------------------------


def held_out_finding(
    labels: np.ndarray, bound: Dependence, held_out: np.ndarray, aside: np.ndarray, share: float, seed: int
) -> Finding:
    """Judge the held-out rows: no group on both sides, no held-out row before a training row, and the same rows again."""
    claim = "rows held out"
    train = ~held_out & ~aside
    if not held_out.any() or not train.any():
        return recounted(claim, False, "One side has no row.")
    if trouble := _mixed(bound, train, held_out):
        return recounted(claim, False, f"{trouble} on both sides.")
    if aside.any() and (bound.groups is None or bound.times is None or not _all_grouped(bound.groups, aside, held_out)):
        return recounted(claim, False, "Rows are left out that are in no held-out group.")
    if bound.times is not None:
        expected = _blocks(bound.times, 2, share) == 1
        shared = np.zeros(len(labels), bool) if bound.groups is None else np.isin(bound.groups, bound.groups[expected])
        same = bool((held_out == expected).all() and (aside == (shared & ~expected)).all())
    else:
        assert bound.groups is not None
        counts, place = _count_groups(labels, bound.groups)
        part = deal(counts, np.array([1 - share, share]), seed)[place]
        same = bool((held_out == (part == 1)).all())
    words = f"{int(held_out.sum())} of {len(labels)} rows; {_order_words(bound)}."
    return _judge(claim, words, same=same)


def folds_finding(labels: np.ndarray, bound: Dependence, fold: np.ndarray, folds: int, seed: int) -> Finding:
    """Judge the folds: whole groups, or chains that follow the time, and the same folds again."""
    claim = "folds"
    sizes = np.bincount(fold[fold >= 0], minlength=folds)
    if len(sizes) != folds or not sizes.all():
        return recounted(claim, False, "A fold has no row.")
    for f in range(folds):
        train = fold != f if bound.times is None else trains_for(fold, bound, f)
        if trouble := _mixed(bound, train, fold == f):
            return recounted(claim, False, f"{trouble} in fold {f + 1} and among the rows that train for it.")
    if bound.times is not None:
        expected = _blocks(bound.times, folds + 1) - 1
    else:
        assert bound.groups is not None
        if (fold < 0).any():
            return recounted(claim, False, "A row is in no fold.")
        counts, place = _count_groups(labels, bound.groups)
        expected = deal(counts, np.full(folds, 1 / folds), seed)[place]
    words = f"{folds} folds of {sizes.min()} to {sizes.max()} rows; {_order_words(bound)}."
    return _judge(claim, words, same=bool((fold == expected).all()))


def trains_for(fold: np.ndarray, bound: Dependence, f: int) -> np.ndarray:
    """Return which rows train for a fold: earlier ones where there are times, and none of a group that the fold judges."""
    train = fold < f if bound.times is not None else fold != f
    return train if bound.groups is None else train & ~np.isin(bound.groups, bound.groups[fold == f])


def _mixed(bound: Dependence, train: np.ndarray, judged: np.ndarray) -> str:
    """Say what is on both sides; "" if nothing is."""
    if bound.groups is not None and np.isin(bound.groups[judged], bound.groups[train]).any():
        return "Rows of one group are"
    if bound.times is not None and train.any() and bound.times[judged].min() <= bound.times[train].max():
        return "Rows that train are not all earlier than those that are judged: the same times are"
    return ""


def _all_grouped(groups: np.ndarray, rows: np.ndarray, judged: np.ndarray) -> bool:
    return bool(np.isin(groups[rows], groups[judged]).all())


def _order_words(bound: Dependence) -> str:
    parts = [] if bound.groups is None else [f"{len(np.unique(bound.groups))} groups, none of them on both sides"]
    return "; ".join(parts + ([] if bound.times is None else ["every row that trains is earlier"]))


def _judge(claim: str, words: str, *, same: bool) -> Finding:
    if same:
        return recounted(claim, True, words)
    return unjudged(claim, words + " The seed of the file gives other ones, so that who chose them is not known.")


# -- the assignment, again ---------------------------------------------------------------------------------------------


def _count_groups(labels: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of each class in each group, groups in the order of their first row; and the place of each row's group."""
    _, first, place = np.unique(groups, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    place = rank[place]
    counts = np.zeros((len(first), int(labels.max()) + 1), np.int64)
    np.add.at(counts, (place, labels), 1)
    return counts, place


def _blocks(times: np.ndarray, blocks: int, share: float | None = None) -> np.ndarray:
    """Cut the sorted times into blocks of about equal size, or the last with its share; equal times stay together."""
    distinct, place = np.unique(times, return_inverse=True)
    upto = np.cumsum(np.bincount(place))
    n = len(times)
    block = np.zeros(len(distinct), np.int64)
    done = 0
    rows = 0
    for b in range(blocks - 1):
        goal = rows + (n - rows) / (blocks - b) if share is None else n * (1 - share)
        candidates = upto[done : len(distinct) - (blocks - b) + 1]
        if not len(candidates):
            return np.full(n, -1)
        done += 1 + int(np.abs(candidates - goal).argmin())
        rows = int(upto[done - 1])
        block[done:] = b + 1
    return block[place]


def deal(counts: np.ndarray, shares: np.ndarray, seed: int) -> np.ndarray:
    """The part of each group: greedy by the chi-squared statistic of the classes, from large to small, then moves and swaps."""
    whole = np.column_stack([counts, counts.sum(axis=1)])
    kinds, kind = np.unique(whole, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    size = np.bincount(kind)
    total = whole.sum(axis=0)
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
        [np.repeat(np.arange(len(shares)), own) for own in amount]
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
