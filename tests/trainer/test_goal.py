"""Goals: the best balanced accuracy, F1 and MCC equal enumeration, and refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, matthews_corrcoef

from tests.trainer.goal_cases import ALL_THRESHOLDS, GOALS, all_trees, best_value, questions_of, random_case
from trainer import make_classifier
from trainer.certificate import Evidence, Limits, Status
from trainer.errors import ParameterError
from trainer.goal import Goal
from trainer.methods.monitor import Monitor
from trainer.registry import get
from trainer.solver_common import goal_search
from trainer.solver_common.goal_search import ErrorPair, Line, clip, lower_chain
from trainer.training.run import TrainRequest, fit, train


@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_best_value_of_all_trees_is_found_and_proved(method, goal, count):
    for seed in range(6 * count):
        table, labels, weights, parameters = random_case(seed, empty=method == "exact")
        parameters |= ({} if seed % 4 else {"min_leaf": 2 + seed % 3}) | (ALL_THRESHOLDS if method == "exact" else {})
        named = Goal(positive="yes", maximise=goal)
        counted = np.ones(len(labels.codes), int) if weights is None else weights
        trees = all_trees(
            questions_of(method, table, labels, weights),
            labels.codes,
            counted,
            parameters["depth"],
            parameters.get("min_leaf", 1),
        )
        wanted = best_value(named, trees, labels.codes, counted, Fraction(str(parameters["leaf_penalty"])))
        request = TrainRequest(
            table=table,
            labels=labels,
            method=method,
            weights=weights,
            parameters=parameters | {"goal": goal, "positive": "yes"},
        )
        certificate = train(request).certificate
        assert certificate.objective == pytest.approx(float(wanted), abs=1e-12), (seed, parameters)
        assert certificate.bound == pytest.approx(certificate.objective, abs=1e-12)
        assert certificate.status == Status.OPTIMAL
        assert certificate.goal["maximise"] == goal
        assert certificate.evidence[0]["kind"] == Evidence.GOAL_SEARCH
        assert all(
            a * fn + b * fp >= least
            for most, a, b, least in certificate.evidence[0]["lines"]
            for fn, fp, leaves in trees
            if not most or leaves <= most
        )


def test_goal_within_most_leaves_is_the_best_of_these_trees(count):
    for seed in range(200, 200 + 3 * count):
        table, labels, weights, _ = random_case(seed)
        counted = np.ones(len(labels.codes), int) if weights is None else weights
        trees = all_trees(questions_of("exact", table, labels, weights), labels.codes, counted, 2)
        few = [tree for tree in trees if tree[2] <= 3]
        for penalty in (0, 0.01):
            wanted = best_value(Goal(positive="yes", maximise="f1"), few, labels.codes, counted, Fraction(str(penalty)))
            asked = {
                "goal": "f1",
                "positive": "yes",
                "depth": 2,
                "max_leaves": 3,
                "leaf_penalty": penalty,
                **ALL_THRESHOLDS,
            }
            result = train(TrainRequest(table=table, labels=labels, method="exact", weights=weights, parameters=asked))
            assert result.certificate.objective == pytest.approx(float(wanted), abs=1e-12)
            assert result.tree.n_leaves <= 3


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (120, 6))
    y = np.where((X[:, 0] & X[:, 1]) | (rng.random(120) < 0.15), "bad", "good")
    return X, y


@pytest.mark.parametrize(
    ("goal", "score"),
    [
        ("balanced", balanced_accuracy_score),
        ("f1", lambda y, answers: f1_score(y, answers, pos_label="bad")),
        ("mcc", matthews_corrcoef),
    ],
)
def test_objective_is_the_score_of_scikit_learn(rows, goal, score):
    X, y = rows
    model = make_classifier("exact", depth=2, goal=goal).fit(X, y)
    assert model.certificate_.objective == pytest.approx(score(y, model.predict(X)))


def test_rarer_class_is_positive_by_default(rows):
    X, y = rows
    assert make_classifier("exact", goal="f1", depth=1).fit(X, y).certificate_.goal["positive"] == "bad"
    other = make_classifier("exact", goal="f1", positive="good", depth=1).fit(X, y)
    assert other.certificate_.goal["positive"] == "good"
    even = make_classifier("exact", goal="f1", depth=1).fit(X[:2], ["a", "b"])
    assert even.certificate_.goal["positive"] == "b"


def test_balanced_goal_is_that_of_balanced_classes(rows):
    X, y = rows
    estimator = make_classifier("exact", depth=2, goal="balanced").fit(X, y)
    other = make_classifier("exact", depth=2, class_weight="balanced").fit(X, y)
    assert estimator.tree_.to_json() == other.tree_.to_json()
    assert estimator.certificate_.objective == other.certificate_.objective


@pytest.mark.parametrize("goal", GOALS)
def test_rows_of_one_class_give_a_leaf(goal):
    X = np.array([[0], [1], [1]])
    model = make_classifier("exact", depth=1, goal=goal).fit(X, ["a", "a", "a"])
    assert model.certificate_.status == Status.OPTIMAL
    assert model.certificate_.objective == {"f1": 1, "mcc": 0}[goal]


@pytest.mark.parametrize(
    ("asked", "name", "words"),
    [
        ({"goal": "costs"}, "goal", "needs costs"),
        ({"goal": "f1", "costs": "bad>good=5"}, "goal", "ignores the costs"),
        ({"goal": "accuracy", "costs": "bad>good=5"}, "goal", "ignores the costs"),
        ({"goal": "balanced", "costs": "bad>good=5"}, "goal", "ignores the costs"),
        ({"goal": "f1", "class_weight": "balanced"}, "class_weight", "must be 'none'"),
        ({"goal": "accuracy", "class_weight": "balanced"}, "class_weight", "must be 'none'"),
        ({"goal": "mcc", "optimal_trees": 3}, "optimal_trees", "with MCC"),
        ({"goal": "f1", "recall": "bad: 0.5"}, "recall", "with F1"),
        ({"goal": "f1", "positive": "bed"}, "positive", "Did you mean|not a class"),
        ({"positive": "bad"}, "positive", "not used"),
        ({"goal": "balanced", "min_leaf": 4}, "min_leaf", "must be 1"),
    ],
)
def test_contradictory_goal_is_refused(rows, asked, name, words):
    X, y = rows
    with pytest.raises(ParameterError, match=words) as caught:
        make_classifier("exact", depth=1, **asked).fit(X, y)
    assert name in caught.value.errors


def test_numeric_search_refuses_what_goals_exclude(rows):
    X, y = rows
    with pytest.raises(ParameterError, match="must be 0 with F1"):
        make_classifier("exact-numeric", depth=1, goal="f1", mip_gap=0.1).fit(X, y)


def test_three_classes_are_refused_for_f1(rows):
    X, _ = rows
    with pytest.raises(ParameterError, match="two classes"):
        make_classifier("exact", depth=1, goal="f1").fit(X, np.arange(len(X)) % 3)


@pytest.mark.parametrize("penalty", [0, 0.01])
def test_stopped_search_gives_a_valid_bound(rows, penalty):
    """A search that may look at nothing states a bound that no tree exceeds."""
    X, y = rows
    model = make_classifier("exact", depth=2, goal="f1", leaf_penalty=penalty)
    best = model.fit(X, y).certificate_.objective
    problem, settings = model._problem(X, y, None)
    monitor = Monitor(Limits(time=0.0))
    _, certificate, _ = fit(get("exact"), problem, settings, monitor)
    assert certificate.status == Status.TIME_LIMIT
    assert certificate.objective <= best <= certificate.bound


def test_pairs_too_close_for_weights_leave_the_bound_open(rows, monkeypatch):
    """If no finer weights are possible, the bound stays valid and the note says why."""
    X, y = rows
    model = make_classifier("exact", depth=2, goal="mcc")
    best = model.fit(X, y).certificate_.objective
    monkeypatch.setattr(goal_search, "MOST_COPIES", 1)
    certificate = model.fit(X, y).certificate_
    assert certificate.status == Status.HEURISTIC
    assert certificate.objective <= best <= certificate.bound
    assert "2^28" in certificate.note


def test_line_cuts_the_corner_of_a_region():
    square = [ErrorPair(Fraction(x), Fraction(z)) for x, z in ((0, 0), (4, 0), (4, 4), (0, 4))]
    assert set(clip(square, Line(1, 1, 2))) == {(2, 0), (4, 0), (4, 4), (0, 4), (0, 2)}
    assert clip(square, Line(1, 1, 0)) == square


def test_lower_chain_leaves_out_what_is_no_corner():
    pairs = [ErrorPair(Fraction(x), Fraction(z)) for x, z in ((0, 9), (1, 5), (2, 4), (3, 3), (9, 0), (3, 8))]
    assert lower_chain(pairs) == [(0, 9), (1, 5), (3, 3), (9, 0)]
