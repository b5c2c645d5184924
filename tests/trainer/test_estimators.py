"""scikit-learn classifiers of all methods: the checks of scikit-learn, weights, data frames and fitted attributes."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import pickle
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

import trainer
from tests.conftest import ROOT
from tests.seeds import seeds
from trainer.certificate import Certificate, Guarantee, Limits, Status
from trainer.errors import ParameterError
from trainer.families.oblique import raising, tree_search
from trainer.methods.base import COMMON, LEAF_PENALTY, Method, Solution
from trainer.methods.capabilities import ProofKind
from trainer.milo import SolveOptions
from trainer.registry import METHODS
from trainer.sklearn_api import estimators
from trainer.sklearn_api.estimators import ESTIMATORS, make_classifier
from trainer.solver_common import tree_model
from trainer.solver_common.tree_model import options_of
from trainer.training.claims import limit_warning
from trainer.tree.nodes import DraftBranch, DraftLeaf
from trainer.tree.splits import Threshold

ARRAY_API = "SCIPY_ARRAY_API"
QUICK = {"depth": 2, "time_limit": 10.0}
# With a bound that is known from the start, these models end at once. Bendoct needs none, and their own tests use none.
OWN = {key: {"first_tree": "exact"} for key in ("oct", "flowoct", "binoct")}


def quick(method_id: str) -> object:
    known = {p.name for p in trainer.registry.get(method_id).parameters}
    wanted = (
        QUICK | ({"time_limit": 0.4, "first_trees": "cart"} if "first_trees" in known else {}) | OWN.get(method_id, {})
    )
    return make_classifier(method_id, **{name: value for name, value in wanted.items() if name in known})


BY_SOLVER = [m.id for m in METHODS if m.parameter("solver") is not None and m.id != "odt"]
OTHERS = [m.id for m in METHODS if m.id not in BY_SOLVER]


@pytest.mark.parametrize(
    "method_id", ["cart", *(pytest.param(m, marks=pytest.mark.slow) for m in OTHERS if m != "cart")]
)
@pytest.mark.filterwarnings("ignore")
def test_every_check_passes_with_the_defaults(method_id):
    assert passed(check_estimator(make_classifier(method_id), on_fail=None, on_skip=None)) > 40


@pytest.mark.slow
@pytest.mark.parametrize("method_id", BY_SOLVER)
@pytest.mark.filterwarnings("ignore")
def test_every_check_passes_with_defaults_of_solver_methods(method_id, monkeypatch):
    """The default limit of 600 s is shortened from outside, because 200 fits would take a day."""
    with monkeypatch.context() as short:
        short.setattr(estimators, "limits_of", lambda settings: Limits(time=0.03))
        found = check_estimator(make_classifier(method_id), on_fail=None, on_skip=None)
    # Fits that end by the clock differ, and on a busy machine they end too early. Here they end after some rounds of
    # local search, a few cases, and one node of the solver, or none if its first node takes seconds.
    again = {r["check_name"] for r in found if r["status"] == "failed"}
    monkeypatch.setattr(tree_model, "SolveOptions", functools.partial(SolveOptions, nodes=1))
    monkeypatch.setattr(
        tree_search, "options_of", lambda *given, **named: replace(options_of(*given, **named), time=0.0)
    )
    monkeypatch.setattr(tree_search, "MAX_ROUNDS_WITHOUT_GAIN", 1)
    monkeypatch.setattr(raising, "MAX_CASES", 10)
    checks = [(m, c) for m, c in estimator_checks_generator(make_classifier(method_id)) if c.func.__name__ in again]
    assert len(checks) >= len(again)
    for estimator, check in checks:
        check(estimator)
    assert passed([r for r in found if r["status"] != "failed"]) + len(checks) > 50


def passed(results: list[dict]) -> int:
    """Return the number of passed checks. None may fail, and only the array API check may be skipped."""
    left_out = [] if ARRAY_API in os.environ else ["check_array_api_input"]
    assert [f"{r['check_name']}: {r['exception']!r}" for r in results if r["status"] == "failed"] == []
    assert [r["check_name"] for r in results if r["status"] == "skipped"] == left_out
    return sum(r["status"] == "passed" for r in results)


def _best_stump(problem, settings, monitor) -> Solution:
    """Return the best tree of at most one split, by trying every value of every column."""
    trees = [DraftLeaf()]
    for j in range(problem.matrix.shape[1]):
        for cut in np.unique(problem.matrix[:, j])[:-1]:
            split = Threshold(feature=j, threshold=float(cut))
            trees.append(DraftBranch(split=split, left=DraftLeaf(), right=DraftLeaf()))
    values = [problem.objective(problem.tree(draft)) for draft in trees]
    best = int(np.argmax(values))
    return Solution(draft=trees[best], bound=values[best], scope="one split")


CHECKED = """
import json
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator
from trainer.sklearn_api.estimators import make_classifier

found = check_estimator(make_classifier("cart"), on_fail=None, on_skip=None)
print(json.dumps({result["check_name"]: result["status"] for result in found}))
"""


@pytest.mark.slow
def test_the_check_that_needs_a_setting_of_scipy_passes_too():
    """SciPy reads the setting when it is imported, and nobody serves with it.

    One method is enough, because all share the checked code.
    """
    command = [sys.executable, "-W", "ignore", "-c", CHECKED]
    ran = subprocess.run(
        command, cwd=ROOT, env=os.environ | {ARRAY_API: "1"}, capture_output=True, text=True, timeout=3000
    )
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert "check_array_api_input" in document
    assert len(document) > 40
    assert set(document.values()) == {"passed"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("two_classes", [False, True])
def test_checks_pass_for_exact_method_and_two_class_method(two_classes, monkeypatch):
    method = Method(
        id="stump",
        title="Stump",
        summary="The best single split.",
        paper="none",
        guarantee=Guarantee.TREE,
        splits=("threshold",),
        parameters=(LEAF_PENALTY, *COMMON),
        solve=_best_stump,
        two_classes=two_classes,
        proof=ProofKind.NONE,
    )
    cls = estimators.estimator_class(method)
    monkeypatch.setitem(estimators._BY_NAME, cls.__name__, cls)
    expected = {} if two_classes else {"check_classifiers_train": "two leaves cannot tell three classes apart"}
    assert passed(check_estimator(cls(), on_fail=None, on_skip=None, expected_failed_checks=expected)) > 40
    model = cls().fit([[0.0], [1.0], [2.0]], ["b", "a", "a"])
    assert model.certificate_.status == "optimal"
    assert (model.certificate_.bound, model.certificate_.gap) == (1.0, 0.0)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_parameters_are_those_of_the_declaration(method):
    estimator = make_classifier(method.id)
    assert estimator.get_params() == {p.name: p.default for p in method.parameters} | {
        "missing": "learn",
        "unknown": "warn",
    }
    assert clone(estimator.set_params(time_limit=3.0)).get_params()["time_limit"] == 3.0
    assert getattr(trainer, type(estimator).__name__) is type(estimator)
    assert type(estimator).__name__ == trainer.ESTIMATOR_NAMES[method.id]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_fitted_attributes_and_predictions_agree_with_the_tree(method, tmp_path):
    X, y = load_iris(return_X_y=True)
    kept = slice(None) if not method.two_classes else slice(50, None)
    X = X[kept][::3]
    y = np.array(["setosa", "versicolor", "virginica"])[y[kept][::3]]
    model = quick(method.id).fit(X, y)
    leaves = model.apply(X)
    assert model.predict(X).tolist() == [str(model.tree_.classes[model.tree_.nodes[v].label]) for v in leaves]
    shares = np.array([np.array(model.tree_.nodes[v].counts) / model.tree_.nodes[v].rows for v in leaves])
    assert np.allclose(model.predict_proba(X), shares)
    path = model.decision_path(X)
    assert path.shape == (len(X), len(model.tree_.nodes))
    assert all(path[i].indices.tolist() == model.tree_.path_to(int(leaves[i])) for i in range(len(X)))
    claim = model.certificate_
    correct = int((model.predict(X) == y).sum())
    penalty = Fraction(claim.leaf_penalty)
    assert claim.objective == pytest.approx(float(Fraction(correct, len(X)) - penalty * model.tree_.n_leaves))
    assert {"bound", "gap", "status", "seconds", "nodes", "cuts"} <= set(claim.to_json())
    assert model.get_depth() == model.tree_.depth <= 2
    model.tree_.save(tmp_path / "tree.json")
    assert trainer.Tree.load(tmp_path / "tree.json") == model.tree_
    assert model.tree_.to_json()[0]["id"] == 0


def test_pickle_keeps_a_fitted_classifier():
    X, y = load_iris(return_X_y=True)
    model = make_classifier("cart", depth=2).fit(X, y)
    assert pickle.loads(pickle.dumps(model)).predict(X).tolist() == model.predict(X).tolist()


@seeds(20)
def test_integer_weights_equal_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (30, 3)).astype(float)
    y = rng.integers(0, 3, 30)
    weights = rng.integers(0, 4, 30)
    weighted = make_classifier("cart", min_leaf=5).fit(X, y, sample_weight=weights)
    repeated = make_classifier("cart", min_leaf=5).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.tree_.to_json() == repeated.tree_.to_json()
    assert weighted.certificate_.objective == repeated.certificate_.objective


def test_fractional_weights_are_scaled_to_whole_rows():
    X = [[0.0], [1.0], [2.0], [3.0], [3.0]]
    y = [0, 1, 0, 1, 0]
    thirds = make_classifier("cart", depth=2).fit(X, y, sample_weight=[0.5, 0.1, 1.2, 0.25, 0.2])
    estimator = make_classifier("cart", depth=2).fit(X, y, sample_weight=[10, 2, 24, 5, 4])
    assert thirds.tree_ == estimator.tree_
    assert thirds.tree_.nodes[0].counts == (38, 7)


@pytest.mark.parametrize("weights", [[1, -1, 1, 1], [0, 0, 0, 0], [np.nan, 1, 1, 1], [np.inf, 1, 1, 1]])
def test_weights_that_cannot_be_counted_are_refused(weights):
    with pytest.raises(ValueError, match="weight"):
        make_classifier("cart").fit([[0.0], [1], [2], [3]], [0, 0, 1, 1], sample_weight=weights)


@seeds(60)
def test_rounding_of_real_weights_has_a_proved_error(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (12, 2)).astype(float)
    y = rng.integers(0, 2, 12)
    weights = rng.lognormal(sigma=(0.1, 3.0, 12.0)[seed % 3], size=12)
    estimator = make_classifier("exact", depth=2, binarise="all-thresholds").fit(X, y, sample_weight=weights)
    assert 0 < estimator.certificate_.weight_error < 1e-6
    proved_as_weighed(estimator, X, y, weights, depth=2)


EXACT = [m for m in METHODS if m.guarantee is Guarantee.TREE]


def small(method: Method, **more) -> object:
    """Return an estimator for twelve rows. It has a topology instead of the depth, and no price of leaves."""
    known = {p.name for p in method.parameters}
    wanted = {"depth": 1, "topology": "depth-1", "binarise": "all-thresholds", "leaf_penalty": 0.0, "time_limit": 600.0}
    return make_classifier(method.id, **{k: v for k, v in (wanted | more).items() if k in known})


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.1, 3.0, 12.0])
@pytest.mark.parametrize("method", EXACT, ids=lambda m: m.id)
def test_exact_methods_prove_their_tree_for_weighted_rows(method, sigma):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, (12, 2)).astype(float)
    y = rng.integers(0, 2, 12)
    weights = rng.lognormal(sigma=sigma, size=12)
    proved_as_weighed(small(method).fit(X, y, sample_weight=weights), X, y, weights, depth=1)


def proved_as_weighed(found, X, y, weights, depth) -> None:
    """Assert that the claim holds for the given weights up to the stated error."""
    certificate = found.certificate_
    total = weights.sum()
    error = certificate.weight_error or 0.0
    assert certificate.status == "optimal"
    own = float(weights[found.predict(X) == y].sum() / total)
    assert own == pytest.approx(certificate.objective, abs=error + 1e-12)
    # The best of all trees of this depth over these columns, with the given weights.
    best = max(weighed(X, y, weights, depth) / total, own)
    assert best <= certificate.bound + error + 1e-12
    assert own >= best - 2 * error - 1e-12


def weighed(X, y, weights, depth) -> float:
    """Return the largest weight that a tree of this depth classifies correctly."""
    best = max(weights[y == 0].sum(), weights[y == 1].sum())
    if depth:
        for j in range(X.shape[1]):
            for cut in np.unique(X[:, j])[:-1]:
                sides = (X[:, j] <= cut, X[:, j] > cut)
                best = max(best, sum(weighed(X[s], y[s], weights[s], depth - 1) for s in sides))
    return float(best)


@pytest.mark.slow
@pytest.mark.parametrize("method", EXACT, ids=lambda m: m.id)
def test_ensembles_of_scikit_learn_weigh_trees_that_are_exact(method):
    X, y = load_iris(return_X_y=True)
    # With these seventeen flowers, five trees of any method take a second.
    X = X[45:110:4, 2:]
    y = y[45:110:4] > 1
    boosted = AdaBoostClassifier(small(method), n_estimators=3, random_state=0).fit(X, y)
    assert all(tree.certificate_.status == "optimal" for tree in boosted.estimators_)
    assert boosted.score(X, y) >= small(method).fit(X, y).score(X, y)
    bagged = BaggingClassifier(small(method), n_estimators=2, random_state=0).fit(X, y)
    assert all(tree.certificate_.status == "optimal" for tree in bagged.estimators_)
    assert bagged.score(X, y) > 0.8


@pytest.mark.parametrize(
    "labels", [["a", None, "b"], pd.Series(["a", np.nan, "b"]), np.array(["a", None, "b"], object)]
)
def test_a_row_without_a_label_is_named(labels):
    with pytest.raises(ValueError, match="row 1 has no label"):
        make_classifier("cart").fit([[0.0], [1.0], [2.0]], labels)


def test_labels_of_two_types_are_refused():
    with pytest.raises(ValueError, match="partly text and partly numbers"):
        make_classifier("cart").fit([[0.0], [1.0]], ["1", 1])


def test_colliding_cells_are_refused():
    with pytest.raises(ValueError, match="as text and as a number"):
        make_classifier("cart").fit(pd.DataFrame({"c": [1, "1", "x"]}), ["a", "b", "a"])


def test_categories_that_would_merge_are_refused():
    with pytest.raises(ValueError, match="as text and as a number"):
        make_classifier("cart").fit(pd.DataFrame({"c": pd.Categorical([1, "1", "x"])}), ["a", "b", "a"])


@pytest.mark.parametrize("kind", [np.int64, np.uint64, list])
def test_array_integers_beyond_double_precision_are_refused(kind):
    rows = [[0, 2**53 + k] for k in range(4)]
    with pytest.raises(ValueError, match="Column 1 has whole numbers beyond 2"):
        make_classifier("cart").fit(rows if kind is list else np.array(rows, kind), [0, 1, 0, 1])


@pytest.mark.parametrize("more", [0, 0.5, "1", 2**70])
def test_large_integers_as_objects_or_floats_are_refused(more):
    rows = [[2**53 + k, more] for k in range(4)]
    for X in (rows, np.array(rows, object)):
        with pytest.raises(ValueError, match="Column 0 has whole numbers beyond 2"):
            make_classifier("cart").fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize("numbers", [[1, 1.0, 10, 9], [np.int64(1), 1.5, Decimal("2.5"), Fraction(1, 3)]])
def test_numbers_that_a_frame_keeps_as_objects_are_numbers(numbers):
    """As categories, 1 and 1.0 would differ, and each value would get a split of its own."""
    frame = pd.DataFrame({"a": np.array(numbers, object)})
    y = ["a", "a", "b", "b"]
    model = make_classifier("cart", depth=3).fit(frame, y)
    plain = pd.DataFrame({"a": [float(n) for n in numbers]})
    assert model.tree_ == make_classifier("cart", depth=3).fit(plain, y).tree_
    assert model.predict(frame).tolist() == model.predict(plain).tolist()
    model = make_classifier("cart").fit(pd.DataFrame({"a": np.array([1, None, 3, 4], object)}), y)
    assert model.tree_ == make_classifier("cart").fit(pd.DataFrame({"a": [1, np.nan, 3, 4]}), y).tree_


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([2**60, 2**60 + 1], "beyond 2"),
        ([Decimal("1.00000000000000000001"), Decimal(1)], "more digits"),
        ([1j, 2j], "holds complex"),
        ([b"a", "a"], "holds bytes"),
        ([[1], [2]], "holds list"),
    ],
)
def test_objects_that_are_no_cells_are_refused(cells, said):
    column = np.empty(2, object)
    column[:] = cells
    for frame in (pd.DataFrame({"a": column}), pd.DataFrame({"a": cells})):
        with pytest.raises(ValueError, match=f"^Column 'a' .*{said}"):
            make_classifier("cart").fit(frame, ["a", "b"])


def test_decimals_beyond_double_precision_are_refused():
    close = pa.table({"price": pa.array([Decimal("1.00000000000000000001"), Decimal(1)], pa.decimal128(38, 20))})
    with pytest.raises(ValueError, match="'price' has decimals that differ in more digits"):
        make_classifier("cart").fit(close, ["a", "b"])
    apart = pa.table({"price": pa.array([Decimal("1.01"), Decimal(1)], pa.decimal128(38, 20))})
    assert make_classifier("cart").fit(apart, ["a", "b"]).predict(apart).tolist() == ["a", "b"]


def test_text_equal_to_missing_category_does_not_merge():
    with pytest.raises(ValueError, match="'c' has the text '\\(missing\\)' and empty cells"):
        make_classifier("cart").fit(pd.DataFrame({"c": ["(missing)", None, "x"]}), ["a", "b", "a"])


@pytest.mark.parametrize("weight", ["x", None, np.nan, -1, np.inf])
def test_class_weights_that_are_no_weights_are_an_error(weight):
    with pytest.raises(ParameterError, match="must be finite and not negative"):
        make_classifier("exact", class_weight={"a": weight}).fit([[0.0], [1.0]], ["a", "b"])


@pytest.mark.parametrize("frame", [pd.DataFrame, pa.table])
def test_integers_beyond_double_precision_are_refused(frame):
    with pytest.raises(ValueError, match="beyond 2\\^53"):
        make_classifier("cart").fit(frame({"id": [2**53 + 1, 2**53 + 2, -(2**60)]}), ["a", "b", "a"])


def test_class_weights_of_labels_that_do_not_occur_are_an_error():
    with pytest.raises(ParameterError, match="'zzz'"):
        make_classifier("exact", class_weight={"zzz": 2}).fit([[0.0], [1.0]], ["a", "b"])


def frames():
    cells = {
        "odor": ["almond", "foul", "almond", "none", None, "foul"],
        "age": [1, 2, 3, 4, 5, 6],
        "wet": [True, False] * 3,
    }
    yield pytest.param(pd.DataFrame(cells), id="pandas")
    yield pytest.param(pd.DataFrame(cells).astype({"odor": "category"}), id="pandas category")
    yield pytest.param(pa.table(cells), id="pyarrow")
    if importlib.util.find_spec("polars"):
        yield pytest.param(importlib.import_module("polars").DataFrame(cells), id="polars")


@pytest.mark.parametrize("frame", list(frames()))
def test_text_columns_of_a_data_frame_are_categorical(frame):
    y = ["good", "bad", "good", "bad", "bad", "bad"]
    model = make_classifier("cart").fit(frame, y)
    assert model.predict(frame).tolist() == y
    assert model.feature_names_in_.tolist() == ["odor", "age", "wet"]
    kinds = {c.name: (str(c.kind), c.categories) for c in model.tree_.schema}
    assert kinds["odor"] == ("categorical", ("almond", "foul", "none", "(missing)"))
    assert kinds["age"][0] == "numeric"
    assert kinds["wet"][0] == "binary"


def test_an_unseen_category_goes_right():
    frame = pd.DataFrame({"odor": ["almond", "almond", "foul", "none"]})
    model = make_classifier("cart").fit(frame, [1, 1, 0, 0])
    root = model.tree_.nodes[0]
    assert root.split.kind == "subset"
    assert model.apply(pd.DataFrame({"odor": ["smoke", None]})).tolist() == [root.right, root.right]


def test_columns_in_another_order_are_refused():
    for table in (pd.DataFrame, pa.table):
        model = make_classifier("cart").fit(table({"a": [1, 2, 3], "b": ["x", "y", "x"]}), [0, 1, 0])
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(table({"b": ["x"], "a": [1]}))
    with pytest.raises(ValueError, match="data frame"):
        model.predict(np.zeros((1, 2)))


def test_missing_numbers_are_learned_dropped_or_refused():
    frame = pd.DataFrame({"a": [1.0, None, 2.0, 3.0], "b": ["x", "y", "x", None]})
    y = [0, 1, 0, 1]
    assert make_classifier("cart").fit(frame, y).score(frame, y) == 1.0
    model = make_classifier("cart", missing={"a": "drop"}).fit(frame, y)
    assert model.tree_.nodes[0].counts == (2, 1)
    assert model.tree_.schema[1].missing == "learn"
    weighted = make_classifier("cart", missing="drop").fit(frame, y, sample_weight=[1, 1, 3, 2])
    assert weighted.tree_.nodes[0].counts == (4,)
    with pytest.raises(ValueError, match="contains NaN: column 'a', row 1"):
        make_classifier("cart", missing="refuse").fit(frame, y)
    for wrong in ("none", {"a": "no"}, {"c": "drop"}):
        with pytest.raises(ValueError, match="missing: "):
            make_classifier("cart", missing=wrong).fit(frame, y)


def test_empty_cells_new_in_prediction_are_followed_or_refused():
    X = np.array([[1.0], [2.0], [3.0]])
    y = [0, 1, 1]
    gap = [[np.nan]]
    # a missing value goes to the side with more rows
    assert make_classifier("cart").fit(X, y).predict(gap).tolist() == [1]
    with pytest.raises(ValueError, match="contains NaN: column 'x0', row 0"):
        make_classifier("cart", unseen_missing="refuse").fit(X, y).predict(gap)


def test_missing_cells_of_all_frames_train_the_same_tree():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    X[rng.random(X.shape) < 0.3] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    kept = pd.array([None if np.isnan(v) else v for v in X[:, 0]], dtype="Float64")
    trees = [
        make_classifier("exact", depth=2).fit(own, y).tree_
        for own in (frame, frame.assign(a=kept), pl.from_pandas(frame), pa.Table.from_pandas(frame))
    ]
    assert trees.count(trees[0]) == len(trees)
    assert any(v.split is not None and v.split.missing_seen for v in trees[0].nodes)


def test_dates_and_equal_column_names_are_refused():
    dates = pd.DataFrame({"seen": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    with pytest.raises(ValueError, match="'seen' holds Datetime"):
        make_classifier("cart").fit(dates, [0, 1])
    with pytest.raises(ValueError, match="unique column names"):
        make_classifier("cart").fit(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), [0, 1])


def test_bad_values_fail_in_fit_and_unknown_names_at_once():
    with pytest.raises(ValueError, match="depth"):
        make_classifier("cart", depth=-1).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ParameterError, match="no such parameter"):
        make_classifier("cart", colour=1)
    with pytest.raises(ParameterError, match="not a method"):
        make_classifier("magic")
    with pytest.raises(TypeError, match="unexpected keyword"):
        ESTIMATORS["cart"](colour=1)


def test_fit_outside_the_main_thread():
    X, y = load_iris(return_X_y=True)
    found = []
    thread = threading.Thread(target=lambda: found.append(make_classifier("cart").fit(X, y).score(X, y)))
    thread.start()
    thread.join(60)
    assert found[0] > 0.9


def test_import_trainer_does_not_load_scikit_learn_or_numba():
    code = "import sys, trainer; print(sorted({'sklearn', 'numba', 'scipy', 'numpy'} & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


@pytest.mark.parametrize("method_id", ["exact", "exact-numeric"])
def test_class_weights_are_row_weights(method_id):
    draw = np.random.default_rng(3)
    X = draw.integers(0, 4, (60, 3)).astype(float)
    y = draw.choice(["no", "yes"], 60, p=[0.8, 0.2])
    plain = make_classifier(method_id, depth=2, leaf_penalty=0)
    by_rows = clone(plain).fit(X, y, sample_weight=np.where(y == "yes", 2.5, 1.0))
    by_class = clone(plain).set_params(class_weight={"yes": 2.5}).fit(X, y)
    assert by_class.certificate_.objective == by_rows.certificate_.objective
    assert by_class.certificate_.objective != plain.fit(X, y).certificate_.objective
    balanced = clone(plain).set_params(class_weight="balanced").fit(X, y)
    recalls = [(balanced.predict(X)[y == label] == label).mean() for label in ("no", "yes")]
    assert balanced.certificate_.objective == pytest.approx(np.mean(recalls))
    assert clone(plain).set_params(class_weight=None).fit(X, y).certificate_.objective == plain.certificate_.objective
    with pytest.raises(ParameterError, match="min_leaf"):
        make_classifier(method_id, depth=2, min_leaf=5, class_weight={"yes": 2}).fit(X, y)


def test_limit_with_a_gap_warns_of_convergence():
    X, y = load_digits(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match=r"time_limit of 0\.01 s.*Gap .*%: no tree.*Raise time_limit"):
        make_classifier("exact", depth=4, time_limit=0.01).fit(X, y)


@pytest.mark.parametrize(
    ("status", "guarantee", "words"),
    [
        ("time_limit", "splits", "time_limit of 2 s before its proof. 1 of 3 splits are proved best"),
        ("memory_limit", "tree", "memory_limit of 100 MB before its proof. No bound"),
        ("time_limit", "heuristic", ""),
        ("optimal", "tree", ""),
        ("cancelled", "tree", ""),
    ],
)
def test_limit_warning_names_limit_and_proof(status, guarantee, words):
    certificate = Certificate(
        method="any", guarantee=Guarantee(guarantee), status=Status(status), objective=0.5, splits_proved=1, splits=3
    )
    message = limit_warning(certificate, Limits(time=2.0, memory=100))
    assert words in message
    assert bool(words) == bool(message)


def test_no_limit_reached_gives_no_warning():
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        for method_id in ("exact", "cart"):
            make_classifier(method_id, depth=2).fit(X, y)


def test_feature_importances_are_shares_of_rows_per_column():
    X = np.array([[i, 0.5, i % 4] for i in range(40)], float)
    y = np.where(X[:, 0] < 20, 0, np.where(X[:, 2] < 2, 1, 2))
    classifier = make_classifier("cart", depth=2).fit(X, y)
    # The first column is tested on 40 rows, and the third on the 20 rows of the right side.
    assert classifier.feature_importances_ == pytest.approx([40 / 60, 0, 20 / 60])
    lines = make_classifier("bivariate", depth=1).fit(X, y)
    assert lines.feature_importances_.sum() == pytest.approx(1)
    leaf = make_classifier("cart", depth=0).fit(X, y)
    assert leaf.feature_importances_.tolist() == [0, 0, 0]


def test_columns_can_be_selected_by_importance():
    X = np.array([[i, 0.5, i % 4] for i in range(40)], float)
    y = np.where(X[:, 0] < 20, 0, np.where(X[:, 2] < 2, 1, 2))
    chosen = SelectFromModel(make_classifier("cart", depth=2), threshold=1e-9).fit(X, y)
    assert chosen.get_support().tolist() == [True, False, True]
    estimator = RFE(make_classifier("cart", depth=2), n_features_to_select=2).fit(X, y)
    assert estimator.get_support().tolist() == [True, False, True]


@pytest.mark.parametrize("method_id", ["cart", "exact", "exact-numeric", "oc1"])
def test_class_of_weight_zero_keeps_its_column(method_id):
    X = np.arange(24.0).reshape(-1, 1)
    y = np.repeat(["a", "b", "c"], 8)
    model = make_classifier(method_id, depth=2).fit(X, y, sample_weight=np.where(y == "b", 0.0, 1.0))
    assert model.classes_.tolist() == ["a", "b", "c"]
    shares = model.predict_proba(X)
    assert shares.shape == (24, 3)
    assert (shares[:, 1] == 0).all()
    assert set(model.predict(X)) == {"a", "c"}
    assert make_classifier(method_id, depth=2).fit(X, y, sample_weight=(y == "b").astype(float)).predict(X[:1]) == ["b"]


def test_class_weight_of_zero_keeps_the_column():
    X = np.arange(16.0).reshape(-1, 1)
    y = np.repeat(["a", "b"], 8)
    model = make_classifier("exact", depth=1, class_weight={"b": 0}).fit(X, y)
    assert model.predict_proba(X).tolist() == [[1.0, 0.0]] * 16


def test_long_double_beyond_float64_is_refused():
    X = np.arange(40, dtype=np.longdouble).reshape(-1, 1)
    y = (X[:, 0] > 20).astype(int)
    large = X.copy()
    large[0, 0] = np.longdouble("1e4000")
    if np.isinf(large).any():
        pytest.skip("a long double is a float64 here")
    classifier = trainer.make_classifier("cart", depth=1).fit(X, y)
    assert classifier.score(X, y) == 1.0
    with pytest.raises(ValueError, match="infinity"):
        classifier.predict(large)
    with pytest.raises(ValueError, match="infinity"):
        classifier.fit(large, y)
