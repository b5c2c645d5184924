"""Growth, pruning and the method `bivariate` as a whole."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from trainer import make_classifier
from trainer.search.bivariate import best_split
from trainer.search.bivariate_pair import SearchOptions
from trainer.search.crew import Crew
from trainer.search.growth import Stopping, grow_tree
from trainer.search.node_split import SplitData
from trainer.tree.nodes import DraftLeaf
from trainer.tree.prune import prune, pruning_path
from trainer.tree.splits import goes_left

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
    monkeypatch.setattr("trainer.search.bivariate.SMALL", 0)
    for seed in range(8):
        X, y = moons(300, seed)
        trees = [make_classifier("bivariate", depth=6, threads=t).fit(X, y).tree_.to_json() for t in (1, 2, 3)]
        assert trees[0] == trees[1] == trees[2], seed


def test_threads_report_one_split_after_the_other():
    X, y = moons(400)
    data, crew, heard = SplitData.of(X, y, 3), Crew(threads=3), []

    def split(rows, node):
        return best_split(data, rows, SearchOptions(), crew=crew)

    def draft(branch):
        return 1 if isinstance(branch, DraftLeaf) else draft(branch.left) + draft(branch.right)

    growth = grow_tree(
        data, split, lambda s: (None, False), Stopping(depth=5), measure="gini", crew=crew,
        report=lambda leaves, make: heard.append((leaves, draft(make()))),
    )  # fmt: skip
    assert heard == [(k, k) for k in range(2, growth.branches + 2)]
    assert growth.finished


def test_a_run_of_several_threads_ends_with_its_limit():
    X, y = moons(400)
    data, crew, calls = SplitData.of(X, y, 3), Crew(threads=3), iter(range(10**9))

    def stopped():
        return next(calls) > 60

    growth = grow_tree(
        data, lambda rows, node: best_split(data, rows, SearchOptions(), crew=crew, stopped=stopped), lambda s: (None, False),
        Stopping(), measure="gini", crew=crew, stopped=stopped,
    )  # fmt: skip
    assert not growth.finished
    assert growth.branches < 60


def test_an_error_in_any_thread_ends_the_run():
    X, y = moons(200)
    data, crew, begun = SplitData.of(X, y, 3), Crew(threads=3), []

    def split(rows, node):
        begun.append(len(rows))
        if len(begun) == 4:
            raise MemoryError("no more")
        return best_split(data, rows, SearchOptions(), crew=crew)

    with pytest.raises(MemoryError, match="no more"):
        grow_tree(data, split, lambda s: (None, False), Stopping(), measure="gini", crew=crew)


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


def test_pruning_gives_nested_trees_of_least_cost():
    X, y = moons()
    tree = make_classifier("bivariate", depth=6).fit(X, y).tree_
    steps = pruning_path(tree)
    assert all(a.alpha < b.alpha and a.collapsed < b.collapsed for a, b in pairwise(steps[1:]))

    def least(v, alpha):
        """Cost of the cheapest pruned subtree at v: brute force over what to collapse."""
        node = tree.nodes[v]
        own = Fraction(node.rows - max(node.counts), len(y)) + alpha
        return own if node.is_leaf else min(own, least(node.left, alpha) + least(node.right, alpha))

    for alpha in {s.alpha for s in steps} | {Fraction(1, 500), Fraction(1, 50), Fraction(1, 7), Fraction(1)}:
        leaves, errors = 0, 0
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


def test_growth_stops_where_the_gain_is_too_small():
    X, y = moons()
    data = SplitData.of(X, y, 3)

    def leaves(gain):
        return 1 + grow_tree(
            data, lambda rows, node: best_split(data, rows, SearchOptions()), lambda s: (None, False),
            Stopping(min_gain=gain), measure="gini",
        ).branches  # fmt: skip

    assert leaves(-1.0) > leaves(3.0) > leaves(1e9) == 1


def test_three_splits_say_what_the_first_monks_problem_hides(data_folder):
    """(a1 = a2) or a5 = 1, section 7 of the paper, for all 432 robots from the 124 rows of the training part."""
    from trainer.data.reader import load
    from trainer.run import TrainRequest, train

    table, labels, _ = load(data_folder / "monk1.csv", target="class")
    result = train(TrainRequest(table=table, labels=labels, method="bivariate", parameters={"depth": 20}))
    assert (len(result.tree.branches), result.certificate.splits_proved) == (3, 3)
    robots, answers, _ = load(data_folder / "monks-1-432.csv", target="class")
    predicted = result.tree.predict(robots.matrix())
    assert [labels.classes[k] for k in predicted] == [answers.classes[k] for k in answers.codes]
    a1, a2, a5 = (robots.columns[robots.names.index(name)].values for name in ("a1", "a2", "a5"))
    assert ((predicted == labels.classes.index("1")) == ((a1 == a2) | (a5 == 1))).all()
