"""ODT against brute force over all subsets, topologies and labels; published facts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from trainer.certificate import Limits, Status
from trainer.data.problem import Problem
from trainer.errors import ParameterError
from trainer.methods import odt
from trainer.monitor import Monitor
from trainer.run import fit
from trainer.search.topology import NAMED, Shape, parse
from trainer.table import Column, ColumnSchema, Kind, Labels, Table


def problem_of(columns, codes, kinds):
    made = []
    for j, (values, kind) in enumerate(zip(columns, kinds, strict=True)):
        values = np.asarray(values, float)
        categories = tuple(f"c{i}" for i in range(int(values.max()) + 1)) if kind is Kind.CATEGORICAL else ()
        made.append(Column(schema=ColumnSchema(name=f"g{j}", kind=kind, categories=categories), values=values))
    labels = Labels(name="y", classes=tuple(f"k{k}" for k in range(max(codes) + 1)), codes=np.asarray(codes, np.int32))
    return Problem(table=Table(columns=tuple(made), row_numbers=np.arange(1, len(codes) + 1)), labels=labels)


def partitions(problem, card):
    """All sets of rows that some test sends left: every subset of a categorical column, every threshold of a numeric one."""
    found = {frozenset()}
    n = len(problem.y)
    for column in problem.table.columns:
        values = sorted(set(column.values))
        if column.kind is Kind.CATEGORICAL:
            # the limit counts categories that occur
            chosen = [c for r in range(len(values) + 1) for c in combinations(values, r)]
            chosen = [c for c in chosen if not card or min(len(c), len(values) - len(c)) <= card]
        else:
            chosen = [tuple(values[:r]) for r in range(len(values) + 1)] + [
                tuple(values[r:]) for r in range(len(values))
            ]
        found |= {frozenset(i for i in range(n) if column.values[i] in c) for c in chosen}
    return found


def brute(problem, shape, card):
    tests = partitions(problem, card)
    known = {}

    def value(shape, rows):
        if shape is None:
            return max((sum(problem.y[i] == k for i in rows) for k in set(problem.y)), default=0)
        key = (shape, rows)
        if key not in known:
            known[key] = max(value(shape.left, rows & test) + value(shape.right, rows - test) for test in tests)
        return known[key]

    return value(shape, frozenset(range(len(problem.y))))


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 14)), int(rng.integers(1, 4))
    kinds = [Kind.CATEGORICAL if rng.random() < 0.7 else Kind.NUMERIC for _ in range(p)]
    columns = [rng.integers(0, int(rng.integers(1, 5)), n) for _ in range(p)]
    classes = int(rng.integers(1, 4))
    return problem_of(columns, [int(c) for c in rng.integers(0, classes, n)], kinds)


def solved(problem, **settings):
    values = odt.METHOD.settings({"bins": 60} | settings)
    return fit(odt.METHOD, problem, values, Monitor())


@pytest.mark.parametrize("topology", list(NAMED))
def test_equals_brute_force(topology):
    for seed in range(60):
        problem = random_problem(seed)
        tree, certificate, _ = solved(problem, topology=topology)
        assert certificate.status is Status.OPTIMAL
        assert problem.correct(tree) == brute(problem, parse(topology), 0), f"seed {seed}"


@pytest.mark.parametrize("card", [1, 2])
def test_equals_brute_force_with_small_subsets(card):
    for seed in range(80):
        problem = random_problem(1000 + seed)
        if problem.n_classes > 2:
            continue
        tree, certificate, _ = solved(problem, depth=2, max_card=card)
        assert certificate.status is Status.OPTIMAL
        assert problem.correct(tree) == brute(problem, parse("depth-2"), card), f"seed {seed}"


def test_the_first_monks_problem_is_solved_by_the_imbalanced_topology():
    cases = np.array(np.meshgrid([0, 1, 2], [0, 1, 2], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1], indexing="ij")).reshape(
        6, -1
    )
    y = ((cases[0] == cases[1]) | (cases[4] == 0)).astype(int)
    problem = problem_of(cases, list(y), [Kind.CATEGORICAL] * 6)
    tree, certificate, _ = solved(problem, topology="imbalanced")
    assert problem.correct(tree) == 432
    assert certificate.proved_optimal


def test_a_stopped_search_has_a_gap_and_a_tree():
    rng = np.random.default_rng(5)
    problem = problem_of(
        [rng.integers(0, 12, 400) for _ in range(10)], list(rng.integers(0, 2, 400)), [Kind.CATEGORICAL] * 10
    )
    tree, certificate, _ = fit(odt.METHOD, problem, odt.METHOD.settings({"depth": 3}), Monitor(Limits(time=0.5)))
    assert certificate.status is Status.TIME_LIMIT
    assert certificate.bound >= certificate.objective
    assert tree.n_leaves >= 1


@pytest.mark.parametrize("text", ["", "[", "[.]", "[..]]", "[...]", "depth-9", "[" * 200])
def test_a_bad_topology_is_refused(text):
    with pytest.raises(ParameterError):
        parse(text)


def test_topologies_of_the_paper():
    assert {name: parse(name).nodes for name in NAMED} == {
        "depth-1": 1, "depth-2": 3, "depth-2.5": 5, "depth-3": 7, "imbalanced": 7,
    }  # fmt: skip
    assert parse("imbalanced").depth == 4
    assert parse("depth-3") == odt.complete(3)
    assert Shape(None, None).is_last
