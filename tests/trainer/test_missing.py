"""Trees that learn sides for empty cells equal brute force (missing.md, section 8)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.oracles import bivariate as lines
from tests.trainer.oracles.missing import (
    answers,
    leaf_sizes,
    least_cost,
    partitions,
    paths,
    questions,
    random_table,
    rises,
    route,
    rows_of,
    shallow_trees,
)
from trainer.registry import get
from trainer.table import Column, ColumnKind, ColumnSchema, EmptySide, Labels, MissingPolicy, Table
from trainer.training.run import TrainRequest, train
from trainer.tree.file import from_json

ALL_THRESHOLDS = {"binarise": "all-thresholds"}
EXACT = {
    "exact": ALL_THRESHOLDS,
    "exact-numeric": {},
}


def settings_of(method: str, depth: int, penalty: float) -> dict:
    names = {p.name for p in get(method).parameters}
    wanted = EXACT.get(method, {}) | {"depth": depth, "leaf_penalty": penalty}
    return {k: v for k, v in wanted.items() if k in names}


@pytest.mark.parametrize("method", EXACT)
def test_missing_learned_sides_have_least_cost(method, count):
    rng = np.random.default_rng(430)
    for _ in range(count):
        table, labels = random_table(rng)
        weights = rng.integers(1, 4, len(table))
        depth = int(rng.integers(1, 4))
        penalty = float(rng.choice([0.0, 0.01, 0.05]))
        result = train(
            TrainRequest(
                table=table,
                labels=labels,
                method=method,
                weights=weights,
                parameters=settings_of(method, depth, penalty),
            )
        )
        n = int(weights.sum())
        cost = least_cost(table, labels, weights, depth, penalty * n)
        assert result.certificate.objective == pytest.approx(1 - cost / n, abs=1e-12)
        assert result.certificate.bound == pytest.approx(1 - cost / n, abs=1e-12)
        check_routing(result, table)


def check_routing(result, table):
    """Check that every row reaches the leaf that the model file defines."""
    document = result.model.to_json()
    leaves = result.tree.apply(table.matrix())
    for row, leaf in zip(rows_of(table), leaves, strict=True):
        assert route(document["nodes"], document["columns"], row) == leaf


@pytest.mark.parametrize("impurity", ["gini", "entropy", "error"])
def test_missing_best_line_is_proved_for_both_sides(impurity, count):
    """The root of a bivariate tree is compared with all lines of all pairs, with the rows of empty cells on either side."""
    rng = np.random.default_rng(434)
    for _ in range(count):
        table, labels = random_table(rng, categories=False, classes=int(rng.integers(2, 4)))
        weights = rng.integers(1, 4, len(table))
        min_leaf = int(rng.integers(1, 5))
        wanted = {
            "depth": 1,
            "impurity": impurity,
            "min_leaf": min_leaf,
            "bound": str(rng.choice(["assignment", "paper"])),
        }
        result = train(TrainRequest(table=table, labels=labels, method="bivariate", weights=weights, parameters=wanted))
        classes = len(labels.classes)
        best = lines.best_value(
            table.matrix(), labels.codes, classes, measure=impurity, min_leaf=min_leaf, weight=weights
        )
        root = result.tree.nodes[0]
        if best is None:
            assert root.is_leaf
            continue
        assert root.impurity == pytest.approx(float(best), abs=1e-9)
        assert root.impurity_bound == pytest.approx(float(best), abs=1e-9)
        check_routing(result, table)


@pytest.mark.parametrize("impurity", ["gini", "entropy", "error"])
def test_missing_cart_finds_the_best_of_both_sides(impurity, count):
    rng = np.random.default_rng(435)
    for _ in range(count):
        table, labels = random_table(rng)
        weights = rng.integers(1, 4, len(table))
        min_leaf = int(rng.integers(1, 5))
        wanted = {"depth": 1, "impurity": impurity, "min_leaf": min_leaf}
        result = train(TrainRequest(table=table, labels=labels, method="cart", weights=weights, parameters=wanted))
        sizes = [class_weights(labels, weights, left) for left in partitions(table)]
        values = [
            float(lines.impurity(one, impurity) + lines.impurity(two, impurity))
            for one, two in sizes
            if min(sum(one), sum(two)) >= min_leaf
        ]
        root = result.tree.nodes[0]
        if root.is_leaf:
            assert not values or max(labels.counts()) == len(table)
            continue
        left = result.tree.nodes[root.left]
        right = result.tree.nodes[root.right]
        found = lines.impurity(list(left.counts), impurity) + lines.impurity(list(right.counts), impurity)
        assert float(found) == pytest.approx(min(values), abs=1e-9)
        check_routing(result, table)


def class_weights(labels, weights, left):
    """Return the weight of each class on both sides."""
    classes = len(labels.classes)
    return [np.bincount(labels.codes[side], weights[side], classes).astype(int).tolist() for side in (left, ~left)]


def test_missing_odt_has_least_cost(count):
    """Each value has a bin, and the topology has no leaf penalty."""
    rng = np.random.default_rng(436)
    for _ in range(count):
        table, labels = random_table(rng)
        weights = rng.integers(1, 4, len(table))
        depth = int(rng.integers(1, 3))
        wanted = {"depth": depth, "bins": 60, "select": str(rng.choice(["none", "cart"]))}
        result = train(TrainRequest(table=table, labels=labels, method="odt", weights=weights, parameters=wanted))
        n = int(weights.sum())
        best = 1 - least_cost(table, labels, weights, depth, 0.0) / n
        assert result.certificate.objective <= best + 1e-12
        if wanted["select"] == "none":
            assert result.certificate.objective == pytest.approx(best, abs=1e-12)
            assert result.certificate.bound == pytest.approx(best, abs=1e-12)
        check_routing(result, table)


MANY_COLUMNS = ("oc1", "cut-h", "cutw-h", "s-oct", "oct-h")


@pytest.mark.slow
@pytest.mark.parametrize("method", MANY_COLUMNS)
def test_missing_hyperplanes_are_as_good_as_their_file_says(method, count):
    """A proved tree of hyperplanes is at least as good as all trees of thresholds that learn sides."""
    rng = np.random.default_rng(437)
    for _ in range(-(-count // 5)):
        table, labels = random_table(rng)
        weights = rng.integers(1, 4, len(table))
        depth = int(rng.integers(1, 3))
        penalty = float(rng.choice([0.0, 0.05]))
        wanted = {"search_seconds": 1} if method != "oc1" else {}
        result = train(
            TrainRequest(
                table=table,
                labels=labels,
                method=method,
                weights=weights,
                parameters=wanted | {"depth": depth, "leaf_penalty": penalty},
            )
        )
        check_routing(result, table)
        if method == "oc1":
            continue
        n = int(weights.sum())
        assert result.certificate.bound >= 1 - least_cost(table, labels, weights, depth, penalty * n) / n - 1e-9
        if any(column.missing.any() for column in table.columns):
            assert "empty cells filled with the training median, with an indicator" in result.certificate.scope
        for node in result.tree.branches:
            assert node.split.missing is not EmptySide.LEFT or node.split.kind in ("threshold", "linear")


@pytest.mark.parametrize("method", ["oc1", "cut-h"])
def test_missing_complete_column_of_sum_is_filled_and_marked(method):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 30, (60, 2)).astype(float)
    labels = Labels(name="y", classes=("a", "b"), codes=(X[:, 0] - X[:, 1] > 0).astype(np.int32))
    X[::7, 0] = np.nan
    columns = [
        Column(
            schema=ColumnSchema(name=name, kind=ColumnKind.NUMERIC, missing=MissingPolicy.LEARN),
            cells=np.ascontiguousarray(X[:, j]),
        )
        for j, name in enumerate("uv")
    ]
    table = Table(columns=tuple(columns), row_numbers=np.arange(60))
    result = train(TrainRequest(table=table, labels=labels, method=method, parameters={"depth": 2}))
    sums = [node.split for node in result.tree.branches if node.split.missing is EmptySide.FILL]
    assert sums
    schema = from_json(result.model.to_json()).tree.schema
    assert schema[1].fill == float(np.sort(X[:, 1])[(60 - 1) // 2])
    assert (schema[0].fill_seen, schema[1].fill_seen) == (True, False)
    row = np.array([[3.0, np.nan]])
    assert result.tree.unseen_empty(row).tolist() == [[False, True]]
    assert result.tree.refused_columns == ()


LIMITS = {
    "max_columns": {"max_columns": 1},
    "max_leaves": {"max_leaves": 3},
    "forbidden": {"forbidden": "x0"},
    "forbidden_pairs": {"forbidden_pairs": "{0} + {1}"},
    "min_leaf": {"min_leaf": 4},
    "monotone": {"monotone": "x0 up"},
    "recall": {"recall": "b: 0.8"},
    "parity": {"fairness": "parity", "fairness_column": "x0", "fairness_delta": 0.25},
    "opportunity": {"fairness": "opportunity", "fairness_column": "x0", "fairness_delta": 0.25},
}


def admits(limit, tree, table, labels, weights):
    """Return whether a tree meets the limit of this name in LIMITS."""
    n = len(table)
    if limit == "recall":
        own = labels.codes == 1
        return 5 * weights[own & (answers(tree, n) == 1)].sum() >= 4 * weights[own].sum()
    if limit == "min_leaf":
        return min(leaf_sizes(tree, np.ones(n, bool), weights)) >= 4
    if limit == "monotone":
        return rises(tree, 0)
    if limit in ("parity", "opportunity"):
        among = labels.codes == 1 if limit == "opportunity" else np.ones(n, bool)
        return 4 * rate_difference(answers(tree, n) == 1, table.columns[0].values, among, weights) <= 1
    asked = paths(tree)
    if limit == "max_leaves":
        return len(asked) <= 3
    if limit == "forbidden":
        return all(0 not in path for path in asked)
    if limit == "max_columns":
        return len({column for path in asked for column in path}) <= 1
    return all(not {0, 1} <= set(path) for path in asked)


def rate_difference(favoured, values, among, weights):
    """Return the largest difference between the rates of the groups of a column. Its empty cells are a group."""
    empty = np.isnan(values)
    groups = [empty, *(values == value for value in np.unique(values[~empty]))]
    totals = [int(weights[group & among].sum()) for group in groups]
    rates = [
        Fraction(int(weights[group & among & favoured].sum()), total)
        for group, total in zip(groups, totals, strict=True)
        if total
    ]
    return max(rates) - min(rates)


def small_table(rng):
    """Return a table of at least two columns, with few questions."""
    while True:
        table, labels = random_table(rng)
        if len(table.columns) > 1 and 2 <= len(questions(table)) <= 9:
            return table, labels


BINARY = ("exact", "flowoct", "bendoct", "bendoct-accelerated", "binoct", "oct")
SOLVED = [*((method, "scip") for method in BINARY), ("flowoct", "highs"), ("bendoct", "highs")]


@pytest.mark.slow
@pytest.mark.parametrize("first", ["auto", "cart"])
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize(("method", "solver"), SOLVED)
def test_missing_limits_count_both_sides_as_one_column(method, limit, solver, first, count):
    """With `cart` the solver proves the bound, with `auto` the exact search."""
    names = {p.name for p in get(method).parameters}
    if "first_tree" not in names and first == "cart":
        pytest.skip("the method has no first tree")
    if not {*LIMITS[limit]} <= names:
        pytest.skip("the method has no such parameter")
    if (method, limit) == ("binoct", "max_leaves"):
        pytest.skip("its trees are complete")
    rng = np.random.default_rng(438)
    for _ in range(-(-count // 10)):
        table, labels = small_table(rng)
        weights = rng.integers(1, 4, len(table))
        n = int(weights.sum())
        kept = [
            int(weights[answers(tree, len(table)) == labels.codes].sum())
            for tree in shallow_trees(table, 2)
            if admits(limit, tree, table, labels, weights)
        ]
        named = {k: v.format(*table.names) if isinstance(v, str) else v for k, v in LIMITS[limit].items()}
        wanted = ALL_THRESHOLDS | {"depth": 2} | named
        if "solver" in names:
            wanted |= {"solver": solver, "first_tree": first}
        result = train(TrainRequest(table=table, labels=labels, method=method, weights=weights, parameters=wanted))
        assert result.certificate.objective == pytest.approx(max(kept) / n, abs=1e-9)
        assert result.certificate.bound == pytest.approx(max(kept) / n, abs=1e-9)
        check_routing(result, table)


@pytest.mark.parametrize("method", [m for m in BINARY if m != "exact"])
def test_missing_first_tree_is_optimal_by_default(method):
    table, labels = small_table(np.random.default_rng(443))
    started = []
    for first in ("auto", "exact", "cart"):
        wanted = ALL_THRESHOLDS | {"depth": 2, "first_tree": first}
        certificate = train(TrainRequest(table=table, labels=labels, method=method, parameters=wanted)).certificate
        started.append((certificate.warm_start_objective, certificate.objective))
    (by_default, optimum), exact, cart = started
    assert (by_default, optimum) == pytest.approx(exact, abs=1e-12)
    assert by_default == pytest.approx(optimum, abs=1e-12)
    assert cart[1] == pytest.approx(optimum, abs=1e-12)
    # else the table would show nothing; bendoct-accelerated improves its first tree
    assert cart[0] < optimum - 1e-9 or method == "bendoct-accelerated"
