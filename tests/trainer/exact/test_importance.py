"""Permutation importance over all good trees equals enumeration and explicit permutations."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.oracles.good_trees import instance
from tests.trainer.oracles.workbench import empty_table, random_table
from trainer.data.encoding import Scheme
from trainer.data.problem import Problem
from trainer.editing.space import SearchStopped
from trainer.families.exact.rashomon.good import GoodTrees
from trainer.families.exact.workbench import Workbench
from trainer.table import Labels, numeric_table
from trainer.training.run import TrainRequest
from trainer.workbench.requests import GoodRequest, WorkbenchSession


def lost(every, tree, column):
    """Return the sum of errors after the swap over all pairs of rows with their weights, minus n times the errors before."""
    w, y, n = every.w, every.y, len(every.y)
    said = every.said(tree)
    after = np.empty((n, n), int)  # after[i, r]: answer for row i with the column's value of row r

    def visit(part, rows, pairs):
        if part is None:
            after[pairs] = said[np.flatnonzero(rows)[0]]  # every leaf holds rows
            return
        yes = every.answers[part[0]]
        swapped = np.tile(yes, (n, 1)) if every.columns[part[0]] == column else np.tile(yes[:, None], (1, n))
        visit(part[1], rows & yes, pairs & swapped)
        visit(part[2], rows & ~yes, pairs & ~swapped)

    visit(tree, np.ones(n, bool), np.ones((n, n), bool))
    wrong = int((np.outer(w, w) * (after != y[:, None])).sum())
    return wrong - int(w[said != y].sum()) * int(w.sum())


@pytest.mark.parametrize("table", [random_table, empty_table])
def test_least_and_largest_importance_are_those_of_enumeration(table, count):
    asked = 0
    for seed in range(min(2 * count, 500)):
        problem, bench, every, rng = instance(seed, table)
        filters = {"max_leaves": int(rng.integers(2, 6))} if seed % 4 == 1 else {}
        if seed % 4 == 2:
            filters = {"groups": problem.table.names[0], "difference": "0.6"}
        good = bench.good_trees(slack=["0.05", "0.2", "0.6"][rng.integers(3)], **filters)
        trees = [t for _, t in good.trees()]
        if len(trees) > 100:
            continue
        for column, (least, most) in enumerate(good.importance):
            want = [lost(every, t, column) for t in trees] or [0]
            assert (least, most) == (min(want), max(want)), (seed, column)
            asked += most > 0
    assert asked > 0


def test_depth_four_is_that_of_enumeration_too():
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, (9, 3)).astype(float)
        y = rng.integers(0, 2, 9).astype(np.int32)
        labels = Labels(name="y", classes=("a", "b"), codes=y)
        problem = Problem(
            table=numeric_table(X), labels=labels, leaf_penalty=Fraction(1, 20), scheme=Scheme.ALL_THRESHOLDS
        )
        good = Workbench(problem, depth=4).good_trees(slack="0.3")
        trees = [Workbench(problem, depth=4).tree(t) for _, t in good.trees()]
        for column, (least, most) in enumerate(good.importance):
            found = []
            for tree in trees:
                swapped = np.repeat(X, 9, axis=0)
                swapped[:, column] = np.tile(X[:, column], 9)
                after = int((tree.predict(swapped) != np.repeat(y, 9)).sum())
                found.append(after - 9 * int((tree.predict(X) != y).sum()))
            assert (least, most) == (min(found), max(found))


def test_the_definition_is_the_mean_over_all_permutations():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 3, (6, 2)).astype(float)
    y = np.array([0, 1, 1, 0, 1, 0], np.int32)
    labels = Labels(name="y", classes=("a", "b"), codes=y)
    problem = Problem(table=numeric_table(X), labels=labels, leaf_penalty=Fraction(1, 50), scheme=Scheme.ALL_THRESHOLDS)
    bench = Workbench(problem, depth=2)
    good = bench.good_trees(slack="0")
    trees = [bench.tree(shape) for _, shape in good.trees()]
    for column, found in enumerate(good.importance):
        means = []
        for tree in trees:
            before = int((tree.predict(X) != y).sum())
            after = 0
            for order in itertools.permutations(range(6)):
                shuffled = X.copy()
                shuffled[:, column] = X[list(order), column]
                after += int((tree.predict(shuffled) != y).sum())
            means.append(Fraction(after, 720) - before)
        assert found == (6 * min(means), 6 * max(means))
    assert any(most for _, most in good.importance)


def test_record_has_the_range_and_first_omits_slow_parts():
    problem, _, _, _ = instance(3)
    session = WorkbenchSession(
        TrainRequest(table=problem.table, labels=problem.labels, method="exact", parameters={"depth": 2})
    )
    told: list[dict] = []
    record = session.good_trees(GoodRequest(slack="1"), session.monitor(), report=told.append)
    assert [(first["status"], first["count"], first["trees"]) for first in told] == [
        ("counting", record["count"], record["trees"])
    ]
    assert "importance_most" not in next(iter(told[0]["columns"].values()))
    good = session.bench.good_trees(slack="1")
    n = session.problem.n
    for (least, most), column in zip(good.importance, record["columns"].values(), strict=True):
        assert (column["importance_least"], column["importance_most"]) == (least / n**2, most / n**2)


def test_stopped_range_is_omitted_and_named(monkeypatch):
    problem, _, _, _ = instance(3)
    session = WorkbenchSession(
        TrainRequest(table=problem.table, labels=problem.labels, method="exact", parameters={"depth": 2})
    )

    def stopped(self, column, parts):
        raise SearchStopped

    monkeypatch.setattr(GoodTrees, "_importance", stopped)
    record = session.good_trees(GoodRequest(slack="1"), session.monitor())
    assert record["status"] == "left: importance"
    assert all(column["importance_least"] is column["importance_most"] is None for column in record["columns"].values())


def test_stopped_importance_keeps_ranges_of_most_used_columns(monkeypatch):
    problem = next(p for p, *_ in map(instance, range(50)) if len(p.table.columns) > 1)
    session = WorkbenchSession(
        TrainRequest(table=problem.table, labels=problem.labels, method="exact", parameters={"depth": 2})
    )
    whole = session.good_trees(GoodRequest(slack="1"), session.monitor())["columns"]
    ranged = GoodTrees._importance
    done = []

    def stopped_later(self, column, parts):
        if done:
            raise SearchStopped
        done.append(problem.table.names[column])
        return ranged(self, column, parts)

    monkeypatch.setattr(GoodTrees, "_importance", stopped_later)
    record = session.good_trees(GoodRequest(slack="1"), session.monitor())
    assert len(whole) > 1
    assert record["status"] == f"left: importance of {len(whole) - 1} of {len(whole)} columns"
    assert whole[done[0]]["asked_most"] == max(of["asked_most"] for of in whole.values())
    for name, of in record["columns"].items():
        assert of["importance_most"] == (whole[name]["importance_most"] if name in done else None)
