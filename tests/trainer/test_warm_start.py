"""A start tree keeps the optimum, a stopped search returns no worse tree, and misfits are refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.oracles.exact import best_cost, random_binary
from trainer.certificate import Guarantee
from trainer.data.problem import Problem
from trainer.errors import ParameterError
from trainer.families.exact.instance import build_instance
from trainer.families.exact.search.solve import evaluate, solve_binary
from trainer.methods.base import Method
from trainer.registry import METHODS
from trainer.solver_common.binary_problem import BinaryProblem
from trainer.solver_common.warm_start import adapt, binary_tree
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table, numeric_table
from trainer.training.run import TrainRequest, train
from trainer.tree.nodes import DraftBranch, DraftLeaf
from trainer.tree.splits import Linear, Subset, Threshold

# Trees of hyperplanes take too long to prove on these noisy rows, so test_cut_h tests them.
TAKING = [m for m in METHODS if m.warm_start and not (m.guarantee is Guarantee.TREE and "linear" in m.splits)]


def request(seed: int, rows: int = 60, **options) -> TrainRequest:
    draw = np.random.default_rng(seed)
    X = draw.integers(0, 6, (rows, 3)).astype(float)
    y = ((X[:, 0] > X[:, 1]) ^ (draw.random(rows) < 0.15)).astype(np.int32)
    labels = Labels(name="y", classes=("a", "b"), codes=y)
    return TrainRequest(table=numeric_table(X), labels=labels, **options)


@pytest.mark.slow
@pytest.mark.parametrize("method", TAKING, ids=lambda m: m.id)
def test_the_value_is_that_of_a_search_without_a_start(method: Method):
    slow = method.id in ("oct", "binoct", "flowoct")  # more rows or seeds take these methods seconds
    # Six searches of bendoct over 60 rows take half a second each.
    asked = {"rows": 16 if slow else 30 if method.id == "bendoct" else 60, "parameters": {"depth": 2}}
    for seed in range(1 if slow else 2):
        cold = train(request(seed, method=method.id, **asked))
        for start in (train(request(seed, method="cart", **asked)).tree, cold.tree):
            warm = train(request(seed, method=method.id, warm_start=start, **asked))
            assert warm.certificate.status is cold.certificate.status
            assert warm.certificate.objective == pytest.approx(cold.certificate.objective)
            assert warm.certificate.splits_proved == cold.certificate.splits_proved
            if method.binary:
                assert warm.certificate.warm_start_objective is not None


def random_shape(draw: np.random.Generator, features: int, depth: int):
    if depth == 0 or draw.random() < 0.2:
        return None
    return (
        int(draw.integers(features)),
        random_shape(draw, features, depth - 1),
        random_shape(draw, features, depth - 1),
    )


@seeds(150)
def test_exact_from_any_start_is_brute_force(seed: int):
    draw = np.random.default_rng(seed)
    X, y, w, classes, leaf_cost = random_binary(seed)
    depth = int(draw.integers(1, 4))
    start = random_shape(draw, X.shape[1], min(depth, X.shape[1], len(X) - 1))
    solution = solve_binary(
        BinaryProblem(X, y, n_classes=classes, weights=w, depth=depth, leaf_cost=leaf_cost), start=start
    )
    cost, _ = best_cost(X, y, w, classes, depth, leaf_cost)
    assert solution.optimal
    assert solution.cost == cost
    if start is not None:
        g = build_instance(BinaryProblem(X, y, n_classes=classes, weights=w, leaf_cost=leaf_cost, depth=depth))
        errors, leaves = evaluate(g, start)
        assert solution.start == errors + leaf_cost * leaves


def hard() -> TrainRequest:
    draw = np.random.default_rng(5)
    X = draw.integers(0, 2, (400, 40)).astype(float)
    y = draw.integers(0, 2, 400).astype(np.int32)
    return TrainRequest(
        table=numeric_table(X),
        labels=Labels(name="y", classes=("a", "b"), codes=y),
        method="exact",
        parameters={"depth": 5},
    )


def test_a_search_that_is_stopped_at_once_returns_the_start():
    start = train(dataclasses.replace(hard(), method="cart", parameters={"depth": 5}))
    stopped = dataclasses.replace(hard(), parameters={"depth": 5, "time_limit": 0.0}, warm_start=start.tree)
    result = train(stopped)
    assert result.certificate.status == "time_limit"
    assert result.certificate.warm_start_objective == pytest.approx(start.certificate.objective)
    assert result.certificate.objective == pytest.approx(start.certificate.objective)
    assert result.certificate.bound >= result.certificate.objective


def test_bivariate_keeps_the_known_splits_when_it_has_no_time():
    finished = train(request(1, method="bivariate", parameters={"depth": 3}))
    options = {"depth": 3, "split_time_limit": 0.0}
    stopped = train(request(1, method="bivariate", parameters=options))
    warm = train(request(1, method="bivariate", parameters=options, warm_start=finished.tree))
    assert warm.certificate.correct == finished.certificate.correct
    assert warm.certificate.correct > stopped.certificate.correct
    assert warm.certificate.splits_proved <= finished.certificate.splits_proved


def test_methods_that_build_anew_refuse_a_start():
    start = train(request(0, method="cart", parameters={"depth": 1})).tree
    for method in METHODS:
        if not method.warm_start:
            with pytest.raises(ParameterError, match="cannot begin with another tree"):
                train(request(0, method=method.id, warm_start=start))


def colours(
    categories: tuple[str, ...], codes: list[int], kind: ColumnKind = ColumnKind.CATEGORICAL, name: str = "colour"
):
    schema = ColumnSchema(name=name, kind=kind, categories=categories if kind is ColumnKind.CATEGORICAL else ())
    return Table(columns=(Column(schema=schema, cells=np.asarray(codes, float)),), row_numbers=np.arange(len(codes)))


def tree_over(table: Table, split, classes=("no", "yes")):
    labels = Labels(name="y", classes=classes, codes=np.array([0, 1, 1, 0], np.int32))
    problem = Problem(table=table, labels=labels)
    return problem.tree(DraftBranch(split=split, left=DraftLeaf(label=0), right=DraftLeaf(label=1))), labels


def test_categories_and_classes_are_matched_by_name():
    tree, _ = tree_over(colours(("blue", "green", "red"), [0, 1, 2, 0]), Subset(feature=0, codes=(0, 2)))
    other = Labels(name="y", classes=("yes", "perhaps"), codes=np.zeros(4, np.int32))
    draft = adapt(tree, colours(("red", "white"), [0, 1, 1, 0]), other)
    assert isinstance(draft, DraftBranch)
    assert draft.split == Subset(feature=0, codes=(0,))  # no row here has the category blue
    assert (draft.left, draft.right) == (DraftLeaf(label=None), DraftLeaf(label=0))


def test_a_missing_column_or_another_kind_is_refused():
    tree, labels = tree_over(colours(("blue", "green"), [0, 1, 1, 0]), Subset(feature=0, codes=(0,)))
    with pytest.raises(ParameterError, match="these data lack"):
        adapt(tree, colours(("blue", "green"), [0, 1, 1, 0], name="shade"), labels)
    with pytest.raises(ParameterError, match="categorical, but in these data it is numeric"):
        adapt(tree, colours((), [0, 1, 1, 0], kind=ColumnKind.NUMERIC), labels)


def test_split_becomes_feature_with_most_similar_partition():
    X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    problem = Problem(
        table=numeric_table(X), labels=Labels(name="y", classes=("a", "b"), codes=np.array([0, 1, 1, 1], np.int32))
    )
    oblique = DraftBranch(
        split=Linear(features=(0, 1), coefficients=(1.0, 1.0), threshold=0.5, levels=(-1, -1)),
        left=DraftLeaf(),
        right=DraftLeaf(),
    )
    nested = DraftBranch(split=Threshold(feature=0, threshold=0.2), left=oblique, right=DraftLeaf())
    assert binary_tree(oblique, problem, depth=2) == (0, None, None)  # the tree misclassifies one row of four
    # Where x0 ≤ 0.2 holds, the oblique split is the same as x1 ≤ 0.5.
    assert binary_tree(nested, problem, depth=2) == (0, (1, None, None), None)
    assert binary_tree(nested, problem, depth=1) == (0, None, None)
    assert binary_tree(nested, problem, depth=2, min_leaf=2) == (0, None, None)
    assert binary_tree(nested, problem, depth=2, min_leaf=3) is None
    assert binary_tree(nested, problem, depth=2, allowed=np.array([0, 1], np.uint8)) == (1, None, None)


@pytest.mark.parametrize("method", ["oct", "flowoct", "bendoct", "bendoct-accelerated"])
def test_a_start_keeps_the_labels_that_a_constraint_asked_for(method):
    """The class with a required recall of 0.9 is not the most frequent one."""
    r = np.random.default_rng(3)
    X = r.integers(0, 2, (80, 5)).astype(float)
    y = ((X[:, 0] + X[:, 1] > 0) | (r.random(80) < 0.3)).astype(np.int32)
    source = TrainRequest(
        table=numeric_table(X),
        labels=Labels(name="y", classes=("a", "b"), codes=y),
        method="exact",
        parameters={"depth": 2, "recall": "a: 0.9"},
    )
    known = train(source)
    wanted = {"depth": 2, "recall": "a: 0.9", "time_limit": 0.0, "first_tree": "none"}
    begun = train(dataclasses.replace(source, method=method, parameters=wanted, warm_start=known.tree))
    assert begun.certificate.correct == known.certificate.correct
    assert begun.certificate.status == "time_limit"
