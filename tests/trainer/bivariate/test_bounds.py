"""Bounds, margins, scales, categories and limits of the bivariate search, each against brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from tests.trainer.oracles.bivariate import best_value, impurity
from trainer import make_classifier
from trainer.families.bivariate import pair as bivariate_pair
from trainer.families.bivariate.kernels import brief as bivariate_brief
from trainer.families.bivariate.kernels.bounds import lower_bound
from trainer.families.bivariate.pair import BOUNDS, SearchOptions
from trainer.families.bivariate.scale import node_points
from trainer.families.bivariate.search import best_split
from trainer.growing.coordinates import codes_of, whole_numbers
from trainer.growing.impurity import MEASURES
from trainer.growing.node_split import SplitData


@pytest.mark.parametrize("measure", MEASURES)
def test_bounds_are_below_all_distributions_and_strongest_tight(measure):
    """Theorems 4, 5, 6 and 1 are compared with all ways to distribute the uncertain rows over both sides."""
    rng = np.random.default_rng(4)
    stronger = 0
    for _ in range(150):
        classes = int(rng.integers(1, 5))
        up, down = rng.integers(0, 8, (2, classes)) * rng.integers(0, 2, (2, classes))
        m = rng.integers(0, 5, classes)
        least = min(
            float(impurity(list(up + part), measure) + impurity(list(down + m - part), measure))
            for part in (np.array(p) for p in itertools.product(*(range(x + 1) for x in m)))
        )
        plain, paper, assignment = (
            lower_bound(MEASURES[measure], kind, up.astype(np.int64), down.astype(np.int64), m.astype(np.int64))
            for kind in (BOUNDS["theorem4"], BOUNDS["paper"], BOUNDS["assignment"])
        )
        assert plain <= paper + 1e-9
        assert paper <= assignment + 1e-9
        assert assignment == pytest.approx(least, abs=1e-9)
        stronger += paper > plain + 1e-9
    # Theorem 4 is the paper's bound for the classification error. The other two measures have a better bound.
    assert (stronger > 0) == (measure != "error")


def test_bounds_of_many_classes_hold():
    """There are more classes than the assignments that are enumerated. Theorem 5 or 6 adds the others."""
    rng = np.random.default_rng(5)
    for seed in range(30):
        classes = 8
        up, down, m = (rng.integers(0, 6, classes).astype(np.int64) for _ in range(3))
        for measure in MEASURES:
            least = min(
                float(impurity(list(up + m * side), measure) + impurity(list(down + m * (1 - side)), measure))
                for side in (np.array(s) for s in itertools.product((0, 1), repeat=classes))
            )
            assert lower_bound(MEASURES[measure], BOUNDS["assignment"], up, down, m) <= least + 1e-9, (seed, measure)


def test_columns_whose_quartiles_are_equal_are_searched_in_full():
    for seed in range(25):
        rng = np.random.default_rng(seed)
        n = 12
        X = rng.normal(size=(n, 2)).round(1) * 10.0 ** rng.integers(-3, 4)
        X[rng.permutation(n)[:10], 0] = 7.0  # a column with an inter-quartile range of 0 that is not constant
        y = rng.integers(0, 3, n)
        ordered = np.sort(X[:, 0])
        assert ordered[n // 4] == ordered[3 * n // 4]
        split = best_split(SplitData.of(X, y, 3), np.arange(n), SearchOptions())
        assert split.value == pytest.approx(float(best_value(X, y, 3)), abs=1e-9), seed


def test_categories_are_split_as_their_indicator_columns():
    """A column of letters and one of numbers: the root is the best on two of the indicators and the number."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        letters = rng.choice(list("abcd"), 14)
        number = rng.integers(0, 4, 14)
        y = rng.integers(0, 2, 14)
        frame = pd.DataFrame({"letter": letters, "number": number})
        model = make_classifier("bivariate", depth=1).fit(frame, y)
        columns = [number] + [(letters == c).astype(int) for c in sorted(set(letters))]
        expected = best_value(np.column_stack(columns), y, 2)
        answers = model.apply(frame)
        sides = [np.bincount(y[answers == leaf], minlength=2).tolist() for leaf in np.unique(answers)]
        assert sum(impurity(side, "gini") for side in sides) == pytest.approx(float(expected), abs=1e-9), seed


def width(normal, left, Z):
    """Return the width of the empty band between the sides in direction `normal`."""
    score = Z @ normal / math.hypot(*normal)
    return max(score[left].min() - score[~left].max(), score[~left].min() - score[left].max())


def test_the_stored_line_is_the_widest_one_of_its_partition():
    """The widest band is perpendicular to a pair of rows, or parallel to an edge of one side.

    Brute force tries both.
    """
    checked = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(14, 2)).round(2)
        y = (X[:, 0] + rng.uniform(-1, 1) * X[:, 1] > 0).astype(int)
        split = best_split(SplitData.of(X, y, 2), np.arange(14), SearchOptions())
        if split is None or len(split.features) < 2:
            continue
        whole = whole_numbers(X)
        points = node_points(whole, *codes_of(whole), np.arange(14))
        Z = points.values.T
        left = split.left
        across = [Z[i] - Z[j] for i in np.flatnonzero(left) for j in np.flatnonzero(~left)]
        along = [
            np.array([-d[1], d[0]])
            for i, j in itertools.combinations(range(14), 2)
            if left[i] == left[j] and (d := Z[i] - Z[j]).any()
        ]
        widest = max(width(normal, left, Z) for normal in across + along)
        # One scaled unit is this many units of the uploaded column.
        unit = np.ptp(X, axis=0) / np.ptp(Z, axis=0)
        normal = np.zeros(2)
        normal[list(split.features)] = np.array(split.coefficients) * unit[list(split.features)]
        assert width(normal, left, Z) == pytest.approx(widest, rel=1e-5), seed
        score = X[:, list(split.features)] @ np.array(split.coefficients)
        assert split.threshold == pytest.approx((score[left].max() + score[~left].min()) / 2)
        checked += 1
    assert checked > 15


def test_a_search_stopped_anywhere_keeps_a_valid_bound(monkeypatch):
    monkeypatch.setattr(bivariate_pair, "WORK_PER_STEP", 2000)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 3))
    y = rng.integers(0, 2, 120)
    data = SplitData.of(X, y, 2)
    rows = np.arange(120)
    for measure in MEASURES:
        best = best_split(data, rows, SearchOptions(measure=measure, switch=False)).value
        open_ = 0
        for calls in (1, 2, 3, 5, 9, 17, 40, 100):
            count = itertools.count()
            options = SearchOptions(measure=measure, switch=False, best_first=True)
            split = best_split(data, rows, options, stopped=lambda n=calls, c=count: next(c) >= n)
            assert split.bound <= best + 1e-9 <= split.value + 2e-9
            open_ += split.bound < split.value
        assert open_ > 0


@pytest.mark.parametrize("measure", MEASURES)
def test_early_stopping_certifies_its_share_of_the_best_value(measure):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 6, (11, 2)).astype(float)
        y = rng.integers(0, 3, 11)
        best = best_value(X, y, 3, measure=measure)
        if best is None:
            continue
        for gap in (0.05, 0.4, 0.9):
            split = best_split(SplitData.of(X, y, 3), np.arange(11), SearchOptions(measure=measure, gap=gap))
            assert split.bound <= float(best) + 1e-9 <= split.value + 2e-9
            assert split.bound >= (1 - gap) * split.value - 1e-9


def test_few_points_with_many_classes_are_soon_swept():
    assert bivariate_brief.search_budget(50, 10) < bivariate_brief.search_budget(50, 2)
    far = 5000
    sweep = bivariate_brief.SWITCH * bivariate_brief.PER_POINT * far * far
    assert bivariate_brief.search_budget(far, 2) > 0.8 * sweep
