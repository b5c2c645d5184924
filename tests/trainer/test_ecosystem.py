"""The estimators work with scikit-learn's tools: selection, pipelines, frames, inspection, routing, skops."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
import polars
import pytest
import sklearn
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_iris
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.inspection import DecisionBoundaryDisplay, partial_dependence, permutation_importance
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from trainer.errors import ParameterError
from trainer.sklearn_api.estimators import ESTIMATORS, make_classifier
from trainer.tree.file import ModelFile

METHODS = ("cart", "exact", "exact-numeric", "bivariate")


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    return X[:, 2:], y


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_cross_validation_and_a_pipeline(method, iris):
    X, y = iris
    model = make_classifier(method, depth=2)
    alone = cross_val_score(model, X, y, cv=3)
    assert alone.min() > 0.8
    # Shift and scale do not change the order of values, so the splits stay the same.
    scaled = cross_val_score(Pipeline([("scale", StandardScaler()), ("tree", model)]), X, y, cv=3)
    assert scaled == pytest.approx(alone, abs=0.05)
    names = ("accuracy", "neg_log_loss", "roc_auc_ovr")
    scores = cross_validate(model, X, y, cv=3, scoring=names, return_estimator=True, error_score="raise")
    assert all(np.isfinite(scores[f"test_{name}"]).all() for name in names)
    assert [e.tree_.depth for e in scores["estimator"]] == [2, 2, 2]


def test_grid_search_chooses_a_depth_and_refits(iris):
    X, y = iris
    grid = {"tree__depth": [0, 1, 2], "tree__leaf_penalty": [0.0, 0.4]}
    search = GridSearchCV(Pipeline([("tree", make_classifier("exact-numeric"))]), grid, cv=3, error_score="raise").fit(
        X, y
    )
    assert search.best_params_ == {"tree__depth": 2, "tree__leaf_penalty": 0.0}
    assert search.best_estimator_["tree"].certificate_.proved_optimal
    assert len(search.predict(X)) == len(y)


def test_halving_search_gives_more_rows_to_better_settings(iris):
    X, y = iris
    search = HalvingGridSearchCV(
        make_classifier("exact-numeric"), {"depth": [0, 1, 2]}, cv=3, random_state=0, error_score="raise"
    ).fit(X, y)
    assert search.best_params_ == {"depth": 2}
    assert search.n_iterations_ >= 2


def test_a_parameter_as_resource_of_a_halving_search(iris):
    X, y = iris
    search = HalvingGridSearchCV(
        make_classifier("exact-numeric"),
        {"leaf_penalty": [0.0, 0.4]},
        resource="depth",
        min_resources=1,
        max_resources=2,
        factor=2,
        cv=3,
        random_state=0,
        error_score="raise",
    ).fit(X, y)
    assert search.best_params_ == {"leaf_penalty": 0.0, "depth": 2}


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output_hands_frames_with_names_to_the_tree(container):
    if container == "polars" and sklearn.__version__ < "1.9" and not hasattr(polars.DataFrame, "__dataframe__"):
        pytest.skip("scikit-learn 1.8 needs the interchange protocol, which polars 2 no longer has")
    cells = {"size": [1.0, 2.0, 3.0, 4.0] * 5, "colour": ["red", "blue", "red", "green"] * 5}
    frame = pd.DataFrame(cells) if container == "pandas" else polars.DataFrame(cells)
    y = ["no", "yes", "no", "yes"] * 5
    numbers = make_column_selector(dtype_include="number") if container == "pandas" else ["size"]
    steps = make_pipeline(
        make_column_transformer((StandardScaler(), numbers), remainder="passthrough", verbose_feature_names_out=False),
        make_classifier("exact-numeric", depth=2),
    ).set_output(transform=container)
    assert steps.fit(frame, y).predict(frame).tolist() == y
    tree = steps[-1].tree_
    assert [c.name for c in tree.schema] == ["size", "colour"]
    assert str(tree.schema[1].kind) == "categorical"
    assert steps[-1].feature_names_in_.tolist() == ["size", "colour"]


def test_pandas_of_every_kind_of_column():
    n = 24
    frame = pd.DataFrame(
        {
            "whole": pd.array(range(n), dtype="Int64"),
            "real": pd.array(np.arange(n) / 2, dtype="Float64"),
            "flag": pd.array([True, False] * (n // 2), dtype="boolean"),
            "plain flag": [False, True] * (n // 2),
            "level": pd.Categorical(
                ["low", "high", "middle"] * (n // 3), categories=["low", "middle", "high", "never"], ordered=True
            ),
            "text": pd.array(["a", "b"] * (n // 2), dtype="string"),
            "arrow": pd.array(range(n), dtype="int64[pyarrow]"),
        }
    )
    y = (frame["level"] == "high").astype(int).to_numpy() & np.asarray(frame["flag"], dtype=int)
    for method in ("cart", "exact", "exact-numeric"):
        model = make_classifier(method, depth=2).fit(frame, y)
        assert model.score(frame, y) == 1.0
        kinds = {c.name: str(c.kind) for c in model.tree_.schema}
        assert kinds == {
            "whole": "numeric",
            "real": "numeric",
            "flag": "binary",
            "plain flag": "binary",
            "level": "categorical",
            "text": "categorical",
            "arrow": "numeric",
        }
        # The same rows in columns of other types and with another index get the same answers.
        other = frame.astype({"whole": float, "flag": object, "level": str, "text": object}).set_index(np.arange(n) + 7)
        assert model.predict(other).tolist() == model.predict(frame).tolist()


def test_pandas_gaps_are_learned_or_an_error_with_its_place():
    words = pd.DataFrame(
        {
            "level": pd.Categorical(["a", None, "b", "a", None, "b"]),
            "flag": pd.array([True, False, True] * 2, dtype="boolean"),
        }
    )
    y = [0, 1, 0, 0, 1, 0]
    model = make_classifier("exact", depth=1).fit(words, y)
    assert model.predict(words).tolist() == y
    for column, kind in (("whole", "Int64"), ("flag", "boolean"), ("real", "Float64")):
        frame = pd.DataFrame({column: pd.array([1, 0, None], dtype=kind), "text": ["a", "b", "c"]})
        learned = make_classifier("cart", depth=1).fit(frame[[column]], [0, 0, 1])
        assert learned.predict(frame[[column]]).tolist() == [0, 0, 1]
        with pytest.raises(ValueError, match=rf"NaN: column '{column}', row 2"):
            make_classifier("cart", missing="refuse").fit(frame, [0, 1, 0])


def test_polars_columns_and_lazy_frames():
    frame = polars.DataFrame(
        {
            "level": polars.Series(["low", "high", "low", "high"] * 4, dtype=polars.Categorical),
            "kind": polars.Series(["a", "b", "b", "a"] * 4, dtype=polars.Enum(["a", "b", "c"])),
            "size": polars.Series([1, 2, 3, 4] * 4, dtype=polars.Int16),
            "flag": [True, False, False, True] * 4,
        }
    )
    y = polars.Series([0, 1, 1, 0] * 4)
    model = make_classifier("exact", depth=2).fit(frame, y)
    assert model.predict(frame).tolist() == y.to_list()
    assert {c.name: str(c.kind) for c in model.tree_.schema} == {
        "level": "categorical",
        "kind": "categorical",
        "size": "numeric",
        "flag": "binary",
    }
    assert cross_val_score(make_classifier("cart", depth=2), frame.to_pandas(), y.to_numpy(), cv=2).min() == 1.0
    with pytest.raises((TypeError, ValueError)):
        model.fit(frame.lazy(), y)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_to_fit_and_score(iris):
    X, y = iris
    # Only rows of weight 1 count. With two classes gone, the tree is a leaf.
    weights = (y == 2).astype(float)
    weights[:2] = weights[60:62] = 1.0
    model = make_classifier("exact-numeric", depth=1)
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
        cross_val_score(model, X, y, params={"sample_weight": weights}, cv=2)
    asking = model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    asked = cross_validate(
        asking, X, y, params={"sample_weight": weights}, cv=2, return_estimator=True, error_score="raise"
    )
    ignored = cross_validate(
        make_classifier("exact-numeric", depth=1)
        .set_fit_request(sample_weight=False)
        .set_score_request(sample_weight=True),
        X,
        y,
        params={"sample_weight": weights},
        cv=2,
        return_estimator=True,
        error_score="raise",
    )
    assert all(e.tree_.nodes[0].rows < 40 for e in asked["estimator"])
    assert all(e.tree_.nodes[0].rows == 75 for e in ignored["estimator"])
    steps = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), asking)
    assert steps.fit(X, y, sample_weight=weights)[-1].tree_.nodes[0].rows == int(weights.sum())
    search = GridSearchCV(asking, {"depth": [0, 1]}, cv=2, error_score="raise").fit(X, y, sample_weight=weights)
    assert search.best_estimator_.tree_.nodes[0].rows == int(weights.sum())


def test_inspection_finds_the_column_that_is_asked(iris):
    X, y = iris
    wide = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 1))])
    model = make_classifier("exact-numeric", depth=2).fit(wide, y)
    found = permutation_importance(model, wide, y, n_repeats=3, random_state=0)
    assert found.importances_mean[2] == 0.0
    assert found.importances_mean[:2].max() > 0.2
    curve = partial_dependence(model, wide, [1], kind="average")
    assert curve["average"].shape[0] == 3
    assert curve["average"].sum(axis=0) == pytest.approx(1.0)
    assert np.ptp(curve["average"], axis=1).max() > 0.3
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0] * 4, "b": ["u", "v"] * 8})
    words = make_classifier("cart", depth=1).fit(frame, ["no", "yes"] * 8)
    levels = partial_dependence(words, frame, ["b"], categorical_features=["b"])
    assert levels["average"][0].tolist() == [0.0, 1.0]


def test_the_display_of_the_boundary_is_drawn(iris):
    matplotlib.use("agg")
    X, y = iris
    model = make_classifier("exact-numeric", depth=2).fit(X, y)
    shown = DecisionBoundaryDisplay.from_estimator(model, X, response_method="predict", grid_resolution=20)
    grid = np.column_stack([shown.xx0.ravel(), shown.xx1.ravel()])
    assert shown.response.ravel().tolist() == model.predict(grid).tolist()
    DecisionBoundaryDisplay.from_estimator(model, X, response_method="predict_proba", grid_resolution=5)


def test_boundary_display_needs_predict_only(iris):
    """DecisionBoundaryDisplay and CalibratedClassifierCV look for these methods."""
    X, y = iris
    model = make_classifier("cart", depth=2).fit(X, y)
    assert sklearn.base.is_classifier(model)
    assert not hasattr(model, "decision_function")
    assert model.predict_proba(X).shape == (len(X), 3)


def test_a_pipeline_of_text_and_numbers_with_an_encoder():
    frame = pd.DataFrame({"a": ["x", "y", "z"] * 6, "b": range(18)})
    y = [0, 1, 0] * 6
    steps = make_pipeline(
        make_column_transformer((OrdinalEncoder(), ["a"]), remainder=FunctionTransformer()),
        make_classifier("exact", depth=2),
    )
    assert cross_val_score(steps, frame, y, cv=2, error_score="raise").min() == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_skops_saves_and_loads(method, iris, tmp_path):
    X, y = iris
    model = make_classifier(method, depth=2).fit(X, np.array(["a", "b", "c"])[y])
    import skops.io  # importing skops scans all modules, so the other tests do not wait for it

    skops.io.dump(model, tmp_path / "model.skops")
    strange = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    assert strange, "nothing of this package is trusted by itself"
    # Only types of this package need the user's trust.
    assert all(name.startswith("trainer.") for name in strange), strange
    back = skops.io.load(tmp_path / "model.skops", trusted=strange)
    assert isinstance(back, ESTIMATORS[method])
    assert (back.predict(X) == model.predict(X)).all()
    assert (back.predict_proba(X) == model.predict_proba(X)).all()
    assert back.certificate_ == model.certificate_
    assert ModelFile.of_tree(back.tree_).to_json() == ModelFile.of_tree(model.tree_).to_json()


def test_sparse_matrix_gives_the_tree_of_its_array():
    colours = np.array(["red", "blue", "green", "red"] * 10)[:, None]
    y = (colours[:, 0] == "red").astype(int)
    hot = OneHotEncoder().fit_transform(colours)
    sparse = make_classifier("exact", depth=2, leaf_penalty=0.01).fit(hot, y)
    dense = make_classifier("exact", depth=2, leaf_penalty=0.01).fit(hot.toarray(), y)
    assert sparse.rules() == dense.rules()
    assert sparse.predict(hot).tolist() == y.tolist()
    assert make_pipeline(OneHotEncoder(), make_classifier("cart", depth=1)).fit(colours, y).score(colours, y) == 1


@pytest.mark.parametrize("wrong", [{"depth": "3"}, {"leaf_penalty": "0.01"}])
def test_number_as_a_text_is_refused(wrong):
    with pytest.raises(ParameterError, match="is a text"):
        make_classifier("exact", **wrong).fit(np.arange(20.0)[:, None], np.arange(20) > 9)
