"""A fitted classifier proves, verifies, edits, converts and reloads itself, under scikit-learn's names."""

from __future__ import annotations

import json
import os
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier, export_text

import octweb
import trainer
from trainer import CartClassifier, ExactNumericClassifier, ExactTreeClassifier, FlowOCTClassifier, ODTClassifier
from trainer.check.recount import verdict
from trainer.errors import ConversionError, ModelFileError, ParameterError


def small_frame(seed=4, rows=60):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(20, 60, rows).astype(float), "colour": rng.choice(list("rgb"), rows)})
    frame["size"] = np.where(rng.random(rows) < 0.2, np.nan, rng.normal(size=rows).round(1))
    y = np.where((frame["age"] > 40) ^ (frame["colour"] == "r"), "yes", "no")
    y[:4] = "no"
    return frame, pd.Series(y, name="bought")


@pytest.fixture(scope="module")
def fitted():
    X, y = small_frame()
    return ExactTreeClassifier(depth=2, leaf_penalty=0.01, bins=8).fit(X, y), X, y


def test_verify_and_prove_judge_the_claims_of_the_object(fitted, tmp_path):
    estimator, X, y = fitted
    assert verdict(estimator.verify(X, y)) == "proved"
    assert verdict(estimator.prove(tmp_path / "p.jsonl.gz")) == "proved"
    assert (tmp_path / "p.jsonl.gz").stat().st_size > 100
    assert verdict(estimator.verify(X, y.to_numpy()[::-1])) == "refuted"


@pytest.mark.parametrize("weights", [None, np.arange(60) % 3])
def test_verify_takes_the_arguments_of_fit(weights):
    X, y = small_frame(seed=5)
    estimator = CartClassifier(depth=2, missing={"size": "drop"}).fit(X, y, sample_weight=weights)
    assert verdict(estimator.verify(X, y, sample_weight=weights)) != "refuted"


def test_alternatives_are_priced_at_each_node(fitted):
    estimator, _, _ = fitted
    for node in (0, estimator.tree_.nodes[0].left):
        listed = estimator.alternatives(node)
        assert [a.price for a in listed] == sorted(a.price for a in listed)
        assert listed[0].price == 0
        assert len(listed) > 3
        assert all(a.proved for a in listed)
    with pytest.raises(ValueError, match="no node 99"):
        estimator.alternatives(99)


def test_edit_and_good_trees_are_those_of_the_workbench(fitted):
    estimator, X, y = fitted
    wish = ["forbid root colour"]
    assert estimator.edit().complete(wish).cost == estimator.workbench(X, y).complete(wish).cost
    assert estimator.good_trees(slack_rows=2).count == estimator.workbench(X, y).good_trees(slack_rows=2).count
    assert not hasattr(CartClassifier().fit(X, y), "edit")


def test_flip_has_the_changes_of_explain(fitted):
    estimator, X, _ = fitted
    assert estimator.flip(X[:9]) == [record["flip"] for record in estimator.explain(X[:9])]
    changes = estimator.flip(X, age="never")
    assert all("age" not in change["changes"] for change in changes if change)
    with pytest.raises(ParameterError, match="no such column"):
        estimator.flip(X, agee="never")


def test_loaded_object_is_the_saved_one(fitted, tmp_path):
    estimator, X, y = fitted
    estimator.save(tmp_path / "m.json")
    loaded = octweb.load(tmp_path / "m.json")
    assert type(loaded) is ExactTreeClassifier
    assert loaded.get_params() == estimator.get_params() | {"depth": 2, "bins": loaded.bins}
    assert loaded.certificate_ == estimator.certificate_
    assert (loaded.predict(X) == estimator.predict(X)).all()
    assert verdict(loaded.verify(X, y)) == "proved"
    loaded.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads((tmp_path / "m.json").read_text())
    with pytest.raises(ValueError, match="loaded"):
        loaded.prove()
    with pytest.raises(ValueError, match="Fit it again"):
        pickle.loads(pickle.dumps(estimator)).edit()


@pytest.mark.parametrize("method", ["cart", "binoct"])
def test_each_estimator_class_round_trips(method, tmp_path):
    X, y = (part[:100] for part in load_iris(return_X_y=True))
    X = X[:, :2]
    estimator = trainer.make_classifier(method).set_params(depth=1).fit(X, y)
    estimator.save(tmp_path / "m.json")
    loaded = trainer.load(tmp_path / "m.json")
    assert loaded.certificate_ == estimator.certificate_
    assert (loaded.predict(X) == estimator.predict(X)).all()
    assert loaded.predict(X).dtype == y.dtype


def assert_reads_like(loaded, estimator, X, tmp_path):
    """Assert that a loaded tree predicts, explains, exports and saves like the fitted one, and trains nothing."""
    assert (loaded.predict(X) == estimator.predict(X)).all()
    assert (loaded.predict_proba(X) == estimator.predict_proba(X)).all()
    assert (loaded.apply(X) == estimator.apply(X)).all()
    assert loaded.rules() == estimator.rules()
    assert loaded.explain(X[:3])[0]["label"] == str(estimator.predict(X[:1])[0])
    assert "def " in loaded.export("python")
    assert loaded.plot().data
    assert loaded._repr_html_()
    assert (loaded.feature_importances_ == estimator.feature_importances_).all()
    assert loaded.verdict_.sentence
    before = json.loads((tmp_path / "t.json").read_text())
    loaded.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == before
    for use in (loaded.fit, loaded.verify):
        with pytest.raises(ValueError, match=r"make_classifier|octweb verify"):
            use(X, estimator.predict(X))
    with pytest.raises(ValueError, match="no search"):
        loaded.save(tmp_path / "proved.json", proof=True)
    with pytest.raises(ValueError, match="no search"):
        loaded.prove()
    assert not hasattr(loaded, "edit")


def test_tree_without_a_claim_is_read_only(fitted, tmp_path):
    estimator, X, y = fitted
    estimator.tree_.save(tmp_path / "t.json")
    loaded = trainer.load(tmp_path / "t.json")
    assert_reads_like(loaded, estimator, X, tmp_path)
    certificate = loaded.certificate_
    assert (certificate.status, certificate.bound, certificate.gap) == ("heuristic", None, None)
    assert (certificate.correct, certificate.n) == ((loaded.predict(X) == y).sum(), len(y))
    assert not certificate.proved_optimal


@pytest.mark.parametrize("method", ["imported", "a-later-method"])
def test_tree_of_a_method_without_a_class_is_read_only(fitted, tmp_path, method):
    estimator, X, _ = fitted
    estimator.save(tmp_path / "t.json")
    document = json.loads((tmp_path / "t.json").read_text()) | {"method": method}
    (tmp_path / "t.json").write_text(json.dumps(document))
    loaded = trainer.load(tmp_path / "t.json")
    assert_reads_like(loaded, estimator, X, tmp_path)
    assert loaded.certificate_ == estimator.certificate_
    assert repr(loaded) == "SavedTreeClassifier()"


@pytest.mark.parametrize("damage", [{"guarantee": "a-later-one"}, {"status": "?"}, {"objective": None, "depth": 1}])
def test_damaged_certificate_is_an_error_of_the_file(fitted, tmp_path, damage):
    estimator, _, _ = fitted
    estimator.save(tmp_path / "t.json")
    document = json.loads((tmp_path / "t.json").read_text())
    document["certificate"] |= damage
    document["certificate"] = {name: value for name, value in document["certificate"].items() if value is not None}
    (tmp_path / "t.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="certificate of the model file is damaged"):
        trainer.load(tmp_path / "t.json")


@pytest.mark.parametrize("seed", range(6))
def test_sklearn_tree_answers_alike(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 8, (80, 3)).astype(float)
    X[rng.random(X.shape) < 0.15] = np.nan
    y = rng.integers(0, 3, 80) * 5
    estimator = (CartClassifier(depth=4) if seed % 2 else ExactNumericClassifier(depth=2, leaf_penalty=0)).fit(X, y)
    tree = estimator.to_sklearn()
    assert isinstance(tree, DecisionTreeClassifier)
    assert (tree.predict(X) == estimator.predict(X)).all()
    assert (tree.apply(X) == estimator.apply(X)).all()
    assert tree.get_n_leaves() == estimator.tree_.n_leaves
    assert (pickle.loads(pickle.dumps(tree)).predict(X) == tree.predict(X)).all()
    assert export_text(tree).count("class:") == estimator.tree_.n_leaves


def test_leaf_with_an_answer_by_costs_answers_alike():
    X = np.arange(40.0)[:, None]
    y = (np.arange(40) % 4 == 0).astype(int)
    estimator = CartClassifier(depth=2, costs={"costs": {"0": {"1": 1}, "1": {"0": 9}}}).fit(X, y)
    assert (estimator.predict(X) == 1).any()
    assert (estimator.to_sklearn().predict(X) == estimator.predict(X)).all()


def test_sklearn_tree_refuses_categories(fitted):
    with pytest.raises(ConversionError, match=r"colour.*export"):
        fitted[0].to_sklearn()


def test_names_of_sklearn_set_ours():
    estimator = CartClassifier(max_depth=2, min_samples_leaf=5, random_state=7, n_jobs=-1)
    values = {name: getattr(estimator, name) for name in ("depth", "min_leaf", "seed", "threads")}
    assert values == {"depth": 2, "min_leaf": 5, "seed": 7, "threads": os.cpu_count()}
    assert "max_depth" not in clone(estimator).get_params()
    assert clone(estimator).set_params(max_depth=3).depth == 3
    assert CartClassifier(random_state=None, n_jobs=None).get_params() == CartClassifier().get_params()
    assert trainer.make_classifier("exact", max_depth=None, leaf_penalty=0.1).depth is None
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(CartClassifier(), {"max_depth": [1, 3]}, cv=3).fit(X, y)
    assert search.best_estimator_.depth == search.best_params_["max_depth"] == 3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CartClassifier(depth=2, max_depth=2), "'max_depth' is scikit-learn's name of 'depth'. Give one"),
        (lambda: FlowOCTClassifier(min_samples_leaf=2), "which this method does not have"),
        (lambda: ODTClassifier(max_dept=2), "Did you mean 'max_depth'"),
        (lambda: CartClassifier().set_params(depth=2, max_depth=2), "'max_depth' is scikit-learn's name of 'depth'"),
    ],
)
def test_other_names_get_a_hint(make, words):
    with pytest.raises(TypeError, match=words):
        make()


def test_unknown_parameter_is_refused_as_scikit_learn_does():
    with pytest.raises(ValueError, match="Invalid parameter 'max_dept'"):
        CartClassifier().set_params(max_dept=2)


def test_octweb_offers_every_public_name_of_the_library():
    assert all(getattr(octweb, name) is getattr(trainer, name) for name in dir(trainer) if name != "ESTIMATOR_NAMES")
    assert octweb.ESTIMATOR_NAMES == trainer.ESTIMATOR_NAMES
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        octweb.nothing  # noqa: B018
