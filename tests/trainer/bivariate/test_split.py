"""The root split of bivariate trees equals brute force in exact arithmetic, in every variant."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.trainer.oracles.bivariate import best_value, impurity
from trainer.families.bivariate.kernels.explore import CLASS_LOOPS
from trainer.families.bivariate.kernels.line import sample_lines
from trainer.families.bivariate.kernels.points import ColumnPair
from trainer.families.bivariate.kernels.sweep import Turn, sweep
from trainer.families.bivariate.node import NodeSearch
from trainer.families.bivariate.pair import (
    C2,
    C3,
    C4,
    C5,
    WORK_PER_STEP,
    PairRule,
    SearchOptions,
    Workspace,
    merge_points,
    search_pair,
)
from trainer.families.bivariate.scale import node_points
from trainer.families.bivariate.search import best_split
from trainer.growing.coordinates import codes_of, whole_numbers
from trainer.growing.impurity import MEASURES
from trainer.growing.node_split import SplitData
from trainer.worker_pool import WorkerPool

MEASURE_NAMES = ("gini", "entropy", "error")


def random_table(seed):
    """Return a table with some of these: ties, duplicates, constant columns, one class, integer grids, decimals, collinear points."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    p = int(rng.integers(1, 4))
    classes = int(rng.integers(1, 5))
    X = rng.integers(0, rng.integers(1, 7) + 1, (n, p)).astype(float)
    style = seed % 5
    if style == 1:
        X = X / 10
    elif style == 2:
        X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-4, 5)
    elif style == 3:
        X[:, 0] = 3.0
    elif style == 4 and p > 1:
        X[:, 1] = 2 * X[:, 0] + 1
    y = rng.integers(0, classes, n)
    weight = rng.integers(1, 4, n) if seed % 3 == 0 else np.ones(n, int)
    return X, y, classes, weight, rng


def stored_value(split, X, y, classes, weight, measure):
    """Return the impurity of the stored line on the uploaded numbers.

    Check that its partition is that of the search.
    """
    score = np.zeros(len(X))
    for j, a in zip(split.features, split.coefficients, strict=True):
        score = score + a * X[:, j]
    left = score <= split.threshold
    assert np.array_equal(left, split.left)
    assert score[left].max() <= split.threshold < score[~left].min()
    sides = [[int(weight[side & (y == c)].sum()) for c in range(classes)] for side in (left, ~left)]
    return min(map(sum, sides)), float(sum(impurity(counts, measure) for counts in sides))


@pytest.mark.parametrize("block", range(8))
def test_the_root_split_is_the_best_one(block):
    for seed in range(50 * block, 50 * block + 50):
        X, y, classes, weight, rng = random_table(seed)
        measure = MEASURE_NAMES[int(rng.integers(3))]
        min_leaf = int(rng.integers(1, 4))
        expected = best_value(X, y, classes, measure=measure, min_leaf=min_leaf, weight=weight)
        options = SearchOptions(measure=measure, min_leaf=min_leaf)
        split = best_split(SplitData.of(X, y, classes, weight), np.arange(len(y)), options)
        if expected is None:
            assert split is None, seed
            continue
        assert split is not None, seed
        smaller, value = stored_value(split, X, y, classes, weight, measure)
        assert smaller >= min_leaf
        assert value == pytest.approx(float(expected), abs=1e-9), seed
        assert split.bound == pytest.approx(float(expected), abs=1e-9), seed


def pair_of(X, y, classes):
    whole = whole_numbers(X)
    points = node_points(whole, *codes_of(whole), np.arange(len(y)))
    if len(points.features) < 2:
        return None
    total = np.bincount(y, minlength=classes).astype(np.int64)
    ones = np.ones(len(y), np.int64)
    codes = y.astype(np.int64)
    columns = ColumnPair(*points.values[:2], *points.ranks[:2], *points.levels[:2])
    return merge_points(columns, codes, ones, total)


@pytest.mark.parametrize("bound", ["theorem4", "paper", "assignment"])
@pytest.mark.parametrize("strategy", [1, 2])
@pytest.mark.parametrize("best_first", [False, True])
def test_every_variant_finds_the_same_value(bound, strategy, best_first):
    for seed in range(40):
        X, y, classes, _, _ = random_table(seed)
        points = pair_of(X, y, classes) if X.shape[1] > 1 else None
        if points is None:
            continue
        measure = MEASURE_NAMES[seed % 3]
        expected = np.array([math.inf])
        turn = Turn(np.zeros(1, np.int64), np.zeros(3, np.int64), expected)
        sweep(MEASURES[measure], 1, 10**9, 1e-12, points, turn)
        for criteria in (C2 | C3 | C4 | C5, C2 | C3 | C4, C5, C2 | C4):
            options = SearchOptions(
                measure=measure,
                bound=bound,
                strategy=strategy,
                best_first=best_first,
                criteria=criteria,
                switch=False,
                local=1 + seed % 6,
            )
            split = search_pair(points, options, Workspace(), cap=lambda own: math.inf, stopped=lambda: False)
            assert split.finished
            assert split.value == pytest.approx(expected[0], abs=1e-9), (seed, criteria)
            assert split.bound == pytest.approx(expected[0], abs=1e-9)


def test_endless_search_is_refused():
    with pytest.raises(ValueError, match="ends only"):
        SearchOptions(criteria=C3)


def noisy(seed, n=300, p=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).round(int(rng.integers(0, 3)))
    y = ((X[:, 0] - 0.7 * X[:, 2] + 0.5 * rng.normal(size=n)) > 0).astype(int) + (X[:, 1] > 1)
    return SplitData.of(X, y, 3)


def by_threads(threads, data, rows, options):
    """Return the split that a pool of this number of threads finds."""
    crew = WorkerPool(threads=threads)
    found = []

    def work(job):
        found.append(best_split(data, rows, options, crew=crew))
        return []

    crew.run((0,), None, work)
    return found[0]


def one_pair_a_call(monkeypatch):
    """Let no pair be searched in the call for brief ones."""
    monkeypatch.setattr(NodeSearch, "_search_brief_pairs", lambda self, rank, until, workspace: (rank, True))
    monkeypatch.setattr("trainer.families.bivariate.pair.brief_pair", lambda *arguments: False)


@pytest.mark.parametrize("seed", range(6))
def test_threads_do_not_change_the_split(seed, monkeypatch):
    monkeypatch.setattr("trainer.families.bivariate.search.MIN_SHARED_WORK", 0)
    data = noisy(seed)
    rows = np.arange(300)
    one, two = (by_threads(t, data, rows, SearchOptions()) for t in (1, 2))
    assert (one.features, one.coefficients, one.threshold) == (two.features, two.coefficients, two.threshold)
    assert one.value == two.value == one.bound


@pytest.mark.parametrize("gap", [0.1, 0.5])
def test_early_stopping_reports_what_is_proved(gap):
    for seed in range(6):
        data = noisy(seed)
        rows = np.arange(300)
        best = best_split(data, rows, SearchOptions())
        quick = best_split(data, rows, SearchOptions(gap=gap))
        assert quick.bound <= best.value + 1e-9 <= quick.value + 2e-9
        assert quick.bound >= (1 - gap) * quick.value - 1e-9


def test_a_search_cut_off_at_once_keeps_a_valid_bound():
    data = noisy(1)
    rows = np.arange(300)
    best = best_split(data, rows, SearchOptions())
    cut = best_split(data, rows, SearchOptions(), stopped=lambda: True)
    assert cut.bound <= best.value <= cut.value


def test_unstarted_search_has_bound_of_classes_and_equal_rows():
    X = np.array([[0.0, 0], [0, 0], [0, 1], [1, 0], [1, 1], [1, 1]])
    three = SplitData.of(X, np.array([0, 0, 1, 2, 0, 0]), 3)
    mixed = SplitData.of(X, np.array([0, 1, 1, 1, 0, 0]), 2)
    for data in (three, mixed):
        for measure in MEASURE_NAMES:
            options = SearchOptions(measure=measure)
            best = best_split(data, np.arange(6), options)
            cut = best_split(data, np.arange(6), options, stopped=lambda: True)
            assert 0 < cut.bound <= best.value


def weighted_pair(X, y, classes, weight):
    whole = whole_numbers(X)
    points = node_points(whole, *codes_of(whole), np.arange(len(y)))
    if len(points.features) < 2:
        return None
    total = np.zeros(classes, np.int64)
    np.add.at(total, y, weight)
    return merge_points(
        ColumnPair(*points.values, *points.ranks, *points.levels), y.astype(np.int64), weight.astype(np.int64), total
    )


def swept(points, measure, min_leaf):
    """Return the best value of the sweep, and the value of the partition that it returns."""
    best = np.array([math.inf])
    found = np.full(3, -1, np.int64)
    sweep(MEASURES[measure], min_leaf, 10**12, 1e-12, points, Turn(np.zeros(1, np.int64), found, best))
    if math.isinf(best[0]):
        return math.inf, math.inf
    left = PairRule(pivot=tuple(int(x) for x in found)).left(points, points.u, points.v)
    counts = np.zeros(len(points.total), np.int64)
    for i in np.flatnonzero(left):
        inside = slice(points.first[i], points.first[i + 1])
        np.add.at(counts, points.klass[inside], points.weight[inside])
    return best[0], float(impurity(list(counts), measure) + impurity(list(points.total - counts), measure))


@pytest.mark.parametrize("block", range(4))
def test_the_sweep_finds_the_best_line(block):
    tried = 0
    for seed in range(100 * block, 100 * block + 100):
        X, y, classes, weight, rng = random_table(seed)
        measure = MEASURE_NAMES[seed % 3]
        min_leaf = int(rng.integers(1, 4))
        points = weighted_pair(X[:, :2], y, classes, weight) if X.shape[1] > 1 else None
        if points is None:
            continue
        tried += 1
        expected = best_value(X[:, :2], y, classes, measure=measure, min_leaf=min_leaf, weight=weight)
        value, counted = swept(points, measure, min_leaf)
        assert value == pytest.approx(math.inf if expected is None else expected, abs=1e-9), seed
        assert counted == pytest.approx(value, abs=1e-9), seed
    assert tried > 30


@pytest.mark.parametrize("measure", MEASURE_NAMES)
@pytest.mark.parametrize("levels", [None, 30])
def test_the_sweep_of_many_points_agrees_with_the_search(measure, levels):
    """There are enough points for the radix sort. One far point forces all directions from it into few digits."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(420, 2)) if levels is None else rng.integers(0, levels, (420, 2)).astype(float)
    X[0] = 10_000, 20_000
    y = rng.integers(0, 3, 420)
    weight = rng.integers(1, 3, 420)
    points = weighted_pair(X, y, 3, weight)
    options = SearchOptions(measure=measure, switch=False)
    split = search_pair(points, options, Workspace(), cap=lambda own: own, stopped=lambda: False)
    value, counted = swept(points, measure, 1)
    assert value == pytest.approx(split.value, abs=1e-8)
    assert counted == pytest.approx(value, abs=1e-8)


def test_search_over_hundreds_of_classes_checks_clock_as_often():
    """The time for the bounds of a box grows with the classes, so even a box without points to sort is work."""
    rng = np.random.default_rng(0)
    points = pair_of(rng.normal(size=(600, 2)), rng.permutation(np.arange(600) % 300), 300)
    split = search_pair(
        points, SearchOptions(switch=False), Workspace(), cap=lambda own: own, stopped=lambda: True, brief=False
    )
    assert not split.finished
    assert 0 < split.boxes < 2 * WORK_PER_STEP / (CLASS_LOOPS * 292)


def test_the_switch_to_the_sweep_keeps_the_value(monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 2))
    y = rng.integers(0, 2, 200)
    data = SplitData.of(X, y, 2)
    rows = np.arange(200)
    plain = best_split(data, rows, SearchOptions(switch=False))
    one_pair_a_call(monkeypatch)
    monkeypatch.setattr("trainer.families.bivariate.pair.search_budget", lambda points, classes: -1.0)
    monkeypatch.setattr("trainer.families.bivariate.pair.WORK_PER_STEP", 1)
    swept = best_split(data, rows, SearchOptions())
    assert swept.value == pytest.approx(plain.value)
    assert stored_value(swept, X, y, 2, np.ones(200, int), "gini")[1] == pytest.approx(plain.value)


@pytest.mark.parametrize("measure", ["gini", "entropy", "error"])
def test_many_pairs_per_call_give_split_of_one_pair_per_call(measure, monkeypatch):
    rng = np.random.default_rng(11)
    cases = []
    for number in range(40):
        n = int(rng.integers(5, 60))
        p = int(rng.integers(2, 9))
        classes = int(rng.integers(2, 5))
        X = rng.integers(0, 4, (n, p)).astype(float) if number % 2 else rng.normal(size=(n, p)).round(1)
        X[:, 0] = X[0, 0] if number % 5 == 0 else X[:, 0]
        X[n // 2 :] = X[: n - n // 2] if number % 3 == 0 else X[n // 2 :]
        data = SplitData.of(X, rng.integers(0, classes, n), classes, rng.integers(1, 4, n))
        options = SearchOptions(measure=measure, min_leaf=1 + number % 3, gap=0.1 if number % 7 == 0 else 0.0)
        cases.append((data, np.arange(n), options))
    together = [by_threads(1 + k % 3, *case) for k, case in enumerate(cases)]
    one_pair_a_call(monkeypatch)
    for one, case in zip(together, cases, strict=True):
        other = best_split(*case)
        assert (one is None) == (other is None)
        if one is not None and case[2].gap == 0:
            assert (one.features, one.coefficients, one.threshold) == (
                other.features,
                other.coefficients,
                other.threshold,
            )
            assert (one.value, one.bound) == (other.value, other.bound)
        elif one is not None:
            assert one.bound <= one.value + 1e-9
            assert one.bound <= other.value + 1e-9
            assert other.bound <= one.value + 1e-9


def test_slow_pair_gets_a_separate_search(monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1500, 4))
    y = rng.integers(0, 2, 1500)
    alone: list[int] = []
    search = NodeSearch._search_long_pair
    monkeypatch.setattr(
        NodeSearch, "_search_long_pair", lambda self, rank, w: alone.append(rank) or search(self, rank, w)
    )
    split = best_split(SplitData.of(X, y, 2), np.arange(1500), SearchOptions())
    assert alone
    assert split.bound == split.value


def test_points_are_merged_with_the_counts_of_their_rows():
    dense = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 60))
        classes = int(rng.integers(1, 5))
        Z = rng.integers(0, rng.integers(1, 8) + 1, (2, n)) * 0.5 if seed % 3 else rng.normal(size=(2, n))
        y = rng.integers(0, classes, n)
        weight = rng.integers(1, 4, n)
        values, R = zip(*(np.unique(z, return_inverse=True) for z in Z), strict=True)
        levels = [len(distinct) for distinct in values]
        dense += levels[0] * levels[1] * classes <= n
        total = np.bincount(y, weight, classes).astype(np.int64)
        points = merge_points(ColumnPair(*Z, *R, *levels), y, weight, total)
        expected = {}
        for u, v, c, w in zip(*Z.tolist(), y.tolist(), weight.tolist(), strict=True):
            counts = expected.setdefault((u, v), {})
            counts[c] = counts.get(c, 0) + w
        assert list(zip(points.u.tolist(), points.v.tolist(), strict=True)) == sorted(expected)
        for i, counts in enumerate(expected[key] for key in sorted(expected)):
            inside = slice(points.first[i], points.first[i + 1])
            assert dict(zip(points.klass[inside].tolist(), points.weight[inside].tolist(), strict=True)) == counts
    assert dense > 30


def test_sampled_lines_are_the_best_of_their_slopes():
    slopes = np.array([-0.7, 0.0, 0.4])
    out = np.empty(3)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 40))
        u, v = rng.integers(0, 6, (2, n)).astype(float) if seed % 2 else rng.normal(size=(2, n))
        if seed % 5 == 0:
            # These two outliers put all other rows into one bucket of the sort.
            u[0] = 1e9
            v[0] = -1e12
        y = rng.integers(0, 3, n)
        weight = rng.integers(1, 4, n)
        sample_lines(u, v, y, weight, 3, slopes, out)
        best = math.inf
        for a in slopes:
            t = v - a * u
            for b in np.unique(t)[1:]:
                sides = [np.bincount(y[side], weight[side], 3) for side in (t >= b, t < b)]
                best = min(best, float(sum(impurity(counts.astype(int).tolist(), "gini") for counts in sides)))
        assert out[0] == pytest.approx(best) if best < math.inf else math.isinf(out[0])
        if best < math.inf:
            left = v - out[1] * u >= out[2]
            sides = [np.bincount(y[side], weight[side], 3) for side in (left, ~left)]
            assert float(sum(impurity(counts.astype(int).tolist(), "gini") for counts in sides)) == pytest.approx(best)


def test_scaled_values_keep_order_and_ties():
    for seed in range(200):
        X, y, _, _, rng = random_table(seed)
        rows = np.flatnonzero(rng.random(len(y)) < 0.8)
        if not len(rows):
            continue
        whole = whole_numbers(X)
        points = node_points(whole, *codes_of(whole), rows)
        assert list(points.features) == [j for j in range(X.shape[1]) if len(set(X[rows, j])) > 1]
        for h, j in enumerate(points.features):
            distinct, ranks = np.unique(X[rows, j], return_inverse=True)
            assert points.levels[h] == len(distinct)
            assert np.array_equal(points.ranks[h], ranks)
            assert np.array_equal(np.unique(points.values[h], return_inverse=True)[1], ranks)


def test_negative_zero_equals_zero():
    """The sweep mistook a line upwards for one downwards if equal columns had zeros of both signs."""
    tried = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(4, 14))
        X = rng.choice([-1.0, -0.0, 0.0, 1.0], (n, 2))
        y = rng.integers(0, 3, n)
        weight = np.ones(n, int)
        points = weighted_pair(X, y, 3, weight)
        if points is None:
            continue
        expected = best_value(X, y, 3, measure="gini", min_leaf=1, weight=weight)
        value, counted = swept(points, "gini", 1)
        assert value == pytest.approx(math.inf if expected is None else expected, abs=1e-9), seed
        assert counted == pytest.approx(value, abs=1e-9), seed
        tried += 1
    assert tried > 200
