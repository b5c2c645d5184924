"""OC1's one-dimensional searches equal enumeration, and the method works as a whole."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.oracles.bivariate import impurity
from trainer import make_classifier
from trainer.certificate import Status
from trainer.data.encoding import encode_numeric
from trainer.data.problem import Problem
from trainer.families.greedy import oc1_search
from trainer.families.greedy.kernels.oc1 import _best_step, hyperplane_value
from trainer.families.greedy.oc1_search import OC1Options, oc1_split
from trainer.growing.growth import Stopping, grow_tree
from trainer.growing.impurity import MEASURES, SplitOptions
from trainer.growing.method import grow_and_prune
from trainer.growing.node_split import SplitData, univariate_split
from trainer.growing.split_units import split_of_columns
from trainer.methods.monitor import Monitor
from trainer.registry import get
from trainer.table import Labels, numeric_table
from trainer.training.run import TrainRequest, train


@seeds(60)
def test_a_step_is_the_best_one_along_its_direction(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    classes = 3
    measure = ("gini", "entropy", "error")[seed % 3]
    W = rng.integers(-3, 4, n).astype(float)
    direction = rng.integers(-2, 3, n).astype(float)
    y = rng.integers(0, classes, n)
    weight = rng.integers(1, 3, n)
    total = np.bincount(y, weight, classes).astype(np.int64)
    step, least = _best_step(direction, W, y, weight, total, MEASURES[measure], 1)
    values = [math.inf]
    cuts = sorted({-w / r for w, r in zip(W, direction, strict=True) if r})
    for d in [c + s for c in cuts for s in (-1e-3, 1e-3)]:
        sides = [
            [int(weight[s & (y == c)].sum()) for c in range(classes)]
            for s in (W + d * direction > 0, W + d * direction <= 0)
        ]
        if min(map(sum, sides)):
            values.append(float(sum(impurity(counts, measure) for counts in sides)))
    assert least == pytest.approx(min(values))
    if math.isfinite(least):
        assert hyperplane_value(W + step * direction, y, weight, total, MEASURES[measure], 1) == pytest.approx(least)


def oblique(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1, 10, 0.1, 1]
    return X, (X[:, 0] + 0.1 * X[:, 1] - 10 * X[:, 2] > 0.3).astype(int)


@pytest.mark.parametrize("cycle", ["sequential", "best", "random"])
def test_split_is_no_worse_than_best_threshold_and_repeatable(cycle):
    X, y = oblique()
    data = SplitData.of(X, y, 2)
    rows = np.arange(len(y))
    options = OC1Options(cycle=cycle, restarts=4)
    split = oc1_split(data, rows, options, seed=1, flag=np.zeros(1, np.int64))
    axis = univariate_split(data, rows, SplitOptions())
    assert split.value < 0.5 * axis.value
    again = oc1_split(data, rows, options, seed=1, flag=np.zeros(1, np.int64))
    assert split.coefficients == again.coefficients
    score = sum(a * X[:, j] for j, a in zip(split.features, split.coefficients, strict=True))
    assert np.array_equal(score <= split.threshold, split.left)


def test_small_nodes_are_split_by_one_column():
    X, y = oblique(7)
    split = oc1_split(SplitData.of(X, y, 2), np.arange(7), OC1Options(), seed=0, flag=np.zeros(1, np.int64))
    assert len(split.features) == 1


def test_the_method_claims_nothing():
    X, y = oblique()
    model = make_classifier("oc1", depth=3).fit(X, y)
    assert model.certificate_.status == "heuristic"
    assert model.certificate_.splits_proved is None
    assert all(v.impurity is None for v in model.tree_.branches)
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("min_leaf", [1, 20])
def test_leaves_have_the_rows_asked_for(min_leaf):
    X, y = oblique()
    y[::9] = 1 - y[::9]
    tree = make_classifier("oc1", depth=5, min_leaf=min_leaf).fit(X, y).tree_
    assert min(v.rows for v in tree.leaves) >= min_leaf


@pytest.mark.parametrize("seed", range(4))
def test_rows_on_the_hyperplane_do_not_keep_a_climb_going(seed):
    """Proportional columns put rows on the hyperplane, where rounding promises improvements that do not hold."""
    draw = np.random.default_rng(seed)
    often = draw.integers(1, 25, 300).astype(float)
    X = np.column_stack([draw.integers(0, 30, 300), often, 250 * often, draw.integers(2, 99, 300)]).astype(float)
    y = (draw.random(300) < 0.2 + 0.02 * often).astype(np.int32)
    labels = Labels(name="y", classes=("a", "b"), codes=y)
    result = train(
        TrainRequest(table=numeric_table(X), labels=labels, method="oc1", parameters={"depth": 20, "time_limit": 600})
    )
    assert result.certificate.status == "heuristic"
    assert result.certificate.correct == 300


def test_timed_out_split_copies_nothing_and_is_best_threshold(monkeypatch):
    X, y = oblique()
    data = SplitData.of(X, y, 2)
    rows = np.arange(len(y))
    monkeypatch.setattr(oc1_search, "_column_powers", lambda X: pytest.fail("the table was copied"))
    split = oc1_split(data, rows, OC1Options(), seed=1, flag=np.ones(1, np.int64))
    assert split == replace(univariate_split(data, rows, SplitOptions()), bound=None, left=split.left)


def test_tree_with_interrupted_last_search_is_not_finished():
    """The limit is reached within the split of the root. What was found is kept, and nothing is left to be split."""
    X, y = oblique()
    data = SplitData.of(X, y, 2)
    over = []

    def split(rows, node):
        over.append(node)
        return univariate_split(data, rows, SplitOptions())

    stopping = Stopping(depth=1)
    grown = grow_tree(
        data,
        split,
        lambda found: split_of_columns(found, encode_numeric(numeric_table(X))),
        stopping,
        stopped=lambda: bool(over),
    )
    assert grown.branches == 1
    assert not grown.finished


def test_the_growing_tree_is_not_drawn_after_the_limit(monkeypatch):
    """Drawing takes a part of a second on tall tables, and the final tree is drawn anyway."""
    X, y = oblique()
    problem = Problem(table=numeric_table(X), labels=Labels(name="y", classes=("a", "b"), codes=y.astype(np.int32)))
    monitor = Monitor()
    drawn = []
    monkeypatch.setattr(monitor, "report", lambda **progress: drawn.append("draft" in progress))

    def make(data, monitor, crew):
        def split(rows, node):
            monitor.stop(Status.TIME_LIMIT)
            return univariate_split(data, rows, SplitOptions())

        return split

    solution = grow_and_prune(problem, get("oc1").settings({}), monitor, make)
    assert solution.draft is not None
    assert drawn
    assert not any(drawn)
