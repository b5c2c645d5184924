"""Order-preserving codes and sorted rows equal numpy's sort, for every way to sort a node."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from trainer.families.bivariate.scale import node_points
from trainer.growing.coordinates import codes_of
from trainer.kernels.ordering import FEW, RUN, argsort, ascending, order_rows
from trainer.kernels.univariate import CutColumns, best_thresholds

STYLES = {
    "a few whole numbers": lambda rng, n: rng.integers(-3, 4, n).astype(float),
    "whole numbers of a wide range": lambda rng, n: rng.integers(-(10**7), 10**7, n).astype(float),
    "fractions": lambda rng, n: rng.normal(size=n),
    "fractions with ties": lambda rng, n: np.round(rng.normal(size=n), 1),
    "one value": lambda rng, n: np.full(n, 0.25),
    "zeros of both signs": lambda rng, n: np.where(rng.random(n) < 0.5, -0.0, 0.0),
}
SIZES = (1, 2, FEW - 1, FEW, 300, 5000)


@pytest.mark.parametrize("style", STYLES)
def test_shared_sort_is_stable_and_equals_numpy(style):
    rng = np.random.default_rng(1)
    for n in [0, 1, RUN, RUN + 1, 2 * RUN + 1, *rng.integers(0, 9 * RUN, 200)]:
        values = STYLES[style](rng, n)
        assert np.array_equal(argsort(values), np.argsort(values, kind="stable"))
        assert np.array_equal(ascending(values), np.sort(values))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("n", SIZES)
def test_rows_come_by_growing_value_and_ties_in_their_order(style, n):
    rng = np.random.default_rng(n)
    column = STYLES[style](rng, n)
    codes, levels = codes_of(np.asfortranarray(column[:, None]))
    assert codes.min() >= 0
    assert codes.max() < levels[0]
    for part in (n, max(1, n // 2), max(1, n // 60)):
        rows = rng.permutation(n)[:part]
        order = np.empty(part, np.int64)
        spare = np.empty(part, np.int64)
        order_rows(codes[0], rows, levels[0], order, spare)
        assert np.array_equal(order, np.argsort(column[rows], kind="stable"))


def test_codes_of_more_digits_than_one_pass_takes():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 1 << 30, 700).astype(np.int32)
    order = np.empty(700, np.int64)
    spare = np.empty(700, np.int64)
    order_rows(code, np.arange(700), np.int64(1 << 30), order, spare)
    assert np.array_equal(order, np.argsort(code, kind="stable"))


@pytest.mark.parametrize("n", SIZES)
def test_a_node_has_the_distinct_values_of_its_rows(n):
    rng = np.random.default_rng(n + 1)
    X = np.asfortranarray(np.column_stack([make(rng, n) for make in STYLES.values()]))
    rows = np.sort(rng.permutation(n)[: max(1, 2 * n // 3)])
    points = node_points(X, *codes_of(X), rows, normalise=False)
    kept = [j for j in range(X.shape[1]) if len(np.unique(X[rows, j])) > 1]
    assert list(points.features) == kept
    for place, j in enumerate(kept):
        values, ranks = np.unique(X[rows, j], return_inverse=True)
        assert points.levels[place] == len(values)
        assert np.array_equal(points.ranks[place], ranks)
        assert np.array_equal(points.values[place], X[rows, j])


@pytest.mark.parametrize("n", SIZES)
def test_the_best_threshold_is_that_of_all_thresholds(n):
    rng = np.random.default_rng(n + 2)
    X = np.column_stack([make(rng, n) for make in STYLES.values()])
    y = rng.integers(0, 3, n).astype(np.int32)
    weight = rng.integers(1, 4, n)
    rows = np.sort(rng.permutation(n)[: min(n, 400)])
    out = np.empty((X.shape[1], 3))
    best_thresholds(CutColumns(X, *codes_of(X)), rows, y, weight, 3, 2, 1, out)
    for j in range(X.shape[1]):
        column = X[rows, j]
        least = np.inf
        where = (0.0, 0.0)
        values = np.unique(column)
        for below, above in itertools.pairwise(values):
            left = column <= below
            errors = 0
            for side in (left, ~left):
                counts = np.bincount(y[rows][side], weights=weight[rows][side], minlength=3)
                errors += counts.sum() - counts.max()
            if errors < least:
                least = errors
                where = (below, above)
        assert out[j, 0] == least
        assert tuple(out[j, 1:]) == where
