"""The method `exact` from table to certificate: weights, limits, cancelling and threads."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.oracles.exact import best_cost, random_binary
from trainer.certificate import Status
from trainer.check.recount import verify
from trainer.data.encoding import Scheme, encode_binary
from trainer.errors import DataError, InfeasibleError, ParameterError
from trainer.families.exact.instance import build_instance
from trainer.families.exact.search.solve import ExactOptions, evaluate, solve_binary
from trainer.solver_common.binary_problem import BinaryProblem, SearchLimits
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table, numeric_table
from trainer.training.run import TrainRequest, save, train


def mixed_table(seed, n=60):
    rng = np.random.default_rng(seed)
    names = ("red", "green", "blue")
    columns = (
        Column(schema=ColumnSchema(name="length", kind=ColumnKind.NUMERIC), cells=rng.normal(size=n).round(1)),
        Column(
            schema=ColumnSchema(name="colour", kind=ColumnKind.CATEGORICAL, categories=names),
            cells=rng.integers(0, 3, n).astype(float),
        ),
    )
    codes = ((columns[0].values > 0.3) ^ (columns[1].values == 1)).astype(np.int32)
    codes[rng.random(n) < 0.1] ^= 1
    return Table(columns=columns, row_numbers=np.arange(n)), Labels(name="y", classes=("no", "yes"), codes=codes)


@pytest.mark.parametrize("scheme", [Scheme.QUANTILE_THRESHOLDS, Scheme.QUANTILE_BUCKETS])
@pytest.mark.parametrize("weighted", [False, True])
def test_certified_objective_equals_oracle_in_column_units(scheme, weighted):
    for seed in range(6):
        table, labels = mixed_table(seed)
        weights = np.random.default_rng(seed).integers(1, 5, len(table)) if weighted else np.ones(len(table), np.int64)
        parameters = {"depth": 2, "leaf_penalty": 0.01, "binarise": str(scheme), "bins": 4}
        result = train(
            TrainRequest(
                table=table, labels=labels, method="exact", parameters=parameters, weights=weights if weighted else None
            )
        )
        X = encode_binary(table, scheme, 4, weights).bits(table)
        total = int(weights.sum())
        cost, leaves = best_cost(X, labels.codes, weights, 2, 2, Fraction(total, 100))
        assert result.certificate.objective == pytest.approx(float(1 - cost / total), abs=1e-12)
        assert result.certificate.status is Status.OPTIMAL
        assert result.certificate.gap == 0
        assert result.tree.n_leaves == leaves


def hard_instance(n=700, features=60, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, features)).astype(np.uint8)
    return X, rng.integers(0, 2, n).astype(np.int32)


@pytest.mark.parametrize("depth", [3, 4, 5])
@pytest.mark.parametrize("limit", [0.0, 0.1])
def test_a_stopped_search_keeps_a_tree_and_a_valid_bound(depth, limit):
    X, y = hard_instance(features=120)
    for height in (3, depth):  # kernels are compiled here, so that this time does not count
        solve_binary(BinaryProblem(X[:50, :8], y[:50], n_classes=2, depth=height))
    started = time.perf_counter()
    solution = solve_binary(
        BinaryProblem(X, y, n_classes=2, depth=depth, leaf_cost=Fraction(1, 2)), limits=SearchLimits(time_limit=limit)
    )
    assert time.perf_counter() - started < limit + 30.0  # without the limit, the search takes hours
    assert solution.bound <= solution.cost
    instance = build_instance(BinaryProblem(X, y, n_classes=2, weights=None, leaf_cost=Fraction(1, 2), depth=depth))
    assert evaluate(instance, solution.shape) == (solution.errors, solution.leaves)
    if limit and depth > 3:
        assert not solution.optimal
    if solution.nodes:  # if the machine is busy, the time may run out before the search begins
        assert solution.cost <= solve_binary(BinaryProblem(X, y, n_classes=2, depth=2, leaf_cost=Fraction(1, 2))).cost


def test_progress_only_improves_and_ends_at_the_optimum():
    X, y = hard_instance(300, 25)
    seen = []
    solution = solve_binary(BinaryProblem(X, y, n_classes=2, depth=4), report=lambda *reports: seen.append(reports))
    assert len(seen) > 5
    costs = [s[0] for s in seen]
    bounds = [s[1] for s in seen]
    assert all(bound <= solution.cost <= cost for bound, cost in zip(bounds, costs, strict=True))
    assert bounds == sorted(bounds)


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_the_tree_does_not_depend_on_the_number_of_threads(depth):
    X, y = hard_instance(120, 14, seed=depth)
    one, two, three = (
        solve_binary(
            BinaryProblem(X, y, n_classes=2, depth=depth, leaf_cost=Fraction(1)), limits=SearchLimits(threads=t)
        )
        for t in (1, 2, 3)
    )
    assert one.shape == two.shape == three.shape
    assert one.cost == two.cost == one.bound == two.bound


def test_small_cache_evicts_and_stays_exact():
    X, y = hard_instance(150, 12)
    free = solve_binary(BinaryProblem(X, y, n_classes=2, depth=5))
    tight = solve_binary(BinaryProblem(X, y, n_classes=2, depth=5), options=ExactOptions(memory=20_000, one_call=False))
    assert tight.evictions > 0
    assert tight.cost == free.cost
    assert tight.optimal


def test_forbidden_features_are_not_used():
    for seed in range(60):
        X, y, w, classes, leaf_cost = random_binary(seed)
        allowed = np.ones(X.shape[1], np.uint8)
        allowed[seed % X.shape[1]] = 0
        solution = solve_binary(
            BinaryProblem(X, y, n_classes=classes, weights=w, depth=3, leaf_cost=leaf_cost, allowed=allowed)
        )
        assert solution.cost == best_cost(X[:, allowed == 1], y, w, classes, 3, leaf_cost)[0]


@pytest.mark.parametrize("budget", [1, 2, 3, 5])
def test_a_leaf_budget_gives_the_best_tree_within_it(budget):
    for seed in range(5):
        table, labels = mixed_table(seed)
        parameters = {"depth": 3, "leaf_penalty": 0.005, "max_leaves": budget, "bins": 4}
        result = train(TrainRequest(table=table, labels=labels, method="exact", parameters=parameters))
        X = encode_binary(table, Scheme.QUANTILE_THRESHOLDS, 4).bits(table)
        n = len(table)
        cost, leaves = best_cost(X, labels.codes, np.ones(n, np.int64), 2, 3, Fraction(n, 200), most_leaves=budget)
        assert result.certificate.objective == pytest.approx(float(1 - cost / n), abs=1e-12)
        assert result.certificate.status is Status.OPTIMAL
        assert result.tree.n_leaves == leaves <= budget


def test_a_leaf_keeps_the_smallest_number_of_rows():
    table, labels = mixed_table(2)
    result = train(TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 3, "min_leaf": 7}))
    assert min(leaf.rows for leaf in result.tree.leaves) >= 7
    assert result.certificate.status is Status.OPTIMAL


@pytest.mark.parametrize("budget", [None, 3])
def test_a_forbidden_column_is_not_asked(budget):
    table, labels = mixed_table(1)
    for name, keep in (("length", 1), ("colour", 0)):
        parameters = {"depth": 3, "forbidden": name, "max_leaves": budget, "bins": 5}
        result = train(TrainRequest(table=table, labels=labels, method="exact", parameters=parameters))
        assert {v.split.feature for v in result.tree.branches} == {keep}
        alone = Table(columns=(table.columns[keep],), row_numbers=table.row_numbers)
        free = {"depth": 3, "max_leaves": budget, "bins": 5}
        expected = train(TrainRequest(table=alone, labels=labels, method="exact", parameters=free))
        assert result.certificate.objective == expected.certificate.objective
    with pytest.raises(ParameterError, match="weight' is not a column"):
        train(TrainRequest(table=table, labels=labels, method="exact", parameters={"forbidden": "weight"}))


def test_side_constraints_hold_in_the_tree_that_is_returned():
    table, labels = mixed_table(3, n=90)
    settings = {"depth": 3, "recall": "yes: 0.98", "forbidden_pairs": "length + colour", "bins": 4}
    result = train(TrainRequest(table=table, labels=labels, method="exact", parameters=settings))
    assert result.certificate.status is Status.OPTIMAL
    predicted = result.tree.predict(table.matrix())
    assert (predicted[labels.codes == 1] == 1).mean() >= 0.98
    free = train(TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 3, "bins": 4}))
    assert result.certificate.objective < free.certificate.objective
    one = train(
        TrainRequest(table=table, labels=labels, method="exact", parameters={"depth": 3, "max_columns": 1, "bins": 4})
    )
    assert len(one.tree.used_columns) == 1
    with pytest.raises(InfeasibleError) as error:
        train(
            TrainRequest(
                table=table, labels=labels, method="exact", parameters={"depth": 1, "recall": "yes: 0.9; no: 0.95"}
            )
        )
    assert 0 < error.value.best < 1


def test_better_trees_are_reported_while_the_search_goes_on():
    X, y = hard_instance(300, 25)
    instance = build_instance(BinaryProblem(X, y, n_classes=2, weights=None, leaf_cost=Fraction(0), depth=4))
    trees = []
    reports = []
    solution = solve_binary(
        BinaryProblem(X, y, n_classes=2, depth=4),
        improved=trees.append,
        report=lambda cost, bound, nodes: reports.append(cost),
    )
    assert len(trees) >= 2
    costs = [evaluate(instance, tree)[0] for tree in trees]
    assert costs == sorted(costs, reverse=True)
    assert min(costs) >= solution.cost
    assert set(costs) <= set(reports)


def test_balanced_classes_weigh_the_same_and_the_check_agrees(tmp_path):
    rng = np.random.default_rng(2)
    n = 70
    table = Table(
        columns=tuple(
            Column(schema=ColumnSchema(name=name, kind=ColumnKind.NUMERIC), cells=rng.integers(0, 6, n).astype(float))
            for name in "abc"
        ),
        row_numbers=np.arange(n),
    )
    codes = ((table.columns[0].values > 3) & (rng.random(n) < 0.7)).astype(np.int32)
    labels = Labels(name="y", classes=("no", "yes"), codes=codes)
    settings = {"depth": 2, "class_weight": "balanced", "leaf_penalty": 0.01, "bins": 4}
    result = train(TrainRequest(table=table, labels=labels, method="exact", parameters=settings))
    sizes = np.bincount(codes)
    weights = np.where(codes == 0, sizes[1], sizes[0]) // np.gcd(sizes[0], sizes[1])
    X = encode_binary(table, Scheme.QUANTILE_THRESHOLDS, 4).bits(table)
    total = int(weights.sum())
    cost, _ = best_cost(X, codes, weights, 2, 2, Fraction(total, 100))
    assert result.certificate.objective == pytest.approx(float(1 - cost / total), abs=1e-12)
    predicted = result.tree.predict(table.matrix())
    recalls = [(predicted[codes == k] == k).mean() for k in (0, 1)]
    assert result.certificate.objective == pytest.approx(np.mean(recalls) - 0.01 * result.tree.n_leaves)
    data = tmp_path / "rows.csv"
    model = tmp_path / "model.json"
    lines = [",".join([*(f"{c.values[i]:g}" for c in table.columns), labels.classes[codes[i]]]) for i in range(n)]
    data.write_text("a,b,c,y\n" + "\n".join(lines) + "\n")
    save(result.model, model)
    verdicts = {f.claim: f.verdict for f in verify(model, data)}
    assert verdicts["bound"] == verdicts["optimal"] == "proved"
    with pytest.raises(ParameterError, match="min_leaf"):
        train(TrainRequest(table=table, labels=labels, method="exact", parameters=settings | {"min_leaf": 2}))


def test_evidence_has_the_frontier_and_all_optimal_trees():
    table, labels = mixed_table(4)
    budget = {"depth": 3, "max_leaves": 5, "bins": 4}
    result = train(TrainRequest(table=table, labels=labels, method="exact", parameters=budget))
    points = next(e for e in result.certificate.evidence if e["kind"] == "leaf-frontier")["points"]
    assert [p["leaves"] for p in points] == sorted({p["leaves"] for p in points})
    for p in points:
        one = train(
            TrainRequest(table=table, labels=labels, method="exact", parameters=budget | {"max_leaves": p["leaves"]})
        )
        assert p["proved"]
        assert (one.certificate.correct, one.certificate.leaves) == (p["correct"], p["leaves"])
    listed = {"depth": 2, "optimal_trees": 3, "bins": 4}
    result = train(TrainRequest(table=table, labels=labels, method="exact", parameters=listed))
    found = next(e for e in result.certificate.evidence if e["kind"] == "optimal-trees")
    assert int(found["count"]) >= 1
    assert len(found["listed"]) == min(3, int(found["count"]))
    with pytest.raises(ParameterError, match="optimal_trees"):
        train(TrainRequest(table=table, labels=labels, method="exact", parameters=listed | {"max_leaves": 3}))


def test_sizes_that_the_search_did_not_settle_are_named():
    X, y = hard_instance(300, 25)
    table = numeric_table(X.astype(float))
    labels = Labels(name="y", classes=("a", "b"), codes=y)
    for limit, depth, settled in ((60, 2, True), (0, 4, False)):
        settings = {"depth": depth, "max_leaves": 2**depth - 1, "time_limit": limit}
        result = train(TrainRequest(table=table, labels=labels, method="exact", parameters=settings))
        kept = next(e for e in result.certificate.evidence if e["kind"] == "leaf-frontier")
        assert (kept["unsettled"] == []) is settled
        sizes = [p["leaves"] for p in (*kept["points"], *kept["unsettled"])]
        assert len(set(sizes)) == len(sizes)
        assert all(p["bound"] > max(q["correct"] for q in kept["points"]) for p in kept["unsettled"])


def test_too_large_pair_counts_are_refused_before_allocation():
    X, y = hard_instance(20, 400)
    with pytest.raises(DataError, match="400 questions and 2 classes need 1 MB"):
        solve_binary(BinaryProblem(X, y, n_classes=2, depth=2), options=ExactOptions(memory=400_000))
    assert solve_binary(BinaryProblem(X, y, n_classes=2, depth=1), options=ExactOptions(memory=400_000)).optimal


def test_large_depth_is_certified_for_any_depth(tmp_path):
    table, labels = mixed_table(3)
    names = table.columns[1].schema.categories
    settings = {"leaf_penalty": 0.02, "bins": 5}
    result = train(TrainRequest(table=table, labels=labels, method="exact", parameters=settings | {"depth": 20}))
    best = train(TrainRequest(table=table, labels=labels, method="exact", parameters=settings | {"depth": 5}))
    assert result.certificate.status is Status.OPTIMAL
    assert result.certificate.objective >= best.certificate.objective
    assert "no deeper tree" in result.certificate.note
    assert best.certificate.note == ""
    data = tmp_path / "rows.csv"
    rows = zip(table.columns[0].values, table.columns[1].values, labels.codes, strict=True)
    lines = [f"{length:g},{names[int(colour)]},{labels.classes[code]}" for length, colour, code in rows]
    data.write_text("length,colour,y\n" + "\n".join(lines) + "\n")
    model = tmp_path / "model.json"
    save(result.model, model)
    verdicts = {f.claim: f.verdict for f in verify(model, data)}
    assert verdicts["bound"] == "proved"
    assert "refuted" not in verdicts.values()
