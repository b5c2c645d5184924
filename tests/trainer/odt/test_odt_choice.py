"""Columns chosen by CART and topologies by cross-validation: choices, claims and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.odt.odt_cases import brute, problem_of
from trainer.certificate import Limits
from trainer.errors import ParameterError
from trainer.families.odt import method as odt
from trainer.families.odt.choice import CANDIDATES, select_columns
from trainer.families.odt.grouping import make_groups
from trainer.families.odt.topology import parse
from trainer.methods.monitor import Monitor
from trainer.table import ColumnKind
from trainer.training.run import fit
from trainer.tree.nodes import Tree


def noisy(seed, n=200, rule=lambda c: c[0] == c[1]):
    """Return six columns of three categories. The class follows the rule, but is inverted in a tenth of the rows."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 3, n) for _ in range(6)]
    y = rule(columns) ^ (rng.random(n) < 0.1)
    return problem_of(columns, [int(k) for k in y], [ColumnKind.CATEGORICAL] * 6)


def solved(problem, limit=60, **settings):
    return fit(odt.METHOD, problem, odt.METHOD.settings(settings), Monitor(Limits(time=limit)))


def test_only_chosen_columns_are_tested_and_the_claim_names_them():
    problem = noisy(1, rule=lambda c: c[2] == 0)
    groups = select_columns(make_groups(problem, 10, 0), 0)
    assert 2 in groups.columns
    tree, certificate, _ = solved(problem, select="cart", depth=2)
    assert set(tree.used_columns) <= set(groups.columns)
    assert "g2" in certificate.scope
    assert f"no other columns than ({', '.join(f'g{j}' for j in groups.columns)})" in certificate.scope


@seeds(20)
def test_the_tree_is_the_best_over_the_chosen_columns(seed):
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 3, 30) for _ in range(4)]
    problem = problem_of(columns, [0, 1, *(int(k) for k in rng.integers(0, 2, 28))], [ColumnKind.CATEGORICAL] * 4)
    kept = select_columns(make_groups(problem, 10, 0), 0).columns
    part = problem_of([columns[j] for j in kept], problem.y.tolist(), [ColumnKind.CATEGORICAL] * len(kept))
    for solver in ("search", "gurobi"):
        tree, certificate, _ = solved(problem, select="cart", topology="[[..].]", solver=solver)
        assert certificate.proved_optimal
        assert problem.correct(tree) == brute(part, parse("[[..].]"), 0)


@pytest.mark.slow
def test_topology_with_best_held_out_accuracy_is_chosen():
    problem = noisy(2)
    _, certificate, _ = solved(problem, topology="auto", seed=3)
    choice = certificate.evidence[0]
    assert set(choice["accuracy"]) == set(CANDIDATES)
    best = max(choice["accuracy"].values())
    first = next(name for name in CANDIDATES if choice["accuracy"][name] >= best - 1e-9)
    assert choice["chosen"] == first
    assert f"({parse(first).nodes} questions" in certificate.scope
    assert certificate.proved_optimal


def test_equal_accuracy_takes_the_smaller_topology():
    problem = noisy(4, rule=lambda c: c[0] == 0)
    problem = problem_of([c.values for c in problem.table.columns][:1], problem.y.tolist(), [ColumnKind.CATEGORICAL])
    assert solved(problem, topology="auto")[1].evidence[0]["chosen"] == "depth-2"


def test_large_data_are_sampled_and_short_limit_gives_a_tree():
    problem = noisy(5, n=900)
    tree, certificate, _ = solved(problem, limit=3, topology="auto")
    assert isinstance(tree, Tree)
    assert certificate.evidence[0]["repetitions"] == 5
    assert certificate.bound >= certificate.objective


def test_auto_beside_a_required_share_is_refused():
    with pytest.raises(ParameterError) as caught:
        solved(noisy(6), topology="auto", sensitivity=0.9)
    assert "topology" in caught.value.errors
