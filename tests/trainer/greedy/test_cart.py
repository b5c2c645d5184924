"""CART has the splits of scikit-learn in double precision, and stops and prunes like the other methods."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from tests.seeds import seeds
from trainer import make_classifier


def table(seed):
    """Return a table with ties, duplicates, constant columns, one class or weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    p = int(rng.integers(1, 4))
    classes = int(rng.integers(1, 4))
    X = rng.integers(0, 6, (n, p)) / 4 if seed % 2 else np.round(rng.normal(size=(n, p)), 2)
    if seed % 5 == 0:
        X[:, 0] = 1.0
    weight = rng.integers(1, 4, n) if seed % 3 == 0 else np.ones(n, int)
    return X, rng.integers(0, classes, n), weight


def impurity_of(counts, measure):
    n = counts.sum()
    shares = counts[counts > 0] / n
    return n * (1 - (shares**2).sum() if measure == "gini" else -(shares * np.log(shares)).sum())


def left_impurity(leaves, y, weight, measure):
    """Return the impurity that is left in the leaves, in rows."""
    total = 0.0
    for leaf in np.unique(leaves):
        here = leaves == leaf
        total += impurity_of(np.bincount(y[here], weights=weight[here]), measure)
    return total


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["gini", "entropy"])
@pytest.mark.parametrize("block", range(4))
def test_the_first_question_is_as_good_as_that_of_scikit_learn(block, measure):
    for seed in range(60 * block, 60 * block + 60):
        X, y, weight = table(seed)
        if len(np.unique(y)) < 2:
            continue
        ours = make_classifier("cart", depth=1, impurity=measure).fit(X, y, sample_weight=weight)
        theirs = DecisionTreeClassifier(max_depth=1, criterion=measure).fit(X, y, sample_weight=weight)
        mine = left_impurity(ours.apply(X), y, weight, measure)
        assert mine == pytest.approx(left_impurity(theirs.apply(X), y, weight, measure), abs=1e-9), seed


@seeds(60)
def test_full_tree_leaves_only_indistinguishable_rows(seed):
    X, y, weight = table(seed)
    model = make_classifier("cart", depth=20).fit(X, y, sample_weight=weight)
    theirs = DecisionTreeClassifier().fit(X, y, sample_weight=weight)
    measure = "gini"
    least = left_impurity(theirs.apply(X), y, weight, measure)
    assert left_impurity(model.apply(X), y, weight, measure) == pytest.approx(least, abs=1e-9)


@seeds(20)
def test_tree_equals_scikit_learn_if_no_splits_tie(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 3))
    y = rng.integers(0, 3, 400) * (X[:, 0] > 0)
    ours = make_classifier("cart", depth=3, min_leaf=25).fit(X, y)
    theirs = DecisionTreeClassifier(max_depth=3, min_samples_leaf=25).fit(X, y)
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()


def test_values_equal_in_single_precision():
    X = np.array([[2.0**24], [2.0**24 + 1]])
    assert make_classifier("cart").fit(X, [0, 1]).score(X, [0, 1]) == 1.0


def test_a_column_of_random_numbers_is_pruned_away():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where(rng.random(200) < 0.05, 1, (X[:, 0] > 0).astype(int))
    grown = make_classifier("cart", depth=20).fit(X, y)
    pruned = make_classifier("cart", depth=20, pruning="cross-validation").fit(X, y)
    assert pruned.tree_.n_leaves < grown.tree_.n_leaves
    assert pruned.tree_.nodes[0].split.feature == 0


def test_least_gain_and_rows_to_split_hold():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 2))
    y = rng.integers(0, 2, 100)
    assert make_classifier("cart", depth=20, min_gain=1.0).fit(X, y).tree_.n_leaves == 1
    assert make_classifier("cart", depth=20, min_node=101).fit(X, y).tree_.n_leaves == 1
    model = make_classifier("cart", depth=20, min_leaf=10, impurity="error").fit(X, y)
    assert np.unique(model.apply(X), return_counts=True)[1].min() >= 10
