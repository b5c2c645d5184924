"""Recount the errors of sets of rows in planes.

The certificate of hyperplane trees names these sets. Numbers are read as decimals and compared exactly. In a plane a
hyperplane is a line. Every separation by a line is also made by a line through two of the points, if the points on that
line are cut between two neighbours.
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
MAX_EXACT_FACTOR = 1 << 28  # up to this size, products of differences are exact in int64


# rows of all sets, and the errors of each set by number of leaves, 1 to 4
Counted = tuple[list[int], dict[int, list[int]]]


def objective_bound(model: dict[str, Any], rows: ModelTable, penalty: Fraction, counted: Counted | None) -> Fraction:
    """Return an upper bound on the objective from equal rows, the sizes of the classes, and errors in planes."""
    n = int(rows.weights.sum())
    classes = len(model["classes"])
    sizes = sorted(np.bincount(rows.labels, rows.weights, classes).astype(int).tolist(), reverse=True)
    depth = int(model["parameters"]["depth"])
    max_leaves = model["parameters"].get("max_leaves")
    inside, errors = counted if counted is not None else ([], {})
    covered = int(rows.weights[inside].sum())
    outer = _grouped_weight(rows, np.setdiff1d(np.arange(len(rows)), inside), classes)
    inner = _grouped_weight(rows, np.array(inside, np.int64), classes)
    objectives = []
    # in deeper trees, four leaves may use three questions on a path, which was not counted
    counted_leaves = 4 if depth <= 2 else 3
    for t in range(1, min(1 << depth, int(max_leaves or 1 << depth)) + 1):
        correct = covered - sum(errors[t]) if errors and t <= counted_leaves else inner
        objectives.append(Fraction(min(outer + correct, sum(sizes[:t])), n) - penalty * t)
    return max(objectives)


def contradicts_errors(model: dict[str, Any], counted: Counted | None) -> bool:
    """Return True if a set of the certificate has other errors than it states; False if they cannot be counted."""
    if counted is None:
        return False
    claimed = [list(group.get("errors", ())) for group in groups(model)]
    return any(each and each != [counted[1][t][i] for t in range(1, 5)] for i, each in enumerate(claimed))


def groups(model: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the sets of rows in planes that the certificate names."""
    evidence = model["certificate"].get("evidence") or []
    return [group for e in evidence if e.get("kind") == "planes" for group in e["groups"]]


def _grouped_weight(rows: ModelTable, selection: np.ndarray, classes: int) -> int:
    """Return the most correct weight of the selected rows if equal rows share a leaf."""
    tally: dict[tuple[float, ...], list[int]] = {}
    table = np.column_stack(rows.columns)[selection]
    # NaN is not equal to itself, so infinity represents an empty cell when rows are compared
    cells = np.where(np.isnan(table), np.inf, table).tolist()
    for values, label, weight in zip(
        cells, rows.labels[selection].tolist(), rows.weights[selection].tolist(), strict=True
    ):
        tally.setdefault(tuple(values), [0] * classes)[label] += weight
    return sum(max(counts) for counts in tally.values())


def errors_in_planes(model: dict[str, Any], data: ModelTable) -> Counted | None:
    """Return the rows of all sets, and the least errors of each set with one to four leaves; None if a set is invalid."""
    features = [x for _, x in filled_features(model, data)]
    listed_rows = set[int]()
    errors: dict[int, list[int]] = {t: [] for t in range(1, 5)}
    for group in groups(model):
        rows = [int(i) for i in group["rows"]]
        if (
            not rows
            or listed_rows & set(rows)
            or len(set(rows)) < len(rows)
            or not all(0 <= i < len(data) for i in rows)
        ):
            return None
        listed_rows |= set(rows)
        points = coordinates(rows, features)
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
    return sorted(listed_rows), errors


def coordinates(rows: list[int], features: Sequence[np.ndarray]) -> list[tuple[int, int]] | None:
    """Return integer coordinates of the rows in a plane that holds them; None if they span more, or are too wide."""
    axes: list[list[int]] = []
    # a basis of the columns in echelon form: each one is 1 at its own row and 0 at the rows of the earlier ones
    basis: list[tuple[int, list[Fraction]]] = []
    for values in (feature[rows] for feature in features):
        column = as_integers(values) if len(np.unique(values)) > 1 else np.zeros(len(rows), np.int64)
        if column is None:
            return None
        axis = [int(x) - int(column[0]) for x in column]
        remainder = [Fraction(x) for x in axis]
        for at, unit in basis:
            remainder = (
                [x - remainder[at] * u for x, u in zip(remainder, unit, strict=True)] if remainder[at] else remainder
            )
        at = next((i for i, x in enumerate(remainder) if x), -1)
        if at < 0:
            continue
        if len(basis) == 2 or max(map(abs, axis)) > MAX_EXACT_FACTOR:
            return None
        basis.append((at, [x / remainder[at] for x in remainder]))
        axes.append(axis)
    axes += [[0] * len(rows)] * (2 - len(axes))
    return list(zip(*axes, strict=True))


def line_separations(points: list[tuple[int, int]]) -> np.ndarray:
    """Return all ways to separate the points by a line, shape (ways, points), each by one of its sides."""
    P = np.array(points, np.int64)
    n = len(P)
    partitions = {np.zeros(n, bool).tobytes()}
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
                    partitions.add((side ^ side[0]).tobytes())
    return np.array([np.frombuffer(side, bool) for side in sorted(partitions)])


def _least_errors(points: list[tuple[int, int]], counts: np.ndarray) -> list[int]:
    """Return the least errors with at most 1, 2, 3 and 4 leaves in trees of depth two."""
    sides = line_separations(points)
    # floats hold integers of this size exactly, and their matrix products are fast
    kind: Any = np.float32 if counts.sum() < 1 << 23 else np.float64
    ways = sides.astype(kind)
    weight = counts.astype(kind)
    total = weight.sum(axis=0)
    second = (ways @ weight).T[None]
    best = [int(total.sum() - total.max())] * 4
    for begin in range(0, len(sides), 32):
        batch = ways[begin : begin + 32]
        # weights on one side of the first line, shape (lines, classes), and of both lines, shape (lines, classes,
        # second lines)
        inner = batch @ weight
        shared = np.stack([(batch * column) @ ways.T for column in weight.T], axis=1)
        leaf = []
        split = []
        for half, parts in ((inner, shared), (total - inner, second - shared)):
            leaf.append(half.sum(axis=1) - half.max(axis=1))
            right = parts.max(axis=1) + (half[:, :, None] - parts).max(axis=1)
            split.append(half.sum(axis=1) - right.max(axis=1))
        three = np.minimum(leaf[0] + split[1], split[0] + leaf[1])
        of_batch = [best[0], *(int(e.min()) for e in (leaf[0] + leaf[1], three, split[0] + split[1]))]
        best = [min(a, b) for a, b in zip(best, of_batch, strict=True)]
    return [min(best[: t + 1]) for t in range(4)]
