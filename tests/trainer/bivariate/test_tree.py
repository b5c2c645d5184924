"""Growth and pruning of bivariate trees, and the method `bivariate` as a whole."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from trainer import make_classifier
from trainer.certificate import Status
from trainer.families.bivariate.pair import SearchOptions
from trainer.families.bivariate.search import best_split
from trainer.growing.growth import Stopping, grow_tree
from trainer.growing.node_split import SplitData
from trainer.table import Labels, numeric_table
from trainer.training.run import TrainRequest, train
from trainer.tree.nodes import DraftLeaf
from trainer.tree.prune import alphas, alphas_between, collapses, prune, pruned_errors
from trainer.tree.splits import goes_left
from trainer.worker_pool import WorkerPool

XOR = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float)


def test_xor_is_learned_although_the_first_split_gains_little():
    model = make_classifier("bivariate", depth=5).fit(XOR, [0, 1, 1, 0])
    assert list(model.predict(XOR)) == [0, 1, 1, 0]
    assert model.certificate_.splits == model.certificate_.splits_proved


def test_equal_rows_of_different_classes_end_in_an_impure_leaf():
    X = np.repeat(XOR, 3, axis=0)
    y = np.tile([0, 1, 1], 4)
    model = make_classifier("bivariate", depth=20).fit(X, y)
    assert model.certificate_.correct == 8
    assert model.tree_.n_leaves <= 4


def moons(n=160, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(2)
    y = (X[:, 0] + X[:, 1] > 0).astype(int) + (X[:, 2] - X[:, 0] > 0.5)
    flip = rng.random(n) < 0.1
    return X, np.where(flip, rng.integers(0, 3, n), y)


def test_the_same_tree_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("trainer.families.bivariate.search.MIN_SHARED_WORK", 0)
    for seed in range(8):
        X, y = moons(300, seed)
        trees = [make_classifier("bivariate", depth=6, threads=t).fit(X, y).tree_.to_json() for t in (1, 2, 3)]
        assert trees[0] == trees[1] == trees[2], seed


def test_threads_report_one_split_after_the_other():
    X, y = moons(400)
    data = SplitData.of(X, y, 3)
    crew = WorkerPool(threads=3)
    heard = []

    def split(rows, node):
        return best_split(data, rows, SearchOptions(), crew=crew)

    def draft(branch):
        return 1 if isinstance(branch, DraftLeaf) else draft(branch.left) + draft(branch.right)

    growth = grow_tree(
        data,
        split,
        lambda s: (None, False),
        Stopping(depth=5),
        worker_pool=crew,
        report=lambda leaves, make: heard.append((leaves, draft(make()))),
    )
    assert heard == [(k, k) for k in range(2, growth.branches + 2)]
    assert growth.finished


def test_a_run_of_several_threads_ends_with_its_limit():
    X, y = moons(400)
    data = SplitData.of(X, y, 3)
    crew = WorkerPool(threads=3)
    calls = iter(range(10**9))

    def stopped():
        return next(calls) > 60

    growth = grow_tree(
        data,
        lambda rows, node: best_split(data, rows, SearchOptions(), crew=crew, stopped=stopped),
        lambda s: (None, False),
        Stopping(),
        worker_pool=crew,
        stopped=stopped,
    )
    assert not growth.finished
    assert growth.branches < 60


def test_an_error_in_any_thread_ends_the_run():
    X, y = moons(200)
    data = SplitData.of(X, y, 3)
    crew = WorkerPool(threads=3)
    begun = []

    def split(rows, node):
        begun.append(len(rows))
        if len(begun) == 4:
            raise MemoryError("no more")
        return best_split(data, rows, SearchOptions(), crew=crew)

    with pytest.raises(MemoryError, match="no more"):
        grow_tree(data, split, lambda s: (None, False), Stopping(), worker_pool=crew)


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("min_leaf", [1, 7])
def test_limits_of_depth_and_leaf_size_hold(depth, min_leaf):
    X, y = moons()
    tree = make_classifier("bivariate", depth=depth, min_leaf=min_leaf).fit(X, y).tree_
    assert tree.depth <= depth
    assert min(v.rows for v in tree.leaves) >= min_leaf


def test_branches_carry_their_impurity_and_bound():
    X, y = moons()
    tree = make_classifier("bivariate", depth=3, impurity="entropy").fit(X, y).tree_
    for v in tree.branches:
        sides = [np.array(tree.nodes[c].counts, float) for c in (v.left, v.right)]
        value = sum(-(n[n > 0] * np.log(n[n > 0] / n.sum())).sum() for n in sides)
        assert v.impurity == pytest.approx(value)
        assert v.impurity_bound == pytest.approx(value)
        assert v.measure == "entropy"


def test_a_run_without_time_returns_a_leaf_and_says_why():
    X, y = moons()
    model = make_classifier("bivariate", depth=3, time_limit=0.0).fit(X, y)
    assert model.certificate_.status == "time_limit"
    assert model.tree_.n_leaves >= 1


def draft_size(draft):
    """Return the number of leaves of a draft."""
    return draft_size(draft.left) + draft_size(draft.right) if hasattr(draft, "split") else 1


@pytest.mark.parametrize("method", ["cart", "bivariate"])
def test_errors_of_all_pruned_trees_are_those_of_each(method):
    """From one routing, on rows that the tree has not seen, with weights: as pruning and predicting one tree after the other."""
    for seed in range(12):
        r = np.random.default_rng(seed)
        X = np.round(r.normal(size=(60, 2)), 1)
        y = r.integers(0, 3, 60).astype(np.int32)
        weight = r.integers(1, 4, 60)
        tree = make_classifier(method, depth=6).fit(X[:40], y[:40], sample_weight=weight[:40]).tree_
        ends = alphas(collapses(tree))
        grid = sorted({*ends, *alphas_between(ends), Fraction(1, 50), Fraction(2)})
        expected = []
        for alpha in grid:
            pruned = prune(tree, alpha)
            missed = [predicted(pruned, x) != k for x, k in zip(X[40:], y[40:], strict=True)]
            expected.append(int(weight[40:][missed].sum()))
        assert pruned_errors(tree, X[40:], y[40:], weight[40:], grid).tolist() == expected


def predicted(draft, x):
    """Return the class code of a row."""
    while hasattr(draft, "split"):
        draft = draft.left if goes_left(draft.split, x[None])[0] else draft.right
    return draft.label


def test_pruning_gives_nested_trees_of_least_cost():
    X, y = moons()
    tree = make_classifier("bivariate", depth=6).fit(X, y).tree_
    steps = alphas(collapses(tree))
    sizes = [draft_size(prune(tree, alpha)) for alpha in steps]
    assert all(a > b for a, b in pairwise(sizes))
    assert sizes[-1] == 1

    def least(v, alpha):
        """Return the cost of the cheapest pruned subtree at v. Brute force tries which nodes to collapse."""
        node = tree.nodes[v]
        own = Fraction(node.rows - max(node.counts), len(y)) + alpha
        return own if node.is_leaf else min(own, least(node.left, alpha) + least(node.right, alpha))

    for alpha in {*steps} | {Fraction(1, 500), Fraction(1, 50), Fraction(1, 7), Fraction(1)}:
        leaves = 0
        errors = 0
        stack = [(prune(tree, alpha), np.arange(len(y)))]
        while stack:
            draft, rows = stack.pop()
            if hasattr(draft, "split"):
                left = goes_left(draft.split, X[rows])
                stack += [(draft.left, rows[left]), (draft.right, rows[~left])]
            else:
                leaves += 1
                errors += int((y[rows] != draft.label).sum())
        assert Fraction(errors, len(y)) + alpha * leaves == least(0, alpha)


def test_pruning_by_cross_validation_keeps_the_proofs():
    X, y = moons()
    full = make_classifier("bivariate", depth=8).fit(X, y)
    pruned = make_classifier("bivariate", depth=8, pruning="cross-validation").fit(X, y)
    assert pruned.tree_.n_leaves < full.tree_.n_leaves
    assert pruned.certificate_.splits_proved == pruned.certificate_.splits == pruned.tree_.n_leaves - 1


@pytest.mark.parametrize("last", [1, 3])
def test_limit_in_cross_validation_keeps_finished_folds(last):
    """The reached limit is reported. Without a finished fold the tree stays as it was grown."""
    X, y = moons()
    table = numeric_table(X)
    labels = Labels(name="y", classes=("a", "b", "c"), codes=y.astype(np.int32))
    stopped = []

    def watch(monitor):
        report = monitor.report

        def heard(**progress):
            report(**progress)
            if str(progress.get("phase", "")).startswith(f"choose pruning, fold {last} "):
                stopped.append(progress["phase"])
                monitor.stop(Status.TIME_LIMIT)

        monitor.report = heard

    parameters = {"depth": 8, "pruning": "cross-validation"}
    request = TrainRequest(table=table, labels=labels, method="cart", parameters=parameters)
    result = train(request, on_start=watch)
    full = make_classifier("cart", depth=8).fit(X, y).tree_
    assert stopped
    assert result.certificate.status == "time_limit"
    assert result.certificate.evidence[0]["pruning_folds"] == last - 1
    assert (result.tree.n_leaves < full.n_leaves) == (last > 1)
    assert train(request).certificate.evidence[0]["pruning_folds"] == 5


def test_growth_stops_where_the_gain_is_too_small():
    X, y = moons()
    data = SplitData.of(X, y, 3)

    def leaves(gain):
        return (
            1
            + grow_tree(
                data,
                lambda rows, node: best_split(data, rows, SearchOptions()),
                lambda s: (None, False),
                Stopping(min_gain=gain),
            ).branches
        )

    assert leaves(-1.0) > leaves(3.0) > leaves(1e9) == 1


def test_three_splits_say_what_the_first_monks_problem_hides(data_folder):
    """(a1 = a2) or a5 = 1, section 7 of the paper, for all 432 robots from the 124 rows of the training part."""
    from trainer.data.reader import load
    from trainer.training.run import TrainRequest, train

    table, labels, _ = load(data_folder / "monk1.csv", target="class")
    result = train(TrainRequest(table=table, labels=labels, method="bivariate", parameters={"depth": 20}))
    assert (len(result.tree.branches), result.certificate.splits_proved) == (3, 3)
    robots, answers, _ = load(data_folder / "monks-1-432.csv", target="class")
    predicted = result.tree.predict(robots.matrix())
    assert [labels.classes[k] for k in predicted] == [answers.classes[k] for k in answers.codes]
    a1, a2, a5 = (robots.columns[robots.names.index(name)].values for name in ("a1", "a2", "a5"))
    assert ((predicted == labels.classes.index("1")) == ((a1 == a2) | (a5 == 1))).all()
