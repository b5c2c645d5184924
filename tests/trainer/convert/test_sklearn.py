"""Converted scikit-learn trees give each row the same class and leaf as scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

from tests.seeds import seeds
from trainer.convert import from_sklearn
from trainer.convert.single_precision import MAX_FLOAT32, double_threshold
from trainer.errors import ConversionError

TREES = 50
ROWS = 1000


def table(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return columns of wide and narrow scales, with ties and doubles that single precision cannot represent."""
    scales = np.array([1.0, 1e-30, 1e30, 1e-3])
    X = rng.normal(size=(rows, 4)) * scales
    return np.hstack([X, rng.integers(0, 2, (rows, 1)), rng.integers(-50, 50, (rows, 1)) / 10])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, ExtraTreeClassifier])
def test_every_row_has_the_class_and_the_leaf_of_scikit_learn(kind):
    for seed in range(TREES // 2):
        rng = np.random.default_rng(seed)
        X = table(rng, 150)
        y = rng.integers(0, 2 + seed % 3, len(X))
        source = kind(max_depth=int(rng.integers(1, 9)), random_state=seed).fit(X, y)
        tree = from_sklearn(source)
        rows = np.vstack([table(rng, ROWS - 600), near(source, X, rng, 600)])
        assert len(rows) == ROWS
        assert [tree.classes[k] for k in tree.predict(rows)] == [str(c) for c in source.predict(rows)]
        leaves = tree.apply(rows)
        theirs = source.apply(rows)
        assert len(set(zip(leaves, theirs, strict=True))) == len(set(leaves)) == len(set(theirs))
        assert tree.predict_proba(rows) == pytest.approx(source.predict_proba(rows), abs=1e-12)


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, ExtraTreeClassifier])
def test_missing_numbers_keep_the_side_of_scikit_learn(kind):
    sides = set()
    for seed in range(TREES // 2):
        rng = np.random.default_rng(seed)
        X = table(rng, 150)
        y = (np.nan_to_num(X[:, 0]) > 0).astype(int) ^ (rng.random(len(X)) < 0.2)
        X[rng.random(X.shape) < 0.2] = np.nan
        source = kind(max_depth=int(rng.integers(1, 6)), random_state=seed).fit(X, y)
        tree = from_sklearn(source)
        rows = table(rng, ROWS)
        rows[rng.random(rows.shape) < 0.3] = np.nan
        assert [tree.classes[k] for k in tree.predict(rows)] == [str(c) for c in source.predict(rows)]
        assert tree.refused_columns == ()
        sides |= {v.split.empty_goes_left for v in tree.branches}
    assert sides == {True, False}


def near(source, X, rng, rows: int) -> np.ndarray:
    """Return rows of X in which a value is a few doubles away from a threshold in single precision."""
    out = X[rng.integers(0, len(X), rows)].copy()
    branches = np.flatnonzero(source.tree_.children_left >= 0)
    if len(branches):
        for row in out:
            v = int(rng.choice(branches))
            single = np.float32(source.tree_.threshold[v])
            middle = (float(single) + float(np.nextafter(single, np.float32(np.inf)))) / 2
            row[source.tree_.feature[v]] = middle + float(rng.integers(-3, 4)) * np.spacing(middle)
    return out


@seeds(300)
def test_double_threshold_passes_same_values_as_single(seed):
    rng = np.random.default_rng(seed)
    threshold = float(
        rng.choice([rng.normal(), rng.normal() * 10.0 ** rng.integers(-44, 38), float(np.float32(rng.normal()))])
    )
    cut = double_threshold(threshold)
    beside = cut + np.arange(-40, 41) * np.spacing(abs(cut))
    wide = threshold * (1 + rng.normal(size=200) * 10.0 ** rng.integers(-9, 0, 200))
    for x in np.concatenate([beside, wide]):
        assert (float(np.float32(x)) <= threshold) == (x <= cut), (x.hex(), cut.hex())


@pytest.mark.parametrize("threshold", [0.0, -0.0, 1e-46, -1e-46, MAX_FLOAT32, -MAX_FLOAT32, 1e300, math.inf])
def test_thresholds_at_the_ends_of_single_precision(threshold):
    cut = double_threshold(threshold)
    for x in (cut, math.nextafter(cut, math.inf), math.nextafter(cut, -math.inf), 0.0, -0.0, MAX_FLOAT32, -MAX_FLOAT32):
        with np.errstate(over="ignore"):
            single = np.float32(x)
        if np.isfinite(single):  # scikit-learn refuses infinite values
            assert (float(single) <= threshold) == (x <= cut)


def test_a_threshold_that_no_single_passes_is_refused():
    with pytest.raises(ConversionError, match="single precision"):
        double_threshold(-1e300)
    with pytest.raises(ConversionError, match="nan"):
        double_threshold(math.nan)


def test_names_classes_and_counts_are_those_of_the_fit():
    import pandas as pd

    frame = pd.DataFrame({"petal width": [0.1, 0.2, 1.0, 2.0], "count": [1, 2, 3, 4]})
    source = DecisionTreeClassifier(random_state=0).fit(frame, ["no", "no", "yes", "yes"])
    tree = from_sklearn(source)
    assert [c.name for c in tree.schema] == ["petal width", "count"]
    assert tree.classes == ("no", "yes")
    assert [v.counts for v in tree.nodes] == [(2, 2), (2, 0), (0, 2)]
    assert [c.name for c in from_sklearn(source, ["a", "b"]).schema] == ["a", "b"]
    weighed = DecisionTreeClassifier(random_state=0).fit(frame, [0.0, 0.0, 1.0, 1.0], sample_weight=[0.3, 1, 1, 0.5])
    assert from_sklearn(weighed).classes == ("0", "1")
    assert all(v.counts == (0, 0) for v in from_sklearn(weighed).nodes)


def test_other_than_single_tree_classifier_is_refused():
    X = np.arange(8.0).reshape(-1, 1)
    y = np.arange(8) % 2
    for estimator, words in (
        (DecisionTreeClassifier(), "not been fitted"),
        (DecisionTreeRegressor().fit(X, y), "not a classifier of one tree"),
        (RandomForestClassifier(n_estimators=2).fit(X, y), "not a classifier of one tree"),
        (DecisionTreeClassifier().fit(X, np.column_stack([y, y])), "predicts 2 columns"),
    ):
        with pytest.raises(ConversionError, match=words):
            from_sklearn(estimator)
    with pytest.raises(ConversionError, match="2 names"):
        from_sklearn(DecisionTreeClassifier().fit(X, y), ["a", "b"])
