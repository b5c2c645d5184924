"""A training from rows to model file, and progress, cancelling and limits with a slow method."""

from __future__ import annotations

import io
import json
import threading
import time
from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import load_iris

from tests.seeds import seeds
from trainer import make_classifier, registry
from trainer.certificate import Guarantee, Status
from trainer.data.folds import stratified_folds
from trainer.errors import ParameterError, SolverError
from trainer.methods.base import COMMON, LEAF_PENALTY, Method, Solution
from trainer.methods.capabilities import ProofKind
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table, fingerprint, numeric_table
from trainer.training.run import TrainRequest, progress_writer, save, train, training_problem
from trainer.tree.file import read_model
from trainer.tree.nodes import DraftBranch, DraftLeaf
from trainer.tree.splits import Threshold


def iris(step: int = 1) -> TrainRequest:
    X, y = load_iris(return_X_y=True)
    labels = Labels(name="species", classes=("setosa", "versicolor", "virginica"), codes=y[::step].astype(np.int32))
    return TrainRequest(table=numeric_table(X[::step]), labels=labels, method="cart", parameters={"depth": 3})


def request(X, y, method="cart", **options) -> TrainRequest:
    codes = np.asarray(y, np.int32)
    labels = Labels(name="y", classes=tuple("abc"[: max(2, int(codes.max()) + 1)]), codes=codes)
    return TrainRequest(table=numeric_table(np.asarray(X, float)), labels=labels, method=method, **options)


def replaced(source: TrainRequest, **changes) -> TrainRequest:
    return TrainRequest(**({name: getattr(source, name) for name in source.__dataclass_fields__} | changes))


def test_cart_from_rows_to_model_file(tmp_path):
    result = train(replaced(iris(), test_share=0.2, folds=5, name="irises"))
    save(result.model, tmp_path / "model.json")
    model = read_model(tmp_path / "model.json")
    assert model.tree == result.tree
    assert (model.target, model.method, model.name) == ("species", "cart", "irises")
    metrics = model.metrics
    assert (metrics["train"]["n"], metrics["test"]["n"]) == (120, 30)
    for part in metrics.values():
        confusion = np.array(part["confusion"])
        assert np.trace(confusion) == part["correct"]
        assert confusion.sum() == part["n"]
        assert part["correct"] == pytest.approx(part["accuracy"] * part["n"])
    assert metrics["cross_validation"]["n"] == 150
    assert len(metrics["cross_validation"]["accuracies"]) == 5
    assert 0.88 < metrics["cross_validation"]["accuracy"] < 1
    summary = result.summary
    assert summary["status"] == "heuristic"
    assert (summary["bound"], summary["gap"]) == (None, None)
    assert summary["objective"] == summary["train_accuracy"] == summary["correct"] / summary["n"]
    json.dumps(summary, allow_nan=False)
    assert model.parameters["depth"] == 3


def test_the_fingerprint_is_that_of_the_training_rows():
    source = replaced(iris(), test_share=0.3)
    problem = training_problem(source)
    assert train(source).model.fingerprint == fingerprint(problem.table, problem.labels)
    assert len(problem.table) == 105


def test_values_equal_up_to_rounding_do_not_lose_a_row():
    X = np.array([[0.1], [np.nextafter(0.1, 1)], [0.3], [0.4]])
    tree = train(request(X, [0, 0, 1, 1])).tree
    assert tree.predict(X).tolist() == [0, 0, 1, 1]


def test_categorical_columns_become_subset_splits():
    schema = ColumnSchema(name="odor", kind=ColumnKind.CATEGORICAL, categories=("almond", "foul", "none"))
    table = Table(columns=(Column(schema=schema, cells=np.array([0.0, 1, 2, 0, 1, 2])),), row_numbers=np.arange(1, 7))
    labels = Labels(name="y", classes=("no", "yes"), codes=np.array([0, 1, 0, 0, 1, 0], np.int32))
    tree = train(TrainRequest(table=table, labels=labels, method="cart")).tree
    assert [v.split.kind for v in tree.branches] == ["subset"]
    assert tree.predict(table.matrix()).tolist() == labels.codes.tolist()


@pytest.mark.parametrize("alpha", ["0", "0.02", "cross-validation"])
def test_pruning_gives_no_more_leaves(alpha):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    full = train(request(X, y, parameters={"depth": 8})).tree.n_leaves
    pruned = train(request(X, y, parameters={"depth": 8, "pruning": alpha})).tree.n_leaves
    assert pruned == full if alpha == "0" else pruned < full
    with pytest.raises(ParameterError, match="pruning"):
        train(request(X, y, parameters={"pruning": "much"}))


@pytest.mark.parametrize(
    ("X", "y"), [([[1.0]], [0]), ([[1.0], [2.0]], [1, 1]), ([[1.0], [1.0]], [0, 1]), ([[5.0]] * 4, [0, 1, 1, 0])]
)
def test_one_row_one_class_or_nothing_to_split_on_gives_one_leaf(X, y):
    result = train(request(X, y))
    assert result.tree.n_leaves == 1
    assert result.certificate.correct == max(np.bincount(y))
    assert result.certificate.n == len(y)


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("odt", {"sensitivity": 0.9}),
        ("odt", {"positive": "1"}),
        ("exact", {"recall": "1: 0.9"}),
        ("bendoct", {"recall": "1: 0.9"}),
    ],
)
def test_setting_about_absent_class_gives_leaf_of_the_other(method, parameters):
    X = np.arange(8.0)[:, None]
    tree = make_classifier(method, depth=1, **parameters).fit(X, np.zeros(8, int))
    assert tree.tree_.n_leaves == 1
    assert set(tree.predict(X)) == {0}


@pytest.mark.parametrize(
    "options", [{"test_share": -0.1}, {"test_share": 0.95}, {"folds": 1}, {"folds": 200}, {"folds": -2}]
)
def test_impossible_evaluations_are_refused(options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        train(replaced(iris(), **options))


@pytest.mark.parametrize("folds", [2, 3, 7, 10])
def test_folds_are_even_and_deal_out_every_class(folds):
    codes = np.repeat([0, 1, 2], [50, 23, 11]).astype(np.int32)
    fold = stratified_folds(codes, folds, seed=3)
    sizes = np.bincount(fold, minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    for k in range(3):
        members = np.bincount(fold[codes == k], minlength=folds)
        assert members.max() - members.min() <= 1
    assert fold.tolist() == stratified_folds(codes, folds, seed=3).tolist()
    assert fold.tolist() != stratified_folds(codes, folds, seed=4).tolist()


def test_the_same_seed_gives_the_same_hold_out():
    source = replaced(iris(), test_share=0.25)
    first = train(source).model
    second = train(source).model
    assert (first.fingerprint, first.metrics) == (second.fingerprint, second.metrics)


# This method never stops improving, so only the monitor can end it.
def _endless(problem, settings, monitor) -> Solution:
    best = 0.0
    step = 0
    values = np.unique(problem.matrix[:, 0])
    bound = 1.0
    draft = DraftBranch(split=Threshold(feature=0, threshold=float(values[0])), left=DraftLeaf(), right=DraftLeaf())
    monitor.report(phase="search", bound=bound)
    while not monitor.stopped():
        step += 1
        cut = float(values[step % len(values)])
        now = DraftBranch(split=Threshold(feature=0, threshold=cut), left=DraftLeaf(), right=DraftLeaf())
        value = problem.objective(problem.tree(now))
        if value > best:
            best = value
            draft = now
        monitor.report(incumbent=value, bound=bound - step * 1e-9, nodes=step, leaves=2, draft=now)
        time.sleep(0.002)
    return Solution(draft=draft, bound=bound, finished=False, nodes=step)


ENDLESS = Method(
    id="endless",
    title="Endless",
    summary="Never ends by itself.",
    paper="none",
    guarantee=Guarantee.TREE,
    splits=("threshold",),
    parameters=(LEAF_PENALTY, *COMMON),
    solve=_endless,
    proof=ProofKind.NONE,
)


@pytest.fixture
def endless(monkeypatch):
    monkeypatch.setattr(registry, "METHODS", (*registry.METHODS, ENDLESS))
    return replaced(iris(), method="endless", parameters={"time_limit": 1.0})


def test_progress_lines_are_json_and_never_get_worse(endless):
    stream = io.StringIO()
    problem = training_problem(endless)
    result = train(endless, sink=progress_writer(stream, lambda: problem))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert len(lines) >= 3
    for line in lines:
        assert {"t", "phase", "incumbent", "bound", "gap", "nodes", "leaves"} <= set(line)
    times = [line["t"] for line in lines]
    assert times == sorted(times)
    for key, better in (("incumbent", 1), ("bound", -1), ("nodes", 1)):
        values = [better * line[key] for line in lines if line[key] is not None]
        assert values == sorted(values)
    trees = [line for line in lines if "tree" in line]
    assert trees
    assert all(line["correct"] == pytest.approx(line["incumbent"] * 150) for line in trees)
    assert result.certificate.status is Status.TIME_LIMIT
    assert result.certificate.gap > 0
    assert 1.0 <= result.certificate.seconds < 100  # it would never end by itself
    assert result.certificate.objective == max(line["incumbent"] for line in lines if line["incumbent"] is not None)


def test_a_time_limit_of_zero_still_gives_a_tree(endless):
    result = train(replaced(endless, parameters={"time_limit": 0}))
    assert result.certificate.status is Status.TIME_LIMIT
    assert result.tree.n_leaves >= 1
    cart = train(replaced(iris(), parameters={"time_limit": 0}))
    assert cart.tree.n_leaves >= 1


def cancelling(monitor, when):
    """Cancel the training from another thread once `when` is true."""

    def wait():
        while not when():
            time.sleep(0.005)
        monitor.stop(Status.CANCELLED)

    threading.Thread(target=wait, daemon=True).start()


def test_cancel_keeps_the_incumbent_and_skips_the_folds(endless):
    source = replaced(endless, parameters={"time_limit": 6000.0}, folds=3)
    # by then every threshold has been tried
    result = train(source, on_start=lambda m: cancelling(m, lambda: m.nodes >= 40))
    assert result.certificate.status is Status.CANCELLED
    column = source.table.matrix()[:, 0]
    codes = source.labels.codes
    best = max(
        np.bincount(codes[column <= cut]).max() + np.bincount(codes[column > cut], minlength=1).max()
        for cut in np.unique(column)
    )
    assert result.certificate.correct == best
    assert set(result.model.metrics) == {"train"}


def test_cancel_during_cross_validation_ends_the_running_fold(endless):
    source = replaced(endless, parameters={"time_limit": 0.3}, folds=3)
    phases = []
    begun = []
    result = train(
        source,
        sink=lambda progress, _: phases.append(progress.phase),
        on_start=lambda m: begun.append(
            cancelling(m, lambda: any(phase.startswith("fold 2") for phase in list(phases)))
        ),
    )
    assert result.model.metrics["cross_validation"]["finished"] < 3


def test_the_memory_limit_ends_the_search(endless):
    result = train(replaced(endless, parameters={"time_limit": 6000.0, "memory_limit": 64}))
    assert result.certificate.status is Status.MEMORY_LIMIT


@pytest.mark.parametrize("bound", [0.5, 0.9999, None])
def test_bound_that_does_not_prove_the_tree_is_refused(bound, monkeypatch):
    def solve(problem, settings, monitor):
        draft = DraftBranch(split=Threshold(feature=0, threshold=0.5), left=DraftLeaf(), right=DraftLeaf())
        return Solution(draft=draft, bound=bound)

    liar = Method(
        **{name: getattr(ENDLESS, name) for name in ENDLESS.__dataclass_fields__} | {"id": "liar", "solve": solve}
    )
    monkeypatch.setattr(registry, "METHODS", (liar,))
    with pytest.raises(SolverError):
        train(request([[0.0], [1.0], [1.0], [0.0]], [0, 1, 1, 1], method="liar"))


@pytest.mark.parametrize(("above", "optimal"), [(0.0, True), (4e-7, False)])
def test_search_stopped_short_of_its_bound_is_not_optimal(above, optimal, monkeypatch):
    """With millions of rows, or weights, a gap of 4e-7 is more than a row."""

    def solve(problem, settings, monitor):
        draft = DraftBranch(split=Threshold(feature=0, threshold=0.5), left=DraftLeaf(), right=DraftLeaf())
        monitor.stop(Status.TIME_LIMIT)
        return Solution(draft=draft, bound=problem.objective(problem.tree(draft)) + above, finished=False)

    given = {name: getattr(ENDLESS, name) for name in ENDLESS.__dataclass_fields__}
    monkeypatch.setattr(registry, "METHODS", (Method(**given | {"id": "stopped", "solve": solve}),))
    certificate = train(request([[0.0], [1.0], [1.0], [0.0]], [0, 1, 1, 1], method="stopped")).certificate
    assert (certificate.status is Status.OPTIMAL) == optimal
    assert certificate.status in (Status.OPTIMAL, Status.TIME_LIMIT)


def test_an_error_of_the_method_reaches_the_caller(monkeypatch):
    def solve(problem, settings, monitor):
        raise SolverError("The solver gave up.")

    broken = Method(
        **{name: getattr(ENDLESS, name) for name in ENDLESS.__dataclass_fields__} | {"id": "broken", "solve": solve}
    )
    monkeypatch.setattr(registry, "METHODS", (broken,))
    with pytest.raises(SolverError, match="gave up"):
        train(request([[0.0], [1.0]], [0, 1], method="broken"))


@seeds(20)
def test_weights_count_as_repeated_rows_in_the_whole_run(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (25, 2)).astype(float)
    y = rng.integers(0, 2, 25)
    w = rng.integers(1, 4, 25)
    y[:2] = 0, 1
    weighted = train(request(X, y, weights=w, parameters={"leaf_penalty": 0.01}))
    repeated = train(request(np.repeat(X, w, axis=0), np.repeat(y, w), parameters={"leaf_penalty": 0.01}))
    assert weighted.tree == repeated.tree
    claim = weighted.certificate
    other = repeated.certificate
    assert (claim.objective, claim.correct, claim.n) == (other.objective, other.correct, other.n)
    expected = Fraction(claim.correct, claim.n) - Fraction(1, 100) * weighted.tree.n_leaves
    assert claim.objective == float(expected)
    assert weighted.model.metrics["train"] == repeated.model.metrics["train"]


@pytest.mark.parametrize("method", ["bivariate", "exact", "odt", "cart"])
def test_last_progress_tree_equals_the_returned_tree(method):
    rng = np.random.default_rng(4)
    X = rng.integers(0, 6, (60, 4)).astype(float)
    labels = Labels(name="y", classes=("a", "b"), codes=(X[:, 0] + X[:, 1] > 5).astype(np.int32))
    request = TrainRequest(table=numeric_table(X), labels=labels, method=method, parameters={"depth": 2})
    stream = io.StringIO()
    problem = training_problem(request)
    result = train(request, sink=progress_writer(stream, lambda: problem))
    records = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [r["tree"] for r in records if "tree" in r][-1] == result.tree.to_json()
    known = [r["incumbent"] for r in records if r["incumbent"] is not None]
    assert known == sorted(known)
    assert known[-1] == result.certificate.objective


def test_infeasible_fold_does_not_lose_the_model():
    """All rows together allow the recalls, but the rows of some folds do not."""
    X = np.repeat([[0.0], [1.0], [1.0]], [6, 3, 4], axis=0)
    y = np.repeat([0, 0, 1], [6, 3, 4])
    ended = []
    for seed in range(5):
        settings = {"depth": 1, "recall": "a: 0.66; b: 1", "seed": seed}
        result = train(request(X, y, "exact", parameters=settings, folds=3))
        assert result.certificate.status is Status.OPTIMAL
        crossed = result.model.metrics["cross_validation"]
        if "ended" in crossed:
            ended.append(crossed["ended"])
            assert crossed["finished"] == len(crossed["accuracies"]) < 3
    assert ended
    assert all("No tree satisfies the constraints" in reason for reason in ended)
