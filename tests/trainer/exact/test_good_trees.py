"""Good trees equal enumeration: counts, filters, order, samples, ranges and answers."""

from __future__ import annotations

import gc
import json
import math
import weakref
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.exact.good_trees_cases import check_levels
from tests.trainer.oracles.good_trees import Every, instance, leaves
from tests.trainer.oracles.missing import partitions
from tests.trainer.oracles.workbench import empty_table, random_table
from trainer.data.encoding import Scheme
from trainer.data.problem import Problem
from trainer.data.reader import load
from trainer.editing.space import SearchStopped
from trainer.errors import ParameterError
from trainer.families.exact.rashomon import count as counting
from trainer.families.exact.rashomon.listing import Lister
from trainer.families.exact.workbench import Workbench
from trainer.table import Labels, numeric_table
from trainer.workbench.ballot import ballot_from_json, ballot_record


def test_unreferenced_workbench_is_freed_at_once():
    """Its rows take much memory, which a circle of references would keep until Python searches for circles."""
    _, bench, _, _ = instance(1)
    good = bench.good_trees(slack="0.37")
    assert good.count
    assert len(list(good.trees())) == good.count
    held = [weakref.ref(one) for one in (bench, bench.space, good.counter)]
    gc.disable()
    try:
        del bench, good, _
        assert [one() for one in held] == [None, None, None]
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize("table", [random_table, empty_table])
@pytest.mark.parametrize("part", range(5))
def test_counts_order_and_ranges_are_those_of_enumeration(part, table, count):
    for seed in range(part, min(8 * count, 500), 5):
        problem, bench, every, rng = instance(seed, table)
        slack = ["0", "0.1", "0.37", "1", "5"][rng.integers(5)]
        rows = ["0", "1", "2.5"][rng.integers(3)] if rng.random() < 0.4 else None
        good = bench.good_trees(slack_rows=rows) if rows else bench.good_trees(slack=slack)
        Q = bench.space.instance.Q
        least = min(every.costs)
        limit = math.floor(least + Fraction(rows) * Q) if rows else math.floor((1 + Fraction(slack)) * least)
        assert (good.least, good.limit) == (least, limit), seed
        want = [(c, t) for c, t in zip(every.costs, every.trees, strict=True) if c <= limit]
        assert good.count == len(want), seed
        by_cost = Counter(c for c, _ in want)
        assert Counter({c: n for c, _, n in good.levels}) == by_cost
        assert good.without_idle == sum(not every.idle(t) for _, t in want), seed
        assert good.distinct == len({every.parted(t) for _, t in want}), seed
        assert good.first_questions == Counter(t[0] for _, t in want if t is not None)
        assert good.numbers() == [(c, sum(other <= c for other, _ in want)) for c in sorted(by_cost)]
        check_levels(good.first_columns, [t for _, t in want], bench.space.questions.columns)
        listed = list(good.trees())
        assert [c for c, _ in listed] == sorted(c for c, _ in want)
        assert {t for _, t in listed} == {t for _, t in want}
        first = list(good.first(5))
        assert [c for c, _ in first] == sorted(c for c, _ in want)[:5]
        assert set(first) <= set(want), seed
        assert len(set(first)) == len(first)
        lo, hi = good.tested_weights
        for column in range(len(problem.table.columns)):
            met = [every.met(t, column) for _, t in want]
            assert (lo[column], hi[column]) == (min(met), max(met)), (seed, column)
            assert good.asking(column) == sum(column in every.asked(t) for _, t in want)
        assert good.answers() == (len({every.said(t).tobytes() for _, t in want}), True)
        best = bench.best_trees(20)
        assert [c * Q for c, _ in best] == sorted(every.costs)[:20]
        counted = [np.bincount(v, minlength=problem.n_classes) for v in np.array([every.said(t) for _, t in want]).T]
        weighted = np.flatnonzero(every.w)
        depends = [(len(want) - counted[row].max(), row) for row in weighted if counted[row].max() < len(want)]
        assert [row for row, _ in good.disputed_rows()] == [
            row for _, row in sorted(depends, key=lambda d: (-d[0], d[1]))
        ]
        assert all(list(votes) == list(counted[row]) for row, votes in good.disputed_rows())
        shares = good.shares()
        votes = np.array([every.said(t) for _, t in want])
        for i, origin in enumerate(bench.space.origin):
            counts = np.bincount(votes[:, origin], minlength=problem.n_classes)
            assert list(good.votes[i]) == list(counts)
            assert shares[i] == pytest.approx(counts / len(want))


@pytest.mark.slow
@pytest.mark.parametrize("table", [random_table, empty_table])
@pytest.mark.parametrize("part", range(3))
def test_filters_choose_among_the_same_good_trees(part, table, count):
    chosen = 0
    for seed in range(part, min(8 * count, 500), 3):
        problem, bench, every, rng = instance(seed, table)
        names = problem.table.names
        must = [str(n) for n in names if rng.random() < 0.3][:2]
        without = [str(n) for n in names if n not in must and rng.random() < 0.25]
        most = int(rng.integers(1, 7)) if rng.random() < 0.5 else None
        recalls = {problem.labels.classes[0]: Fraction(int(rng.integers(0, 11)), 10)} if rng.random() < 0.4 else {}
        good = bench.good_trees(slack="0.4", must=must, without=without, max_leaves=most, recalls=recalls)
        limit = math.floor(Fraction("1.4") * min(every.costs))
        wanted = {names.index(n) for n in must}
        banned = {names.index(n) for n in without}

        def passes(tree, wanted=wanted, banned=banned, most=most, recalls=recalls, every=every, problem=problem):
            if not wanted <= every.asked(tree) or banned & every.asked(tree):
                return False
            if most is not None and leaves(tree) > most:
                return False
            for share in recalls.values():
                own = every.y == 0
                right = every.w[own & (every.said(tree) == 0)].sum()
                if right < share * int(every.w[own].sum()):
                    return False
            return True

        want = [(c, t) for c, t in zip(every.costs, every.trees, strict=True) if c <= limit and passes(t)]
        assert good.limit == limit
        assert good.count == len(want), (seed, must, without, most, recalls)
        assert good.without_idle == sum(not every.idle(t) for _, t in want)
        assert {t for _, t in good.trees()} == {t for _, t in want}
        assert good.first_questions == Counter(t[0] for _, t in want if t is not None)
        assert good.answers() == (len({every.said(t).tobytes() for _, t in want}), True)
        if want:
            lo, hi = good.tested_weights
            for column in range(len(names)):
                met = [every.met(t, column) for _, t in want]
                assert (lo[column], hi[column]) == (min(met), max(met)), (seed, column)
            chosen += len(want)
            assert set(good.sample(30, seed=seed)) <= {t for _, t in want}
    assert chosen > 0


def test_first_trees_are_listed_from_a_count_up_to_the_last_one(monkeypatch):
    budgets: list[int] = []
    tried = 0
    choices = Lister.choices
    monkeypatch.setattr(
        Lister, "choices", lambda self, entry, rows: budgets.append(entry.budget) or choices(self, entry, rows)
    )
    for seed in range(12):
        _, bench, every, _ = instance(seed)
        for most in (1, 7, 30):
            good = bench.good_trees(slack="4")
            if good.count < most:
                continue
            budgets.clear()
            bench.best_trees(most)
            list(good.first(most))
            assert max(budgets) == sorted(every.costs)[most - 1], (seed, most)
            tried += 1
    assert tried > 20


def test_a_sample_is_uniform():
    _, bench, _, _ = instance(3)
    good = bench.good_trees(slack="1")
    assert 5 < good.count < 3000
    drawn = Counter(good.sample(20 * good.count, seed=1))
    assert set(drawn) <= {t for _, t in good.trees()}
    chi = sum((drawn[t] - 20) ** 2 / 20 for _, t in good.trees())
    # chi has mean count - 1 and deviation sqrt(2 (count - 1)). Five deviations are permitted.
    assert chi < good.count - 1 + 5 * math.sqrt(2 * (good.count - 1))


def test_depth_four_is_that_of_enumeration_too(count):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 2, (9, 4)).astype(float)
        y = rng.integers(0, 2, 9).astype(np.int32)
        problem = Problem(
            table=numeric_table(X), labels=Labels(name="y", classes=("a", "b"), codes=y), leaf_penalty=Fraction(1, 50)
        )
        bench = Workbench(problem, depth=4)
        every = Every(problem, bench, 4, 1)
        good = bench.good_trees(slack="0.5")
        limit = math.floor(Fraction("1.5") * min(every.costs))
        assert good.count == sum(c <= limit for c in every.costs)
        assert len(set(good.trees())) == good.count
        near = [t for c, t in zip(every.costs, every.trees, strict=True) if c <= limit]
        check_levels(good.first_columns, near, bench.space.questions.columns)


def test_count_does_not_depend_on_bounds_of_the_search():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 2, (60, 7)).astype(float)
    y = rng.integers(0, 2, 60).astype(np.int32)
    problem = Problem(
        table=numeric_table(X), labels=Labels(name="y", classes=("a", "b"), codes=y), leaf_penalty=Fraction(1, 50)
    )
    at_once = Workbench(problem, depth=4)
    later = Workbench(problem, depth=4)
    later.complete([])
    before = later.space.nodes
    counts = [bench.good_trees(slack="0.1").count for bench in (at_once, later)]
    assert counts[0] == counts[1] > 0
    assert at_once.space.nodes < later.space.nodes
    assert before < later.space.nodes


def test_repeated_rows_count_like_weighted_rows():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, (12, 3)).astype(float)
        y = rng.integers(0, 3, 12).astype(np.int32)
        times = rng.integers(0, 7, 12)
        repeated = rng.permutation(np.repeat(np.arange(12), times))

        def counted(rows, weights=None, X=X, y=y):
            labels = Labels(name="y", classes=("a", "b", "c"), codes=y[rows])
            problem = Problem(
                table=numeric_table(X[rows]),
                labels=labels,
                leaf_penalty=Fraction(1, 50),
                weights=weights,
                scheme=Scheme.ALL_THRESHOLDS,
            )
            good = Workbench(problem, depth=2).good_trees(slack="0.3")
            of_row = [rows[row] for row, _ in good.disputed_rows()]
            return good.levels, good.answers(), good.tested_weights[1].tolist(), set(of_row)

        some = np.flatnonzero(times)
        assert counted(repeated) == counted(some, times[some].astype(np.int64)), seed


def test_numbers_beyond_64_bits_stay_exact():
    a = counting.CountedTrees(3, np.array([1, 2]), np.array([1, 2]), np.array([1 << 40, 3]), (1 << 40) + 3, 9)
    bag = counting.Bag((1 << 62) - 1)
    bag.pairs(a, a, 0, 9, np.zeros(1, np.uint8))
    bag.pairs(a, a, 0, 9, np.zeros(1, np.uint8))
    keys, costs, counts, total = bag.sorted_entries()
    assert list(keys) == list(costs) == [2, 3, 4]
    assert list(counts) == [2 << 80, 12 << 40, 18]
    assert total == 2 * ((1 << 40) + 3) ** 2


def test_stopped_count_reports_lower_bounds():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (300, 30)).astype(float)
    y = rng.integers(0, 2, 300).astype(np.int32)
    problem = Problem(
        table=numeric_table(X), labels=Labels(name="y", classes=("a", "b"), codes=y), leaf_penalty=Fraction(1, 100)
    )
    bench = Workbench(problem, depth=4)
    bench.best_trees(1)
    good = bench.good_trees(slack="0.1")
    good.space.begin(0.0, None)
    with pytest.raises(SearchStopped):
        _ = good.count
    assert good.at_least() >= 0


@pytest.mark.parametrize(
    "bad",
    [{}, {"slack": "0.1", "slack_rows": "1"}, {"slack": "much"}, {"slack": "-1"}, {"slack": "0", "must": ["none"]}],
)
def test_bad_limits_are_refused_in_a_sentence(bad):
    with pytest.raises(ParameterError):
        Workbench(random_table(1)).good_trees(**bad)


def test_the_published_counts_for_tic_tac_toe(data_folder):
    table, labels, _ = load(data_folder / "tic-tac-toe.csv", target="class")
    for penalty, depth, least, limit, count in (
        (Fraction(1, 100), 4, "247.48", "259.84", 13_488),
        (Fraction(10, 958), 4, "250", "262", 3_664),
        (Fraction(1, 100), 3, None, None, 4_952),
        (Fraction(10, 958), 3, None, None, 4_952),
    ):
        bench = Workbench(Problem(table=table, labels=labels, leaf_penalty=penalty), depth=depth)
        good = bench.good_trees(slack="0.05")
        assert good.count == count
        if least:
            Q = bench.space.instance.Q
            assert (Fraction(good.least, Q), Fraction(good.limit, Q)) == (Fraction(least), Fraction(limit))


def test_counts_equal_those_of_praxis_and_treefarms(data_folder):
    """The numbers come from tree-praxis 0.0.30 with `majority_leaf_only` (whole penalties, limits 263 and 286) and TreeFARMS 0.2.4."""
    table, labels, _ = load(data_folder / "tic-tac-toe.csv", target="class")
    whole = Workbench(Problem(table=table, labels=labels, leaf_penalty=Fraction(10, 958)), depth=4)
    assert whole.good_trees(slack_rows=263 - 250).count == 9_072
    assert whole.good_trees(slack_rows=286 - 250).count == 62_977_828
    three = Workbench(Problem(table=table, labels=labels, leaf_penalty=Fraction(1, 100)), depth=3)
    assert three.good_trees(slack="0.05").without_idle == 680


@pytest.mark.parametrize(("exchanged", "three", "four"), [(False, 680, 863_040), (True, 572, 811_136)])
def test_treefarms_counts_without_trivial_splits_depend_on_ties(exchanged, three, four, data_folder):
    """TreeFARMS 0.2.4 gives a leaf without a majority its class 1, and octweb the first class.

    It found the same numbers by its own limits.
    """
    table, labels, _ = load(data_folder / "tic-tac-toe.csv", target="class")
    if exchanged:
        labels = replace(labels, codes=1 - labels.codes)
    problem = Problem(table=table, labels=labels, leaf_penalty=Fraction(1, 100))
    assert Workbench(problem, depth=3).good_trees(slack="0.05").without_idle == three
    limit = Fraction("278.04")
    least = Fraction("247.48")
    assert Workbench(problem, depth=4).good_trees(slack_rows=limit - least).without_idle == four


@seeds(90)
def test_questions_on_missing_values_separate_rows_once(seed):
    """The counted questions are compared with those of the definition. No partition is missing or counted twice."""
    problem = replace(empty_table(seed), scheme=Scheme.ALL_THRESHOLDS)
    questions = Workbench(problem, depth=2).space.questions
    answers = [questions.answers(q) for q in range(questions.encoded)]
    asked = Counter(partition(left) for left in answers if left.any() and not left.all())
    wanted = Counter()
    for column in problem.table.columns:
        alone = partitions(replace(problem.table, columns=(column,)))
        wanted.update({partition(left) for left in alone if left.any() and not left.all()})
    assert asked == wanted


def partition(left):
    """Return both sides of a question, whichever is called yes."""
    return frozenset({left.tobytes(), (~left).tobytes()})


@pytest.mark.slow
@pytest.mark.parametrize("table", [random_table, empty_table])
def test_a_ballot_answers_any_row_as_all_trees_do(table, count):
    """New rows mix the values of training rows. Each good tree of the enumeration predicts them on its own."""
    differed = 0
    for seed in range(4 * count):
        problem, bench, every, rng = instance(seed, table)
        good = bench.good_trees(slack="0.37")
        schema = problem.table.schema
        ballot = ballot_from_json(json.loads(json.dumps(ballot_record(bench, good, schema))), schema)
        want = [t for c, t in zip(every.costs, every.trees, strict=True) if c <= good.limit]
        assert len(ballot.trees) == good.count == len(want)
        trees = [bench.tree(t) for t in want]
        for _ in range(6):
            row = np.array([rng.choice(column.values) for column in problem.table.columns], np.float64)
            found = ballot.votes(row, problem.n_classes)
            if any(split.empty_in(row) for split in ballot.questions):
                assert found is None
                continue
            answers = [int(tree.predict(row.reshape(1, -1))[0]) for tree in trees]
            assert found == list(np.bincount(answers, minlength=problem.n_classes)), seed
            differed += len(set(answers)) > 1
    assert differed
