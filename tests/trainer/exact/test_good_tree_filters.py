"""Filters of good trees by group rates and required answers equal enumeration."""

from __future__ import annotations

import math
import time
from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.exact.good_trees_cases import check_levels
from tests.trainer.oracles.good_trees import Every, instance, leaves
from tests.trainer.oracles.workbench import empty_table, random_table
from trainer.data.encoding import Scheme
from trainer.data.problem import Problem
from trainer.errors import ParameterError
from trainer.families.exact.workbench import Workbench
from trainer.table import Labels, numeric_table


def difference(every, said, column, favoured, rate):
    """Return the largest difference between the groups of a column in the share of the answer `favoured`."""
    values = every.problem.table.columns[column].values
    rates = []
    for value in np.unique(values):
        own = np.isnan(values) if np.isnan(value) else values == value
        if rate == "opportunity":
            own &= every.y == favoured
        if every.w[own].sum():
            rates.append(Fraction(int(every.w[own & (said == favoured)].sum()), int(every.w[own].sum())))
    return max(rates) - min(rates) if rates else Fraction(0)


class Filters(NamedTuple):
    """The options of a call, and the numbers of its names."""

    asked: dict
    column: int
    favoured: int
    rows: list
    model: object
    most_leaves: int | None
    recalls: dict
    must: list


def passes(every, tree, filters):
    """Return whether a tree passes the filters, by their definition."""
    asked, column, favoured, rows, model, most_leaves, recalls, must = filters
    said = every.said(tree)
    own = every.y == 0
    right = every.w[own & (said == 0)].sum()
    if "difference" in asked and difference(every, said, column, favoured, asked["rate"]) > Fraction(
        asked["difference"]
    ):
        return False
    if "agrees" in asked and (said[rows] != every.said(model)[rows]).any():
        return False
    if must and 0 not in every.asked(tree):
        return False
    few = most_leaves is None or leaves(tree) <= most_leaves
    return few and all(right >= share * int(every.w[own].sum()) for share in recalls.values())


@pytest.mark.slow
@pytest.mark.parametrize("table", [random_table, empty_table])
@pytest.mark.parametrize("part", range(3))
def test_rates_and_agreement_choose_among_the_good_trees(part, table, count):
    kept = left_out = 0
    for seed in range(part, min(3 * count, 600), 3):
        problem, bench, every, rng = instance(seed, table)
        names = problem.table.names
        classes = problem.labels.classes
        limit = math.floor(Fraction("1.6") * min(every.costs))
        near = [(c, t) for c, t in zip(every.costs, every.trees, strict=True) if c <= limit]
        asked: dict = {}
        column = int(rng.integers(len(names)))
        favoured = int(rng.integers(len(classes)))
        rate = ["parity", "opportunity"][rng.integers(2)]
        most = ["0", "0.25", "0.5", "0.9"][rng.integers(4)]
        if seed % 3 != 1:
            asked |= {"groups": str(names[column]), "rate": rate, "difference": most, "favoured": classes[favoured]}
        model = near[rng.integers(len(near))][1]
        rows = sorted({int(r) for r in rng.integers(0, len(every.y), 3)})
        if seed % 3 != 2:
            rows = list(range(len(every.y))) if seed % 4 == 0 else rows
            asked |= {"agrees": bench.tree(model), "agree_rows": None if seed % 4 == 0 else rows}
        most_leaves = int(rng.integers(2, 6)) if rng.random() < 0.3 else None
        recalls = {classes[0]: Fraction(int(rng.integers(0, 11)), 10)} if rng.random() < 0.2 else {}
        must = [str(names[0])] if rng.random() < 0.2 else []

        chosen = Filters(asked, column, favoured, rows, model, most_leaves, recalls, must)
        want = [(c, t) for c, t in near if passes(every, t, chosen)]
        good = bench.good_trees(slack="0.6", max_leaves=most_leaves, recalls=recalls, must=must, **asked)
        assert good.count == len(want), (seed, asked)
        assert good.limit == limit
        assert Counter(c for c, _ in want) == Counter(c for c, _ in good.trees())
        assert {t for _, t in good.trees()} == {t for _, t in want}
        assert [c for c, _ in good.first(4)] == sorted(c for c, _ in want)[:4]
        assert good.without_idle == sum(not every.idle(t) for _, t in want)
        assert good.distinct == len({every.parted(t) for _, t in want})
        assert good.first_questions == Counter(t[0] for _, t in want if t is not None)
        check_levels(good.first_columns, [t for _, t in want], bench.space.questions.columns)
        assert good.answers() == (len({every.said(t).tobytes() for _, t in want}), True)
        assert set(good.sample(20, seed=seed)) <= {t for _, t in want}
        if want:
            votes = np.array([every.said(t) for _, t in want])[:, bench.space.origin]
            assert [np.bincount(v, minlength=len(classes)).tolist() for v in votes.T] == good.votes.tolist()
            lo, hi = good.tested_weights
            for j in range(len(names)):
                met = [every.met(t, j) for _, t in want]
                assert (lo[j], hi[j]) == (min(met), max(met))
                assert good.asking(j) == sum(j in every.asked(t) for _, t in want)
        kept = kept + len(want)
        left_out = left_out + len(near) - len(want)
    assert kept > 0
    assert left_out > 0


@pytest.mark.slow
@seeds(150)
def test_required_columns_count_alike_questions_once(seed):
    """Columns are equal or complementary.

    A question that represents both may be either, but only one of them at a place.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 10))
    X = rng.integers(0, 2, (n, 4)).astype(float)
    X[:, 1] = X[:, 0]
    if seed % 2:
        X[:, 2] = 1 - X[:, 0]
    y = rng.integers(0, 2, n).astype(np.int32)
    problem = Problem(
        table=numeric_table(X),
        labels=Labels(name="y", classes=("a", "b"), codes=y),
        leaf_penalty=[Fraction(0), Fraction(1, 20)][seed % 2],
        scheme=Scheme.ALL_THRESHOLDS,
    )
    depth = 3 if seed % 3 == 0 else 2
    bench = Workbench(problem, depth=depth)
    every = Every(problem, bench, depth, 1)
    names = problem.table.names
    must = [str(name) for name in rng.permutation(names)[: 1 + seed % 4]]
    asked = {"must": must}
    if seed % 5 == 0:
        asked["max_leaves"] = 4
    limit = math.floor(2 * min(every.costs) + 2)
    good = bench.good_trees(slack_rows=Fraction(limit - min(every.costs), bench.space.instance.Q), **asked)
    wanted = {names.index(name) for name in must}
    near = [t for c, t in zip(every.costs, every.trees, strict=True) if c <= limit and wanted <= every.asked(t)]
    near = [t for t in near if leaves(t) <= asked.get("max_leaves", 8)]
    assert good.count == len(near)
    assert good.distinct == len({every.parted(t) for t in near})


def test_depth_four_is_that_of_enumeration_too():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (9, 4)).astype(float)
    y = rng.integers(0, 2, 9).astype(np.int32)
    problem = Problem(
        table=numeric_table(X),
        labels=Labels(name="y", classes=("a", "b"), codes=y),
        leaf_penalty=Fraction(1, 50),
        scheme=Scheme.ALL_THRESHOLDS,
    )
    bench = Workbench(problem, depth=4)
    every = [t for _, t in bench.good_trees(slack="0.8").trees()]
    best = bench.tree(every[0])
    chosen = bench.good_trees(
        slack="0.8", agrees=best, agree_rows=[0, 3, 4], difference="0.3", groups=problem.table.names[1]
    )

    def passes(shape):
        said = bench.tree(shape).predict(problem.matrix)
        rates = [Fraction(int(said[X[:, 1] == v].sum()), int((X[:, 1] == v).sum())) for v in (0, 1)]
        same = (said == best.predict(problem.matrix))[[0, 3, 4]].all()
        return bool(same) and abs(rates[0] - rates[1]) <= Fraction("0.3")

    want = {t for t in every if passes(t)}
    assert {t for _, t in chosen.trees()} == want
    assert 0 < chosen.count == len(want) < len(every)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"difference": "0.1"}, "name the column"),
        ({"groups": "c 0"}, "how much"),
        ({"difference": "-1", "groups": "c 0"}, "negative"),
        ({"difference": "0.1", "groups": "none"}, "not a column"),
        ({"difference": "0.1", "groups": "c 0", "rate": "luck"}, "Choose parity or opportunity"),
        ({"difference": "0.1", "groups": "c 0", "favoured": "nobody"}, "not a class"),
    ],
)
def test_bad_filters_are_refused_in_a_sentence(bad, words):
    _, bench, _, _ = instance(3)
    with pytest.raises(ParameterError, match=words):
        bench.good_trees(slack="0.1", **bad)


def test_agrees_refuses_other_columns_and_missing_rows():
    _, bench, every, _ = instance(3)
    tree = bench.tree(every.trees[0])
    with pytest.raises(ParameterError, match="use row numbers from 0"):
        bench.good_trees(slack="0.1", agrees=tree, agree_rows=[1000])
    other = Workbench(
        Problem(
            table=numeric_table(np.array([[0.0], [1.0]])),
            labels=Labels(name="y", classes=("a", "b"), codes=np.array([0, 1], np.int32)),
        )
    )
    with pytest.raises(ParameterError, match="other columns"):
        other.good_trees(slack="0.1", agrees=tree)


def test_million_keys_are_checked_quickly():
    """A stopped count states how many trees it has seen.

    When it looked at each key, that took minutes longer than its limit.
    """
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (200, 4)).astype(float)
    y = rng.integers(0, 2, 200).astype(np.int32)
    problem = Problem(table=numeric_table(X), labels=Labels(name="y", classes=("a", "b"), codes=y))
    chosen = {"groups": problem.table.names[0], "difference": "0.2", "max_leaves": 3, "recalls": {"a": "0.5"}}
    keys = Workbench(problem, depth=3).good_trees(slack="0.1", **chosen).counter.keys
    many = rng.integers(0, math.prod(keys.sizes), 1_000_000)
    begun = time.process_time()
    passes = keys.passes(many)
    assert time.process_time() - begun < 20
    assert 0 < passes.sum() < len(many)
    for key, passed in list(zip(many.tolist(), passes.tolist(), strict=True))[:2000]:
        rest = key
        amounts = []
        for size in keys.sizes:
            rest, amount = divmod(rest, size)
            amounts.append(amount)
        leaves = amounts[0]
        wrong = amounts[1]
        favoured = amounts[3:]
        rates = [Fraction(a, n) for a, n in zip(favoured, keys.group_sizes, strict=True)]
        near = max(rates) - min(rates) <= Fraction("0.2")
        assert passed == (leaves <= 3 and 2 * (keys.totals[0] - wrong) >= keys.totals[0] and near)
