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
def test_wilson_is_the_one_of_scipy(k, n):
    expected = binomtest(k, n).proportion_ci(method="wilson")
    assert wilson(k, n) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert wilson(k, n)[0] <= k / n <= wilson(k, n)[1]


def test_without_rows_there_is_no_interval():
    assert wilson(0, 0) is None
    assert difference(0, 0, 0) is None
    assert of_folds(0.9, 0.0, 1) is None


def test_the_interval_of_folds_is_that_of_student():
    values = np.array([0.91, 0.93, 0.90, 0.95, 0.92])
    low, high = of_folds(values.mean(), values.std(ddof=1), 5)
    half = 2.7764451051977987 * values.std(ddof=1) / math.sqrt(5)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half))
    assert of_folds(0.99, 0.3, 2) == (0.0, 1.0)


@pytest.mark.parametrize("b", range(7))
@pytest.mark.parametrize("c", range(7))
def test_mcnemar_counts_the_tails_of_a_fair_coin(b, c):
    expected = binomtest(b, b + c, 0.5).pvalue if b + c else 1.0
    assert mcnemar(b, c) == pytest.approx(expected)


@pytest.mark.parametrize(("b", "c"), [(600, 700), (5000, 5000), (9000, 8000), (0, 2000)])
def test_mcnemar_of_many_rows(b, c):
    assert mcnemar(b, c) == pytest.approx(binomtest(b, b + c, 0.5).pvalue, rel=1e-6, abs=1e-300)


def test_the_interval_of_a_difference_turns_with_its_sign():
    low, high = difference(30, 10, 400)
    assert low < 20 / 400 < high
    assert difference(10, 30, 400) == pytest.approx((-high, -low))
    assert low > 0  # 40 rows differ, 30 of them one way
    low, high = difference(0, 0, 50)
    assert low < 0 < high


@seeds(30)
def test_the_area_is_the_share_of_pairs_in_order(seed):
    rng = np.random.default_rng(seed)
    leaves = int(rng.integers(1, 7))
    scores = rng.choice([0.0, 0.2, 0.5, 0.5, 0.9, 1.0], leaves)
    positive, negative = rng.integers(0, 5, leaves), rng.integers(0, 5, leaves)
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
def test_the_interval_of_the_area_is_delongs_and_near_the_bootstrap(seed):
    """The variance of DeLong from its definition, pair by pair; and the bootstrap of scipy agrees roughly."""
    from scipy.stats import bootstrap

    rng = np.random.default_rng(seed)
    scores = np.array([0.1, 0.3, 0.3, 0.6, 0.9])
    positive, negative = rng.integers(5, 40, 5), rng.integers(5, 40, 5)
    found = curve(scores, positive, negative)
    p, q = np.repeat(scores, positive), np.repeat(scores, negative)
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


def test_the_interval_of_a_mean_is_the_normal_one():
    values = np.array([0.0, 5.0, 0.0, 1.0, 0.0, 0.0, 5.0])
    low, high = of_mean(values.sum(), (values**2).sum(), len(values))
    half = 1.959963984540054 * values.std(ddof=1) / math.sqrt(len(values))
    assert (low, high) == pytest.approx((max(0.0, values.mean() - half), values.mean() + half))
    assert of_mean(1.0, 1.0, 1) is None
