"""Constraints combined with limits on the tree equal enumeration of all labelled trees."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.exact.limited_wishes_cases import Limited, random_limits
from tests.trainer.exact.workbench_cases import INFINITE, _plain, check_mirrors, random_wishes
from tests.trainer.oracles.workbench import coarse_table, is_smallest_conflict, kept, places, plain, random_table
from trainer.constraints import Constraints
from trainer.errors import InfeasibleError, ParameterError
from trainer.families.exact.editing.fronts import TreeLimits
from trainer.families.exact.workbench import Workbench


def instance(seed):
    rng = np.random.default_rng(seed)
    problem = coarse_table(seed) if seed % 3 == 0 else random_table(seed, max_rows=10)
    limits = random_limits(rng, problem)
    depth = 3 if seed % 4 == 0 and len(problem.binary.features) < 5 else 2
    bench = Workbench(problem, depth=depth, limits=limits)
    texts = random_wishes(rng, problem, bench.space.questions)[:3]
    wishes = bench.wishes(texts)
    return bench, texts, wishes, Limited(problem, bench, wishes, depth, limits), rng


@seeds(300)
def test_limited_values_prices_and_conflicts_equal_enumeration(seed):
    bench, texts, wishes, brute, _ = instance(seed)
    want = brute.best(wishes)
    if brute.best([]) == INFINITE:
        with pytest.raises(InfeasibleError, match="limits"):
            bench.complete(texts)
        return
    completion = bench.complete(texts)
    if want == INFINITE:
        assert not completion.found
        assert completion.reason
        assert is_smallest_conflict(completion.conflict, brute.best, INFINITE)
        return
    assert completion.found
    assert completion.cost == completion.bound == want
    assert kept(plain(completion.tree), [_plain(w) for w in wishes], brute.columns)
    assert bench.completer.fronts.satisfies_limits(completion.tree)
    errors, leaves = bench.space.cost_of(completion.tree)
    assert errors + leaves * brute.penalty == want
    for price in completion.prices:
        assert price.price == want - brute.best([w for w in wishes if w != price.wish]) >= 0
    assert completion.optimum.cost == completion.optimum.bound == brute.best([])


@seeds(120)
def test_price_lists_within_limits_are_those_of_enumeration(seed):
    bench, texts, wishes, brute, rng = instance(seed)
    try:
        completion = bench.complete(texts)
    except InfeasibleError:
        return
    if not completion.found:
        return
    tree = plain(completion.tree)
    place = str(rng.choice([p for p, _ in places(tree)]))
    path = [dict(places(tree))[place[:k]][0] for k in range(len(place))]
    spoken = [_plain(w) for w in wishes if not (w.place == place and w.item.verb in ("ask", "leaf"))]
    spoken += [("ask", place[:k], q, brute.columns[q], None, None) for k, q in enumerate(path)]
    trees = [(t, brute.cost(t, spoken)) for t in brute.within if kept(t, spoken, brute.columns)]
    least = min(cost for _, cost in trees)
    want = {}
    for t, cost in trees:
        part = dict(places(t)).get(place)
        if part is not None and cost < INFINITE:
            want[part[0]] = min(want.get(part[0], INFINITE), cost - least)
    got = list(bench.price_list(place or "root", texts, tree=completion.tree))
    assert all(p.proved for p in got)
    check_mirrors(want, {p.question: p.price for p in got}, bench.space.questions)
    for p in got:
        errors, leaves = bench.space.cost_of(p.tree, bench.completer.spot(wishes, completion.tree, place).rows)
        assert (p.tree[0], p.errors, p.leaves) == (p.question, errors, leaves)


def test_good_trees_with_tree_limits_are_refused():
    problem = random_table(3)
    bench = Workbench(problem, depth=2, limits=TreeLimits(constraints=Constraints(max_leaves=2)))
    with pytest.raises(ParameterError, match="filters"):
        bench.good_trees(slack="0.1")


def test_a_stopped_search_within_limits_keeps_a_valid_bound():
    from trainer.data.problem import Problem
    from trainer.table import Labels, numeric_table

    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (300, 40))
    y = rng.integers(0, 2, 300).astype(np.int32)
    problem = Problem(table=numeric_table(X.astype(float)), labels=Labels(name="y", classes=("a", "b"), codes=y))
    limits = TreeLimits(constraints=Constraints(recalls=((0, Fraction(3, 5)),), max_leaves=6))
    for patience in (0, 3, 30):
        left = iter(range(patience))
        bench = Workbench(problem, depth=4, limits=limits)
        completion = bench.complete(["forbid y x3", "ask n x5"], stop=lambda left=left: next(left, None) is None)
        assert not completion.optimal
        if completion.found:
            assert completion.bound <= completion.cost
            assert bench.completer.fronts.satisfies_limits(completion.tree)
