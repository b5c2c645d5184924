"""Costs with hyperplanes or subsets: every method equals enumeration of trees or splits."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.trainer.costs_cases import has_choice, least_cost, random_case, random_costs, text_of, weighted_costs
from tests.trainer.oracles import bivariate as all_lines
from tests.trainer.oracles import oblique as all_planes
from trainer.certificate import Status
from trainer.check.recount import verdict, verify
from trainer.registry import METHODS, get
from trainer.solver_common.problem_setup import pose
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table
from trainer.training.cost_frontier import cost_frontier
from trainer.training.run import TrainRequest, save, train
from trainer.tree.nodes import tree_from_json

PLANES = [m.id for m in METHODS if m.parameter("hyperplanes")]
TASTES = ("p", "q", "r", "s")


def small_case(seed, *, rows, kind):
    """Return table, labels, weights or None, and costs as texts.

    Ties, equal rows, zero costs and single classes occur.
    """
    rng = np.random.default_rng(seed)
    classes = "abc"[: int(rng.integers(2, 4))]
    schema = ColumnSchema(name="x0", kind=ColumnKind.NUMERIC)
    columns = [Column(schema=schema, cells=rng.integers(0, 3, rows).astype(float))]
    if kind is ColumnKind.CATEGORICAL:
        schema = ColumnSchema(name="taste", kind=kind, categories=TASTES)
        columns.append(Column(schema=schema, cells=rng.integers(0, len(TASTES), rows).astype(float)))
    schema = ColumnSchema(name="amount", kind=ColumnKind.NUMERIC)
    columns.append(Column(schema=schema, cells=rng.integers(0, 3, rows) / 4))
    codes = rng.integers(0, len(classes), rows).astype(np.int32)
    if rng.random() < 0.15:
        codes[:] = 0
    table = Table(columns=tuple(columns), row_numbers=np.arange(rows))
    labels = Labels(name="y", classes=tuple(classes), codes=codes)
    weights = rng.integers(1, 4, rows) if rng.random() < 0.4 else None
    return table, labels, weights, random_costs(rng, classes)


def costed(seed, **shape):
    """Return the same with the exact costs of each row, or None if all answers cost the same."""
    table, labels, weights, costs = small_case(seed, **shape)
    weighted = weighted_costs(table, labels, weights, costs)
    return (table, labels, weights, costs, weighted) if has_choice(weighted) else None


def fitted(method, case, proof=None, **parameters):
    """Return the result of a training and the exact cost of its answers."""
    table, labels, weights, costs, own = case
    asked = {"costs": text_of(costs), "depth": 2, "time_limit": 60, **parameters}
    request = TrainRequest(table=table, labels=labels, method=method, weights=weights, parameters=asked, proof=proof)
    result = train(request)
    return result, sum(own[np.arange(len(own)), result.tree.predict(table.matrix())])


def checked(result, table, labels, tmp_path, proof=None):
    """Return what the checker says about the file of a result, with its proof if there is one."""
    words = [
        np.array(TASTES)[c.values.astype(int)] if c.schema.categories else [f"{v:g}" for v in c.values]
        for c in table.columns
    ]
    answers = [labels.classes[k] for k in labels.codes]
    lines = [",".join(row) for row in zip(*words, answers, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join([",".join([*table.names, "y"]), *lines]) + "\n")
    save(result.model, tmp_path / "model.json")
    return verify(tmp_path / "model.json", tmp_path / "rows.csv", proof)


def points_of(table, own):
    """Return the distinct rows times four, as integers, and the savings of each answer there in hundredths."""
    X, place = np.unique(np.rint(4 * table.matrix()).astype(int), axis=0, return_inverse=True)
    counts = np.zeros((len(X), own.shape[1]), object)
    for g, row in zip(place.reshape(-1), own, strict=True):
        counts[g] += max(row) - row
    return X, (100 * counts).astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("method", PLANES)
def test_planes_reach_the_least_cost_of_all_trees(method, count, tmp_path):
    for seed in range(2 * count):
        if (case := costed(seed, rows=8, kind=ColumnKind.NUMERIC)) is None:
            continue
        table, labels, _, _, own = case
        penalty = [0, Fraction(1, 20)][seed % 2] if has_choice(own) and min(own.sum(axis=0)) else 0
        depth = 1 + seed % 2
        price = penalty * min(own.sum(axis=0))
        X, counts = points_of(table, own)
        most = Fraction(all_planes.best_value(X, counts, depth, 100 * price)) / 100
        proof = tmp_path / "proof.jsonl"
        result, cost = fitted(method, case, proof, depth=depth, leaf_penalty=float(penalty))
        assert cost + price * result.tree.n_leaves == sum(own.max(axis=1)) - most, seed
        assert result.certificate.status == Status.OPTIMAL
        assert result.certificate.costs["least"] == pytest.approx(float(cost + price * result.tree.n_leaves), abs=1e-9)
        assert verdict(checked(result, table, labels, tmp_path, proof)) == "proved", seed
        result.model.certificate["costs"]["cost"] -= 0.25
        assert verdict(checked(result, table, labels, tmp_path, proof)) == "refuted", seed


@pytest.mark.slow
def test_sets_of_rows_in_a_plane_are_counted_again_with_costs(tmp_path):
    table, labels, weights, costs, _ = random_case(0, rows=14)
    parameters = {"costs": text_of(costs), "depth": 1}
    request = TrainRequest(table=table, labels=labels, method="cut-h", weights=weights, parameters=parameters)
    result = train(request)
    named = next(e for e in result.model.certificate["evidence"] if e["kind"] == "planes")["groups"]
    assert all(row < len(table) for group in named for row in group["rows"])
    assert verdict(checked(result, table, labels, tmp_path)) == "proved"
    named[0]["errors"][0] += 1
    assert verdict(checked(result, table, labels, tmp_path)) == "refuted"


def subset_answers(table):
    """Return the answers to each subset of categories and each threshold, bool (rows, questions)."""
    found = []
    for column in table.columns:
        values = np.unique(column.values)
        if column.kind is ColumnKind.CATEGORICAL:
            found += [
                np.isin(column.values, values[np.array(chosen)])
                for chosen in product([False, True], repeat=len(values))
            ]
        else:
            found += [column.values <= cut for cut in values]
    return np.column_stack(found)


@pytest.mark.parametrize("solver", ["search", "highs"])
def test_subsets_reach_the_least_cost_of_all_trees(solver, count, tmp_path):
    for seed in range(count if solver == "highs" else 6 * count):
        if (case := costed(seed, rows=14, kind=ColumnKind.CATEGORICAL)) is None:
            continue
        table, labels, _, _, own = case
        depth = 1 + seed % (2 if solver == "highs" else 3)
        result, cost = fitted("odt", case, depth=depth, bins=60, solver=solver)
        assert cost == least_cost(subset_answers(table), own, depth, 0), seed
        assert result.certificate.status == Status.OPTIMAL
        assert verdict(checked(result, table, labels, tmp_path)) == "proved", seed


def test_subsets_of_a_limited_size_are_proved_with_costs(count, tmp_path):
    for seed in range(100, 100 + 2 * count):
        if (case := costed(seed, rows=14, kind=ColumnKind.CATEGORICAL)) is None:
            continue
        result, _ = fitted("odt", case, bins=60, max_card=1)
        assert verdict(checked(result, case[0], case[1], tmp_path)) == "proved", seed


def leaves_below(tree, node):
    """Return the leaves that the rows of a node reach."""
    v = tree.nodes[node]
    return [node] if v.split is None else [*leaves_below(tree, v.left), *leaves_below(tree, v.right)]


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["gini", "entropy", "error"])
def test_each_bivariate_split_is_the_best_of_its_copies(measure, count, tmp_path):
    for seed in range(3 * count):
        if (case := costed(seed, rows=9, kind=ColumnKind.NUMERIC)) is None:
            continue
        table, labels, weights, costs, _ = case
        result, _ = fitted("bivariate", case, impurity=measure)
        problem = pose(table, labels, get("bivariate").settings({"costs": text_of(costs)}), weights=weights)
        unit = problem.n / problem.searched.n
        at = result.tree.apply(problem.searched.matrix)
        for node in result.tree.branches:
            here = np.isin(at, leaves_below(result.tree, node.id))
            searched = problem.searched
            lines = all_lines.best_value(
                searched.matrix[here],
                searched.y[here],
                len(labels.classes),
                measure=measure,
                weight=searched.weights[here],
            )
            best = float(lines)
            assert node.split_proved, seed
            assert node.impurity == pytest.approx(unit * best, abs=1e-7), seed
        assert verdict(checked(result, table, labels, tmp_path)) in ("proved", "recounted"), seed


@pytest.mark.slow
@pytest.mark.parametrize("method", [m.id for m in METHODS if m.parameter("pareto")])
def test_least_cost_by_size_is_that_of_all_planes(method, count):
    seen = 0
    for seed in range(2 * count):
        if (case := costed(seed, rows=8, kind=ColumnKind.NUMERIC)) is None:
            continue
        table, labels, weights, costs, own = case
        asked = {"costs": text_of(costs), "depth": 2, "pareto": True, "time_limit": 60, "search_seconds": 1}
        frontier = cost_frontier(
            TrainRequest(table=table, labels=labels, method=method, weights=weights, parameters=asked)
        )
        if frontier is None:
            continue
        assert frontier.status == Status.OPTIMAL
        assert not frontier.unsettled
        X, counts = points_of(table, 10 * own)  # the costs have up to three decimals
        for leaves in range(1, 5):
            most = Fraction(all_planes.best_value(X, counts, 2, 0, most=leaves)) / 1000
            stated = min(point["cost"] for point in frontier.points if point["leaves"] <= leaves)
            assert stated == pytest.approx(float(sum(own.max(axis=1)) - most), abs=1e-9), (seed, leaves)
        for point in (*frontier.points, *frontier.coefficients):
            tree = tree_from_json(point["tree"], schema=table.schema, classes=labels.classes)
            cost = sum(own[np.arange(len(own)), tree.predict(table.matrix())])
            assert point["cost"] == pytest.approx(float(cost), abs=1e-9)
            assert point["least"] <= point["cost"] + 1e-9
            assert point["proved"] == (point["least"] == point["cost"])
            assert sum(tree.nodes[0].counts) == (len(own) if weights is None else sum(weights))
        assert all(point["proved"] for point in frontier.points)
        assert [p["cost"] for p in frontier.coefficients] == sorted(
            {p["cost"] for p in frontier.coefficients}, reverse=True
        )
        seen += len(frontier.points) > 1
    assert seen
