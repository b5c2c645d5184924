"""The workbench over all thresholds equals enumeration: values, prices, conflicts and price lists."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.exact.workbench_cases import INFINITE, Brute, _plain, random_wishes
from tests.trainer.oracles.workbench import (
    check_stopped_lists,
    column_prices,
    empty_table,
    is_smallest_conflict,
    kept,
    places,
    plain,
    random_table,
)
from trainer.data.problem import Problem
from trainer.editing.wishes import parse
from trainer.families.numeric.editing import prefix as prefixes
from trainer.families.numeric.editing.bench import NumericWorkbench
from trainer.families.numeric.search import NumericProblem, solve_numeric
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, Table, numeric_table


def many_values(seed: int) -> Problem:
    """Return two numeric columns with a value for each row, and a category.

    Some places have more thresholds than are tried one by one.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 12))
    columns = [
        Column(schema=ColumnSchema(name=f"c {j}", kind=ColumnKind.NUMERIC), cells=rng.permutation(n).astype(float))
        for j in range(2)
    ]
    levels = ColumnSchema(name="c 2", kind=ColumnKind.CATEGORICAL, categories=("a", "b", "c d"))
    columns.append(Column(schema=levels, cells=rng.integers(0, 3, n).astype(float)))
    return Problem(
        table=Table(columns=tuple(columns), row_numbers=np.arange(1, n + 1)),
        labels=Labels(name="class", classes=("no", "yes"), codes=rng.integers(0, 2, n).astype(np.int32)),
        leaf_penalty=[Fraction(0), Fraction(1, 20)][seed % 2],
        weights=rng.integers(1, 4, n) if seed % 3 == 0 else None,
    )


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(prefixes, "FEW", prefixes.FEW)


def instance(seed, table=None):
    rng = np.random.default_rng(seed)
    prefixes.FEW = 8 if seed % 4 == 0 else 0  # with 0, the proof of one threshold bounds others at most places
    many = seed % 20 == 0
    problem = table(seed) if table else many_values(seed) if many else random_table(seed, max_rows=9)
    depth = 3 if seed % 8 == 3 else 2
    bench = NumericWorkbench(problem, depth=depth)
    texts = random_wishes(rng, problem, bench.space.questions)[:3]
    wishes = bench.wishes(texts)
    return problem, bench, texts, wishes, Brute(problem, bench, wishes, depth), rng


@pytest.mark.slow
@seeds(240)
def test_values_prices_and_conflicts_are_those_of_enumeration(seed):
    check_completion(instance(seed))


@pytest.mark.slow
@seeds(240)
def test_wishes_with_empty_cells_are_those_of_enumeration(seed):
    check_completion(instance(seed, empty_table))


@seeds(40)
def test_wishes_of_questions_with_empty_cells_round_trip(seed):
    questions = NumericWorkbench(empty_table(seed), depth=2).space.questions
    for number in range(questions.encoded):
        assert parse(f"ask root {questions.wish(number)}", questions).item.questions == (number,)


def check_completion(made):
    problem, bench, texts, wishes, brute, _ = made
    want = brute.best(wishes)
    completion = bench.complete(texts)
    if want == INFINITE:
        assert not completion.found
        assert completion.reason
        assert is_smallest_conflict(completion.conflict, brute.best, INFINITE)
        return
    assert completion.found
    assert completion.cost == completion.bound == want
    shape = plain(completion.tree)
    assert kept(shape, [_plain(w) for w in wishes], brute.columns)
    assert brute.cost(shape, [_plain(w) for w in wishes]) == want
    errors, leaves = bench.space.cost_of(completion.tree)
    assert errors + leaves * brute.penalty == want
    assert problem.n - problem.correct(bench.tree(completion.tree)) == errors
    for price in completion.prices:
        assert price.price == want - brute.best([w for w in wishes if w != price.wish]) >= 0
    assert completion.optimum.cost == completion.optimum.bound == brute.best([])


@seeds(120)
def test_price_lists_give_the_cheapest_question_of_each_column(seed):
    check_price_list(seed, instance(seed))


@seeds(80)
def test_price_lists_with_empty_cells_are_those_of_enumeration(seed):
    check_price_list(seed, instance(seed, empty_table))


def check_price_list(seed, made):
    problem, bench, texts, wishes, brute, rng = made
    completion = bench.complete(texts)
    if not completion.found:
        return
    tree = plain(completion.tree)
    place = str(rng.choice([p for p, _ in places(tree)]))
    spoken = [_plain(w) for w in wishes if not (w.place == place and w.item.verb in ("ask", "leaf"))]
    want = column_prices(brute, tree, place, spoken)
    got = list(bench.price_list(place or "root", texts, tree=completion.tree))
    assert all(p.proved for p in got)
    assert {brute.columns[p.question]: p.price for p in got} == want
    assert all(p.tree[0] == p.question for p in got)
    if seed % 4 == 0:
        depth = 3 if seed % 8 == 3 else 2
        check_stopped_lists(lambda: NumericWorkbench(problem, depth=depth), bench, texts, completion.tree, place, want)


def test_proved_threshold_prunes_its_neighbours(monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(150, 3)).round(3)
    y = (X[:, 0] + rng.normal(size=150) * 0.5 > 0).astype(np.int32)
    problem = Problem(
        table=numeric_table(X), labels=Labels(name="y", classes=("a", "b"), codes=y), leaf_penalty=Fraction(1, 100)
    )
    wishes = ["forbid y x0", "leaf ny"]
    bench = NumericWorkbench(problem, depth=2)
    completion = bench.complete(wishes, prices=False)
    monkeypatch.setattr(prefixes, "FEW", 10**9)  # each threshold is searched by itself
    plainly = NumericWorkbench(problem, depth=2)
    assert plainly.complete(wishes, prices=False).cost == completion.cost == completion.bound
    assert bench.space.nodes < 0.7 * plainly.space.nodes
    # Without constraints, the cost is that of the training.
    free = solve_numeric(NumericProblem(problem.matrix, y, n_classes=2, depth=2, leaf_cost=problem.kappa))
    assert bench.complete([]).cost == free.cost


def test_held_threshold_is_exact_and_costs_like_its_neighbour():
    problem = many_values(3)
    bench = NumericWorkbench(problem, depth=2)
    held, own = (bench.complete([f"ask root c 0 <= {t}"]) for t in ("3.14159", "3.5"))
    assert held.cost == own.cost
    assert bench.tree(held.tree).nodes[0].split.threshold == 3.14159
    # The split of the encoding sends the same rows, so the optimum does not change.
    assert held.optimum.cost == bench.complete([]).cost


def test_a_stopped_search_keeps_a_valid_bound():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 4))
    y = rng.integers(0, 2, 200).astype(np.int32)
    problem = Problem(table=numeric_table(X), labels=Labels(name="y", classes=("a", "b"), codes=y))
    for patience in (0, 4, 40):
        left = iter(range(patience))
        completion = NumericWorkbench(problem, depth=3).complete(
            ["forbid y x3", "depth n 1"], stop=lambda left=left: next(left, None) is None
        )
        assert not completion.optimal
        if completion.found:
            assert completion.bound <= completion.cost <= 100


@pytest.mark.parametrize("depth", [0, 1])
def test_shallow_trees(depth):
    bench = NumericWorkbench(many_values(1), depth=depth)
    completion = bench.complete(["ask root c 0"])
    assert completion.found == (depth > 0)
    assert bench.complete([]).optimal


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("wish", ["ask root c 0 in a", "ask root c 0 in b"])
def test_category_of_all_rows_is_not_taken_for_another_question(turn, wish):
    columns = [
        Column(schema=ColumnSchema(name="c 0", kind=ColumnKind.CATEGORICAL, categories=("a", "b")), cells=np.eye(4)[3]),
        Column(schema=ColumnSchema(name="c 1", kind=ColumnKind.NUMERIC), cells=np.arange(4.0)),
    ][::turn]
    problem = Problem(
        table=Table(columns=tuple(columns), row_numbers=np.arange(1, 5)),
        labels=Labels(name="class", classes=("no", "yes"), codes=np.array([0, 1, 0, 1], np.int32)),
        weights=np.array([1, 1, 1, 0]),  # the only row with category b has weight 0
    )
    completion = NumericWorkbench(problem, depth=1).complete([wish])
    assert [w.text for w in completion.conflict] == [wish]
    assert f"'c 0 is {wish[-1]}' does not separate the rows" in completion.reason
