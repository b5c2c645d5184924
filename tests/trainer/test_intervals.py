"""Intervals and curves against their definitions: enumeration, scipy, and counting pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from tests.seeds import seeds
from trainer.evaluate.curves import brier, curve
from trainer.evaluate.intervals import difference, mcnemar, of_folds, of_mean, wilson


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 30), (30, 30), (7, 10), (931, 1284), (5400, 7403)])
def test_wilson_interval_matches_scipy(k, n):
    expected = binomtest(k, n).proportion_ci(method="wilson")
    assert wilson(k, n) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert wilson(k, n)[0] <= k / n <= wilson(k, n)[1]


def test_without_rows_there_is_no_interval():
    assert wilson(0, 0) is None
    assert difference(0, 0, 0) is None
    assert of_folds(9, 10, 1) is None


def test_interval_of_folds_is_wider_than_wilson():
    low, high = of_folds(166, 297, 5)
    narrow = wilson(166, 297)
    assert low < narrow[0]
    assert high > narrow[1]
    assert high - low == pytest.approx(1.5 * (narrow[1] - narrow[0]), rel=0.02)


def table_tree(X, y, columns):
    """Return a function that predicts the majority class of each cell of some columns."""
    places = 1 << np.arange(columns)
    cells = X[:, :columns] @ places
    yes = np.bincount(cells, weights=2 * y - 1, minlength=1 << columns)
    answers = np.where(yes == 0, y.mean() >= 0.5, yes > 0).astype(int)
    return lambda rows: answers[rows[:, :columns] @ places]


def drawn(rng, n, noise):
    X = rng.integers(0, 2, (n, 5))
    y = ((X[:, 0] ^ (X[:, 1] & X[:, 2])) ^ (rng.random(n) < noise)).astype(int)
    return X, y


@pytest.mark.slow
@pytest.mark.parametrize(("n", "noise"), [(100, 0.3), (300, 0.45), (300, 0.1), (300, 0.3), (60, 0.2), (600, 0.35)])
def test_interval_of_folds_covers_the_true_accuracy(n, noise):
    """Each experiment chooses its size again without each fold; three standard errors of noise are allowed."""
    rng = np.random.default_rng(7)
    trials = 200
    fold = np.arange(n) % 5
    X_new, y_new = drawn(rng, 4000, noise)
    intervals = []
    truths = []
    for _ in range(trials):
        X, y = drawn(rng, n, noise)
        correct = 0
        for k in range(5):
            inner = (fold != k) & (fold != (k + 1) % 5)
            check = fold == (k + 1) % 5
            scores = [(table_tree(X[inner], y[inner], c)(X[check]) == y[check]).mean() for c in (1, 2, 3, 5)]
            columns = (1, 2, 3, 5)[int(np.argmax(scores))]
            tree = table_tree(X[fold != k], y[fold != k], columns)
            correct += int((tree(X[fold == k]) == y[fold == k]).sum())
            truths.append((tree(X_new) == y_new).mean())
        intervals.append(of_folds(correct, n, 5))
    truth = float(np.mean(truths))
    covered = np.mean([low <= truth <= high for low, high in intervals])
    assert covered >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / trials)


@pytest.mark.parametrize("b", range(7))
@pytest.mark.parametrize("c", range(7))
def test_mcnemar_counts_the_tails_of_a_fair_coin(b, c):
    expected = binomtest(b, b + c, 0.5).pvalue if b + c else 1.0
    assert mcnemar(b, c) == pytest.approx(expected)


@pytest.mark.parametrize(("b", "c"), [(600, 700), (5000, 5000), (9000, 8000), (0, 2000)])
def test_mcnemar_of_many_rows(b, c):
    assert mcnemar(b, c) == pytest.approx(binomtest(b, b + c, 0.5).pvalue, rel=1e-6, abs=1e-300)


def test_interval_of_difference_is_antisymmetric():
    low, high = difference(30, 10, 400)
    assert low < 20 / 400 < high
    assert difference(10, 30, 400) == pytest.approx((-high, -low))
    assert low > 0  # 40 rows differ, and 30 of them favour one side
    low, high = difference(0, 0, 50)
    assert low < 0 < high


@seeds(30)
def test_the_area_is_the_share_of_pairs_in_order(seed):
    rng = np.random.default_rng(seed)
    leaves = int(rng.integers(1, 7))
    scores = rng.choice([0.0, 0.2, 0.5, 0.5, 0.9, 1.0], leaves)
    positive = rng.integers(0, 5, leaves)
    negative = rng.integers(0, 5, leaves)
    found = curve(scores, positive, negative)
    pairs = [
        (float(a > b) + 0.5 * (a == b)) * p * q
        for a, p in zip(scores, positive, strict=True)
        for b, q in zip(scores, negative, strict=True)
    ]
    count = int(positive.sum() * negative.sum())
    assert found.area is None if count == 0 else found.area == pytest.approx(sum(pairs) / count)
    assert len(found.score) == 1 + len(set(scores.tolist()))
    for s, tp, fp in zip(found.score, found.tp, found.fp, strict=True):
        assert (tp, fp) == (positive[scores >= s].sum(), negative[scores >= s].sum())
    rows = [(s, 1) for s, p in zip(scores, positive, strict=True) for _ in range(p)]
    rows += [(s, 0) for s, q in zip(scores, negative, strict=True) for _ in range(q)]
    expected = np.mean([(s - y) ** 2 for s, y in rows]) if rows else None
    assert brier(scores, positive, negative) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("seed", range(10))
def test_area_interval_is_delongs_and_near_the_bootstrap(seed):
    """The variance of DeLong is computed from its definition, pair by pair. The bootstrap of scipy agrees roughly."""
    from scipy.stats import bootstrap

    rng = np.random.default_rng(seed)
    scores = np.array([0.1, 0.3, 0.3, 0.6, 0.9])
    positive = rng.integers(5, 40, 5)
    negative = rng.integers(5, 40, 5)
    found = curve(scores, positive, negative)
    p = np.repeat(scores, positive)
    q = np.repeat(scores, negative)
    order = (p[:, None] > q[None, :]) + 0.5 * (p[:, None] == q[None, :])
    variance = order.mean(axis=1).var(ddof=1) / len(p) + order.mean(axis=0).var(ddof=1) / len(q)
    half = 1.959963984540054 * math.sqrt(variance)
    assert found.area_interval == pytest.approx((max(0.0, order.mean() - half), min(1.0, order.mean() + half)))

    def area(a, b, axis=-1):
        above = (a[..., :, None] > b[..., None, :]) + 0.5 * (a[..., :, None] == b[..., None, :])
        return above.mean(axis=(-1, -2))

    other = bootstrap((p, q), area, n_resamples=400, batch=100, method="percentile", rng=rng).confidence_interval
    assert (other.low, other.high) == pytest.approx(found.area_interval, abs=0.03)


def test_an_area_without_pairs_in_both_orders_has_no_interval():
    assert curve(np.array([0.1, 0.9]), np.array([0, 5]), np.array([5, 0])).area_interval is None
    assert curve(np.array([0.1, 0.9]), np.array([0, 1]), np.array([5, 3])).area_interval is None


def test_interval_of_mean_equals_normal_interval():
    values = np.array([0.0, 5.0, 0.0, 1.0, 0.0, 0.0, 5.0])
    low, high = of_mean(values.sum(), (values**2).sum(), len(values))
    half = 1.959963984540054 * values.std(ddof=1) / math.sqrt(len(values))
    assert (low, high) == pytest.approx((max(0.0, values.mean() - half), values.mean() + half))
    assert of_mean(1.0, 1.0, 1) is None
