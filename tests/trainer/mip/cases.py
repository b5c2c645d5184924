"""Small random instances, the enumeration of all trees, and the plain recurrence as an oracle of the formulations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from trainer.families.mip import instance as instances
from trainer.families.mip.instance import CUT, LEAF, ArrayTree, Instance
from trainer.milo import IntegerProgram, Row

KAPPAS = (Fraction(0), Fraction(1, 3), Fraction(1), Fraction(7, 10), Fraction(5, 2))


def random_instance(seed: int, *, max_depth: int = 3, max_rows: int = 13) -> Instance:
    """Return a small instance.

    Some instances have ties, equal rows with different labels, constant columns, one class, more classes than leaves,
    weights, or a single row.
    """
    r = np.random.default_rng(seed)
    depth = int(r.integers(1, max_depth + 1))
    n = int(r.integers(1, max_rows + 1))
    F = int(r.integers(1, 5 if depth < 3 else 4))
    X = (r.random((n, F)) < r.choice([0.0, 0.3, 0.5, 0.8], F)).astype(np.uint8)
    if seed % 5 == 0:
        X[:] = X[0]
    y = r.integers(0, int(r.integers(1, 6)), n).astype(np.int32)
    weight = r.integers(1, 4, n) if seed % 3 == 0 else None
    return instances.build(X, y, depth=depth, kappa=KAPPAS[int(r.integers(len(KAPPAS)))], weight=weight)


def deep_instance(seed: int, depth: int) -> Instance:
    """Return an instance with equal rows of different labels, weights and ties, whose best tree needs the whole depth."""
    for attempt in itertools.count():
        r = np.random.default_rng((seed, depth, attempt))
        n = int(r.integers(4 + 2 * (depth > 2), 9 + 3 * (depth > 2)))
        F = int(r.integers(2, 4))
        X = (r.random((n, F)) < 0.5).astype(np.uint8)
        y = np.bitwise_xor.reduce(X, axis=1) if r.random() < 0.5 else r.integers(0, 3, n)
        y = np.where(r.random(n) < 0.2, r.integers(0, 3, n), y).astype(np.int32)
        weight = r.integers(1, 4, n) if seed % 3 == 0 else None
        inst = instances.build(X, y, depth=depth, kappa=KAPPAS[int(r.integers(4))], weight=weight)
        if best_value(inst) > best_value(replace(inst, depth=depth - 1)):
            return inst
    raise AssertionError


def mixed_instance(seed: int, *, features: bool = False, max_depth: int = 3, deep: int = 6) -> Instance:
    """Return a `random_instance` or, for `deep` of eight seeds, a `deep_instance`.

    With `features`, at least one feature is not constant.
    """
    kind = seed % 8
    if kind >= 8 - deep:
        return deep_instance(seed, min(max_depth, 3 if kind > 6 else 2))
    inst = random_instance(seed, max_depth=2 if kind else max_depth, max_rows=8 if kind else 13)
    if len(inst.F) or not features:
        return inst
    return mixed_instance(seed + 100_008, features=True, max_depth=max_depth, deep=deep)


def affordable_instance(name: str, seed: int, *, bounded: bool = False, features: bool = False) -> Instance:
    """Return a `mixed_instance`, but few deep ones for HiGHS, which restarts after each lazy row."""
    small = name == "highs" and not bounded
    return mixed_instance(seed, features=features, max_depth=2 if small else 3, deep=1 if small else 6)


def excess(rows: Sequence[Row], points: np.ndarray) -> np.ndarray:
    """Return by how much each point violates each row, float64 (points, rows).

    Each point is a line of `points`. The excess is relative to the size of the row, as the solvers measure it.
    """
    A = np.zeros((len(rows), points.shape[1]))
    for line, row in zip(A, rows, strict=True):
        np.add.at(line, row.columns, row.coefficients)
    lower, upper = (np.array([getattr(row, side) for row in rows]) for side in ("lower", "upper"))
    activity = points @ A.T
    above = activity - upper
    below = lower - activity
    side = np.where(above >= below, upper, lower)
    return np.maximum(above, below) / np.maximum(1.0, np.maximum(np.abs(activity), np.abs(side)))


def violated(model: IntegerProgram, points: np.ndarray) -> np.ndarray:
    """Return which points violate a row or bound of the model, as `IntegerProgram.violated` does for one point."""
    outside = (points < np.array(model.lower) - 1e-6) | (points > np.array(model.upper) + 1e-6)
    return outside.any(axis=1) | (excess(model.rows, points) > 1e-6).any(axis=1)


def best_value(inst: Instance) -> Fraction:
    """Return the best value of a tree.

    It follows from the recurrence over all features and both sides, in exact integers.
    """

    def best(rows: np.ndarray, height: int) -> int:
        counts = np.bincount(inst.y[rows], weights=inst.weight[rows], minlength=inst.classes)
        value = inst.scaled_value(int(counts.max()), 1)
        if height:
            for f in inst.F:
                ones = inst.ones[rows, f]
                value = max(value, best(rows[~ones], height - 1) + best(rows[ones], height - 1))
        return value

    return Fraction(best(np.arange(inst.n), inst.depth), inst.kappa.denominator)


def all_trees(inst: Instance, *, labels: bool = False) -> Iterator[ArrayTree]:
    """Yield every tree of the depth, with majority labels or, with `labels`, with every labelling."""

    def shapes(v: int) -> Iterator[dict[int, int]]:
        yield {v: LEAF}
        if v < 1 << inst.depth:
            for f in inst.F:
                for left, right in itertools.product(list(shapes(2 * v)), list(shapes(2 * v + 1))):
                    yield {v: f, **left, **right}

    for shape in shapes(1):
        feature = np.full(2 << inst.depth, CUT, np.int32)
        feature[list(shape)] = list(shape.values())
        if not labels:
            yield inst.label_leaves(feature)
            continue
        leaves = np.flatnonzero(feature == LEAF)
        for choice in itertools.product(inst.K, repeat=len(leaves)):
            label = np.zeros(len(feature), np.int32)
            label[leaves] = choice
            yield ArrayTree(feature, label)
