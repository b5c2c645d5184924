"""The workbench equals enumeration of all trees: values, prices, conflicts and price lists."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.exact.workbench_cases import INFINITE, Brute, _plain, check_mirrors, random_wishes
from tests.trainer.oracles.workbench import (
    coarse_table,
    empty_table,
    is_smallest_conflict,
    kept,
    places,
    random_table,
)
from trainer.data.encoding import Scheme
from trainer.data.problem import Problem
from trainer.editing.wishes import parse
from trainer.errors import ParameterError, SolverError
from trainer.families.exact.workbench import Workbench
from trainer.families.numeric.editing.bench import NumericWorkbench
from trainer.families.odt.editing.bench import SubsetWorkbench
from trainer.table import Column, ColumnKind, ColumnSchema, Labels, MissingPolicy, Table, numeric_table
from trainer.training.run import TrainRequest
from trainer.tree.nodes import DraftBranch, DraftLeaf
from trainer.workbench.requests import WorkbenchSession


def instance(seed, table=random_table):
    rng = np.random.default_rng(seed)
    problem = table(seed)
    depth = int(rng.integers(0, 4)) if seed % 5 == 0 else int(rng.integers(2, 4))
    min_leaf = 2 if seed % 6 == 0 else 1
    bench = Workbench(problem, depth=depth, min_leaf=min_leaf)
    texts = random_wishes(rng, problem, bench.space.questions)
    wishes = bench.wishes(texts)
    return problem, bench, texts, wishes, Brute(problem, bench, wishes, depth, min_leaf), rng


@pytest.mark.parametrize("part", range(5))
def test_values_prices_and_conflicts_are_those_of_enumeration(part, count):
    contradicted = free = 0
    for seed in range(part, min(3 * count, 500), 5):
        found = check_completion(instance(seed))
        free += found
        contradicted += not found
    assert (free and contradicted) or count < 100


@pytest.mark.slow
@seeds(600)
def test_held_thresholds_on_few_bins_are_those_of_enumeration(seed):
    check_completion(instance(seed, coarse_table))


@pytest.mark.slow
@seeds(300)
def test_wishes_with_empty_cells_are_those_of_enumeration(seed):
    check_completion(instance(seed, empty_table))


@seeds(100)
def test_price_lists_with_empty_cells_are_those_of_enumeration(seed):
    _, bench, texts, wishes, brute, rng = instance(seed, empty_table)
    completion = bench.complete(texts)
    if completion.found:
        place, want = prices_of_enumeration(brute, wishes, _without_labels(completion.tree), rng)
        got = list(bench.price_list(place or "root", texts, tree=completion.tree))
        assert all(p.proved for p in got)
        check_mirrors(want, {p.question: p.price for p in got}, bench.space.questions)


@seeds(60)
def test_wishes_of_questions_with_empty_cells_round_trip(seed):
    questions = Workbench(empty_table(seed), depth=2).space.questions
    for number in range(questions.encoded):
        wish = questions.wish(number)
        if not wish.endswith("inf"):  # the column has one bucket only, without a threshold
            (asked,) = parse(f"ask root {wish}", questions).item.questions
            assert questions.splits[asked] == questions.splits[number]


def empty_cells_bench(values, y, **settings):
    column = Column(
        schema=ColumnSchema(name="age", kind=ColumnKind.NUMERIC, missing=MissingPolicy.LEARN),
        cells=np.array([np.nan if v is None else v for v in values], float),
    )
    full = Column(schema=replace(column.schema, name="full"), cells=np.arange(len(values), dtype=float))
    colour = ColumnSchema(name="colour", kind=ColumnKind.CATEGORICAL, categories=("a", "b"))
    table = Table(
        columns=(column, full, Column(schema=colour, cells=np.arange(len(values)) % 2.0)),
        row_numbers=np.arange(1, len(values) + 1),
    )
    labels = Labels(name="y", classes=("no", "yes"), codes=np.array(y, np.int32))
    return Workbench(Problem(table=table, labels=labels, scheme=Scheme.ALL_THRESHOLDS), **settings)


@pytest.mark.parametrize(
    ("wish", "errors", "question"),
    [
        ("ask root age <= 1.5", 0, "age ≤ 1.5, or empty"),
        ("ask root age <= 1.5 empty yes", 0, "age ≤ 1.5, or empty"),
        ("ask root age <= 1.5 empty no", 2, "age ≤ 1.5"),
        ("ask root age is empty", 1, "is age empty"),
    ],
)
def test_wish_about_empty_cells_asks_its_question(wish, errors, question):
    bench = empty_cells_bench([None, None, 1, 2, 3, 4], [0, 0, 0, 1, 1, 1], depth=1)
    completion = bench.complete([wish])
    assert completion.cost == errors
    assert bench.space.questions.text(completion.tree[0]) == question


@pytest.mark.parametrize(
    ("wish", "word"),
    [
        ("ask root full <= 2 empty yes", "No training row has an empty cell in 'full'"),
        ("ask root colour is empty", "colour in"),
        ("ask root agee is empty", "There is no column 'agee'"),
        ("ask root age <= 2 empty perhaps", "not a number"),
    ],
)
def test_wrong_wish_about_empty_cells_is_refused(wish, word):
    with pytest.raises(ParameterError, match=word):
        empty_cells_bench([None, None, 1, 2, 3, 4], [0, 0, 0, 1, 1, 1]).complete([wish])


def check_completion(made):
    """Compare a completion with all trees: cost, prices and conflict. Return whether a tree meets the constraints."""
    problem, bench, texts, wishes, brute, _ = made
    want = brute.best(wishes)
    completion = bench.complete(texts)
    if want == INFINITE:
        assert not completion.found
        assert completion.reason
        assert is_smallest_conflict(completion.conflict, brute.best, INFINITE)
        return False
    assert completion.found
    assert completion.cost == completion.bound == want, texts
    shape = _without_labels(completion.tree)
    assert kept(shape, [_plain(w) for w in wishes], brute.columns)
    assert brute.cost(shape, [_plain(w) for w in wishes]) == want
    errors, leaves = bench.space.cost_of(completion.tree)
    assert errors + leaves * brute.penalty == want
    tree = bench.tree(completion.tree)
    assert problem.n - problem.correct(tree) == errors
    assert [p.wish for p in completion.prices] == list(wishes)
    for price in completion.prices:
        without = brute.best([w for w in wishes if w != price.wish])
        assert price.price == want - without >= 0, (texts, price)
    assert completion.optimum.cost == completion.optimum.bound == brute.best([]), texts
    return True


def _without_labels(tree):
    return (tree[0], _without_labels(tree[1]), _without_labels(tree[2])) if isinstance(tree, tuple) else None


def prices_of_enumeration(brute, wishes, tree, rng):
    """Return a place of the tree, and the price of each question that is possible there."""
    place = str(rng.choice([p for p, _ in places(tree)]))
    path = _ancestors(tree, place)
    others = [w for w in wishes if not (w.place == place and w.item.verb in ("ask", "leaf"))]
    spoken = [_plain(w) for w in others]
    spoken += [("ask", place[:k], q, brute.columns[q], None, None) for k, q in enumerate(path)]
    # The costs of other branches cancel out in the difference.
    trees = [t for t in brute.trees if kept(t, spoken, brute.columns)]
    least = min(brute.cost(t, spoken) for t in trees)
    want = {}
    for t in trees:
        part_there = dict(places(t)).get(place)
        if part_there is not None:
            q = part_there[0]
            want[q] = min(want.get(q, INFINITE), brute.cost(t, spoken) - least)
    return place, want


@pytest.mark.parametrize("part", range(3))
def test_price_lists_are_those_of_enumeration(part, count):
    lists = 0
    for seed in range(part, min(8 * count, 500), 3):
        _, bench, texts, wishes, brute, rng = instance(seed, [random_table, coarse_table][seed % 2])
        completion = bench.complete(texts)
        if not completion.found:
            continue
        place, want = prices_of_enumeration(brute, wishes, _without_labels(completion.tree), rng)
        got = list(bench.price_list(place or "root", texts, tree=completion.tree))
        assert all(p.proved for p in got)
        check_mirrors(want, {p.question: p.price for p in got}, bench.space.questions)
        for p in got:
            assert p.tree[0] == p.question
        lists += len(got) > 0
    assert lists > 0 or count < 100


def test_stopped_price_list_has_valid_bounds(count):
    bounds = 0
    for seed in range(1, min(count, 150), 2):
        problem, bench, texts, wishes, brute, rng = instance(seed)
        completion = bench.complete(texts)
        if not completion.found:
            continue
        place, want = prices_of_enumeration(brute, wishes, _without_labels(completion.tree), rng)
        for patience in (0, 1, 2, 3, 5, 8, 13, 21):
            asked = itertools.count()
            fresh = Workbench(problem, depth=bench.depth, min_leaf=bench.space.min_leaf)
            stop = lambda asked=asked, patience=patience: next(asked) >= patience  # noqa: E731
            got = list(fresh.price_list(place or "root", texts, tree=completion.tree, stop=stop))
            assert {p.question for p in got} >= set(want) - set(brute.mirrors), (seed, patience)
            for p in got:
                price = want.get(p.question, INFINITE)
                assert p.price == price if p.proved else 0 <= p.price <= price, (seed, patience, p)
                bounds += not p.proved
    assert bounds > 0


def _ancestors(tree, place):
    path = []
    for letter in place:
        path.append(tree[0])
        tree = tree[1] if letter == "y" else tree[2]
    return path


def test_an_edit_below_a_node_searches_nothing_off_its_way():
    rng = np.random.default_rng(3)
    problem = random_table(11)
    X = rng.integers(0, 2, (300, 14))
    y = rng.integers(0, 2, 300).astype(np.int32)
    from trainer.data.problem import Problem
    from trainer.table import Labels, numeric_table

    problem = Problem(
        table=numeric_table(X.astype(float)),
        labels=Labels(name="y", classes=("a", "b"), codes=y),
        leaf_penalty=problem.leaf_penalty,
    )
    bench = Workbench(problem, depth=4)
    first = bench.complete(["ask root x0 <= 0.5"])
    place = "y"
    second = bench.complete(["ask root x0 <= 0.5", f"forbid {place} x1"])
    fresh = Workbench(problem, depth=4).complete(["ask root x0 <= 0.5", f"forbid {place} x1"])
    assert second.cost == fresh.cost
    assert second.states < 0.7 * fresh.states
    assert first.states > 0


@pytest.mark.parametrize(
    ("wish", "word"),
    [
        ("please", "ask PLACE"),
        ("ask q c 0", "not a place"),
        ("ask root nothing", "no column"),
        ("ask root c 0 <= many", "not a number"),
        ("leaf y nobody", "no class"),
        ("depth y deep", "whole number"),
        ("forbid y cc", "no column"),
    ],
)
def test_invalid_wish_is_refused_in_a_sentence(wish, word):
    bench = Workbench(random_table(1))
    with pytest.raises(ParameterError, match=word):
        bench.complete([wish])


def test_a_stopped_search_keeps_a_tree_and_a_valid_bound():
    rng = np.random.default_rng(5)
    from trainer.data.problem import Problem
    from trainer.table import Labels, numeric_table

    X = rng.integers(0, 2, (400, 60))
    y = rng.integers(0, 2, 400).astype(np.int32)
    problem = Problem(table=numeric_table(X.astype(float)), labels=Labels(name="y", classes=("a", "b"), codes=y))
    calls = itertools.count()
    completion = Workbench(problem, depth=4).complete(["forbid y x3", "ask n x5"], stop=lambda: next(calls) > 40)
    if completion.found:
        assert completion.bound <= completion.cost
        assert completion.cost <= 200
    assert not completion.optimal
    assert all(p.price is None for p in completion.prices)


@seeds(20)
def test_questions_have_the_decimals_of_stored_trees(seed):
    problem = random_table(seed)
    rng = np.random.default_rng(seed)
    values = rng.lognormal(size=len(problem.table)).round(3)
    column = Column(schema=ColumnSchema(name="long decimals", kind=ColumnKind.NUMERIC), cells=values)
    problem = replace(problem, table=replace(problem.table, columns=(*problem.table.columns, column)))
    bench = Workbench(problem, depth=2)
    questions = bench.space.questions
    known = len(questions.splits)
    tree = bench.tree(bench.complete([]).tree)
    assert tree == problem.finish(tree)
    for number in range(questions.encoded):
        split = questions.splits[number]
        trained = problem.finish(
            problem.tree(DraftBranch(split=split, left=DraftLeaf(label=0), right=DraftLeaf(label=0)))
        )
        assert trained.nodes[0].split == split
        # A constraint copied from a trained tree must mean the split of the encoding.
        assert questions.find(trained.nodes[0].split) == number
    assert len(questions.splits) == known


def test_avoided_question_does_not_exclude_equivalent_questions():
    X = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]], float)
    y = np.array([0, 1, 0, 1], np.int32)
    problem = Problem(
        table=numeric_table(X), labels=Labels(name="y", classes=("a", "b"), codes=y), leaf_penalty=Fraction(1, 50)
    )
    bench = Workbench(problem, depth=1)
    for column in ("x0", "x1"):
        completion = bench.complete([f"avoid root {column}"])
        assert (completion.cost, completion.bound) == (Fraction(4, 25), Fraction(4, 25))  # two leaves without an error
        assert [wish.price for wish in completion.prices] == [0]


def test_wishes_ask_either_of_two_categories():
    """Only rows of category p are separated by `a`, so `ask y a` needs p on the yes side."""
    columns = [
        Column(
            schema=ColumnSchema(name="b", kind=ColumnKind.CATEGORICAL, categories=("p", "q")),
            cells=np.array([0.0, 0, 1, 1]),
        ),
        Column(schema=ColumnSchema(name="a", kind=ColumnKind.BINARY), cells=np.array([0.0, 1, 1, 1])),
    ]
    for turn in (0, 1):
        columns[0] = replace(columns[0], cells=abs(turn - columns[0].values))
        problem = Problem(
            table=Table(columns=tuple(columns), row_numbers=np.arange(1, 5)),
            labels=Labels(name="class", classes=("no", "yes"), codes=np.array([0, 1, 1, 1], np.int32)),
        )
        for bench in (
            Workbench(problem, depth=2),
            NumericWorkbench(problem, depth=2),
            SubsetWorkbench(problem, depth=2),
        ):
            for side in ("y", "n"):
                completion = bench.complete(["ask root b", f"ask {side} a"])
                assert completion.optimal
                assert completion.cost == 0


def session_of(problem, method="exact", **parameters):
    """Return a session on the rows of a problem."""
    given = {"depth": 2, "leaf_penalty": float(problem.leaf_penalty), **parameters}
    return WorkbenchSession(TrainRequest(table=problem.table, labels=problem.labels, method=method, parameters=given))


@seeds(60)
def test_plain_search_confirms_what_is_called_optimal(seed):
    problem = replace(coarse_table(seed), weights=None)
    session = session_of(problem, bins=2) if seed % 2 else session_of(problem, "exact-numeric")
    texts = random_wishes(np.random.default_rng(seed), problem, session.bench.space.questions)[:2]
    completion = session.complete(texts, session.monitor())
    if not completion.found:
        return
    assert session.result(completion, session.monitor()).certificate.status == "optimal"
    if completion.cost < problem.n and completion.optimum.cost < completion.cost:
        worse = replace(completion.optimum, cost=completion.cost, bound=completion.cost)
        with pytest.raises(SolverError, match="Two searches disagree"):
            session.result(replace(completion, optimum=worse), session.monitor())


def test_tree_that_is_not_the_best_is_never_called_optimal():
    values = np.array([2.5, 2.5, 0.5, -1.0])
    problem = Problem(
        table=Table(
            columns=(Column(schema=ColumnSchema(name="a", kind=ColumnKind.NUMERIC), cells=values),),
            row_numbers=np.arange(1, 5),
        ),
        labels=Labels(name="class", classes=("no", "yes"), codes=np.array([0, 0, 1, 0], np.int32)),
    )
    session = session_of(problem, bins=2)
    completion = session.complete(["ask root a <= -0.3"], session.monitor())
    assert completion.cost == completion.bound == 0
    wrong = replace(completion, tree=(completion.tree[0], 0, 0), cost=Fraction(1), bound=Fraction(1))
    with pytest.raises(SolverError, match="Two searches disagree"):
        session.result(wrong, session.monitor())
