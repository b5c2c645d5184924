"""The part of the independent check that counts errors in planes again: sets of rows named by a certificate of trees of hyperplanes.

As in all of `trainer.check.recount`, nothing here is shared with the code that trains. Numbers are read as the decimals that they are written as,
and compared exactly. In a plane a hyperplane is a line; every way in which a line parts points is also the way of a line through two of
them, which then goes to one side of it or the other between two neighbours on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.model import ModelTable
from trainer.check.proof.space.questions import filled_features
from trainer.check.recount.search.lines import as_integers

MAX_SET_POINTS = 200
RANGE = 1 << 28  # products of differences are exact in int64


Counted = tuple[list[int], dict[int, list[int]]]  # rows of sets, and errors of each set for one to four leaves


def ceiling(model: dict[str, Any], rows: ModelTable, penalty: Fraction, counted: Counted | None) -> Fraction:
    """An objective that no tree exceeds, from equal rows, the sizes of the classes, and errors counted again in planes."""
    n = int(rows.weights.sum())
    classes = len(model["classes"])
    sizes = sorted(np.bincount(rows.labels, rows.weights, classes).astype(int).tolist(), reverse=True)
    depth = int(model["parameters"]["depth"])
    asked = model["parameters"].get("max_leaves")
    inside, errors = counted if counted is not None else ([], {})
    held = int(rows.weights[inside].sum())
    outer = _grouped_weight(rows, np.setdiff1d(np.arange(len(rows)), inside), classes)
    inner = _grouped_weight(rows, np.array(inside, np.int64), classes)
    found = []
    for t in range(1, min(1 << depth, int(asked or 1 << depth)) + 1):
        # four leaves may be three questions deep, which was not counted
        here = held - sum(errors[t]) if errors and t <= (4 if depth <= 2 else 3) else inner
        found.append(Fraction(min(outer + here, sum(sizes[:t])), n) - penalty * t)
    return max(found)


def disputed(model: dict[str, Any], counted: Counted | None) -> bool:
    """True if a set named by the certificate has other errors than the certificate says, as far as they can be counted."""
    if counted is None:
        return False
    claimed = [list(group.get("errors", ())) for group in groups(model)]
    return any(each and each != [counted[1][t][i] for t in range(1, 5)] for i, each in enumerate(claimed))


def groups(model: dict[str, Any]) -> list[dict[str, Any]]:
    """The sets of rows in planes that the certificate names."""
    evidence = model["certificate"].get("evidence") or []
    return [group for e in evidence if e.get("kind") == "planes" for group in e["groups"]]


def _grouped_weight(rows: ModelTable, chosen: np.ndarray, classes: int) -> int:
    """The weight of the chosen rows that can be right when equal rows go together."""
    tally: dict[tuple[float, ...], list[int]] = {}
    table = np.column_stack(rows.columns)[chosen]
    cells = np.where(np.isnan(table), np.inf, table).tolist()  # rows with the same empty cells may be equal
    for values, label, weight in zip(cells, rows.labels[chosen].tolist(), rows.weights[chosen].tolist(), strict=True):
        tally.setdefault(tuple(values), [0] * classes)[label] += weight
    return sum(max(counts) for counts in tally.values())


def errors_in_planes(model: dict[str, Any], data: ModelTable) -> Counted | None:
    """The rows of all sets, and for one to four leaves the least weight of errors of each; None if a set is not as it must be."""
    weighed = [x for _, x in filled_features(model, data)]
    used = set[int]()
    errors: dict[int, list[int]] = {t: [] for t in range(1, 5)}
    for group in groups(model):
        rows = [int(i) for i in group["rows"]]
        if not rows or used & set(rows) or len(set(rows)) < len(rows) or not all(0 <= i < len(data) for i in rows):
            return None
        used |= set(rows)
        points = coordinates(rows, weighed)
        if points is None:
            return None
        place: dict[tuple[int, int], int] = {}
        where = [place.setdefault(point, len(place)) for point in points]
        counts = np.zeros((len(place), len(model["classes"])), np.int64)
        np.add.at(counts, (np.array(where), data.labels[rows]), data.weights[rows])
        if len(place) > MAX_SET_POINTS:
            return None
        for t, least in enumerate(_least_errors(list(place), counts), start=1):
            errors[t].append(least)
    return sorted(used), errors


def coordinates(rows: list[int], weighed: Sequence[np.ndarray]) -> list[tuple[int, int]] | None:
    """Whole coordinates of the rows in a plane that holds them, or None if they span more or are too wide."""
    axes: list[list[int]] = []
    basis: list[
        tuple[int, list[Fraction]]
    ] = []  # a row with a 1, and the column that has it and is 0 at the rows before
    for values in (feature[rows] for feature in weighed):
        column = as_integers(values) if len(np.unique(values)) > 1 else np.zeros(len(rows), np.int64)
        if column is None:
            return None
        axis = [int(x) - int(column[0]) for x in column]
        rest = [Fraction(x) for x in axis]
        for at, unit in basis:
            rest = [x - rest[at] * u for x, u in zip(rest, unit, strict=True)] if rest[at] else rest
        at = next((i for i, x in enumerate(rest) if x), -1)
        if at < 0:
            continue
        if len(basis) == 2 or max(map(abs, axis)) > RANGE:
            return None
        basis.append((at, [x / rest[at] for x in rest]))
        axes.append(axis)
    axes += [[0] * len(rows)] * (2 - len(axes))
    return list(zip(*axes, strict=True))


def partings(points: list[tuple[int, int]]) -> np.ndarray:
    """All ways (R, N) to separate the points with a line; of each pair of sides one may be missing."""
    P = np.array(points, np.int64)
    n = len(P)
    found = {np.zeros(n, bool).tobytes()}
    for i in range(n):
        for j in range(i + 1, n):
            d = P[j] - P[i]
            turn = d[0] * (P[:, 1] - P[i, 1]) - d[1] * (P[:, 0] - P[i, 0])
            on = np.flatnonzero(turn == 0)
            on = on[np.argsort((P[on] - P[i]) @ d)]
            for cut in range(len(on) + 1):
                for members in (on[:cut], on[cut:]):
                    side = turn > 0
                    side[members] = True
                    found.add((side ^ side[0]).tobytes())
    return np.array([np.frombuffer(side, bool) for side in sorted(found)])


def _least_errors(points: list[tuple[int, int]], counts: np.ndarray) -> list[int]:
    """The least errors with at most one, two, three and four leaves, no leaf below two questions."""
    sides = partings(points)
    kind: Any = np.float32 if counts.sum() < 1 << 23 else np.float64  # exact for whole numbers of this size
    ways = sides.astype(kind)
    weight = counts.astype(kind)
    total = weight.sum(axis=0)
    second = (ways @ weight).T[None]
    best = [int(total.sum() - total.max())] * 4
    for begin in range(0, len(sides), 32):
        some = ways[begin : begin + 32]
        # what the first line has on its side, and of that the second: (lines, classes) and (lines, classes, second lines)
        inner = some @ weight
        shared = np.stack([(some * column) @ ways.T for column in weight.T], axis=1)
        leaf = []
        split = []
        for half, parts in ((inner, shared), (total - inner, second - shared)):
            leaf.append(half.sum(axis=1) - half.max(axis=1))
            right = parts.max(axis=1) + (half[:, :, None] - parts).max(axis=1)
            split.append(half.sum(axis=1) - right.max(axis=1))
        three = np.minimum(leaf[0] + split[1], split[0] + leaf[1])
        now = [best[0], *(int(e.min()) for e in (leaf[0] + leaf[1], three, split[0] + split[1]))]
        best = [min(a, b) for a, b in zip(best, now, strict=True)]
    return [min(best[: t + 1]) for t in range(4)]
